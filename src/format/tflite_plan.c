/* TFLM's offline plan: metadata "OfflineMemoryAllocation" (tflite-micro,
 * docs/memory_management.md).
 *
 * A FlatBuffer's pointers lead forward. A new object at the end of the file can be pointed to from
 * any old one, but can point to none of them; a new object in front of the old ones can point to
 * all of them. So the plan's bytes, their buffer, and a list of metadata (its entries copied) go to
 * the end, if the root has a pointer to a list of metadata and some buffer holds nothing and is
 * needed by nobody: then 4 bytes change in the root, 4 in the list of buffers, and 4 in the tensor
 * that named the buffer. Otherwise a new root, list of buffers and list of metadata go in front,
 * and only what counts bytes from the beginning of the file changes. */
#include "format/tflite_arena.h"

#include <inttypes.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_schema.h"

static const char plan_name[] = "OfflineMemoryAllocation";

enum { PLAN_VERSION, PLAN_SUBGRAPH, PLAN_COUNT, PLAN_HEADER };

/* FlatBuffers end at 2 GiB. Data of buffers lies at multiples of 16 bytes, and so moves by them. */
enum { BUFFER_ALIGNMENT = 16 };

/* ---- Reading ---- */

static pp_status find_plan(const pp_tflite *tflite, uint32_t *entry, pp_error *error) {
  *entry = UINT32_MAX;
  for (uint32_t i = 0; i < tflite->metadata.count; i++) {
    if (!pp_tflite_is_plan(tflite, i))
      continue;
    if (*entry != UINT32_MAX)
      return pp_fail_at(error, PP_ERROR_INPUT, pp_tflite_at(tflite, tflite->metadata, i),
                        "%s appears twice", plan_name);
    *entry = i;
  }
  return PP_OK;
}

static uint32_t metadata_buffer(const pp_tflite *tflite, uint32_t entry) {
  return pp_flat_get32(&tflite->flat, pp_tflite_at(tflite, tflite->metadata, entry),
                       METADATA_BUFFER, 0);
}

static pp_status read_offsets(const pp_tflite *tflite, uint32_t entry, int64_t *offset,
                              pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  size_t buffer = pp_tflite_at(tflite, tflite->buffers, metadata_buffer(tflite, entry));
  pp_flat_vector data = pp_flat_elements(flat, buffer, BUFFER_DATA);
  if (data.count < 4 * PLAN_HEADER)
    return pp_fail_at(error, PP_ERROR_INPUT, buffer, "%s is cut short: %" PRIu32 " bytes",
                      plan_name, data.count);
  uint32_t count = pp_flat_u32(flat, data.at + 4 * PLAN_COUNT);
  if (count != tflite->tensors)
    return pp_fail_at(error, PP_ERROR_INPUT, data.at + 4 * PLAN_COUNT,
                      "%s has offsets for %" PRIu32 " tensors, but there are %" PRIu32, plan_name,
                      count, tflite->tensors);
  if (data.count != 4 * (PLAN_HEADER + (uint64_t)count))
    return pp_fail_at(error, PP_ERROR_INPUT, data.at - 4,
                      "%s is %" PRIu32 " bytes long instead of %" PRIu64, plan_name, data.count,
                      4 * (PLAN_HEADER + (uint64_t)count));
  for (uint32_t i = 0; i < count; i++) {
    offset[i] = pp_flat_i32(flat, data.at + 4 * (PLAN_HEADER + (size_t)i));
    if (offset[i] < -1)
      return pp_fail_at(error, PP_ERROR_INPUT, data.at + 4 * (PLAN_HEADER + (size_t)i),
                        "%s: tensor %" PRIu32 " has offset %" PRId64, plan_name, i, offset[i]);
  }
  return PP_OK;
}

pp_status pp_tflite_read_plan(const pp_model *model, int64_t **offset, pp_error *error) {
  const pp_tflite *tflite = model->data;
  uint32_t entry;
  *offset = NULL;
  pp_status status = find_plan(tflite, &entry, error);
  if (status || entry == UINT32_MAX)
    return status;
  int64_t *made = pp_alloc(tflite->tensors, sizeof *made);
  status = made ? read_offsets(tflite, entry, made, error) : pp_fail_memory(error);
  if (status)
    free(made);
  else
    *offset = made;
  return status;
}

