/* The whole Pareto curve of a fixed order (THEORY.md section 4, "Fixed order, exact").
 *
 * The order is walked once, from its end to its start. A state is what is needed at a point of
 * time, that is, the drops that are open there, with the extra runs that caps still have to know.
 * Going back over the order's next statement is one move; the other one is an extra run of a
 * statement that makes something needed, legal after its first run: what it reads is then needed
 * instead. So nothing is ever held without a use. Each state keeps the Pareto set of (peak, cost)
 * of all that comes after it. States of one point are closed under extra runs before the walk goes
 * on. Time and memory grow with the sets of values that can be open together, and with nothing
 * else. */
#include "remat_labels.h"

struct fixed {
  struct pp_walk walk;
  const pp_index *order;
  pp_index *place;  /* of each statement: its first run */
  pp_index *begins; /* of each rigid storage: the place of its first accessor, or -1 if live_in */
  pp_index point;   /* statements of the order that come before */
  int64_t *floor;   /* floor[i]: the most that a statement before place i needs */
};

static enum pp_remat_result add_label(struct fixed *fixed, struct pp_remat_label value,
                                      int32_t parent, pp_index run) {
  if (value.peak < fixed->floor[fixed->point])
    value.peak = fixed->floor[fixed->point];
  return pp_walk_add(&fixed->walk, value, parent, run);
}

/* The key goes back over a run of v; *cost receives the bytes during it. */
static bool go_back(struct fixed *fixed, pp_index v, int64_t *cost) {
  const struct pp_remat_facts *facts = fixed->walk.facts;
  PP_FOR_ROW (s, &facts->program->accessed, v)
    if (!pp_walk_insert(&fixed->walk, *s, false))
      return false;
  *cost = pp_walk_memory(&fixed->walk) + facts->program->work[v];
  PP_FOR_ROW (s, &facts->program->accessed, v) {
    bool begins = facts->kind[*s] == PP_SIMPLE
                      ? facts->writer[*s] == v
                      : facts->kind[*s] == PP_RIGID && fixed->begins[*s] == fixed->place[v];
    if (begins)
      pp_walk_discard(&fixed->walk, *s);
  }
  return true;
}

/* May v run again here? Not if a rigid storage that it reads has changed since. */
static bool may_rerun(const struct fixed *fixed, const pp_index *key, size_t length, pp_index v) {
  const struct pp_remat_facts *facts = fixed->walk.facts;
  if (facts->cap[v] < 2 || fixed->place[v] >= fixed->point ||
      pp_walk_runs(key, length, facts->m + v) + 2 > (size_t)facts->cap[v])
    return false;
  PP_FOR_ROW (u, &facts->after, v)
    if (fixed->place[*u] < fixed->point)
      return false;
  return true;
}

static enum pp_remat_result rerun(struct fixed *fixed, size_t from, pp_index v) {
  struct pp_walk *walk = &fixed->walk;
  const struct pp_walk_state *state = walk->states.items + walk->labels.items[from].state;
  struct pp_remat_label value = walk->labels.items[from].value;
  int64_t cost;
  if (!pp_walk_copy_key(walk, walk->keys.items + state->key, state->length) ||
      !go_back(fixed, v, &cost) || !pp_walk_insert(walk, walk->facts->m + v, true))
    return PP_REMAT_MEMORY;
  if (cost > value.peak)
    value.peak = cost;
  value.cost = pp_cost_add(value.cost, walk->facts->cost[v]);
  return add_label(fixed, value, (int32_t)from, v);
}

/* All extra runs right before this point, from one label. */
static enum pp_remat_result rerun_all(struct fixed *fixed, size_t from) {
  struct pp_walk *walk = &fixed->walk;
  const struct pp_remat_facts *facts = walk->facts;
  struct pp_walk_state state = walk->states.items[walk->labels.items[from].state];
  enum pp_remat_result result = PP_REMAT_DONE;
  pp_index tried = -1;
  for (size_t k = 0; !result && k < state.length; k++) {
    pp_index s = walk->keys.items[state.key + k];
    if (s >= facts->m)
      break;
    pp_index v = facts->kind[s] == PP_SIMPLE ? facts->writer[s] : -1;
    if (v < 0 || v == tried || !may_rerun(fixed, walk->keys.items + state.key, state.length, v))
      continue;
    tried = v; /* outputs of one statement mostly stand together; twice does no harm */
    result = rerun(fixed, from, v);
  }
  return result;
}

