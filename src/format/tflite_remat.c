/* A .tflite model with operators that run again.
 *
 * FlatBuffers point forward only, by relative offsets. So nothing of the old file is rebuilt: a
 * block with a new root goes in front of it, and the old bytes follow as they were. The block has
 * copies of the tables that change (model, subgraph, the operators whose tensors change) and the
 * added tensors; each copy is the old table's bytes with the old vtable, and points into the old
 * bytes for all that stays. The block is a multiple of 64 bytes long, which keeps alignments.
 * Positions that count from the file's start (of buffers and custom options of files beyond 2 GiB)
 * move with it. What was written is read and compared before a byte leaves the house. */
#include <inttypes.h>
#include <string.h>

#include "format/rewriting.h"
#include "format/tflite_model.h"
#include "format/tflite_schema.h"

enum { BLOCK = 64 };

/* The fields of a table: the width of a number, or 0 for an offset (schema.fbs). */
static const uint8_t model_fields[] = {4, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                     subgraph_fields[] = {0, 0, 0, 0, 0, 4},
                     tensor_fields[] = {0, 1, 4, 0, 0, 1, 0, 0, 1, 0, 4},
                     operator_fields[] = {4, 0, 0, 1, 0, 0, 1, 0, 0, 8, 8, 1, 0, 4},
                     buffer_fields[] = {0, 8, 8}, metadata_fields[] = {0, 4};

/* An offset in the block to something in the old bytes. */
struct fixup {
  size_t at, target;
};

struct writer {
  const pp_tflite *tflite;
  const pp_model_rewriting *rewriting;
  struct {
    uint8_t *items;
    size_t count, capacity;
  } block;
  PP_VECTOR(struct fixup) fixups, vtables;
  PP_VECTOR(struct fixup) operators; /* copied ones, and what they are copies of */
  pp_index **position; /* per subgraph: old operator -> its first place; NULL: unchanged */
  pp_index *copy;      /* per storage of the original: what the present run calls it */
  pp_index *storage;   /* per tensor, or -1 */
  int32_t *tensor;     /* per storage of the rewritten program */
  pp_error *error;
};

static void put32(uint8_t *bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; i++)
    bytes[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

static void put64(uint8_t *bytes, size_t at, uint64_t value) {
  put32(bytes, at, (uint32_t)value);
  put32(bytes, at + 4, (uint32_t)(value >> 32));
}

/* ---- The block ---- */

/* Makes room for `size` bytes at a position that is `phase` modulo `alignment`; zeroed. */
static pp_status make_room(struct writer *w, size_t size, size_t alignment, size_t phase,
                           size_t *at) {
  size_t start = w->block.count;
  start += (alignment + phase - start % alignment) % alignment;
  if (start + size > INT32_MAX)
    return pp_fail(w->error, PP_ERROR_OVERFLOW, "the model would not fit into 2 GiB");
  if (!pp_reserve((void **)&w->block.items, &w->block.capacity, start + size, 1))
    return pp_fail_memory(w->error);
  memset(w->block.items + w->block.count, 0, start + size - w->block.count);
  w->block.count = start + size;
  *at = start;
  return PP_OK;
}

static void point(struct writer *w, size_t at, size_t target) {
  put32(w->block.items, at, (uint32_t)(target - at));
}

static pp_status point_to_old(struct writer *w, size_t at, size_t target) {
  if (!PP_ROOM(&w->fixups))
    return pp_fail_memory(w->error);
  w->fixups.items[w->fixups.count++] = (struct fixup){at, target};
  return PP_OK;
}

/* Copies a table; its offsets point to what the old one has. Fields that the schema does not know
 * might be offsets too. */
static pp_status copy_table(struct writer *w, size_t old, const uint8_t *fields, size_t known,
                            size_t *at) {
  const pp_flat *flat = &w->tflite->flat;
  size_t vtable = old - (size_t)(int64_t)pp_flat_i32(flat, old), used = 4;
  for (size_t k = 0; 4 + 2 * k < pp_flat_u16(flat, vtable); k++) {
    size_t offset = pp_flat_u16(flat, vtable + 4 + 2 * k);
    if (offset && k >= known)
      return pp_fail_at(w->error, PP_ERROR_INPUT, old,
                        "field %zu of this table is newer than this program: the table cannot "
                        "be copied",
                        k);
    size_t width = offset && fields[k] ? fields[k] : 4;
    used = offset && offset + width > used ? offset + width : used;
  }
  pp_status status = make_room(w, used, 16, old % 16, at);
  if (status)
    return status;
  memcpy(w->block.items + *at, flat->bytes + old, used);
  if (!PP_ROOM(&w->vtables))
    return pp_fail_memory(w->error);
  w->vtables.items[w->vtables.count++] = (struct fixup){*at, vtable};
  for (size_t k = 0; !status && k < known; k++) {
    size_t field = fields[k] ? 0 : pp_flat_field(flat, old, (unsigned)k, 4);
    if (field)
      status = point_to_old(w, *at + (field - old), pp_flat_target(flat, field));
  }
  return status;
}

/* Where field k of a copy is; the old table has it. */
static size_t field_of(const struct writer *w, size_t old, size_t copy, unsigned k) {
  return copy + (pp_flat_field(&w->tflite->flat, old, k, 4) - old);
}

/* Takes back that an offset points into the old bytes. */
static void repoint(struct writer *w, size_t at, size_t target) {
  for (size_t i = w->fixups.count; i-- > 0;)
    if (w->fixups.items[i].at == at) {
      w->fixups.items[i] = w->fixups.items[--w->fixups.count];
      break;
    }
  point(w, at, target);
}

static pp_status add_vector(struct writer *w, uint32_t count, size_t width, size_t alignment,
                            size_t *at) {
  size_t phase = (alignment - 4 % alignment) % alignment; /* the elements are aligned */
  pp_status status = make_room(w, 4 + count * width, alignment, phase, at);
  if (!status)
    put32(w->block.items, *at, count);
  return status;
}

static size_t element(size_t vector, size_t i) {
  return vector + 4 + 4 * i;
}

/* ---- Tensors ---- */

/* Which storage each tensor is, as tflite_build.c numbers them. */
static void number_tensors(struct writer *w, const pp_tflite_subgraph *subgraph) {
  const pp_tflite *tflite = w->tflite;
  pp_index next = 0;
  for (uint32_t i = 0; i < subgraph->tensors.count; i++)
    w->storage[i] = -1;
  pp_flat_vector lists[2] = {subgraph->inputs, subgraph->outputs};
  for (uint32_t k = 0; k < 2 + 2 * subgraph->operators.count; k++) {
    pp_flat_vector list =
        k < 2 ? lists[k]
              : pp_flat_elements(&tflite->flat,
                                 pp_tflite_at(tflite, subgraph->operators, (k - 2) / 2),
                                 k % 2 ? OPERATOR_OUTPUTS : OPERATOR_INPUTS);
    for (uint32_t i = 0; i < list.count; i++) {
      int32_t tensor = pp_tflite_int(tflite, list, i);
      if (tensor >= 0 && tflite->kind[subgraph->tensor + (uint32_t)tensor] == TENSOR_ARENA)
        w->storage[tensor] = 0;
    }
  }
  for (uint32_t i = 0; i < subgraph->tensors.count; i++)
    if (w->storage[i] >= 0) {
      w->tensor[next] = (int32_t)i;
      w->storage[i] = next++;
    }
}

static pp_status add_name(struct writer *w, const char *name, size_t *at) {
  size_t length = strlen(name);
  pp_status status = add_vector(w, (uint32_t)length + 1, 1, 4, at); /* and a zero behind it */
  if (status)
    return status;
  put32(w->block.items, *at, (uint32_t)length);
  memcpy(w->block.items + *at + 4, name, length);
  return PP_OK;
}

/* The copy of a tensor has a name and no buffer of its own: buffer 0 is the empty one. */
static pp_status add_tensor(struct writer *w, size_t old, const char *name, size_t *at) {
  const pp_flat *flat = &w->tflite->flat;
  size_t text;
  pp_status status = copy_table(w, old, tensor_fields, sizeof tensor_fields, at);
  if (status)
    return status;
  if (pp_flat_field(flat, old, TENSOR_BUFFER, 4))
    put32(w->block.items, field_of(w, old, *at, TENSOR_BUFFER), 0);
  if (!pp_flat_field(flat, old, TENSOR_NAME, 4))
    return PP_OK;
  if (!(status = add_name(w, name, &text)))
    repoint(w, field_of(w, old, *at, TENSOR_NAME), text);
  return status;
}

static pp_status add_tensors(struct writer *w, const pp_tflite_subgraph *subgraph,
                             const pp_model_rewriting *it, size_t *vector) {
  pp_index m = pp_program_storages(it->original), all = pp_program_storages(it->program);
  uint32_t count = subgraph->tensors.count;
  pp_status status = add_vector(w, count + (uint32_t)(all - m), 4, 4, vector);
  for (uint32_t i = 0; i < count && !status; i++)
    status = point_to_old(w, element(*vector, i), pp_tflite_at(w->tflite, subgraph->tensors, i));
  for (pp_index s = m; s < all && !status; s++) {
    size_t table,
        at = element(*vector, count + (uint32_t)(s - m)),
        old = pp_tflite_at(w->tflite, subgraph->tensors, (uint32_t)w->tensor[it->storage[s]]);
    w->tensor[s] = (int32_t)(count + (uint32_t)(s - m));
    status = add_tensor(w, old, pp_program_storage(it->program, s).name, &table);
    if (!status)
      point(w, at, table);
  }
  return status;
}

/* ---- Operators ---- */

/* What run i calls the storages that it accesses; says whether any name is new. */
static bool set_copies(struct writer *w, const pp_model_rewriting *it, pp_index i) {
  pp_statement_info info = pp_program_statement(it->program, i);
  bool changed = false;
  for (size_t k = 0; k < info.accesses; k++) {
    pp_index s = info.access[k].storage;
    w->copy[it->storage[s]] = s;
    changed |= it->storage[s] != s;
  }
  return changed;
}

/* A list of tensors with the names of the present run. */
static pp_status add_list(struct writer *w, size_t old, size_t table, unsigned field) {
  pp_flat_vector list = pp_flat_elements(&w->tflite->flat, old, field);
  size_t at;
  if (!list.at)
    return PP_OK;
  pp_status status = add_vector(w, list.count, 4, 4, &at);
  for (uint32_t i = 0; i < list.count && !status; i++) {
    int32_t tensor = pp_tflite_int(w->tflite, list, i);
    if (tensor >= 0 && w->storage[tensor] >= 0)
      tensor = w->tensor[w->copy[w->storage[tensor]]];
    put32(w->block.items, element(at, i), (uint32_t)tensor);
  }
  if (!status)
    repoint(w, field_of(w, old, table, field), at);
  return status;
}

static pp_status add_operator(struct writer *w, const pp_tflite_subgraph *subgraph,
                              const pp_model_rewriting *it, pp_index i, size_t at) {
  size_t table, old = pp_tflite_at(w->tflite, subgraph->operators, (uint32_t)it->statement[i]);
  if (!set_copies(w, it, i))
    return point_to_old(w, at, old);
  pp_status status = copy_table(w, old, operator_fields, sizeof operator_fields, &table);
  if (status)
    return status;
  point(w, at, table);
  if (!PP_ROOM(&w->operators))
    return pp_fail_memory(w->error);
  w->operators.items[w->operators.count++] = (struct fixup){table, old};
  if ((status = add_list(w, old, table, OPERATOR_INPUTS)))
    return status;
  return add_list(w, old, table, OPERATOR_OUTPUTS);
}

static pp_status add_operators(struct writer *w, const pp_tflite_subgraph *subgraph,
                               const pp_model_rewriting *it, size_t *vector) {
  pp_index runs = pp_program_statements(it->program);
  pp_status status = add_vector(w, (uint32_t)runs, 4, 4, vector);
  for (pp_index k = 0; k < runs && !status; k++)
    status =
        add_operator(w, subgraph, it, it->order ? it->order[k] : k, element(*vector, (size_t)k));
  return status;
}

/* The same operators in another order. */
static pp_status permute(struct writer *w, const pp_tflite_subgraph *subgraph,
                         const pp_model_rewriting *it, size_t *vector) {
  pp_status status = add_vector(w, subgraph->operators.count, 4, 4, vector);
  for (uint32_t k = 0; k < subgraph->operators.count && !status; k++)
    status = point_to_old(w, element(*vector, k),
                          pp_tflite_at(w->tflite, subgraph->operators, (uint32_t)it->order[k]));
  return status;
}

/* ---- Subgraphs ---- */

static bool reserve_names(struct writer *w, const pp_tflite_subgraph *subgraph,
                          const pp_model_rewriting *it) {
  free(w->copy);
  free(w->storage);
  free(w->tensor);
  w->copy = pp_alloc((size_t)pp_program_storages(it->original), sizeof *w->copy);
  w->storage = pp_alloc(subgraph->tensors.count, sizeof *w->storage);
  w->tensor = pp_alloc((size_t)pp_program_storages(it->program), sizeof *w->tensor);
  return w->copy && w->storage && w->tensor;
}

static pp_status add_subgraph(struct writer *w, uint32_t s, size_t at) {
  const pp_tflite_subgraph *subgraph = w->tflite->subgraph + s;
  const pp_model_rewriting *it = w->rewriting + s;
  size_t table, tensors, operators;
  if (!w->position[s])
    return point_to_old(w, at, subgraph->table);
  pp_status status =
      copy_table(w, subgraph->table, subgraph_fields, sizeof subgraph_fields, &table);
  if (status)
    return status;
  point(w, at, table);
  if (!it->program)
    status = permute(w, subgraph, it, &operators);
  else if (!reserve_names(w, subgraph, it))
    status = pp_fail_memory(w->error);
  else {
    number_tensors(w, subgraph);
    if (!(status = add_tensors(w, subgraph, it, &tensors))) {
      repoint(w, field_of(w, subgraph->table, table, SUBGRAPH_TENSORS), tensors);
      status = add_operators(w, subgraph, it, &operators);
    }
  }
  if (!status)
    repoint(w, field_of(w, subgraph->table, table, SUBGRAPH_OPERATORS), operators);
  return status;
}

static pp_status add_subgraphs(struct writer *w, size_t model) {
  const pp_tflite *tflite = w->tflite;
  size_t vector;
  pp_status status = add_vector(w, tflite->subgraphs, 4, 4, &vector);
  if (status)
    return status;
  repoint(w, field_of(w, tflite->root, model, MODEL_SUBGRAPHS), vector);
  for (uint32_t s = 0; s < tflite->subgraphs && !status; s++)
    status = add_subgraph(w, s, element(vector, s));
  return status;
}

/* ---- Metadata ---- */

static bool is_control(const pp_tflite *tflite, uint32_t entry) {
  uint32_t index = pp_flat_get32(&tflite->flat, pp_tflite_at(tflite, tflite->metadata, entry),
                                 METADATA_BUFFER, 0);
  return tflite->control.buffer && !pp_tflite_is_plan(tflite, entry) &&
         pp_tflite_at(tflite, tflite->buffers, index) == tflite->control.buffer;
}

/* Control dependencies name operators by place: a buffer more, behind the others. */
static pp_status add_control(struct writer *w, size_t model, uint32_t *index) {
  const pp_tflite *tflite = w->tflite;
  uint32_t count = tflite->buffers.count;
  size_t vector, table, data, size;
  uint8_t *bytes;
  pp_status status = pp_tflite_encode_control(tflite, w->position, &bytes, &size, w->error);
  if (status)
    return status;
  *index = count;
  if (!(status = add_vector(w, count + 1, 4, 4, &vector)))
    repoint(w, field_of(w, tflite->root, model, MODEL_BUFFERS), vector);
  for (uint32_t i = 0; i < count && !status; i++)
    status = point_to_old(w, element(vector, i), pp_tflite_at(tflite, tflite->buffers, i));
  if (!status && !(status = copy_table(w, tflite->control.buffer, buffer_fields,
                                       sizeof buffer_fields, &table))) {
    point(w, element(vector, count), table);
    if (!(status = add_vector(w, (uint32_t)size, 1, 16, &data))) {
      memcpy(w->block.items + data + 4, bytes, size);
      repoint(w, field_of(w, tflite->control.buffer, table, BUFFER_DATA), data);
    }
  }
  free(bytes);
  return status;
}

static pp_status add_entry(struct writer *w, uint32_t i, uint32_t control, size_t at) {
  size_t old = pp_tflite_at(w->tflite, w->tflite->metadata, i), table;
  if (!control || !is_control(w->tflite, i))
    return point_to_old(w, at, old);
  pp_status status = copy_table(w, old, metadata_fields, sizeof metadata_fields, &table);
  if (status)
    return status;
  point(w, at, table);
  put32(w->block.items, field_of(w, old, table, METADATA_BUFFER), control);
  return PP_OK;
}

/* An offline memory plan belongs to the old order and is left out. */
static pp_status add_metadata(struct writer *w, size_t model) {
  const pp_tflite *tflite = w->tflite;
  uint32_t control = 0, kept = 0;
  size_t vector;
  pp_status status = PP_OK;
  if (tflite->edge.count)
    status = add_control(w, model, &control);
  if (status || (!tflite->plans && !control))
    return status;
  if ((status = add_vector(w, tflite->metadata.count, 4, 4, &vector)))
    return status;
  repoint(w, field_of(w, tflite->root, model, MODEL_METADATA), vector);
  for (uint32_t i = 0; i < tflite->metadata.count && !status; i++)
    if (!pp_tflite_is_plan(tflite, i))
      status = add_entry(w, i, control, element(vector, kept++));
  if (!status)
    put32(w->block.items, vector, kept);
  return status;
}

/* ---- The file ---- */

/* First places of the operators of the subgraphs that change. */
static pp_status find_positions(struct writer *w) {
  for (uint32_t s = 0; s < w->tflite->subgraphs; s++) {
    const pp_model_rewriting *it = w->rewriting + s;
    const pp_program *program = it->program ? it->program : it->original;
    if (!it->program && !it->order)
      continue;
    pp_index n = (pp_index)w->tflite->subgraph[s].operators.count;
    if (!(w->position[s] = pp_alloc((size_t)n, sizeof **w->position)))
      return pp_fail_memory(w->error);
    memset(w->position[s], 0xff, (size_t)n * sizeof **w->position);
    for (pp_index k = 0; k < pp_program_statements(program); k++) {
      pp_index i = it->order ? it->order[k] : k, v = it->program ? it->statement[i] : i;
      if (w->position[s][v] < 0)
        w->position[s][v] = k;
    }
  }
  return PP_OK;
}

static pp_status make_block(struct writer *w) {
  size_t at, model;
  pp_status status = make_room(w, 8, BLOCK, 0, &at);
  if (status)
    return status;
  memcpy(w->block.items + 4, "TFL3", 4);
  status = copy_table(w, w->tflite->root, model_fields, sizeof model_fields, &model);
  if (status)
    return status;
  point(w, 0, model);
  if ((status = add_subgraphs(w, model)) || (status = add_metadata(w, model)))
    return status;
  return make_room(w, 0, BLOCK, 0, &at);
}

/* Positions that count from the file's start; 0 and 1: there is none. */
static void shift(const pp_flat *flat, size_t table, unsigned field, size_t copy, size_t block,
                  uint8_t *bytes) {
  size_t at = pp_flat_field(flat, table, field, 8);
  uint64_t value = at ? pp_flat_u64(flat, at) : 0;
  if (value > 1)
    put64(bytes, copy + (at - table), value + block);
}

static void shift_all(const struct writer *w, uint8_t *bytes, size_t block) {
  const pp_tflite *tflite = w->tflite;
  for (uint32_t i = 0; i < tflite->buffers.count; i++) {
    size_t table = pp_tflite_at(tflite, tflite->buffers, i);
    shift(&tflite->flat, table, BUFFER_OFFSET, table + block, block, bytes);
  }
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].operators.count; i++) {
      size_t table = pp_tflite_at(tflite, tflite->subgraph[s].operators, i);
      shift(&tflite->flat, table, OPERATOR_LARGE_OFFSET, table + block, block, bytes);
    }
  for (size_t i = 0; i < w->operators.count; i++)
    shift(&tflite->flat, w->operators.items[i].target, OPERATOR_LARGE_OFFSET,
          w->operators.items[i].at, block, bytes);
}

