/* States with Pareto sets of labels, for the exact methods of recomputation. */
#ifndef PP_REMAT_LABELS_H
#define PP_REMAT_LABELS_H

#include "remat.h"

struct pp_walk_label {
  struct pp_remat_label value;
  int32_t parent; /* or -1 */
  int32_t state;
  int32_t next; /* of the same state, or -1 */
  pp_index run; /* what led here from the parent */
  bool covered; /* by a better label of the same state */
};

/* A state's key: needed storages, ascending, then m + v for every run of v that counts. */
struct pp_walk_state {
  size_t key;
  uint32_t length, hash;
  int32_t first; /* label, or -1 */
};

/* Walks go back in time: a label is what comes after its point, up to the end. */
struct pp_walk {
  const struct pp_remat_facts *facts;
  const struct pp_remat_limits *limits;
  const struct pp_remat_front *front; /* what is covered by it is of no interest */
  struct pp_remat_statistics *statistics;
  PP_VECTOR(struct pp_walk_label) labels;
  PP_VECTOR(struct pp_walk_state) states, last; /* of this layer, of the one before */
  PP_VECTOR(pp_index) keys, last_keys;
  int32_t *table;
  size_t slots;
  PP_VECTOR(pp_index) key; /* being made */
};

void pp_walk_free(struct pp_walk *walk);
/* The states become those of the last layer. */
void pp_walk_next_layer(struct pp_walk *walk);

/* The key := what is needed after the end. False when out of memory, here and below. */
bool pp_walk_end_key(struct pp_walk *walk);
bool pp_walk_copy_key(struct pp_walk *walk, const pp_index *key, size_t length);
/* Puts x into the key; unless `repeat` only if it is not there. */
bool pp_walk_insert(struct pp_walk *walk, pp_index x, bool repeat);
void pp_walk_discard(struct pp_walk *walk, pp_index x);
/* The sum over the needed storages of the key. */
int64_t pp_walk_memory(const struct pp_walk *walk);
/* How often x stands in a key, x >= m. */
size_t pp_walk_runs(const pp_index *key, size_t length, pp_index x);

/* Adds a label to the state of the key, unless one there, or the front, covers it. */
enum pp_remat_result pp_walk_add(struct pp_walk *walk, struct pp_remat_label value, int32_t parent,
                                 pp_index run);
/* Adds what a label of the beginning stands for to the front. */
bool pp_walk_collect(const struct pp_walk *walk, size_t label, struct pp_remat_front *front);

static inline bool pp_walk_stopped(const struct pp_walk *walk) {
  return walk->limits->stop && walk->limits->stop(walk->limits->data);
}

#endif
