#include "arena_memo.h"

#include <string.h>

#include "memory.h"

enum { MAX_WORDS = 1 << 23 }; /* 64 MiB */

uint64_t pp_memo_hash(const uint64_t *key, size_t words) {
  uint64_t hash = words;
  for (size_t i = 0; i < words; i++) {
    hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t find(const struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash) {
  size_t mask = memo->slots - 1, i = hash & mask;
  for (; memo->slot[i].key; i = (i + 1) & mask)
    if (memo->slot[i].hash == hash && memo->slot[i].words == words &&
        memcmp(&memo->word[memo->slot[i].key - 1], key, words * sizeof *key) == 0)
      break;
  return i;
}

int64_t pp_memo_get(const struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash) {
  if (!memo->slots)
    return -1;
  const struct pp_memo_slot *slot = &memo->slot[find(memo, key, words, hash)];
  return slot->key ? slot->value : -1;
}

static bool grow(struct pp_memo *memo) {
  size_t slots = memo->slots ? 2 * memo->slots : 1024;
  struct pp_memo_slot *slot = pp_zalloc(slots, sizeof *slot);
  if (!slot)
    return false;
  for (size_t i = 0; i < memo->slots; i++) {
    if (!memo->slot[i].key)
      continue;
    size_t k = memo->slot[i].hash & (slots - 1);
    while (slot[k].key)
      k = (k + 1) & (slots - 1);
    slot[k] = memo->slot[i];
  }
  free(memo->slot);
  memo->slot = slot;
  memo->slots = slots;
  return true;
}

void pp_memo_put(struct pp_memo *memo, const uint64_t *key, size_t words, uint64_t hash,
                 int64_t value) {
  if (memo->words + words > MAX_WORDS)
    pp_memo_clear(memo);
  if (2 * (memo->used + 1) > memo->slots && !grow(memo))
    return;
  struct pp_memo_slot *slot = &memo->slot[find(memo, key, words, hash)];
  if (slot->key) {
    if (slot->value < value)
      slot->value = value;
    return;
  }
  if (!pp_reserve((void **)&memo->word, &memo->capacity, memo->words + words, sizeof *key))
    return;
  memcpy(&memo->word[memo->words], key, words * sizeof *key);
  *slot = (struct pp_memo_slot){hash, memo->words + 1, words, value};
  memo->words += words;
  memo->used++;
}

void pp_memo_clear(struct pp_memo *memo) {
  if (memo->used)
    memset(memo->slot, 0, memo->slots * sizeof *memo->slot);
  memo->used = memo->words = 0;
}

void pp_memo_free(struct pp_memo *memo) {
  free(memo->slot);
  free(memo->word);
  *memo = (struct pp_memo){0};
}