void pp_tflite_unplannable(const pp_model *model, bool *keep) {
  const pp_tflite *tflite = model->data;
  memset(keep, 0, tflite->tensors * sizeof *keep);
  for (uint32_t s = 1; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++)
      if (tflite->kind[tflite->subgraph[s].tensor + i] == TENSOR_STATE)
        keep[i] = true; /* MicroAllocator::AllocateVariables reads offsets[i] */
}

/* ---- Writing: growing bytes ---- */

struct plan {
  const pp_tflite *tflite;
  const int64_t *offset;
  uint32_t entry;  /* the old plan's, or UINT32_MAX */
  uint32_t buffer; /* that the plan gets */
  uint8_t *bytes;  /* of the new file; `size` used */
  size_t size, capacity;
  size_t shift; /* by which the old objects move */
  pp_error *error;
};

static void put16(struct plan *plan, size_t at, size_t value) {
  plan->bytes[at] = (uint8_t)value;
  plan->bytes[at + 1] = (uint8_t)(value >> 8);
}

static void put32(struct plan *plan, size_t at, uint32_t value) {
  put16(plan, at, value);
  put16(plan, at + 2, value >> 16);
}

static void put64(struct plan *plan, size_t at, uint64_t value) {
  put32(plan, at, (uint32_t)value);
  put32(plan, at + 4, (uint32_t)(value >> 32));
}

static void point(struct plan *plan, size_t from, size_t to) {
  put32(plan, from, (uint32_t)(to - from));
}

/* Appends `size` zeros so that the byte `ahead` bytes into them is aligned; *at is their place. */
static pp_status grow(struct plan *plan, size_t size, size_t alignment, size_t ahead, size_t *at) {
  size_t start = plan->size;
  while ((start + ahead) % alignment)
    start++;
  if (size > INT32_MAX || start + size > INT32_MAX)
    return pp_fail_at(plan->error, PP_ERROR_OVERFLOW, plan->size,
                      "the file and the plan do not fit into 2 GiB");
  if (!pp_reserve((void **)&plan->bytes, &plan->capacity, start + size + 1, 1))
    return pp_fail_memory(plan->error);
  memset(plan->bytes + plan->size, 0, start + size + 1 - plan->size);
  plan->size = start + size;
  *at = start;
  return PP_OK;
}

static pp_status append_old(struct plan *plan, size_t from, size_t *at) {
  const pp_flat *flat = &plan->tflite->flat;
  pp_status status = grow(plan, flat->size - from, 1, 0, at);
  if (!status)
    memcpy(plan->bytes + *at, flat->bytes + from, flat->size - from);
  return status;
}

/* A vector of `count` elements of `width` bytes; *at is the first one's place. */
static pp_status add_vector(struct plan *plan, uint32_t count, size_t width, size_t alignment,
                            size_t *at) {
  pp_status status = grow(plan, 4 + count * width, alignment, 4, at);
  if (status)
    return status;
  put32(plan, *at, count);
  *at += 4;
  return PP_OK;
}

/* A table of `fields` fields of 4 bytes, its vtable in front of it; field i is at *at + 4 + 4 i. */
static pp_status add_table(struct plan *plan, unsigned fields, size_t *at) {
  size_t vtable, bytes = 4 + 2 * fields;
  pp_status status = grow(plan, bytes + 4 + 4 * fields, 4, bytes, &vtable);
  if (status)
    return status;
  put16(plan, vtable, bytes);
  put16(plan, vtable + 2, 4 + 4 * fields);
  for (unsigned i = 0; i < fields; i++)
    put16(plan, vtable + 4 + 2 * i, 4 + 4 * i);
  *at = vtable + bytes;
  put32(plan, *at, (uint32_t)bytes);
  return PP_OK;
}

/* ---- Writing: the objects ---- */

/* The plan's buffer and its bytes; *buffer is the table's place. */
static pp_status add_plan(struct plan *plan, size_t *buffer) {
  uint32_t tensors = plan->tflite->tensors;
  size_t data;
  pp_status status = add_table(plan, 1, buffer);
  if (!status)
    status = add_vector(plan, 4 * (PLAN_HEADER + tensors), 1, BUFFER_ALIGNMENT, &data);
  if (status)
    return status;
  point(plan, *buffer + 4 + 4 * BUFFER_DATA, data - 4);
  put32(plan, data + 4 * PLAN_VERSION, 1);
  put32(plan, data + 4 * PLAN_COUNT, tensors);
  for (uint32_t i = 0; i < tensors; i++)
    put32(plan, data + 4 * (PLAN_HEADER + (size_t)i), (uint32_t)(int32_t)plan->offset[i]);
  return PP_OK;
}

