/* torture MODEL [OPTION]... [--repeats] - hostile ONNX files.
 * torture MODEL --cut OUT - the model with the data of its tensors cut to a few bytes.
 *
 * Every byte of MODEL's structure (all but the data of tensors) takes other values, and MODEL is
 * cut short at every length up to 4 KiB; each such file goes through all that peakproof does
 * (../tflite/exercise.c). A byte inside a text takes one other value only: a name that differs
 * there is another name, whichever it is; its first and last byte take all. Nodes, initialisers
 * and descriptions of values that are alike but for their names and numbers are repeats: three of
 * a kind are done, the others with --repeats, and then they alone. The other options:
 * ../fuzz/torture.h. Build it with sanitizers. Prints how many files there were, how many were
 * refused, and exits with 0; anything else aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/onnx_wire.h"
#include "memory.h"
#include "onnx.pb-c.h"
#include "torture.h"

enum { KEPT = 4 }; /* bytes of data that count as structure, and that --cut leaves */

/* ---- What is structure ---- */

/* Payloads of tensors, which nothing is read from: bytes and packed numbers, all but their first
 * few. (Names are texts; attributes are bytes, but some are read.) */
static bool is_data(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *known,
                    const pp_wire_field *field) {
  return type == &onnx__tensor_proto__descriptor && known &&
         known->type != PROTOBUF_C_TYPE_MESSAGE && known->type != PROTOBUF_C_TYPE_STRING &&
         field->type == WIRE_BYTES && field->end - field->body > 2 * KEPT;
}

static void mark_field(struct torture *torture, const ProtobufCFieldDescriptor *known,
                       const pp_wire_field *field, bool data) {
  size_t size = field->end - field->body;
  if (data)
    memset(torture->mark + field->body + KEPT, TORTURE_DATA, size - KEPT);
  else if (known && known->type == PROTOBUF_C_TYPE_STRING && size > 2)
    memset(torture->mark + field->body + 1, TORTURE_TEXT, size - 2);
}

/* A field with a length (at byte `length`) and a payload, less `cut` bytes. */
struct record {
  size_t length, body, end, cut;
  uint32_t parent;
  bool data; /* or a message */
};

enum { KINDS = 1 << 16, ALIKE = 3 };

struct records {
  PP_VECTOR(struct record) list;
  uint8_t seen[KINDS]; /* per hash of a kind: how many there were, at most ALIKE */
};

static size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value > 127; value >>= 7)
    size++;
  return size;
}

static void add_record(const struct torture *torture, struct records *records,
                       const pp_wire_field *field, uint32_t parent, bool data) {
  struct record record = {field->at, field->body, field->end, 0, parent, data};
  if (!PP_ROOM(&records->list))
    abort();
  while (record.length < record.body && torture->bytes[record.length++] & 0x80)
    ; /* behind the tag */
  /* Whole numbers of 4 or 8 bytes; of packed varints the last are left, which end. */
  record.cut = data ? (record.end - record.body - KEPT) / 8 * 8 : 0;
  records->list.items[records->list.count++] = record;
}

struct message {
  const ProtobufCMessageDescriptor *type;
  size_t end;
  uint32_t record;
  uint64_t kind; /* of a part of a graph: what fields it has; 0: of anything else */
};

static void mix(uint64_t *hash, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) /* FNV-1a */
    *hash = (*hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
}

/* A field of a message adds to the kind of the part of a graph that it is in. */
static void mix_field(const struct torture *torture, struct message *stack, size_t depth,
                      const pp_wire_field *field) {
  uint32_t what[] = {(uint32_t)depth, field->number, field->type};
  for (size_t d = depth; d--;) {
    if (!stack[d].kind)
      continue;
    mix(&stack[d].kind, what, sizeof what);
    if (d == depth - 1 && stack[d].type == &onnx__node_proto__descriptor && field->number == 4)
      mix(&stack[d].kind, torture->bytes + field->body, field->end - field->body);
  }
}

