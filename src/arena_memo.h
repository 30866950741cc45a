/* A table from keys (sequences of words) to a number, bounded in memory: the states that the packer
 * has refuted, and the capacity below which each is refuted. */
#ifndef PP_ARENA_MEMO_H
#define PP_ARENA_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_memo_slot {
  uint64_t hash;
  size_t key; /* 1 + where its words begin; 0: free */
  size_t words;
  int64_t value;
};

struct pp_memo {
  struct pp_memo_slot *slot; /* open addressing */
  size_t slots, used;
  uint64_t *word;
  size_t words, capacity;
};

uint64_t pp_memo_hash(const uint64_t *key, size_t words);
/* The value of the key, or -1. Keys are compared in full: an equal hash is not enough to call a
 * state refuted. */
int64_t pp_memo_get(const struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash);
/* Sets the value of the key unless it has a larger one. Forgets everything when it is full; does
 * nothing when out of memory. */
void pp_memo_put(struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash,
                 int64_t value);
void pp_memo_clear(struct pp_memo *memo);
void pp_memo_free(struct pp_memo *memo);

#endif
