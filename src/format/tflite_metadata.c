/* Metadata that operators' places appear in: control dependencies, and offline memory plans.
 *
 * `model_control_dependencies` (TensorFlow's metadata_util): varints. The version (1), the number
 * of subgraphs, and for each the number of its edges and their operators, before and after, these
 * zigzag-coded. `OfflineMemoryAllocation` (TFLM's memory_management.md): 32-bit version, subgraph,
 * count, and an offset for every tensor. */
#include <inttypes.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_schema.h"

static const char control_name[] = "model_control_dependencies";
static const char plan_name[] = "OfflineMemoryAllocation";
enum { CONTROL_VERSION = 1 };

static pp_flat_vector entry_name(const pp_tflite *tflite, uint32_t i) {
  return pp_flat_elements(&tflite->flat, pp_tflite_at(tflite, tflite->metadata, i), METADATA_NAME);
}

static uint32_t entry_buffer(const pp_tflite *tflite, uint32_t i) {
  return pp_flat_get32(&tflite->flat, pp_tflite_at(tflite, tflite->metadata, i), METADATA_BUFFER,
                       0);
}

bool pp_tflite_is_plan(const pp_tflite *tflite, uint32_t i) {
  return pp_flat_equals(&tflite->flat, entry_name(tflite, i), plan_name);
}

/* ---- Reading control dependencies ---- */

struct cursor {
  const uint8_t *bytes;
  size_t at, end;
};