/* The message is over: if there were enough of its kind, all of it repeats them. */
static void leave(struct torture *torture, struct records *records, const struct message *message) {
  const struct record *record = records->list.items + message->record;
  uint8_t *seen = records->seen + message->kind % KINDS;
  if (!message->kind)
    return;
  if (*seen < ALIKE)
    ++*seen;
  else
    for (size_t at = record->length; at < record->end; at++)
      torture->mark[at] |= TORTURE_REPEAT;
}

/* Goes through the model as pp_wire_check does; marks it, lists its messages and data, outer ones
 * first. */
static void mark(struct torture *torture, struct records *records) {
  struct message stack[100] = {{&onnx__model_proto__descriptor, torture->size, 0, 0}};
  size_t depth = 1, at = 0;
  add_record(torture, records, &(pp_wire_field){.end = torture->size}, 0, false);
  while (depth) {
    pp_wire_field field;
    if (!pp_wire_step(torture->bytes, stack[depth - 1].end, &at, &field)) {
      leave(torture, records, stack + --depth);
      continue;
    }
    const ProtobufCMessageDescriptor *type = stack[depth - 1].type;
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(type, field.number);
    bool data = is_data(type, known, &field), in_graph = type == &onnx__graph_proto__descriptor;
    mark_field(torture, known, &field, data);
    mix_field(torture, stack, depth, &field);
    if (data || (known && known->type == PROTOBUF_C_TYPE_MESSAGE))
      add_record(torture, records, &field, stack[depth - 1].record, data);
    if (!known || known->type != PROTOBUF_C_TYPE_MESSAGE)
      continue;
    at = field.body;
    stack[depth++] =
        (struct message){known->descriptor, field.end, (uint32_t)records->list.count - 1,
                         in_graph ? field.number : 0};
  }
}

/* ---- Cutting the data ---- */

/* Lengths shrink from the inside out, and may need fewer bytes themselves. */
static void sum_cuts(const struct records *records) {
  for (size_t i = records->list.count; i-- > 1;) {
    const struct record *record = records->list.items + i;
    size_t left = record->end - record->body - record->cut;
    if (record->cut)
      records->list.items[record->parent].cut +=
          record->cut + record->body - record->length - varint_size(left);
  }
}

static int write_cut(const struct torture *torture, const struct records *records,
                     const char *path) {
  FILE *file = fopen(path, "wb");
  size_t at = 0;
  if (!file)
    return 73;
  sum_cuts(records);
  for (size_t i = 1; i < records->list.count; i++) {
    const struct record *record = records->list.items + i;
    size_t left = record->end - record->body - record->cut;
    if (!record->cut)
      continue;
    fwrite(torture->bytes + at, 1, record->length - at, file);
    for (; left > 127; left >>= 7)
      fputc((int)(left & 127) | 128, file);
    fputc((int)left, file);
    at = record->body + (record->data ? record->cut : 0);
  }
  fwrite(torture->bytes + at, 1, torture->size - at, file);
  int failed = ferror(file);
  return fclose(file) || failed ? 74 : 0;
}

/* ---- The whole ---- */

/* Returns false if the command line is wrong. */
static bool parse(int count, char **argument, struct torture *torture, const char **cut) {
  for (int i = 2; i < count; i++) {
    if (!strcmp(argument[i], "--repeats"))
      torture->repeats = true;
    else if (!strcmp(argument[i], "--cut") && i + 1 < count)
      *cut = argument[++i];
    else if (!torture_option(torture, count, argument, &i))
      return false;
  }
  return count > 1;
}

int main(int count, char **argument) {
  struct torture torture = TORTURE_DEFAULTS;
  const char *cut = NULL;
  pp_model *model;
  int code =
      parse(count, argument, &torture, &cut) ? torture_begin(&torture, argument[1], &model) : 64;
  if (code)
    return code;
  pp_model_free(model);
  struct records *records = calloc(1, sizeof *records);
  if (!records)
    return 70;
  mark(&torture, records);
  if (cut)
    code = write_cut(&torture, records, cut);
  else
    torture_run(&torture);
  free(records->list.items);
  free(records);
  torture_end(&torture);
  return code;
}
