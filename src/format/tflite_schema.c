#include "format/tflite_schema.h"

#include <inttypes.h>

#include "format/tflite_model.h"

/* ---- The schema ---- */

enum kind { NONE, SCALAR, STRING, VECTOR, TABLE, TABLES, UNION };
/* What `of` means: SCALAR and VECTOR: bytes of one element; TABLE, TABLES: the type; UNION: which
 * union (its tag is the field before). */
struct field {
  uint8_t kind, of;
};

enum type {
  OPAQUE, /* nothing in it points anywhere, or we do not know */
  MODEL,
  CODE,
  SUBGRAPH,
  BUFFER,
  METADATA,
  SIGNATURE,
  TENSOR_MAP,
  EXTERNAL_GROUP,
  EXTERNAL_BUFFER,
  TENSOR,
  OPERATOR,
  QUANTIZATION,
  SPARSITY,
  DIMENSION,
  VARIANT,
  INTS_0, /* one vector of 4-byte elements, at field 0 */
  BLOCKWISE,
  CONCAT_EMBEDDINGS,
  FULLY_CONNECTED,
  VAR_HANDLE,
  HLO_SLICE,
  HLO_CONVOLUTION,
  HLO_CUSTOM_CALL,
  HLO_SCATTER,
  HLO_PAD,
  HLO_DOT_GENERAL,
  HLO_REDUCE_WINDOW,
  HLO_GATHER,
  HLO_COMPOSITE,
  BYTES_0, /* one vector of bytes, or a string, at field 0 */
  SHORTS_0,
  LONGS_0,
  TYPES
};

enum { OF_DETAILS, OF_SPARSE_INDEX, OF_OPTIONS, OF_OPTIONS2 }; /* the unions */

#define S(bytes)                                                                                   \
  { SCALAR, bytes }
#define V(bytes)                                                                                   \
  { VECTOR, bytes }
#define T(type)                                                                                    \
  { TABLE, type }
#define TS(type)                                                                                   \
  { TABLES, type }
#define U(which)                                                                                   \
  { UNION, which }
#define STR                                                                                        \
  { STRING, 1 }

enum { FIELDS = 17 };
static const struct field schema[TYPES][FIELDS] = {
    [MODEL] = {S(4), TS(CODE), TS(SUBGRAPH), STR, TS(BUFFER), V(4), TS(METADATA), TS(SIGNATURE),
               TS(EXTERNAL_GROUP), TS(EXTERNAL_BUFFER)},
    [CODE] = {S(1), STR, S(4), S(4)},
    [SUBGRAPH] = {TS(TENSOR), V(4), V(4), TS(OPERATOR), STR, S(4)},
    [BUFFER] = {V(1), S(8), S(8)},
    [METADATA] = {STR, S(4)},
    [SIGNATURE] = {TS(TENSOR_MAP), TS(TENSOR_MAP), STR, {NONE, 0}, S(4)},
    [TENSOR_MAP] = {STR, S(4)},
    [EXTERNAL_GROUP] = {STR},
    [EXTERNAL_BUFFER] = {S(4), S(4), S(8), S(8), STR},
    [TENSOR] = {V(4), S(1), S(4), STR, T(QUANTIZATION), S(1), T(SPARSITY), V(4), S(1), TS(VARIANT),
                S(4)},
    [OPERATOR] = {S(4), V(4), V(4), S(1), U(OF_OPTIONS), V(1), S(1), V(1), V(4), S(8), S(8), S(1),
                  U(OF_OPTIONS2), S(4)},
    [QUANTIZATION] = {V(4), V(4), V(4), V(8), S(1), U(OF_DETAILS), S(4)},
    [SPARSITY] = {V(4), V(4), TS(DIMENSION)},
    [DIMENSION] = {S(1), S(4), S(1), U(OF_SPARSE_INDEX), S(1), U(OF_SPARSE_INDEX)},
    [VARIANT] = {V(4), S(1), S(1)},
    [INTS_0] = {V(4)},
    [BLOCKWISE] = {S(4), S(4), S(4), V(4)},
    [CONCAT_EMBEDDINGS] = {S(4), V(4), V(4)},
    [FULLY_CONNECTED] = {S(1), S(1), S(1), S(1), S(1), V(1)},
    [VAR_HANDLE] = {STR, STR},
    [HLO_SLICE] = {V(8), V(8), V(8)},
    [HLO_CONVOLUTION] = {V(8), V(8), V(8), V(8), V(1), S(8), S(8), V(8), S(8), S(8), V(8), S(8),
                         S(8), V(8), S(8), S(8), V(4)},
    [HLO_CUSTOM_CALL] = {STR, S(1), STR, S(4), V(4), V(1)},
    [HLO_SCATTER] = {S(1), V(8), V(8), V(8), S(8), S(1), S(4)},
    [HLO_PAD] = {V(8), V(8), V(8)},
    [HLO_DOT_GENERAL] = {V(8), V(8), V(8), V(8), V(4)},
    [HLO_REDUCE_WINDOW] = {V(8), V(8), V(8), V(8), V(8), S(4)},
    [HLO_GATHER] = {V(8), V(8), V(8), S(8), V(8), S(1)},
    [HLO_COMPOSITE] = {STR, S(4), V(1), S(1), S(4)},
    [BYTES_0] = {V(1)},
    [SHORTS_0] = {V(2)},
    [LONGS_0] = {V(8)},
};