/* An unsigned varint of at most 32 bits; false if there is none. */
static bool take(struct cursor *cursor, uint32_t *value) {
  *value = 0;
  for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
    uint8_t byte = cursor->bytes[cursor->at++];
    if (shift > 28 || (shift == 28 && (byte & 0x7f) > 15))
      return false;
    *value |= (uint32_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

static int32_t unzigzag(uint32_t value) {
  return value & 1 ? -(int32_t)(value >> 1) - 1 : (int32_t)(value >> 1);
}

static pp_status fail_control(const struct cursor *cursor, const char *what, pp_error *error) {
  return pp_fail_at(error, PP_ERROR_INPUT, cursor->at, "%s: %s", control_name, what);
}

static pp_status read_edge(pp_tflite *tflite, uint32_t s, struct cursor *cursor, pp_error *error) {
  uint32_t coded[2];
  if (!take(cursor, coded) || !take(cursor, coded + 1))
    return fail_control(cursor, "an operator is cut short", error);
  int32_t before = unzigzag(coded[0]), after = unzigzag(coded[1]);
  int64_t operators = tflite->subgraph[s].operators.count;
  if (before < 0 || before >= operators || after < 0 || after >= operators)
    return pp_fail_at(error, PP_ERROR_INPUT, cursor->at,
                      "%s: operators %" PRId32 " and %" PRId32 " of subgraph %" PRIu32
                      " do not both exist",
                      control_name, before, after, s);
  if (before >= after)
    return pp_fail_at(error, PP_ERROR_INPUT, cursor->at,
                      "%s: operator %" PRId32 " of subgraph %" PRIu32
                      " must run before operator %" PRId32 ", but does not",
                      control_name, before, s, after);
  if (!pp_reserve((void **)&tflite->edge.items, &tflite->edge.capacity, tflite->edge.count + 2,
                  sizeof *tflite->edge.items))
    return pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  tflite->edge.items[tflite->edge.count++] = before;
  tflite->edge.items[tflite->edge.count++] = after;
  return PP_OK;
}

static pp_status read_edges(pp_tflite *tflite, pp_error *error) {
  struct cursor cursor = {tflite->flat.bytes, tflite->control.at,
                          tflite->control.at + tflite->control.size};
  uint32_t version, subgraphs;
  if (!take(&cursor, &version) || version != CONTROL_VERSION)
    return fail_control(&cursor, "version 1 is missing", error);
  if (!take(&cursor, &subgraphs) || subgraphs > tflite->subgraphs)
    return fail_control(&cursor, "more subgraphs than the model has", error);
  for (uint32_t s = 0; s < subgraphs; s++) {
    uint32_t count;
    if (!take(&cursor, &count))
      return fail_control(&cursor, "the number of edges is cut short", error);
    tflite->subgraph[s].edge = tflite->edge.count / 2;
    tflite->subgraph[s].edges = count;
    for (uint32_t i = 0; i < count; i++) {
      pp_status status = read_edge(tflite, s, &cursor, error);
      if (status)
        return status;
    }
  }
  tflite->control.subgraphs = subgraphs;
  if (cursor.at != cursor.end)
    return fail_control(&cursor, "bytes are left over", error);
  return PP_OK;
}

/* ---- Finding both ---- */

/* Whether a buffer is used by a tensor or by another metadata entry than `entry`. */
static bool buffer_used(const pp_tflite *tflite, uint32_t buffer, uint32_t entry) {
  for (uint32_t i = 0; i < tflite->metadata.count; i++)
    if (i != entry && entry_buffer(tflite, i) == buffer)
      return true;
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t table = pp_tflite_at(tflite, tflite->subgraph[s].tensors, i);
      if (pp_flat_get32(&tflite->flat, table, TENSOR_BUFFER, 0) == buffer)
        return true;
    }
  return false;
}

static pp_status find_control(pp_tflite *tflite, uint32_t entry, const pp_claims *claims,
                              pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  if (tflite->control.buffer)
    return pp_fail_at(error, PP_ERROR_INPUT, pp_tflite_at(tflite, tflite->metadata, entry),
                      "%s appears twice", control_name);
  uint32_t index = entry_buffer(tflite, entry);
  size_t buffer = pp_tflite_at(tflite, tflite->buffers, index);
  pp_flat_vector data = pp_flat_elements(flat, buffer, BUFFER_DATA);
  tflite->control.buffer = buffer;
  tflite->control.at = data.at;
  tflite->control.size = data.count;
  tflite->control.shared = pp_claims_shared(claims, buffer) ||
                           (data.at && pp_claims_shared(claims, data.at - 4)) ||
                           buffer_used(tflite, index, entry);
  if (!data.count) /* runtimes read it there and nowhere else */
    return pp_fail_at(error, PP_ERROR_INPUT, buffer, "%s has no data", control_name);
  return read_edges(tflite, error);
}

static void note_plan(pp_tflite *tflite, uint32_t entry, pp_notices *notices) {
  size_t buffer = pp_tflite_at(tflite, tflite->buffers, entry_buffer(tflite, entry));
  pp_flat_vector data = pp_flat_elements(&tflite->flat, buffer, BUFFER_DATA);
  bool whole = data.count >= 12 && data.count % 4 == 0 &&
               pp_flat_u32(&tflite->flat, data.at + 8) == data.count / 4 - 3 &&
               data.count / 4 - 3 == tflite->tensors;
  if (tflite->plans++)
    return;
  pp_notices_add(notices,
                 "an offline memory plan (%s) belongs to the order of the file; it is removed "
                 "from a file that is written in another order",
                 plan_name);
  if (!whole)
    pp_notices_add(notices,
                   "the offline memory plan does not have one offset for each of the %" PRIu32
                   " tensors",
                   tflite->tensors);
}

pp_status pp_tflite_read_metadata(pp_tflite *tflite, const pp_claims *claims, pp_notices *notices,
                                  pp_error *error) {
  tflite->metadata_shared =
      tflite->metadata.at && pp_claims_shared(claims, tflite->metadata.at - 4);
  for (uint32_t i = 0; i < tflite->metadata.count; i++) {
    uint32_t buffer = entry_buffer(tflite, i);
    if (buffer >= tflite->buffers.count)
      return pp_fail_at(error, PP_ERROR_INPUT, pp_tflite_at(tflite, tflite->metadata, i),
                        "metadata %" PRIu32 " is in buffer %" PRIu32 ", which does not exist", i,
                        buffer);
    if (pp_tflite_is_plan(tflite, i))
      note_plan(tflite, i, notices);
    else if (pp_flat_equals(&tflite->flat, entry_name(tflite, i), control_name)) {
      pp_status status = find_control(tflite, i, claims, error);
      if (status)
        return status;
    }
  }
  return PP_OK;
}

/* ---- Writing control dependencies ---- */

static size_t put(uint8_t *bytes, uint32_t value) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[size++] = (uint8_t)(value | 0x80);
  bytes[size++] = (uint8_t)value;
  return size;
}

pp_status pp_tflite_encode_control(const pp_tflite *tflite, pp_index *const *position,
                                   uint8_t **bytes, size_t *size, pp_error *error) {
  enum { LONGEST = 5 }; /* a varint of 32 bits */
  size_t numbers = 2 + (size_t)tflite->control.subgraphs + tflite->edge.count;
  uint8_t *out = pp_alloc(numbers, LONGEST);
  if (!out)
    return pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  size_t used = put(out, CONTROL_VERSION);
  used += put(out + used, tflite->control.subgraphs);
  for (uint32_t s = 0; s < tflite->control.subgraphs; s++) {
    const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
    used += put(out + used, (uint32_t)subgraph->edges);
    for (size_t i = 2 * subgraph->edge; i < 2 * (subgraph->edge + subgraph->edges); i++) {
      int32_t operator_ = tflite->edge.items[i];
      operator_ = position[s] ? position[s][operator_] : operator_;
      used += put(out + used, (uint32_t)operator_ << 1);
    }
  }
  *bytes = out;
  *size = used;
  return PP_OK;
}
