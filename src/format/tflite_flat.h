/* Reading FlatBuffers without trusting them.
 *
 * A FlatBuffer is a file of tables, vectors and strings that point to each other by relative
 * offsets (flatbuffers.dev, "FlatBuffer internals"). pp_flat_* read fields of tables that
 * tflite_schema.c has verified; pp_claims makes sure that no two objects of a file overlap, so that
 * changing one of them changes nothing else. */
#ifndef PP_FORMAT_TFLITE_FLAT_H
#define PP_FORMAT_TFLITE_FLAT_H

#include "memory.h"

typedef struct pp_flat {
  const uint8_t *bytes;
  size_t size;
} pp_flat;

/* `count` elements, the first one at byte `at`; {0, 0} where there is no vector. A string is a
 * vector of bytes. */
typedef struct pp_flat_vector {
  size_t at;
  uint32_t count;
} pp_flat_vector;

static inline uint16_t pp_flat_u16(const pp_flat *flat, size_t at) {
  const uint8_t *b = flat->bytes + at;
  return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t pp_flat_u32(const pp_flat *flat, size_t at) {
  const uint8_t *b = flat->bytes + at;
  return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t pp_flat_u64(const pp_flat *flat, size_t at) {
  return pp_flat_u32(flat, at) | (uint64_t)pp_flat_u32(flat, at + 4) << 32;
}

static inline int32_t pp_flat_i32(const pp_flat *flat, size_t at) {
  return (int32_t)pp_flat_u32(flat, at);
}

/* Where the relative offset at byte `at` points. */
static inline size_t pp_flat_target(const pp_flat *flat, size_t at) {
  return at + pp_flat_u32(flat, at);
}

/* The position of a table's field that is `width` bytes wide; 0 where the table has none. */
size_t pp_flat_field(const pp_flat *flat, size_t table, unsigned field, size_t width);
/* The table, or the vector or string, that a field points to. */
size_t pp_flat_table(const pp_flat *flat, size_t table, unsigned field);
pp_flat_vector pp_flat_elements(const pp_flat *flat, size_t table, unsigned field);
/* Scalars; `missing` where the table has no such field. */
uint8_t pp_flat_get8(const pp_flat *flat, size_t table, unsigned field, uint8_t missing);
uint32_t pp_flat_get32(const pp_flat *flat, size_t table, unsigned field, uint32_t missing);
uint64_t pp_flat_get64(const pp_flat *flat, size_t table, unsigned field, uint64_t missing);
bool pp_flat_equals(const pp_flat *flat, pp_flat_vector string, const char *text);

typedef struct pp_extent {
  size_t from, to;
  bool outside; /* data behind the FlatBuffer, which may overlap other such data */
  bool again;   /* claimed more than once */
} pp_extent;

/* The bytes that objects of a file occupy. Objects are disjoint or the same: writers share equal
 * vtables, strings and vectors. */
typedef struct pp_claims {
  size_t size, budget;
  /* One bit a byte: some object has it; an object begins here; it was claimed more than once.
   * Objects of LARGE bytes and more are in the list instead, so that the memory of the maps that a
   * big file really touches stays small. */
  uint64_t *taken, *start, *again;
  PP_VECTOR(pp_extent) large;
} pp_claims;

typedef enum pp_claim {
  PP_CLAIMED = 0,
  PP_CLAIM_OVERLAPS,
  PP_CLAIM_BUDGET, /* shared so often that walking the file would take forever */
  PP_CLAIM_MEMORY
} pp_claim;

bool pp_claims_begin(pp_claims *claims, size_t size);
pp_claim pp_claims_add(pp_claims *claims, size_t at, size_t length);
pp_claim pp_claims_add_outside(pp_claims *claims, size_t at, size_t length);
/* Checks the large objects; on PP_CLAIM_OVERLAPS *at is where one lies. To be called once, last. */
pp_claim pp_claims_finish(pp_claims *claims, size_t *at);
/* Whether more than one pointer leads to the object that begins at `at`. */
bool pp_claims_shared(const pp_claims *claims, size_t at);
void pp_claims_end(pp_claims *claims);

#endif
