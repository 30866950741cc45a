/* Which tensors the arena holds, and how many bytes each takes. */
#include <inttypes.h>

#include "format/tflite_model.h"
#include "format/tflite_schema.h"

/* Bits of one element by tensor type; 0: it holds what no shape tells. */
static const uint8_t bits[] = {
    32,  16, 32, 8,  64, /* float32, float16, int32, uint8, int64 */
    0,                   /* string */
    8,   16, 64, 8,  64, /* bool, int16, complex64, int8, float64 */
    128, 64,             /* complex128, uint64 */
    0,   0,              /* resource, variant */
    32,  16, 4,  16,     /* uint32, uint16, int4, bfloat16 */
    2,   4,  8,  8       /* int2, uint4, float8_e4m3fn, float8_e5m2 */
};

/* What sizes do not tell. One notice a subgraph and kind, not one a tensor. */
enum odd { ODD_STRING, ODD_RESOURCE, ODD_VARIANT, ODD_TYPE, ODD_SPARSE, ODD_DYNAMIC, ODDS };
static const struct {
  const char *what, *effect;
} odd_text[ODDS] = {
    [ODD_STRING] = {"string", "unknown size, counted as 0"},
    [ODD_RESOURCE] = {"resource", "no arena bytes that the file tells, counted as 0"},
    [ODD_VARIANT] = {"variant", "unknown size, counted as 0"},
    [ODD_TYPE] = {"unknown-type", "unknown size, counted as 0"},
    [ODD_SPARSE] = {"sparse non-constant", "unknown size, counted as if dense"},
    [ODD_DYNAMIC] = {"dynamic-shape", "counted by the shape in the file"},
};
struct odds {
  uint32_t count[ODDS], first[ODDS];
};

static void note(struct odds *odds, enum odd odd, uint32_t tensor) {
  if (!odds->count[odd]++)
    odds->first[odd] = tensor;
}

static void tell(const struct odds *odds, uint32_t subgraph, pp_notices *notices) {
  for (int odd = 0; odd < ODDS; odd++)
    if (odds->count[odd])
      pp_notices_add(notices,
                     "subgraph %" PRIu32 ": %" PRIu32 " %s tensor%s (first: %" PRIu32 "): %s",
                     subgraph, odds->count[odd], odd_text[odd].what,
                     odds->count[odd] == 1 ? "" : "s", odds->first[odd], odd_text[odd].effect);
}

/* A constant's data is in the file, or in a file of its own. */
static pp_status find_kind(const pp_tflite *tflite, size_t table, uint8_t *kind, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  uint32_t index = pp_flat_get32(flat, table, TENSOR_BUFFER, 0);
  if (index >= tflite->buffers.count)
    return pp_fail_at(error, PP_ERROR_INPUT, table, "buffer %" PRIu32 " does not exist", index);
  size_t buffer = pp_tflite_at(tflite, tflite->buffers, index);
  bool inside = pp_flat_elements(flat, buffer, BUFFER_DATA).count;
  /* Offsets 0 and 1 say that there is no data behind the FlatBuffer (schema.fbs). */
  bool behind = pp_flat_get64(flat, buffer, BUFFER_OFFSET, 0) > 1 &&
                pp_flat_get64(flat, buffer, BUFFER_SIZE, 0);
  if (pp_flat_get8(flat, table, TENSOR_VARIABLE, 0))
    *kind = TENSOR_STATE;
  else if (inside || behind || pp_flat_get32(flat, table, TENSOR_EXTERNAL, 0))
    *kind = TENSOR_CONSTANT;
  else
    *kind = TENSOR_ARENA;
  return PP_OK;
}

/* The product of the dimensions. */
static pp_status count_elements(const pp_tflite *tflite, pp_flat_vector shape, int64_t *elements,
                                pp_error *error) {
  bool overflow = false, zero = false;
  *elements = 1;
  for (uint32_t i = 0; i < shape.count; i++) {
    int32_t dimension = pp_tflite_int(tflite, shape, i);
    if (dimension < 0)
      return pp_fail_at(error, PP_ERROR_INPUT, shape.at + 4 * (size_t)i,
                        "dimension %" PRIu32 " is negative", i);
    zero |= !dimension;
    overflow |= !zero && __builtin_mul_overflow(*elements, dimension, elements);
  }
  if (zero)
    *elements = 0;
  else if (overflow)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, shape.at, "more than 2^63-1 elements");
  return PP_OK;
}