static pp_status join(const struct writer *w, uint8_t **bytes, size_t *size) {
  const pp_flat *flat = &w->tflite->flat;
  size_t block = w->block.count;
  *size = block + flat->size;
  if (*size > INT32_MAX && flat->size <= INT32_MAX)
    return pp_fail(w->error, PP_ERROR_OVERFLOW, "the model would not fit into 2 GiB");
  uint8_t *out = *bytes = pp_alloc(*size + 1, 1);
  if (!out)
    return pp_fail(w->error, PP_ERROR_MEMORY, "out of memory");
  memcpy(out, w->block.items, block);
  memcpy(out + block, flat->bytes, flat->size);
  out[*size] = 0;
  for (size_t i = 0; i < w->fixups.count; i++) {
    struct fixup it = w->fixups.items[i];
    put32(out, it.at, (uint32_t)(it.target + block - it.at));
  }
  for (size_t i = 0; i < w->vtables.count; i++) {
    struct fixup it = w->vtables.items[i];
    put32(out, it.at, (uint32_t)(it.at - (it.target + block)));
  }
  shift_all(w, out, block);
  return PP_OK;
}

/* ---- The check ---- */

/* An operator that was written is the old one but for its tensors. */
static bool same_operator(const pp_flat *old, size_t table, const pp_flat *new, size_t other,
                          size_t block) {
  for (unsigned k = 0; k < sizeof operator_fields; k++) {
    size_t width = operator_fields[k] ? operator_fields[k] : 4;
    size_t a = pp_flat_field(old, table, k, width), b = pp_flat_field(new, other, k, width);
    if (!a != !b)
      return false;
    if (!a || k == OPERATOR_INPUTS || k == OPERATOR_OUTPUTS)
      continue;
    if (k == OPERATOR_LARGE_OFFSET) {
      uint64_t value = pp_flat_u64(old, a);
      if (pp_flat_u64(new, b) != (value > 1 ? value + block : value))
        return false;
    } else if (!operator_fields[k] ? pp_flat_target(old, a) + block != pp_flat_target(new, b)
                                   : memcmp(old->bytes + a, new->bytes + b, width) != 0)
      return false;
  }
  return true;
}