/* A metadata entry at `element` of a list. */
static pp_status add_entry(struct plan *plan, size_t element, const uint8_t *name, uint32_t length,
                           uint32_t buffer) {
  size_t table, text;
  pp_status status = add_table(plan, 2, &table);
  if (!status)
    status = add_vector(plan, length + 1, 1, 4, &text);
  if (status)
    return status;
  put32(plan, text - 4, length);
  memcpy(plan->bytes + text, name, length);
  point(plan, element, table);
  point(plan, table + 4 + 4 * METADATA_NAME, text - 4);
  put32(plan, table + 4 + 4 * METADATA_BUFFER, buffer);
  return PP_OK;
}

static pp_status copy_entry(struct plan *plan, size_t element, uint32_t i) {
  const pp_tflite *tflite = plan->tflite;
  size_t table = pp_tflite_at(tflite, tflite->metadata, i);
  pp_flat_vector name = pp_flat_elements(&tflite->flat, table, METADATA_NAME);
  return add_entry(plan, element, tflite->flat.bytes + name.at, name.count,
                   metadata_buffer(tflite, i));
}

/* A list of metadata: the old entries but for an old plan's, and the plan's. With `copy` the old
 * ones are copied, otherwise pointed to where they will be. */
static pp_status add_metadata(struct plan *plan, bool copy, size_t *list) {
  const pp_tflite *tflite = plan->tflite;
  uint32_t count = tflite->metadata.count + (plan->entry == UINT32_MAX);
  pp_status status = add_vector(plan, count, 4, 4, list);
  size_t element = *list;
  for (uint32_t i = 0; !status && i < tflite->metadata.count; i++) {
    if (i == plan->entry)
      continue;
    if (copy)
      status = copy_entry(plan, element, i);
    element += 4;
  }
  if (!status)
    status =
        add_entry(plan, element, (const uint8_t *)plan_name, sizeof plan_name - 1, plan->buffer);
  return status;
}

/* ---- Writing: appended ---- */

static bool holds_nothing(const pp_tflite *tflite, uint32_t buffer) {
  size_t table = pp_tflite_at(tflite, tflite->buffers, buffer);
  return !pp_flat_elements(&tflite->flat, table, BUFFER_DATA).count &&
         !pp_flat_get64(&tflite->flat, table, BUFFER_OFFSET, 0) &&
         !pp_flat_get64(&tflite->flat, table, BUFFER_SIZE, 0);
}

/* Counts who names each buffer; metadata, and tensors whose bytes are data elsewhere, count as two:
 * they cannot be made to name buffer 0. */
static void count_uses(const struct plan *plan, uint8_t *uses) {
  const pp_tflite *tflite = plan->tflite;
  for (uint32_t i = 0; i < tflite->metadata.count; i++)
    if (i != plan->entry)
      uses[metadata_buffer(tflite, i)] = 2;
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t table = pp_tflite_at(tflite, tflite->subgraph[s].tensors, i);
      uint32_t buffer = pp_flat_get32(&tflite->flat, table, TENSOR_BUFFER, 0);
      if (uses[buffer] < 2)
        uses[buffer]++;
    }
}

/* A buffer that can become the plan's: the old plan's, or one that holds nothing, best one that
 * nobody names. 0 if there is none. */
static pp_status find_buffer(struct plan *plan) {
  const pp_tflite *tflite = plan->tflite;
  uint8_t *uses = pp_zalloc(tflite->buffers.count, 1);
  if (!uses)
    return pp_fail_memory(plan->error);
  count_uses(plan, uses);
  uint32_t old = plan->entry == UINT32_MAX ? 0 : metadata_buffer(tflite, plan->entry);
  plan->buffer = old && !uses[old] ? old : 0;
  uint32_t best = plan->buffer;
  for (uint32_t i = 1; !plan->buffer && holds_nothing(tflite, 0) && i < tflite->buffers.count; i++)
    if (uses[i] < 2 && holds_nothing(tflite, i) && (!best || uses[i] < uses[best]))
      best = i;
  plan->buffer = best;
  free(uses);
  return PP_OK;
}