/* The members of the unions that hold pointers; the others are OPAQUE. */
static enum type member(unsigned which, unsigned tag) {
  switch (which << 8 | tag) {
  case OF_DETAILS << 8 | 1: /* CustomQuantization */
    return BYTES_0;
  case OF_DETAILS << 8 | 2: /* BlockwiseQuantization */
  case OF_DETAILS << 8 | 3: /* MultiAxisQuantization */
    return BLOCKWISE;
  case OF_SPARSE_INDEX << 8 | 1: /* Int32Vector */
    return INTS_0;
  case OF_SPARSE_INDEX << 8 | 2: /* Uint16Vector */
    return SHORTS_0;
  case OF_SPARSE_INDEX << 8 | 3: /* Uint8Vector */
    return BYTES_0;
  case OF_OPTIONS << 8 | 3:
    return CONCAT_EMBEDDINGS;
  case OF_OPTIONS << 8 | 8:
    return FULLY_CONNECTED;
  case OF_OPTIONS << 8 | 17:  /* ReshapeOptions */
  case OF_OPTIONS << 8 | 30:  /* SqueezeOptions */
  case OF_OPTIONS << 8 | 115: /* BucketizeOptions */
    return INTS_0;
  case OF_OPTIONS << 8 | 111:
    return VAR_HANDLE;
  case OF_OPTIONS2 << 8 | 2:  /* StablehloBroadcastInDimOptions */
  case OF_OPTIONS2 << 8 | 6:  /* StablehloReduceOptions */
  case OF_OPTIONS2 << 8 | 9:  /* StablehloDynamicSliceOptions */
  case OF_OPTIONS2 << 8 | 17: /* StablehloTransposeOptions */
    return LONGS_0;
  case OF_OPTIONS2 << 8 | 3:
    return HLO_SLICE;
  case OF_OPTIONS2 << 8 | 4:
    return HLO_CONVOLUTION;
  case OF_OPTIONS2 << 8 | 5:
    return HLO_CUSTOM_CALL;
  case OF_OPTIONS2 << 8 | 7:
    return HLO_SCATTER;
  case OF_OPTIONS2 << 8 | 10:
    return HLO_PAD;
  case OF_OPTIONS2 << 8 | 12:
    return HLO_REDUCE_WINDOW;
  case OF_OPTIONS2 << 8 | 11:
    return HLO_DOT_GENERAL;
  case OF_OPTIONS2 << 8 | 15:
    return HLO_GATHER;
  case OF_OPTIONS2 << 8 | 21:
    return HLO_COMPOSITE;
  case OF_OPTIONS2 << 8 | 23: /* StablehloCaseOptions */
    return INTS_0;
  }
  return OPAQUE;
}

/* ---- The walk ---- */

/* `count` offsets at byte `at`, each to a table. */
struct run {
  size_t at;
  uint32_t count;
  enum type type;
};

struct walk {
  const pp_flat *flat;
  pp_claims *claims;
  PP_VECTOR(struct run) runs;
  pp_error *error;
};

static pp_status claim(struct walk *walk, size_t at, size_t length, const char *what) {
  switch (pp_claims_add(walk->claims, at, length)) {
  case PP_CLAIMED:
    break;
  case PP_CLAIM_OVERLAPS:
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, at, "%s overlaps another object", what);
  case PP_CLAIM_BUDGET:
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, at,
                          "%s: the file shares its objects too often", what);
  case PP_CLAIM_MEMORY:
    return pp_tflite_fail(walk->error, PP_ERROR_MEMORY, PP_NOWHERE, "out of memory");
  }
  return PP_OK;
}

static pp_status follow(struct walk *walk, size_t at, size_t *target, const char *what) {
  *target = pp_flat_target(walk->flat, at);
  if (*target == at || *target > walk->flat->size - 4)
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, at, "the offset of %s leaves the file",
                          what);
  return PP_OK;
}

