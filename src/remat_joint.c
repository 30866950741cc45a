/* The whole Pareto curve over all orders and all repetitions, for small programs.
 *
 * As in remat_fixed.c time runs backward and a state is what is needed, but now every statement may
 * run next (last in time), so the state has the number of runs of every statement too. A run either
 * is the first that is met of its statement or makes something needed. Hard dependences (through
 * rigid storages and order pairs) hold between all runs. States with equally many runs form a
 * layer, so their labels are final when they are gone on from. */
#include "remat_labels.h"

struct joint {
  struct pp_walk walk;
  const pp_index *key; /* of the state that is gone on from */
  size_t length;
  pp_index *runs; /* of each statement, in that state */
};

/* Has every statement that accesses the rigid storage s run, v included? */
static bool begins(const struct joint *joint, pp_index s, pp_index v) {
  const pp_program *program = joint->walk.facts->program;
  if (program->storages.items[s].flags & PP_LIVE_IN)
    return false;
  PP_FOR_ROW (u, &program->accessors, s)
    if (*u != v && !joint->runs[*u])
      return false;
  return true;
}

/* A needed value whose producer has no run left would never come. */
static bool is_dead(const struct joint *joint, pp_index v) {
  const struct pp_remat_facts *facts = joint->walk.facts;
  for (size_t i = 0; i < joint->walk.key.count && joint->walk.key.items[i] < facts->m; i++) {
    pp_index s = joint->walk.key.items[i];
    pp_index w = facts->kind[s] == PP_SIMPLE ? facts->writer[s] : -1;
    if (w >= 0 && joint->runs[w] + (w == v) >= facts->cap[w])
      return true;
  }
  return false;
}

/* May v run right before what the state has? */
static bool may_run(const struct joint *joint, pp_index v) {
  const struct pp_remat_facts *facts = joint->walk.facts;
  if (joint->runs[v] >= facts->cap[v])
    return false;
  PP_FOR_ROW (u, &facts->after, v)
    if (!joint->runs[*u])
      return false;
  PP_FOR_ROW (u, &facts->before, v)
    if (joint->runs[*u])
      return false;
  if (!joint->runs[v])
    return true;
  for (size_t i = 0; i < joint->length && joint->key[i] < facts->m; i++)
    if (facts->kind[joint->key[i]] == PP_SIMPLE && facts->writer[joint->key[i]] == v)
      return true;
  return false;
}

static enum pp_remat_result run(struct joint *joint, size_t from, pp_index v) {
  struct pp_walk *walk = &joint->walk;
  const struct pp_remat_facts *facts = walk->facts;
  struct pp_remat_label value = walk->labels.items[from].value;
  if (!pp_walk_copy_key(walk, joint->key, joint->length))
    return PP_REMAT_MEMORY;
  PP_FOR_ROW (s, &facts->program->accessed, v)
    if (!pp_walk_insert(walk, *s, false))
      return PP_REMAT_MEMORY;
  int64_t cost = pp_walk_memory(walk) + facts->program->work[v];
  PP_FOR_ROW (s, &facts->program->accessed, v)
    if (facts->kind[*s] == PP_SIMPLE ? facts->writer[*s] == v
                                     : facts->kind[*s] == PP_RIGID && begins(joint, *s, v))
      pp_walk_discard(walk, *s);
  if (is_dead(joint, v))
    return PP_REMAT_DONE;
  if (!pp_walk_insert(walk, facts->m + v, true))
    return PP_REMAT_MEMORY;
  if (cost > value.peak)
    value.peak = cost;
  if (joint->runs[v])
    value.cost = pp_cost_add(value.cost, facts->cost[v]);
  return pp_walk_add(walk, value, (int32_t)from, v);
}

/* Sets joint->runs to the state of a label; is every statement in it? */
static bool enter(struct joint *joint, size_t label) {
  const struct pp_remat_facts *facts = joint->walk.facts;
  const struct pp_walk_state *state =
      joint->walk.last.items + joint->walk.labels.items[label].state;
  pp_index missing = facts->n;
  joint->key = joint->walk.last_keys.items + state->key;
  joint->length = state->length;
  for (pp_index v = 0; v < facts->n; v++)
    joint->runs[v] = 0;
  for (size_t i = 0; i < state->length; i++)
    if (joint->key[i] >= facts->m && !joint->runs[joint->key[i] - facts->m]++)
      missing--;
  return !missing;
}

/* Is nothing needed that must still be made? */
static bool is_complete(const struct joint *joint) {
  for (size_t i = 0; i < joint->length && joint->key[i] < joint->walk.facts->m; i++)
    if (!(joint->walk.facts->program->storages.items[joint->key[i]].flags & PP_LIVE_IN))
      return false;
  return true;
}

static enum pp_remat_result go_on(struct joint *joint, size_t first, size_t end,
                                  struct pp_remat_front *front) {
  enum pp_remat_result result = PP_REMAT_DONE;
  pp_walk_next_layer(&joint->walk);
  for (size_t i = first; !result && i < end; i++) {
    if (joint->walk.labels.items[i].covered)
      continue;
    if (pp_walk_stopped(&joint->walk))
      return PP_REMAT_LIMIT;
    bool all = enter(joint, i);
    if (all && is_complete(joint) && !pp_walk_collect(&joint->walk, i, front))
      return PP_REMAT_MEMORY;
    for (pp_index v = 0; !result && v < joint->walk.facts->n; v++)
      if (may_run(joint, v))
        result = run(joint, i, v);
  }
  return result;
}

enum pp_remat_result pp_remat_joint(const struct pp_remat_facts *facts,
                                    const struct pp_remat_limits *limits,
                                    struct pp_remat_front *front,
                                    struct pp_remat_statistics *statistics) {
  struct joint joint = {
      .walk = {.facts = facts, .limits = limits, .front = front, .statistics = statistics},
      .runs = pp_alloc((size_t)facts->n, sizeof *joint.runs)};
  enum pp_remat_result result = PP_REMAT_MEMORY;
  if (joint.runs && pp_walk_end_key(&joint.walk)) {
    struct pp_remat_label value = {.peak = pp_walk_memory(&joint.walk)};
    result = pp_walk_add(&joint.walk, value, -1, -1);
  }
  for (size_t first = 0; !result && first < joint.walk.labels.count;) {
    size_t end = joint.walk.labels.count;
    result = go_on(&joint, first, end, front);
    first = end;
  }
  pp_walk_free(&joint.walk);
  free(joint.runs);
  return result;
}