bool pp_tflite_is_empty(const pp_tflite *tflite, uint32_t subgraph, uint32_t index) {
  size_t table = pp_tflite_at(tflite, tflite->subgraph[subgraph].tensors, index);
  pp_flat_vector shape = pp_flat_elements(&tflite->flat, table, TENSOR_SHAPE);
  for (uint32_t i = 0; i < shape.count; i++)
    if (!pp_tflite_int(tflite, shape, i))
      return true;
  return false;
}

static pp_status find_bytes(const pp_tflite *tflite, size_t table, int64_t *bytes,
                            pp_error *error) {
  pp_flat_vector shape = pp_flat_elements(&tflite->flat, table, TENSOR_SHAPE);
  uint8_t type = pp_flat_get8(&tflite->flat, table, TENSOR_TYPE, 0);
  int64_t elements, width = type < sizeof bits ? bits[type] : 0;
  pp_status status = count_elements(tflite, shape, &elements, error);
  if (status)
    return status;
  if (width < 8) /* several to a byte, the last byte filled up (width 0: none) */
    *bytes = width ? elements / (8 / width) + !!(elements % (8 / width)) : 0;
  else if (__builtin_mul_overflow(elements, width / 8, bytes))
    return pp_fail_at(error, PP_ERROR_OVERFLOW, table, "more than 2^63-1 bytes");
  return PP_OK;
}

static bool is_dynamic(const pp_tflite *tflite, size_t table) {
  pp_flat_vector signature = pp_flat_elements(&tflite->flat, table, TENSOR_SIGNATURE);
  for (uint32_t i = 0; i < signature.count; i++)
    if (pp_tflite_int(tflite, signature, i) < 0)
      return true;
  return false;
}

static void note_tensor(const pp_tflite *tflite, size_t table, uint32_t index, struct odds *odds) {
  uint8_t type = pp_flat_get8(&tflite->flat, table, TENSOR_TYPE, 0);
  if (type == TYPE_STRING)
    note(odds, ODD_STRING, index);
  else if (type == TYPE_RESOURCE)
    note(odds, ODD_RESOURCE, index);
  else if (type == TYPE_VARIANT)
    note(odds, ODD_VARIANT, index);
  else if (type >= sizeof bits)
    note(odds, ODD_TYPE, index);
  if (pp_flat_table(&tflite->flat, table, TENSOR_SPARSITY))
    note(odds, ODD_SPARSE, index);
  if (is_dynamic(tflite, table))
    note(odds, ODD_DYNAMIC, index);
}

/* "tensor 7 of subgraph 0: " before what went wrong. */
static pp_status name_tensor(uint32_t subgraph, uint32_t index, pp_status status, pp_error *error) {
  if (!error)
    return status;
  pp_error inner = *error;
  return pp_fail_at(error, status, (size_t)inner.offset,
                    "tensor %" PRIu32 " of subgraph %" PRIu32 ": %.200s", index, subgraph,
                    inner.message);
}

pp_status pp_tflite_read_tensors(pp_tflite *tflite, pp_notices *notices, pp_error *error) {
  for (uint32_t s = 0; s < tflite->subgraphs; s++) {
    const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
    struct odds odds = {0};
    for (uint32_t i = 0; i < subgraph->tensors.count; i++) {
      size_t table = pp_tflite_at(tflite, subgraph->tensors, i), t = (size_t)subgraph->tensor + i;
      pp_status status = find_kind(tflite, table, tflite->kind + t, error);
      if (status || (status = find_bytes(tflite, table, tflite->bytes + t, error)))
        return name_tensor(s, i, status, error);
      if (tflite->kind[t] == TENSOR_ARENA)
        note_tensor(tflite, table, i, &odds);
    }
    tell(&odds, s, notices);
  }
  return PP_OK;
}