static pp_status check_operators(const struct writer *w, const pp_tflite *written, uint32_t s,
                                 pp_error *error) {
  const pp_model_rewriting *it = w->rewriting + s;
  const pp_tflite_subgraph *old = w->tflite->subgraph + s, *new = written->subgraph + s;
  for (uint32_t k = 0; k < new->operators.count; k++) {
    pp_index i = it->order ? it->order[k] : (pp_index)k;
    uint32_t v = (uint32_t)(it->program ? it->statement[i] : i);
    if (v >= old->operators.count ||
        !same_operator(&w->tflite->flat, pp_tflite_at(w->tflite, old->operators, v), &written->flat,
                       pp_tflite_at(written, new->operators, k), w->block.count))
      return pp_fail(error, PP_ERROR_INTERNAL,
                     "operator %" PRIu32 " of subgraph %" PRIu32 " is not the old one", k, s);
  }
  return PP_OK;
}

/* The peaks of all programs as they are written: callees' are work of their callers. */
static pp_status find_peaks(const struct writer *w, int64_t *peak, pp_error *error) {
  pp_status status = PP_OK;
  for (uint32_t s = 0; s < w->tflite->subgraphs && !status; s++) {
    const pp_model_rewriting *it = w->rewriting + s;
    const pp_program *program = it->program ? it->program : it->original;
    if (program)
      status = pp_simulate(program, it->order, peak + s, NULL, NULL, error);
  }
  return status;
}