/* Labels are added behind, so this loop ends when no run adds one. */
static enum pp_remat_result close_point(struct fixed *fixed, size_t first) {
  enum pp_remat_result result = PP_REMAT_DONE;
  for (size_t i = first; !result && i < fixed->walk.labels.count; i++) {
    if (pp_walk_stopped(&fixed->walk))
      return PP_REMAT_LIMIT;
    if (!fixed->walk.labels.items[i].covered)
      result = rerun_all(fixed, i);
  }
  return result;
}

/* Runs of statements that cannot run again before this point need not be remembered. */
static void forget_runs(struct fixed *fixed) {
  pp_index m = fixed->walk.facts->m, *key = fixed->walk.key.items;
  size_t kept = 0;
  for (size_t i = 0; i < fixed->walk.key.count; i++)
    if (key[i] < m || fixed->place[key[i] - m] < fixed->point)
      key[kept++] = key[i];
  fixed->walk.key.count = kept;
}

static enum pp_remat_result step_back(struct fixed *fixed, size_t first) {
  struct pp_walk *walk = &fixed->walk;
  size_t end = walk->labels.count;
  pp_index v = fixed->order[--fixed->point];
  enum pp_remat_result result = PP_REMAT_DONE;
  pp_walk_next_layer(walk);
  for (size_t i = first; !result && i < end; i++) {
    struct pp_walk_label label = walk->labels.items[i];
    const struct pp_walk_state *state = walk->last.items + label.state;
    int64_t cost;
    if (label.covered)
      continue;
    if (!pp_walk_copy_key(walk, walk->last_keys.items + state->key, state->length) ||
        !go_back(fixed, v, &cost))
      return PP_REMAT_MEMORY;
    forget_runs(fixed);
    if (cost > label.value.peak)
      label.value.peak = cost;
    result = add_label(fixed, label.value, (int32_t)i, v);
  }
  return result;
}

static bool begin(struct fixed *fixed) {
  const struct pp_remat_facts *facts = fixed->walk.facts;
  const pp_program *program = facts->program;
  size_t n = (size_t)facts->n;
  fixed->place = pp_alloc(n, sizeof *fixed->place);
  fixed->begins = pp_alloc((size_t)facts->m, sizeof *fixed->begins);
  fixed->floor = pp_zalloc(n + 1, sizeof *fixed->floor);
  if (!fixed->place || !fixed->begins || !fixed->floor)
    return false;
  for (pp_index s = 0; s < facts->m; s++)
    fixed->begins[s] = program->storages.items[s].flags & PP_LIVE_IN ? -1 : facts->n;
  for (pp_index i = 0; i < facts->n; i++) {
    pp_index v = fixed->order[i];
    int64_t alone = program->work[v];
    fixed->place[v] = i;
    PP_FOR_ROW (s, &program->accessed, v) {
      alone += program->bytes[*s];
      if (fixed->begins[*s] == facts->n)
        fixed->begins[*s] = i;
    }
    fixed->floor[i + 1] = alone > fixed->floor[i] ? alone : fixed->floor[i];
  }
  return true;
}

/* From the end to the start; *first receives where the start's labels begin. */
static enum pp_remat_result go(struct fixed *fixed, size_t *first) {
  if (!pp_walk_end_key(&fixed->walk))
    return PP_REMAT_MEMORY;
  struct pp_remat_label value = {.peak = pp_walk_memory(&fixed->walk)};
  enum pp_remat_result result = add_label(fixed, value, -1, -1);
  while (!result && !(result = close_point(fixed, *first)) && fixed->point) {
    size_t next = fixed->walk.labels.count;
    result = step_back(fixed, *first);
    *first = next;
  }
  return result;
}

enum pp_remat_result pp_remat_fixed(const struct pp_remat_facts *facts, const pp_index *order,
                                    const struct pp_remat_limits *limits,
                                    struct pp_remat_front *front,
                                    struct pp_remat_statistics *statistics) {
  pp_index *identity = pp_alloc((size_t)facts->n, sizeof *identity);
  for (pp_index v = 0; identity && v < facts->n; v++)
    identity[v] = v;
  struct fixed fixed = {
      .walk = {.facts = facts, .limits = limits, .front = front, .statistics = statistics},
      .order = order ? order : identity,
      .point = facts->n};
  size_t first = 0;
  enum pp_remat_result result = identity && begin(&fixed) ? go(&fixed, &first) : PP_REMAT_MEMORY;
  for (size_t i = first; !result && i < fixed.walk.labels.count; i++)
    if (!fixed.walk.labels.items[i].covered && !pp_walk_collect(&fixed.walk, i, front))
      result = PP_REMAT_MEMORY;
  pp_walk_free(&fixed.walk);
  free(identity);
  free(fixed.place);
  free(fixed.begins);
  free(fixed.floor);
  return result;
}