/* Makes the tensor that names the plan's buffer name buffer 0, which holds nothing either. */
static void release_buffer(struct plan *plan) {
  const pp_tflite *tflite = plan->tflite;
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t table = pp_tflite_at(tflite, tflite->subgraph[s].tensors, i);
      size_t field = pp_flat_field(&tflite->flat, table, TENSOR_BUFFER, 4);
      if (field && pp_flat_u32(&tflite->flat, field) == plan->buffer)
        put32(plan, field, 0);
    }
}

static pp_status append(struct plan *plan, size_t metadata_field) {
  const pp_tflite *tflite = plan->tflite;
  size_t at, buffer, list, element = tflite->buffers.at + 4 * (size_t)plan->buffer;
  pp_status status;
  if ((status = append_old(plan, 0, &at)) || (status = add_plan(plan, &buffer)) ||
      (status = add_metadata(plan, true, &list)))
    return status;
  release_buffer(plan);
  point(plan, element, buffer);
  point(plan, metadata_field, list - 4);
  return PP_OK;
}

/* ---- Writing: in front ---- */

/* The new root has the fields of the old one, and lists of its own. */
static pp_status add_root(struct plan *plan, size_t *root) {
  const pp_tflite *tflite = plan->tflite;
  size_t vtable = tflite->root - (size_t)(int64_t)pp_flat_i32(&tflite->flat, tflite->root);
  if (pp_flat_u16(&tflite->flat, vtable) > 4 + 2 * (MODEL_SIGNATURES + 1))
    return pp_fail_at(plan->error, PP_ERROR_INPUT, tflite->root,
                      "the root has fields that this program does not know");
  pp_status status = add_table(plan, MODEL_SIGNATURES + 1, root);
  if (!status)
    put32(plan, 0, (uint32_t)*root);
  return status;
}

/* Sets the new root's pointers, once it is known where the old objects are. */
static void fill_root(struct plan *plan, size_t root, size_t buffers, size_t metadata) {
  const pp_flat *flat = &plan->tflite->flat;
  size_t vtable = root - 4 - 2 * (MODEL_SIGNATURES + 1);
  for (unsigned i = 0; i <= MODEL_SIGNATURES; i++) {
    size_t old = pp_flat_field(flat, plan->tflite->root, i, 4), at = root + 4 + 4 * i;
    if (i == MODEL_BUFFERS)
      point(plan, at, buffers - 4);
    else if (i == MODEL_METADATA)
      point(plan, at, metadata - 4);
    else if (i == MODEL_VERSION)
      put32(plan, at, old ? pp_flat_u32(flat, old) : 0);
    else if (old)
      point(plan, at, pp_flat_target(flat, old) + plan->shift);
    else
      put16(plan, vtable + 4 + 2 * i, 0); /* absent */
  }
}

static void fill_lists(struct plan *plan, size_t buffers, size_t metadata) {
  const pp_tflite *tflite = plan->tflite;
  for (uint32_t i = 0; i < tflite->buffers.count; i++)
    point(plan, buffers + 4 * (size_t)i, pp_tflite_at(tflite, tflite->buffers, i) + plan->shift);
  size_t element = metadata;
  for (uint32_t i = 0; i < tflite->metadata.count; i++) {
    if (i == plan->entry)
      continue;
    point(plan, element, pp_tflite_at(tflite, tflite->metadata, i) + plan->shift);
    element += 4;
  }
}

static void move_data(struct plan *plan, size_t table, unsigned offset, unsigned size) {
  const pp_flat *flat = &plan->tflite->flat;
  uint64_t from = pp_flat_get64(flat, table, offset, 0);
  if (from > 1 && pp_flat_get64(flat, table, size, 0))
    put64(plan, pp_flat_field(flat, table, offset, 8) + plan->shift, from + plan->shift);
}

/* Data behind the FlatBuffer is found by its distance from the beginning of the file. */
static void move_all_data(struct plan *plan) {
  const pp_tflite *tflite = plan->tflite;
  for (uint32_t i = 0; i < tflite->buffers.count; i++)
    move_data(plan, pp_tflite_at(tflite, tflite->buffers, i), BUFFER_OFFSET, BUFFER_SIZE);
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].operators.count; i++)
      move_data(plan, pp_tflite_at(tflite, tflite->subgraph[s].operators, i), OPERATOR_LARGE_OFFSET,
                OPERATOR_LARGE_SIZE);
}

