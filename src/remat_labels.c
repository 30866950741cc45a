/* States with Pareto sets of labels. */
#include "remat_labels.h"

#include <string.h>

void pp_walk_free(struct pp_walk *walk) {
  free(walk->labels.items);
  free(walk->states.items);
  free(walk->last.items);
  free(walk->keys.items);
  free(walk->last_keys.items);
  free(walk->table);
  free(walk->key.items);
}

void pp_walk_next_layer(struct pp_walk *walk) {
  struct pp_walk_state *states = walk->last.items;
  pp_index *keys = walk->last_keys.items;
  size_t room = walk->last.capacity, key_room = walk->last_keys.capacity;
  walk->last.items = walk->states.items, walk->last.capacity = walk->states.capacity;
  walk->last_keys.items = walk->keys.items, walk->last_keys.capacity = walk->keys.capacity;
  walk->states.items = states, walk->states.capacity = room, walk->states.count = 0;
  walk->keys.items = keys, walk->keys.capacity = key_room, walk->keys.count = 0;
  memset(walk->table, 0xff, walk->slots * sizeof *walk->table);
}

/* ---- States ---- */

static uint32_t hash_key(const pp_index *key, size_t length) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < length; i++) {
    h = (h ^ (uint64_t)(uint32_t)key[i]) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return (uint32_t)h;
}

static bool grow_table(struct pp_walk *walk) {
  if (2 * (walk->states.count + 1) <= walk->slots)
    return true;
  size_t slots = walk->slots ? 2 * walk->slots : 64;
  int32_t *table = pp_alloc(slots, sizeof *table);
  if (!table)
    return false;
  memset(table, 0xff, slots * sizeof *table);
  for (size_t i = 0; i < walk->states.count; i++) {
    size_t slot = walk->states.items[i].hash & (slots - 1);
    while (table[slot] >= 0)
      slot = (slot + 1) & (slots - 1);
    table[slot] = (int32_t)i;
  }
  free(walk->table);
  walk->table = table;
  walk->slots = slots;
  return true;
}

int64_t pp_walk_memory(const struct pp_walk *walk) {
  int64_t memory = 0;
  for (size_t i = 0; i < walk->key.count && walk->key.items[i] < walk->facts->m; i++)
    memory += walk->facts->program->bytes[walk->key.items[i]];
  return memory;
}

/* The state whose key is walk->key; -1 when out of memory. */
static int32_t find_state(struct pp_walk *walk) {
  if (!grow_table(walk))
    return -1;
  const pp_index *key = walk->key.items;
  size_t length = walk->key.count;
  uint32_t hash = hash_key(key, length);
  size_t slot = hash & (walk->slots - 1);
  for (; walk->table[slot] >= 0; slot = (slot + 1) & (walk->slots - 1)) {
    const struct pp_walk_state *state = walk->states.items + walk->table[slot];
    if (state->hash == hash && state->length == length &&
        !memcmp(walk->keys.items + state->key, key, length * sizeof *key))
      return walk->table[slot];
  }
  if (!PP_ROOM(&walk->states) || !pp_reserve((void **)&walk->keys.items, &walk->keys.capacity,
                                             walk->keys.count + length, sizeof *key))
    return -1;
  if (length)
    memcpy(walk->keys.items + walk->keys.count, key, length * sizeof *key);
  walk->states.items[walk->states.count] = (struct pp_walk_state){
      .key = walk->keys.count, .length = (uint32_t)length, .hash = hash, .first = -1};
  walk->keys.count += length;
  walk->table[slot] = (int32_t)walk->states.count;
  walk->statistics->states++;
  return (int32_t)walk->states.count++;
}

/* ---- Labels ---- */

static bool is_wanted(const struct pp_walk *walk, struct pp_remat_label value) {
  return pp_cost_compare(value.cost, walk->limits->cost) <= 0 &&
         !pp_front_covers(walk->front, value);
}

enum pp_remat_result pp_walk_add(struct pp_walk *walk, struct pp_remat_label value, int32_t parent,
                                 pp_index run) {
  if (!is_wanted(walk, value))
    return PP_REMAT_DONE;
  int32_t at = find_state(walk);
  if (at < 0)
    return PP_REMAT_MEMORY;
  struct pp_walk_state *state = walk->states.items + at;
  int32_t *link = &state->first;
  while (*link >= 0) {
    struct pp_walk_label *label = walk->labels.items + *link;
    if (pp_label_covers(label->value, value))
      return PP_REMAT_DONE;
    if (pp_label_covers(value, label->value)) {
      label->covered = true;
      *link = label->next;
    } else
      link = &label->next;
  }
  if (walk->labels.count >= INT32_MAX || (int64_t)walk->labels.count >= walk->limits->states)
    return PP_REMAT_LIMIT;
  int32_t first = state->first;
  if (!PP_ROOM(&walk->labels))
    return PP_REMAT_MEMORY;
  state->first = (int32_t)walk->labels.count;
  walk->labels.items[walk->labels.count++] = (struct pp_walk_label){
      .value = value, .parent = parent, .state = at, .next = first, .run = run};
  walk->statistics->labels++;
  return PP_REMAT_DONE;
}

/* ---- Keys ---- */

bool pp_walk_insert(struct pp_walk *walk, pp_index x, bool repeat) {
  size_t i = walk->key.count;
  if (!PP_ROOM(&walk->key))
    return false;
  while (i && walk->key.items[i - 1] > x)
    i--;
  if (!repeat && i && walk->key.items[i - 1] == x)
    return true;
  memmove(walk->key.items + i + 1, walk->key.items + i,
          (walk->key.count - i) * sizeof *walk->key.items);
  walk->key.items[i] = x;
  walk->key.count++;
  return true;
}

void pp_walk_discard(struct pp_walk *walk, pp_index x) {
  size_t kept = 0;
  for (size_t i = 0; i < walk->key.count; i++)
    if (walk->key.items[i] != x)
      walk->key.items[kept++] = walk->key.items[i];
  walk->key.count = kept;
}

bool pp_walk_copy_key(struct pp_walk *walk, const pp_index *key, size_t length) {
  if (!pp_reserve((void **)&walk->key.items, &walk->key.capacity, length, sizeof *key))
    return false;
  if (length)
    memcpy(walk->key.items, key, length * sizeof *key);
  walk->key.count = length;
  return true;
}

size_t pp_walk_runs(const pp_index *key, size_t length, pp_index x) {
  size_t count = 0;
  while (length && key[length - 1] >= x)
    count += key[--length] == x;
  return count;
}

bool pp_walk_end_key(struct pp_walk *walk) {
  const pp_program *program = walk->facts->program;
  walk->key.count = 0;
  for (pp_index s = 0; s < walk->facts->m; s++) {
    unsigned flags = program->storages.items[s].flags;
    if (flags & PP_LIVE_OUT && (flags & PP_LIVE_IN || pp_row_size(&program->accessors, s)) &&
        !pp_walk_insert(walk, s, false))
      return false;
  }
  return true;
}

bool pp_walk_collect(const struct pp_walk *walk, size_t label, struct pp_remat_front *front) {
  struct pp_sequence sequence = {0};
  bool done = true;
  for (const struct pp_walk_label *at = walk->labels.items + label; done && at->parent >= 0;
       at = walk->labels.items + at->parent) {
    done = PP_ROOM(&sequence.run);
    if (done)
      sequence.run.items[sequence.run.count++] = at->run;
  }
  done = done && pp_front_add(front, walk->labels.items[label].value, &sequence);
  pp_sequence_free(&sequence);
  return done;
}
