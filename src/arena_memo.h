/* A set of keys (sequences of words), bounded in memory: the states that the packer has refuted. */
#ifndef PP_ARENA_MEMO_H
#define PP_ARENA_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_memo_slot {
  uint64_t hash;
  size_t key; /* 1 + where its words begin; 0: free */
  size_t words;
};

struct pp_memo {
  struct pp_memo_slot *slot; /* open addressing */
  size_t slots, used;
  uint64_t *word;
  size_t words, capacity;
};

uint64_t pp_memo_hash(const uint64_t *key, size_t words);
/* Keys are compared in full: an equal hash is not enough to call a state refuted. */
bool pp_memo_has(const struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash);
/* Forgets everything when it is full; does nothing when out of memory. */
void pp_memo_add(struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash);
void pp_memo_clear(struct pp_memo *memo);
void pp_memo_free(struct pp_memo *memo);

#endif