static pp_status prepend(struct plan *plan) {
  const pp_tflite *tflite = plan->tflite;
  size_t root = 0, buffers, buffer, metadata, at;
  plan->buffer = tflite->buffers.count;
  pp_status status = grow(plan, 8, 1, 0, &at);
  if (status)
    return status;
  memcpy(plan->bytes, tflite->flat.bytes, 8);
  if ((status = add_root(plan, &root)) ||
      (status = add_vector(plan, tflite->buffers.count + 1, 4, 4, &buffers)) ||
      (status = add_metadata(plan, false, &metadata)) || (status = add_plan(plan, &buffer)) ||
      (status = grow(plan, 0, 64, 64 - 8, &at)) || (status = append_old(plan, 8, &at)))
    return status;
  plan->shift = at - 8;
  fill_root(plan, root, buffers, metadata);
  fill_lists(plan, buffers, metadata);
  point(plan, buffers + 4 * (size_t)plan->buffer, buffer);
  move_all_data(plan);
  return PP_OK;
}

/* ---- The whole ---- */

static bool same_model(const pp_tflite *a, const pp_tflite *b) {
  if (a->subgraphs != b->subgraphs || a->tensors != b->tensors || a->codes != b->codes ||
      memcmp(a->kind, b->kind, a->tensors) != 0 ||
      memcmp(a->bytes, b->bytes, a->tensors * sizeof *a->bytes) != 0)
    return false;
  for (uint32_t s = 0; s < a->subgraphs; s++)
    if (a->subgraph[s].operators.count != b->subgraph[s].operators.count ||
        a->subgraph[s].inputs.count != b->subgraph[s].inputs.count ||
        a->subgraph[s].outputs.count != b->subgraph[s].outputs.count)
      return false;
  return true;
}

static void free_read(pp_model *model) {
  for (size_t i = 0; model->name && i < model->programs; i++)
    free(model->name[i]);
  free(model->name);
  free(model->sequence);
  pp_notices_free(&model->notices);
  if (model->operations)
    model->operations->free(model);
}

/* Reads what is about to be written; any difference is our bug. */
static pp_status check_output(const struct plan *plan) {
  pp_model model = {.bytes = plan->bytes, .size = plan->size};
  pp_error inner = {.message = "it is another one", .offset = -1};
  int64_t *offset = NULL;
  pp_status status = pp_tflite_read(&model, NULL, &inner);
  bool same = !status && same_model(plan->tflite, model.data) &&
              !pp_tflite_read_plan(&model, &offset, &inner) && offset &&
              !memcmp(offset, plan->offset, plan->tflite->tensors * sizeof *offset);
  free(offset);
  free_read(&model);
  if (same)
    return PP_OK;
  if (status == PP_ERROR_MEMORY)
    return pp_fail_memory(plan->error);
  return pp_fail_at(plan->error, PP_ERROR_INTERNAL, (size_t)inner.offset,
                    "the written file is not the same model: %.180s", inner.message);
}

static pp_status make(struct plan *plan) {
  const pp_tflite *tflite = plan->tflite;
  size_t field = pp_flat_field(&tflite->flat, tflite->root, MODEL_METADATA, 4);
  for (uint32_t i = 0; i < tflite->tensors; i++)
    if (plan->offset[i] < -1 || plan->offset[i] > INT32_MAX)
      return pp_fail(plan->error, PP_ERROR_OVERFLOW,
                     "tensor %" PRIu32 ": TFLM's offsets end at 2^31-1", i);
  pp_status status = find_plan(tflite, &plan->entry, plan->error);
  if (!status)
    status = find_buffer(plan);
  if (!status)
    status = field && plan->buffer ? append(plan, field) : prepend(plan);
  return status ? status : check_output(plan);
}

pp_status pp_tflite_write_plan(const pp_model *model, const int64_t *offset, pp_write *write,
                               void *data, pp_error *error) {
  struct plan plan = {.tflite = model->data, .offset = offset, .error = error};
  pp_status status = make(&plan);
  if (!status && !write(plan.bytes, plan.size, data))
    status = pp_fail(error, PP_ERROR_IO, "the model could not be written");
  free(plan.bytes);
  return status;
}
