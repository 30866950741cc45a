/* torture MODEL [--from BYTE] [--to BYTE] [--flips all] [--sample N SEED] - hostile ONNX files.
 *
 * Every byte of MODEL's structure (all but the data of tensors) takes other values, and MODEL is
 * cut short at every length up to 4 KiB; each such file goes through all that peakproof does
 * (../tflite/exercise.c). Bytes from <= b < to only, if given; with --sample, N of all cases drawn
 * with SEED. Build it with sanitizers. Prints how many files there were, how many were refused, and
 * exits with 0; anything else aborts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exercise.h"
#include "format/onnx_wire.h"
#include "onnx.pb-c.h"

enum { CUTS = 4096 };
/* What a byte is changed by (exclusive or): the lowest and the highest bit, all of them, then the
 * other single ones. */
static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40};
enum { FLIPS = sizeof flips, FEW = 3 };

struct torture {
  uint8_t *bytes, *structure; /* structure: 0 for data of tensors */
  size_t size, from, to;
  int flips;
  uint64_t sample, seed, tried, refused;
};

static void try(struct torture *torture, size_t size, uint64_t seed) {
  torture->tried++;
  torture->refused += exercise(torture->bytes, size, seed, false) != PP_OK;
}

static void flip(struct torture *torture, size_t at, int which) {
  torture->bytes[at] ^= flips[which];
  try(torture, torture->size, at * FLIPS + (size_t)which);
  torture->bytes[at] ^= flips[which];
}

/* Payloads that nothing is read from: bytes and packed numbers, all but their first few. */
static void mark_data(struct torture *torture, const ProtobufCFieldDescriptor *known,
                      const pp_wire_field *field) {
  bool data = known->type == PROTOBUF_C_TYPE_BYTES || known->type != PROTOBUF_C_TYPE_STRING;
  if (data && field->type == WIRE_BYTES && field->end - field->body > 8)
    memset(torture->structure + field->body + 4, 0, field->end - field->body - 4);
}

/* As pp_wire_check goes through a message. */
static void mark(struct torture *torture) {
  struct {
    const ProtobufCMessageDescriptor *type;
    size_t end;
  } stack[100] = {{&onnx__model_proto__descriptor, torture->size}};
  size_t depth = 1, at = 0;
  memset(torture->structure, 1, torture->size);
  while (depth) {
    pp_wire_field field;
    if (!pp_wire_step(torture->bytes, stack[depth - 1].end, &at, &field)) {
      depth--;
      continue;
    }
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(stack[depth - 1].type, field.number);
    if (known && known->type != PROTOBUF_C_TYPE_MESSAGE) {
      mark_data(torture, known, &field);
    } else if (known) {
      at = field.body;
      stack[depth].type = known->descriptor;
      stack[depth++].end = field.end;
    }
  }
}

static void try_sample(struct torture *torture) {
  for (uint64_t i = 0; i < torture->sample;) {
    size_t at = next_random(&torture->seed) % torture->size;
    if (i % 8 == 0)
      try(torture, at % CUTS < torture->size ? at % CUTS : at, i);
    else if (torture->structure[at])
      flip(torture, at, (int)(next_random(&torture->seed) % FLIPS));
    else
      continue;
    i++;
  }
}

static void try_all(struct torture *torture) {
  for (size_t at = torture->from; at < torture->to && at < torture->size; at++) {
    if (at < CUTS)
      try(torture, at, at);
    for (int which = 0; which < torture->flips && torture->structure[at]; which++)
      flip(torture, at, which);
  }
}

static bool parse(int count, char **argument, struct torture *torture) {
  for (int i = 2; i < count; i++) {
    int left = count - i - 1;
    if (!strcmp(argument[i], "--from") && left)
      torture->from = strtoull(argument[++i], NULL, 10);
    else if (!strcmp(argument[i], "--to") && left)
      torture->to = strtoull(argument[++i], NULL, 10);
    else if (!strcmp(argument[i], "--flips") && left)
      torture->flips = strcmp(argument[++i], "all") ? FEW : FLIPS;
    else if (!strcmp(argument[i], "--sample") && left > 1) {
      torture->sample = strtoull(argument[++i], NULL, 10);
      torture->seed = strtoull(argument[++i], NULL, 10);
    } else
      return false;
  }
  return count > 1;
}

int main(int count, char **argument) {
  struct torture torture = {.to = SIZE_MAX, .flips = FEW};
  pp_model *model;
  pp_error error;
  if (!parse(count, argument, &torture))
    return 64;
  if (pp_model_read(argument[1], NULL, &model, &error)) {
    fprintf(stderr, "%s: %s\n", argument[1], error.message);
    return 65;
  }
  torture.size = model->size;
  torture.bytes = malloc(torture.size + 1);
  torture.structure = malloc(torture.size + 1);
  if (!torture.bytes || !torture.structure)
    return 70;
  memcpy(torture.bytes, model->bytes, torture.size + 1);
  pp_model_free(model);
  mark(&torture);
  if (torture.sample)
    try_sample(&torture);
  else
    try_all(&torture);
  printf("%" PRIu64 " files, %" PRIu64 " refused\n", torture.tried, torture.refused);
  free(torture.bytes);
  free(torture.structure);
  return 0;
}