static pp_status verify_vector(struct walk *walk, size_t at, size_t width, const char *what,
                               pp_flat_vector *vector) {
  size_t target;
  pp_status status = follow(walk, at, &target, what);
  if (status)
    return status;
  uint32_t count = pp_flat_u32(walk->flat, target);
  if (count > (walk->flat->size - target - 4) / width)
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, target,
                          "%s of %" PRIu32 " elements leaves the file", what, count);
  *vector = (pp_flat_vector){target + 4, count};
  return claim(walk, target, 4 + count * width, what);
}

static pp_status push(struct walk *walk, size_t at, uint32_t count, enum type type) {
  if (!count)
    return PP_OK;
  if (!PP_ROOM(&walk->runs))
    return pp_tflite_fail(walk->error, PP_ERROR_MEMORY, PP_NOWHERE, "out of memory");
  walk->runs.items[walk->runs.count++] = (struct run){at, count, type};
  return PP_OK;
}

/* A field at byte `at`; tag: the byte value of the field before, 0 if there is none. */
static pp_status verify_field(struct walk *walk, struct field field, size_t at, unsigned tag) {
  pp_flat_vector vector;
  pp_status status;
  switch (field.kind) {
  case STRING:
    return verify_vector(walk, at, 1, "a string", &vector);
  case VECTOR:
    return verify_vector(walk, at, field.of, "a vector", &vector);
  case TABLE:
    return push(walk, at, 1, field.of);
  case UNION:
    return push(walk, at, 1, member(field.of, tag));
  case TABLES:
    status = verify_vector(walk, at, 4, "a vector of tables", &vector);
    return status ? status : push(walk, vector.at, vector.count, field.of);
  default:
    return PP_OK;
  }
}

static pp_status verify_fields(struct walk *walk, size_t table, size_t vtable, enum type type) {
  size_t fields = (pp_flat_u16(walk->flat, vtable) - 4u) / 2;
  size_t inside = pp_flat_u16(walk->flat, vtable + 2);
  unsigned tag = 0;
  for (size_t i = 0; i < FIELDS && i < fields; i++) {
    struct field field = schema[type][i];
    size_t offset = pp_flat_u16(walk->flat, vtable + 4 + 2 * i);
    unsigned before = tag;
    tag = 0;
    if (!offset || field.kind == NONE)
      continue;
    size_t width = field.kind == SCALAR ? field.of : 4;
    if (offset < 4 || offset + width > inside)
      return pp_tflite_fail(walk->error, PP_ERROR_INPUT, vtable + 4 + 2 * i,
                            "field %zu leaves its table at byte %zu", i, table);
    if (width == 1)
      tag = walk->flat->bytes[table + offset];
    pp_status status = verify_field(walk, field, table + offset, before);
    if (status)
      return status;
  }
  return PP_OK;
}

static pp_status verify_table(struct walk *walk, size_t at, enum type type) {
  size_t table, size = walk->flat->size;
  pp_status status = follow(walk, at, &table, "a table");
  if (status)
    return status;
  int64_t vtable = (int64_t)table - pp_flat_i32(walk->flat, table);
  if (vtable < 0 || vtable > (int64_t)size - 4)
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, table, "a vtable lies outside of the file");
  size_t length = pp_flat_u16(walk->flat, (size_t)vtable);
  size_t inside = pp_flat_u16(walk->flat, (size_t)vtable + 2);
  if (length < 4 || length % 2 || length > size - (size_t)vtable)
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, (size_t)vtable, "a vtable of %zu bytes",
                          length);
  if (inside < 4 || inside > size - table)
    return pp_tflite_fail(walk->error, PP_ERROR_INPUT, (size_t)vtable + 2,
                          "a table of %zu bytes at byte %zu", inside, table);
  if ((status = claim(walk, (size_t)vtable, length, "a vtable")) ||
      (status = claim(walk, table, inside, "a table")))
    return status;
  return verify_fields(walk, table, (size_t)vtable, type);
}

pp_status pp_tflite_verify(const pp_flat *flat, size_t root, pp_claims *claims, pp_error *error) {
  struct walk walk = {.flat = flat, .claims = claims, .error = error};
  pp_status status = push(&walk, root, 1, MODEL);
  while (!status && walk.runs.count) {
    struct run *run = walk.runs.items + walk.runs.count - 1;
    struct run next = *run;
    run->at += 4;
    if (!--run->count)
      walk.runs.count--;
    status = verify_table(&walk, next.at, next.type);
  }
  free(walk.runs.items);
  return status;
}
