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
static bool go_back(struct walk *walk, pp_index v, int64_t *cost) {
  const struct pp_remat_facts *facts = walk->facts;
  PP_FOR_ROW(s, &facts->program->accessed, v)
  if (!insert(walk, *s, false))
    return false;
  *cost = key_memory(walk) + facts->program->work[v];
  PP_FOR_ROW(s, &facts->program->accessed, v)
  if (facts->kind[*s] == PP_SIMPLE
          ? facts->writer[*s] == v
          : facts->kind[*s] == PP_RIGID && walk->begins[*s] == walk->place[v])
    discard(walk, *s);
  return true;
}

/* May v run again here? Everything that must come before its rigid inputs change lies behind. */
static bool may_rerun(const struct walk *walk, const pp_index *key, size_t length, pp_index v) {
  const struct pp_remat_facts *facts = walk->facts;
  if (facts->cap[v] < 2 || walk->place[v] >= walk->point ||
      runs_in_key(key, length, facts->m + v) + 2 > (size_t)facts->cap[v])
    return false;
  PP_FOR_ROW(u, &facts->after, v)
  if (walk->place[*u] < walk->point)
    return false;
  return true;
}

static enum pp_remat_result rerun(struct walk *walk, int32_t from, pp_index v) {
  const struct state *state = walk->states.items + walk->labels.items[from].state;
  struct pp_remat_label value = walk->labels.items[from].value;
  int64_t cost;
  if (!copy_key(walk, walk->keys.items + state->key, state->length) || !go_back(walk, v, &cost) ||
      !insert(walk, walk->facts->m + v, true))
    return PP_REMAT_MEMORY;
  if (cost > value.peak)
    value.peak = cost;
  value.cost = pp_cost_add(value.cost, walk->facts->cost[v]);
  return add_label(walk, value, from, v);
}

/* All extra runs right before this point. Labels are added behind: a queue. */
static enum pp_remat_result close_point(struct walk *walk, size_t first) {
  const struct pp_remat_facts *facts = walk->facts;
  enum pp_remat_result result = PP_REMAT_DONE;
  for (size_t i = first; !result && i < walk->labels.count; i++) {
    if (walk->limits->stop && walk->limits->stop(walk->limits->data))
      return PP_REMAT_LIMIT;
    const struct label *label = walk->labels.items + i;
    struct state state = walk->states.items[label->state];
    pp_index tried = -1;
    for (size_t k = 0; !result && !walk->labels.items[i].covered && k < state.length; k++) {
      pp_index s = walk->keys.items[state.key + k];
      if (s >= facts->m)
        break;
      pp_index v = facts->kind[s] == PP_SIMPLE ? facts->writer[s] : -1;
      if (v < 0 || v == tried || !may_rerun(walk, walk->keys.items + state.key, state.length, v))
        continue;
      tried = v; /* outputs of one statement mostly stand together; twice does no harm */
      result = rerun(walk, (int32_t)i, v);
    }
  }
  return result;
}

/* Runs of statements that cannot run again before `point` need not be remembered. */
static void forget_runs(struct walk *walk) {
  pp_index m = walk->facts->m;
  size_t kept = 0;
  for (size_t i = 0; i < walk->key.count; i++) {
    pp_index x = walk->key.items[i];
    if (x < m || walk->place[x - m] < walk->point)
      walk->key.items[kept++] = x;
  }
  walk->key.count = kept;
}

static enum pp_remat_result step_back(struct walk *walk, size_t first) {
  size_t end = walk->labels.count;
  pp_index v = walk->order[--walk->point];
  enum pp_remat_result result = PP_REMAT_DONE;
  struct state *states = walk->last.items;
  pp_index *keys = walk->last_keys.items;
  size_t room = walk->last.capacity, key_room = walk->last_keys.capacity;
  walk->last.items = walk->states.items, walk->last.capacity = walk->states.capacity;
  walk->last_keys.items = walk->keys.items, walk->last_keys.capacity = walk->keys.capacity;
  walk->states.items = states, walk->states.capacity = room, walk->states.count = 0;
  walk->keys.items = keys, walk->keys.capacity = key_room, walk->keys.count = 0;
  memset(walk->table, 0xff, walk->slots * sizeof *walk->table);
  for (size_t i = first; !result && i < end; i++) {
    struct label label = walk->labels.items[i];
    const struct state *state = walk->last.items + label.state;
    int64_t cost;
    if (label.covered)
      continue;
    if (!copy_key(walk, walk->last_keys.items + state->key, state->length) ||
        !go_back(walk, v, &cost))
      return PP_REMAT_MEMORY;
    forget_runs(walk);
    if (cost > label.value.peak)
      label.value.peak = cost;
    result = add_label(walk, label.value, (int32_t)i, v);
  }
  return result;
}

/* ---- The walk ---- */

static bool begin(struct walk *walk) {
  const pp_program *program = walk->facts->program;
  size_t n = (size_t)walk->facts->n, m = (size_t)walk->facts->m;
  walk->place = pp_alloc(n, sizeof *walk->place);
  walk->begins = pp_alloc(m, sizeof *walk->begins);
  walk->floor = pp_zalloc(n + 1, sizeof *walk->floor);
  if (!walk->place || !walk->begins || !walk->floor)
    return false;
  for (pp_index s = 0; s < walk->facts->m; s++)
    walk->begins[s] = program->storages.items[s].flags & PP_LIVE_IN ? -1 : walk->facts->n;
  for (pp_index i = 0; i < walk->facts->n; i++) {
    pp_index v = walk->order[i];
    int64_t alone = program->work[v];
    walk->place[v] = i;
    PP_FOR_ROW(s, &program->accessed, v) {
      alone += program->bytes[*s];
      if (walk->begins[*s] == walk->facts->n)
        walk->begins[*s] = i;
    }
    walk->floor[i + 1] = alone > walk->floor[i] ? alone : walk->floor[i];
  }
  return true;
}

static enum pp_remat_result add_end(struct walk *walk) {
  const pp_program *program = walk->facts->program;
  for (pp_index s = 0; s < walk->facts->m; s++) {
    unsigned flags = program->storages.items[s].flags;
    if (flags & PP_LIVE_OUT && (flags & PP_LIVE_IN || pp_row_size(&program->accessors, s)) &&
        !insert(walk, s, false))
      return PP_REMAT_MEMORY;
  }
  struct pp_remat_label value = {.peak = key_memory(walk)};
  return add_label(walk, value, -1, -1);
}

static enum pp_remat_result walk_back(struct walk *walk, size_t *first) {
  *first = 0;
  enum pp_remat_result result = add_end(walk);
  while (!result && !(result = close_point(walk, *first)) && walk->point) {
    size_t next = walk->labels.count;
    result = step_back(walk, *first);
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
  struct walk walk = {.facts = facts,
                      .limits = limits,
                      .front = front,
                      .order = order ? order : identity,
                      .point = facts->n,
                      .statistics = statistics};
  size_t first = 0;
  enum pp_remat_result result =
      identity && begin(&walk) ? walk_back(&walk, &first) : PP_REMAT_MEMORY;
  for (size_t i = first; !result && i < walk.labels.count; i++)
    if (!walk.labels.items[i].covered && !collect(&walk, i, front))
      result = PP_REMAT_MEMORY;
  free(identity);
  free(walk.place);
  free(walk.begins);
  free(walk.floor);
  free(walk.labels.items);
  free(walk.states.items);
  free(walk.last.items);
  free(walk.keys.items);
  free(walk.last_keys.items);
  free(walk.table);
  free(walk.key.items);
  return result;
}
