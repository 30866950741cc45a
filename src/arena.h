/* Offsets in a static arena (THEORY.md section 5): what the parts of the packer share.
 *
 * The problem is a strip: time runs to the right, bytes upwards, a buffer is a rectangle whose
 * place in time is given. Time is cut into *sections*, the maximal sets of buffers that live at the
 * same time: two buffers overlap in time exactly if they share a section, and a buffer spans
 * consecutive sections. Bytes are counted in *units*: a buffer of `bytes` is `height` units high,
 * and only the topmost one may end inside a unit. The unit is the alignment, times what all heights
 * are multiples of: in a packing pushed down as far as it goes, offsets are sums of heights.
 * Buffers of 0 bytes are left out. */
#ifndef PP_ARENA_H
#define PP_ARENA_H

#include "peakproof.h"
#include "random.h"

struct pp_strip {
  int32_t count; /* buffers, those of 0 bytes left out */
  int32_t sections;
  int64_t unit;                /* in bytes, a multiple of the alignment */
  size_t *id;                  /* of the buffer in the caller's array */
  int64_t *bytes;              /* as the caller gave it, > 0 */
  int64_t *height;             /* in units */
  int32_t *from, *to;          /* spans the sections from <= s < to */
  double *width;               /* time from birth to death */
  int64_t *last_bytes;         /* that the last unit of the buffer holds: 1..unit */
  int64_t *load;               /* of a section: sum of the heights */
  int64_t *section_last_bytes; /* the smallest last_bytes in the section */
  int64_t bound;               /* no packing needs fewer bytes: the highest load */
  int64_t peak;                /* the largest sum of bytes that live together */
  int64_t incidences;          /* pairs (buffer, section) */
};

pp_status pp_strip_init(struct pp_strip *strip, const pp_buffer *buffer, size_t buffers,
                        int64_t alignment, pp_error *error);
void pp_strip_free(struct pp_strip *strip);

/* Units that fit below `capacity` bytes when the topmost one needs only last_bytes. */
static inline int64_t pp_strip_units(const struct pp_strip *strip, int64_t capacity,
                                     int64_t last_bytes) {
  return capacity < last_bytes ? 0 : (capacity - last_bytes) / strip->unit + 1;
}
/* The smallest capacity with that many units (> 0), or INT64_MAX if it is larger. */
static inline int64_t pp_strip_bytes(const struct pp_strip *strip, int64_t units,
                                     int64_t last_bytes) {
  int64_t bytes;
  return __builtin_mul_overflow(units - 1, strip->unit, &bytes) ||
                 __builtin_add_overflow(bytes, last_bytes, &bytes)
             ? INT64_MAX
             : bytes;
}
/* The bytes that offsets (in units) need; false if they leave int64_t. */
bool pp_strip_used(const struct pp_strip *strip, const int64_t *offset, int64_t *used);

/* Orders in which buffers are preferred. */
enum pp_preference { PP_BY_WIDTH, PP_BY_AREA, PP_BY_HEIGHT, PP_BY_LOAD, PP_PREFERENCES };
/* Fills rank[buffer] (0 is preferred) with the order `preference`: by its measure times weight[b]
 * (NULL: 1), perturbed the more the larger `noise` is. Equal seeds give equal ranks. False when out
 * of memory. */
bool pp_strip_rank(const struct pp_strip *strip, enum pp_preference preference,
                   const double *weight, int noise, uint64_t seed, int32_t *rank);

/* Packs by filling the lowest valley of the skyline with the best ranked buffer that lives inside
 * it: O(n log n). Fills offset (units). PP_ERROR_OVERFLOW: the skyline left int64_t;
 * PP_ERROR_MEMORY. */
pp_status pp_skyline_pack(const struct pp_strip *strip, const int32_t *rank, int64_t *offset);

/* ---- Exact search (arena_search.c) ---- */

typedef enum pp_packer_result {
  PP_PACKER_PACKED,
  PP_PACKER_IMPOSSIBLE, /* proved */
  PP_PACKER_LIMIT,
  PP_PACKER_MEMORY
} pp_packer_result;

typedef struct pp_packer pp_packer;

/* NULL when out of memory. The strip must outlive it. */
pp_packer *pp_packer_new(const struct pp_strip *strip);
void pp_packer_free(pp_packer *packer);
/* How a section is chosen to branch on. */
enum pp_choice { PP_FEWEST_FIRST, PP_LOWEST_FIRST, PP_TIGHTEST_FIRST, PP_CHOICES };
/* Looks for a packing within `capacity` bytes (at least the strip's bound) in at most `nodes`
 * nodes; trying buffers in the order of rank. */
pp_packer_result pp_packer_run(pp_packer *packer, int64_t capacity, const int32_t *rank,
                               enum pp_choice choice, int64_t nodes);
/* After PP_PACKER_PACKED: the offset of every buffer of the strip, in units. */
const int64_t *pp_packer_offsets(const pp_packer *packer);
/* After PP_PACKER_IMPOSSIBLE: the smallest capacity above that is not refuted; INT64_MAX: none. */
int64_t pp_packer_next(const pp_packer *packer);
/* How often each buffer was still to be placed in a section when the last run found that too much
 * room is lost there. */
const int64_t *pp_packer_blame(const pp_packer *packer);
/* Nodes of the last run. */
int64_t pp_packer_nodes(const pp_packer *packer);

#endif
