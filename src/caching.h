/* A model of PyTorch's CUDA caching allocator, inside (doc/caching.md names the source of each
 * rule). A *segment* is what the driver handed out, a *block* a part of it. Free blocks lie in two
 * *pools*, of small and of large requests, as ordered sets: the best fit is the next one up. All is
 * held by index, so that a state can be copied. */
#ifndef PP_CACHING_H
#define PP_CACHING_H

#include "memory.h"
#include "peakproof.h"

enum { PP_NO_BLOCK = -1 };

/* The pools of free blocks, and of address space of expandable segments that nothing backs. */
enum pp_caching_pool { PP_POOL_SMALL, PP_POOL_LARGE, PP_POOLS };

struct pp_cached {
  int64_t address, bytes, requested, rounded, stream;
  int64_t born;         /* calls of its pool when it was put there: its age counts from then */
  pp_index prev, next;  /* in its segment, by address */
  pp_index left, right; /* in an ordered set */
  uint32_t priority;    /* in an ordered set; 0: the slot is unused */
  int32_t expandable;   /* index of its expandable segment, or -1 */
  uint8_t pool;
  bool allocated, mapped;
};

struct pp_expandable {
  int64_t base, bytes, granule;
};

struct pp_caching {
  pp_caching_config config;
  PP_VECTOR(struct pp_cached) blocks;
  pp_index unused;           /* first unused slot; they are linked by `next` */
  pp_index cached[PP_POOLS]; /* root of the set ordered by stream, bytes, address */
  pp_index hollow[PP_POOLS]; /* root of the set of unmapped blocks, by stream, address */
  int64_t calls[PP_POOLS];   /* searches of the pool; counted for garbage collection only */
  PP_VECTOR(struct pp_expandable) expandables;
  PP_VECTOR(pp_index) scratch;
  pp_caching_figures figures;
  uint64_t random;
  int64_t next_address;
  int64_t refusals;          /* so many requests to the driver will fail */
  PP_VECTOR(int64_t) places; /* addresses of the next segments; first is places_used */
  size_t places_used;
  pp_caching_watch *watch;
  void *data;
};

/* ---- Ordered sets (caching_set.c): treaps, so all is O(log n) expected ---- */

/* Both kinds order by stream; then by bytes and address, or by address. */
enum pp_caching_order { PP_ORDER_BYTES, PP_ORDER_ADDRESS };
struct pp_caching_key {
  int64_t stream, bytes, address;
};
void pp_set_insert(struct pp_caching *c, pp_index *root, enum pp_caching_order order, pp_index b);
void pp_set_erase(struct pp_caching *c, pp_index *root, enum pp_caching_order order, pp_index b);
/* The first block that is not below the key (and is not it, if `after`), or PP_NO_BLOCK. */
pp_index pp_set_find(const struct pp_caching *c, pp_index root, enum pp_caching_order order,
                     struct pp_caching_key key, bool after);
/* The last block below the key, or PP_NO_BLOCK. */
pp_index pp_set_before(const struct pp_caching *c, pp_index root, enum pp_caching_order order,
                       struct pp_caching_key key);
struct pp_caching_key pp_block_key(const struct pp_caching *c, pp_index b);
/* All blocks of a set in order, into c->scratch; false when out of memory. */
bool pp_set_list(struct pp_caching *c, pp_index root);

/* ---- Blocks (caching.c) ---- */

/* A new block, not in any list; PP_NO_BLOCK when out of memory. May move c->blocks.items. */
pp_index pp_block_new(struct pp_caching *c, int64_t address, int64_t bytes, int64_t stream,
                      enum pp_caching_pool pool);
void pp_block_drop(struct pp_caching *c, pp_index b);
/* Puts b between two blocks of a segment. */
void pp_block_splice(struct pp_caching *c, pp_index b, pp_index prev, pp_index next);
/* Into (out of) its pool of free blocks. */
void pp_block_cache(struct pp_caching *c, pp_index b);
void pp_block_uncache(struct pp_caching *c, pp_index b);
/* Merges a free neighbour into b, if it is one of the same kind. */
void pp_block_merge(struct pp_caching *c, pp_index b, pp_index neighbour);
static inline bool pp_block_split(const struct pp_cached *b) {
  return b->prev != PP_NO_BLOCK || b->next != PP_NO_BLOCK;
}

/* Asks the driver for bytes; false: it has none. */
bool pp_driver_take(struct pp_caching *c, int64_t bytes);
void pp_driver_give(struct pp_caching *c, int64_t bytes);
/* No address is above this: sums with sizes do not overflow. */
#define PP_LAST_ADDRESS ((int64_t)1 << 62)
int64_t pp_address_above(int64_t address);
/* Is a configuration one that an allocator can have? */
pp_status pp_caching_check(const pp_caching_config *config, pp_error *error);
/* What a request is rounded up to. */
int64_t pp_caching_rounded(const pp_caching_config *config, int64_t bytes);
/* Where the next segment stands. */
int64_t pp_driver_place(struct pp_caching *c, int64_t bytes);
void pp_caching_tell(struct pp_caching *c, pp_caching_action action, int64_t address, int64_t bytes,
                     int64_t stream);

/* ---- Giving back (caching_release.c) ---- */

pp_status pp_release_cached(struct pp_caching *c, pp_error *error);
/* Enough blocks of max_split_size or more for a request; false: there are not. */
bool pp_release_available(struct pp_caching *c, int64_t bytes, int64_t stream,
                          enum pp_caching_pool pool);
pp_status pp_garbage_collect(struct pp_caching *c, pp_error *error);

/* ---- Expandable segments (caching_expand.c) ---- */

/* A free block, out of its pool, of at least `bytes`; PP_NO_BLOCK in *block if the driver refuses.
 */
pp_status pp_expand(struct pp_caching *c, int64_t bytes, int64_t stream, enum pp_caching_pool pool,
                    pp_index *block, pp_error *error);
/* Gives back the pages that the free block b fills. */
pp_status pp_unmap(struct pp_caching *c, pp_index b, pp_error *error);
/* Address space for an expandable segment. */
pp_status pp_expandable_new(struct pp_caching *c, int64_t base, int64_t granule, int32_t *index,
                            pp_error *error);
int64_t pp_expandable_bytes(const struct pp_caching *c, int64_t granule);
/* A trace maps pages at `address`, which no segment has: address space that was taken when the
 * driver refused the pages, and so was never seen, turns out to stand there. */
void pp_expandable_settle(struct pp_caching *c, int64_t address, int64_t stream,
                          enum pp_caching_pool pool);

#endif
