#include "format/tflite_flat.h"

#include <string.h>

/* ---- Fields ---- */

size_t pp_flat_field(const pp_flat *flat, size_t table, unsigned field, size_t width) {
  size_t vtable = table - (size_t)(int64_t)pp_flat_i32(flat, table);
  size_t entry = 4 + 2 * (size_t)field;
  if (entry + 2 > pp_flat_u16(flat, vtable))
    return 0;
  size_t offset = pp_flat_u16(flat, vtable + entry);
  if (!offset || offset + width > pp_flat_u16(flat, vtable + 2))
    return 0;
  return table + offset;
}

size_t pp_flat_table(const pp_flat *flat, size_t table, unsigned field) {
  size_t at = pp_flat_field(flat, table, field, 4);
  return at ? pp_flat_target(flat, at) : 0;
}

pp_flat_vector pp_flat_elements(const pp_flat *flat, size_t table, unsigned field) {
  size_t at = pp_flat_table(flat, table, field);
  if (!at)
    return (pp_flat_vector){0, 0};
  return (pp_flat_vector){at + 4, pp_flat_u32(flat, at)};
}

uint8_t pp_flat_get8(const pp_flat *flat, size_t table, unsigned field, uint8_t missing) {
  size_t at = pp_flat_field(flat, table, field, 1);
  return at ? flat->bytes[at] : missing;
}

uint32_t pp_flat_get32(const pp_flat *flat, size_t table, unsigned field, uint32_t missing) {
  size_t at = pp_flat_field(flat, table, field, 4);
  return at ? pp_flat_u32(flat, at) : missing;
}

uint64_t pp_flat_get64(const pp_flat *flat, size_t table, unsigned field, uint64_t missing) {
  size_t at = pp_flat_field(flat, table, field, 8);
  return at ? pp_flat_u64(flat, at) : missing;
}

bool pp_flat_equals(const pp_flat *flat, pp_flat_vector string, const char *text) {
  return string.at && string.count == strlen(text) &&
         !memcmp(flat->bytes + string.at, text, string.count);
}

/* ---- Claims ---- */

enum { LARGE = 1 << 16 };
/* The verifier of FlatBuffers' own C++ library bounds the "apparent size" in the same way: what all
 * pointers together lead to, shared objects counted each time. */
enum { APPARENT = 64, APPARENT_MIN = 1 << 16 };

bool pp_claims_begin(pp_claims *claims, size_t size) {
  size_t words = size / 64 + 1;
  *claims = (pp_claims){.size = size};
  claims->budget = size > SIZE_MAX / 2 / APPARENT ? SIZE_MAX : size * APPARENT + APPARENT_MIN;
  claims->taken = pp_zalloc(words, sizeof(uint64_t));
  claims->start = pp_zalloc(words, sizeof(uint64_t));
  claims->again = pp_zalloc(words, sizeof(uint64_t));
  return claims->taken && claims->start && claims->again;
}

void pp_claims_end(pp_claims *claims) {
  free(claims->taken);
  free(claims->start);
  free(claims->again);
  free(claims->large.items);
}

static bool bit(const uint64_t *map, size_t at) {
  return map[at / 64] >> at % 64 & 1;
}

static void set_bit(uint64_t *map, size_t at) {
  map[at / 64] |= (uint64_t)1 << at % 64;
}

/* The bits of word `word` that stand for bytes from <= b < to. */
static uint64_t mask(size_t word, size_t from, size_t to) {
  uint64_t bits = ~(uint64_t)0;
  if (word == from / 64)
    bits &= ~(uint64_t)0 << from % 64;
  if (word == (to - 1) / 64)
    bits &= ~(uint64_t)0 >> (63 - (to - 1) % 64);
  return bits;
}

static bool any(const uint64_t *map, size_t from, size_t to) {
  if (from >= to)
    return false;
  for (size_t word = from / 64; word <= (to - 1) / 64; word++)
    if (map[word] & mask(word, from, to))
      return true;
  return false;
}

static bool all(const uint64_t *map, size_t from, size_t to) {
  for (size_t word = from / 64; word <= (to - 1) / 64; word++)
    if (~map[word] & mask(word, from, to))
      return false;
  return true;
}

static void set(uint64_t *map, size_t from, size_t to) {
  for (size_t word = from / 64; word <= (to - 1) / 64; word++)
    map[word] |= mask(word, from, to);
}

/* Whether the object claimed at `from` ends at `to`. */
static bool same(const pp_claims *claims, size_t from, size_t to) {
  return bit(claims->start, from) && !any(claims->start, from + 1, to) &&
         all(claims->taken, from, to) &&
         (to == claims->size || !bit(claims->taken, to) || bit(claims->start, to));
}

static pp_claim add_large(pp_claims *claims, size_t from, size_t to, bool outside) {
  if (!PP_ROOM(&claims->large))
    return PP_CLAIM_MEMORY;
  claims->large.items[claims->large.count++] =
      (pp_extent){.from = from, .to = to, .outside = outside};
  return PP_CLAIMED;
}

pp_claim pp_claims_add(pp_claims *claims, size_t at, size_t length) {
  if (length > claims->budget)
    return PP_CLAIM_BUDGET;
  claims->budget -= length;
  if (length >= LARGE)
    return add_large(claims, at, at + length, false);
  if (!any(claims->taken, at, at + length)) {
    set(claims->taken, at, at + length);
    set_bit(claims->start, at);
    return PP_CLAIMED;
  }
  if (!same(claims, at, at + length))
    return PP_CLAIM_OVERLAPS;
  set_bit(claims->again, at);
  return PP_CLAIMED;
}

pp_claim pp_claims_add_outside(pp_claims *claims, size_t at, size_t length) {
  return length ? add_large(claims, at, at + length, true) : PP_CLAIMED;
}

static int compare_extents(const void *a, const void *b) {
  const pp_extent *x = a, *y = b;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  if (x->to != y->to)
    return x->to < y->to ? -1 : 1;
  return (int)x->outside - (int)y->outside;
}

pp_claim pp_claims_finish(pp_claims *claims, size_t *at) {
  size_t count = claims->large.count, end = 0, end_inside = 0;
  pp_extent *extent = claims->large.items;
  if (count)
    qsort(extent, count, sizeof *extent, compare_extents);
  for (size_t i = 0; i < count; i++) {
    pp_extent *e = extent + i;
    *at = e->from;
    if (i && e->from == e[-1].from && e->to == e[-1].to && e->outside == e[-1].outside) {
      e->again = e[-1].again = true;
      continue;
    }
    if (e->from < (e->outside ? end_inside : end) || any(claims->taken, e->from, e->to))
      return PP_CLAIM_OVERLAPS;
    end = e->to > end ? e->to : end;
    if (!e->outside)
      end_inside = e->to > end_inside ? e->to : end_inside;
  }
  return PP_CLAIMED;
}

bool pp_claims_shared(const pp_claims *claims, size_t at) {
  if (bit(claims->again, at))
    return true;
  size_t low = 0, high = claims->large.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (claims->large.items[middle].from < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low < claims->large.count && claims->large.items[low].from == at &&
         claims->large.items[low].again;
}