static pp_status check_program(const struct writer *w, const pp_model *model, uint32_t s,
                               const int64_t *peak, pp_error *error) {
  pp_program *program;
  pp_status status = check_operators(w, model->data, s, error);
  if (status || !w->rewriting[s].program)
    return status;
  if ((status = pp_model_build(model, s, peak, &program, error)))
    return status;
  status = pp_remat_check_written(w->rewriting + s, program, NULL, error);
  pp_program_free(program);
  return status;
}

/* Reads what is about to be written; any difference is our bug. */
static pp_status check_output(const struct writer *w, const uint8_t *bytes, size_t size) {
  pp_error inner;
  pp_model *model = NULL;
  uint8_t *copy = pp_alloc(size + 1, 1);
  int64_t *peak = pp_zalloc(w->tflite->subgraphs, sizeof *peak);
  pp_status status = copy && peak ? PP_OK : PP_ERROR_MEMORY;
  if (!status) {
    memcpy(copy, bytes, size + 1);
    status = pp_model_read_bytes("the written model", copy, size, NULL, &model, &inner);
    copy = NULL;
  }
  if (!status)
    status = find_peaks(w, peak, &inner);
  for (uint32_t s = 0; s < w->tflite->subgraphs && !status; s++)
    if (w->position[s])
      status = check_program(w, model, s, peak, &inner);
  pp_model_free(model);
  free(copy);
  free(peak);
  if (!status || status == PP_ERROR_MEMORY)
    return status ? pp_fail_memory(w->error) : PP_OK;
  return pp_fail(w->error, PP_ERROR_INTERNAL, "the written file is not the same model: %.180s",
                 inner.message);
}

/* ---- The whole ---- */

static void free_writer(struct writer *w) {
  for (uint32_t s = 0; w->position && s < w->tflite->subgraphs; s++)
    free(w->position[s]);
  free(w->position);
  free(w->block.items);
  free(w->fixups.items);
  free(w->vtables.items);
  free(w->operators.items);
  free(w->copy);
  free(w->storage);
  free(w->tensor);
}

pp_status pp_tflite_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                                pp_write *write, void *data, pp_error *error) {
  struct writer w = {.tflite = model->data, .rewriting = rewriting, .error = error};
  uint8_t *bytes = NULL;
  size_t size = 0;
  w.position = pp_zalloc(w.tflite->subgraphs, sizeof *w.position);
  pp_status status = w.position ? find_positions(&w) : pp_fail_memory(w.error);
  if (!status && !(status = make_block(&w)) && !(status = join(&w, &bytes, &size)))
    status = check_output(&w, bytes, size);
  if (!status && !write(bytes, size, data))
    status = pp_fail(error, PP_ERROR_IO, "the model could not be written");
  free(bytes);
  free_writer(&w);
  return status;
}
