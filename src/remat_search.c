/* Joint choice of order and recomputation, by repair (THEORY.md section 4, "Joint with order").
 *
 * From a sequence and a level below its peak: take the last step above the level, solve its barrier
 * exactly (remat_barrier.c), apply the cheapest point within the level, look again. What results is
 * rescheduled (solve.c), which may lower the peak, and is a start itself. All sequences on the way
 * are offered to the front. Deterministic; no claim of optimality. */
#include "remat_search.h"

#include <string.h>

#include "error.h"

enum {
  ROUNDS = 48,       /* repairs on the way to one level */
  BASE_LEVELS = 48,  /* levels tried from the base */
  LEVELS = 3,        /* levels tried from any other sequence */
  EXPANSIONS = 24,   /* sequences gone on from */
  SWEEPS = 400,      /* levels tried at the end */
  FIRST_DEPTH = 16,  /* of chains, when those of any length are too many */
  LABELS_A_CELL = 32 /* of a barrier's tables */
};
/* So that hard programs end, too: sums of labels tried by one barrier and by all, states of all
 * rescheduling. Counts, not seconds: results do not depend on the machine. */
static const int64_t barrier_work = 1 << 22, search_work = 1 << 28, search_states = 1 << 20;

static bool is_stopped(const struct pp_remat_search *search) {
  return search->work > search_work ||
         (search->limits->stop && search->limits->stop(search->limits->data));
}

/* Adds a copy to the front, pruned. */
static pp_status offer(struct pp_remat_search *search, const struct pp_sequence *sequence,
                       pp_error *error) {
  struct pp_sequence copy = {0};
  struct pp_remat_label label;
  bool done = pp_sequence_set(&copy, sequence->run.items, sequence->run.count) &&
              pp_sequence_prune(search->facts, &copy) &&
              pp_sequence_label(search->facts, &copy, &label, NULL);
  if (done && pp_cost_compare(label.cost, search->limits->cost) <= 0)
    done = pp_front_add(search->front, label, &copy);
  pp_sequence_free(&copy);
  return done ? PP_OK : pp_fail_memory(error);
}

/* ---- Rescheduling ---- */

static pp_status reschedule(struct pp_remat_search *search, struct pp_sequence *sequence,
                            pp_error *error) {
  struct pp_rewritten rewritten;
  pp_plan *plan;
  pp_status status = pp_rewrite(search->facts->program, sequence, search->facts, &rewritten, error);
  if (status)
    return status;
  if (!(status = pp_solve(rewritten.program, search->solve, &plan, error))) {
    const pp_index *order = pp_plan_order(plan);
    search->states += pp_plan_states(plan);
    for (size_t i = 0; i < sequence->run.count; i++)
      sequence->run.items[i] = rewritten.statement[order[i]];
    pp_plan_free(plan);
    status = offer(search, sequence, error);
  }
  pp_rewritten_free(&rewritten);
  return status;
}

/* Could a better order of these runs be of interest? No order goes below the floor. */
static bool is_promising(const struct pp_remat_search *search, struct pp_remat_cost cost) {
  struct pp_remat_label best = {.peak = pp_floor(search->facts->program, NULL), .cost = cost};
  return search->states <= search_states && (cost.macs || cost.bytes) &&
         !pp_front_covers(search->front, best);
}

/* ---- Repair ---- */

static size_t last_above(const int64_t *step, size_t count, int64_t level) {
  while (count && step[count - 1] <= level)
    count--;
  return count - 1;
}

/* A barrier, exactly; where that is too much with fewer labels, then with shorter chains. */
static enum pp_remat_result solve_barrier(struct pp_remat_search *search,
                                          const struct pp_sequence *sequence, size_t place,
                                          int64_t memory, struct pp_remat_cost spent,
                                          struct pp_barrier *barrier) {
  struct pp_barrier_limits limits = {.memory = memory,
                                     .cost = search->limits->cost,
                                     .nodes = search->limits->states,
                                     .work = barrier_work,
                                     .stop = search->limits->stop,
                                     .data = search->limits->data};
  if (limits.cost.macs < INT64_MAX)
    limits.cost.macs -= spent.macs;
  for (;;) {
    limits.depth = search->depth;
    limits.thin = search->thin ? LABELS_A_CELL : 0;
    enum pp_remat_result result =
        pp_remat_barrier(search->facts, sequence, place, &limits, barrier);
    search->repairs++;
    search->work += barrier->work;
    if (result != PP_REMAT_LIMIT || search->depth == 1 || is_stopped(search))
      return result;
    if (search->thin)
      search->depth = search->depth ? search->depth / 2 : FIRST_DEPTH;
    search->thin = true;
    pp_barrier_free(barrier);
  }
}

/* One barrier: *sequence := the cheapest repair of the last step above the level. */
static pp_status repair(struct pp_remat_search *search, struct pp_sequence *sequence, size_t place,
                        int64_t level, struct pp_remat_cost spent, bool *done, pp_error *error) {
  struct pp_barrier barrier;
  struct pp_sequence repaired = {0};
  enum pp_remat_result result = solve_barrier(search, sequence, place, level, spent, &barrier);
  *done = !result && barrier.points.count;
  bool good =
      result != PP_REMAT_MEMORY &&
      (!*done || (pp_barrier_apply(search->facts, sequence, place, &barrier, 0, &repaired) &&
                  pp_sequence_prune(search->facts, &repaired)));
  pp_barrier_free(&barrier);
  if (good && *done) {
    struct pp_sequence other = *sequence;
    *sequence = repaired;
    repaired = other;
  }
  pp_sequence_free(&repaired);
  return good ? PP_OK : pp_fail_memory(error);
}

/* Repairs until no step is above the level, or nothing helps. */
static pp_status reach(struct pp_remat_search *search, const struct pp_sequence *start,
                       int64_t level, pp_error *error) {
  struct pp_sequence sequence = {0};
  struct pp_remat_label label = {0};
  int64_t *step = NULL;
  size_t room = 0;
  bool done = true;
  pp_status status = pp_sequence_set(&sequence, start->run.items, start->run.count)
                         ? PP_OK
                         : pp_fail_memory(error);
  for (int round = 0; !status && done && round < ROUNDS; round++) {
    if (!pp_reserve((void **)&step, &room, sequence.run.count, sizeof *step) ||
        !pp_sequence_label(search->facts, &sequence, &label, step))
      status = pp_fail_memory(error);
    else if (!(status = offer(search, &sequence, error))) {
      struct pp_remat_label wanted = {.peak = level, .cost = label.cost};
      if (label.peak <= level || pp_front_covers(search->front, wanted) || is_stopped(search))
        break;
      size_t place = last_above(step, sequence.run.count, level);
      status = repair(search, &sequence, place, level, label.cost, &done, error);
    }
  }
  if (!status && !is_stopped(search) && is_promising(search, label.cost))
    status = reschedule(search, &sequence, error);
  pp_sequence_free(&sequence);
  free(step);
  return status;
}

/* ---- Expansion ---- */

/* The levels that the barrier at the last highest step can reach: `count` of them at most, the
 * highest and the lowest among them. */
static pp_status find_levels(struct pp_remat_search *search, const struct pp_sequence *sequence,
                             int64_t *level, size_t *count, pp_error *error) {
  struct pp_remat_label label;
  struct pp_barrier barrier = {0};
  int64_t *step = pp_alloc(sequence->run.count, sizeof *step);
  bool done = step && pp_sequence_label(search->facts, sequence, &label, step);
  enum pp_remat_result result = PP_REMAT_LIMIT;
  if (done && label.peak > 0 && sequence->run.count) {
    size_t place = last_above(step, sequence->run.count, label.peak - 1);
    struct pp_remat_cost none = {0};
    result = solve_barrier(search, sequence, place, label.peak - 1, none, &barrier);
  }
  size_t points = result ? 0 : barrier.points.count;
  size_t wanted = points < *count ? points : *count;
  for (size_t i = 0; i < wanted; i++)
    level[i] = barrier.points.items[wanted < 2 ? 0 : i * (points - 1) / (wanted - 1)].memory;
  *count = wanted;
  pp_barrier_free(&barrier);
  free(step);
  return done && result != PP_REMAT_MEMORY ? PP_OK : pp_fail_memory(error);
}

static pp_status expand(struct pp_remat_search *search, const struct pp_sequence *start,
                        size_t levels, pp_error *error) {
  int64_t level[BASE_LEVELS];
  pp_status status = find_levels(search, start, level, &levels, error);
  for (size_t i = 0; !status && i < levels && !is_stopped(search); i++)
    status = reach(search, start, level[i], error);
  return status;
}

static bool was_expanded(const struct pp_remat_search *search, struct pp_remat_label label) {
  for (size_t i = 0; i < search->expanded.count; i++)
    if (search->expanded.items[i].peak == label.peak &&
        !pp_cost_compare(search->expanded.items[i].cost, label.cost))
      return true;
  return false;
}

/* The entry to go on from, copied; false if all have been. */
static bool next_start(struct pp_remat_search *search, struct pp_sequence *start, bool *failed) {
  for (size_t i = 0; i < search->front->entry.count; i++) {
    const struct pp_remat_entry *entry = search->front->entry.items + i;
    if (was_expanded(search, entry->label))
      continue;
    *failed = !PP_ROOM(&search->expanded) ||
              !pp_sequence_set(start, entry->sequence.run.items, entry->sequence.run.count);
    if (!*failed)
      search->expanded.items[search->expanded.count++] = entry->label;
    return true;
  }
  return false;
}

static bool add_level(struct pp_remat_search *search, int64_t level, bool *added) {
  for (size_t i = 0; i < search->swept.count; i++)
    if (search->swept.items[i] == level)
      return true;
  if (!PP_ROOM(&search->swept))
    return false;
  search->swept.items[search->swept.count++] = level;
  return *added = true;
}

/* Reaches from the base, at once, what was found (it may be cheaper so) and what lies just below
 * it, until that finds nothing new. */
static pp_status sweep(struct pp_remat_search *search, pp_error *error) {
  pp_status status = PP_OK;
  for (bool again = true; again && !status;) {
    again = false;
    for (size_t i = 0; !status && i < search->front->entry.count; i++)
      for (int below = 0; !status && below < 2; below++) {
        int64_t level = search->front->entry.items[i].label.peak - below;
        bool added = false;
        if (search->swept.count >= SWEEPS || is_stopped(search)) {
          search->limited = true;
          return PP_OK;
        }
        if (!add_level(search, level, &added))
          return pp_fail_memory(error);
        if (!added)
          continue;
        again = true;
        status = reach(search, search->base, level, error);
        if (i >= search->front->entry.count)
          break;
      }
  }
  return status;
}

pp_status pp_remat_search(struct pp_remat_search *search, pp_error *error) {
  struct pp_sequence start = {0};
  bool failed = false;
  pp_status status = offer(search, search->base, error);
  if (!status)
    status = expand(search, search->base, BASE_LEVELS, error);
  for (int i = 0; !status && next_start(search, &start, &failed); i++) {
    if (failed)
      status = pp_fail_memory(error);
    else if (i >= EXPANSIONS || is_stopped(search)) {
      search->limited = true;
      break;
    } else
      status = expand(search, &start, LEVELS, error);
  }
  if (!status)
    status = sweep(search, error);
  pp_sequence_free(&start);
  free(search->expanded.items);
  free(search->swept.items);
  return status;
}

/* ---- Bounds ---- */

struct high_step {
  int64_t memory;
  size_t place;
};

static int compare_steps(const void *a, const void *b) {
  const struct high_step *x = a, *y = b;
  if (x->memory != y->memory)
    return x->memory > y->memory ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static bool add_step(struct pp_remat_bound *bound, const struct pp_barrier *barrier) {
  for (size_t i = 0; i < barrier->points.count; i++) {
    const struct pp_barrier_point *point = barrier->points.items + i;
    if (!PP_ROOM(&bound->label))
      return false;
    bound->label.items[bound->label.count++] =
        (struct pp_remat_label){.peak = point->memory, .cost = point->cost};
  }
  if (!PP_ROOM(&bound->start))
    return false;
  bound->start.items[bound->start.count++] = bound->label.count;
  return true;
}

bool pp_remat_bound_init(struct pp_remat_bound *bound, const struct pp_remat_facts *facts,
                         const struct pp_sequence *base, int64_t level,
                         const struct pp_remat_limits *limits, size_t steps) {
  size_t count = base->run.count;
  struct high_step *high = pp_alloc(count, sizeof *high);
  int64_t *step = pp_alloc(count, sizeof *step);
  struct pp_remat_label label;
  *bound = (struct pp_remat_bound){0};
  bool done = high && step && pp_sequence_label(facts, base, &label, step), failed = false;
  for (size_t i = 0; done && i < count; i++)
    high[i] = (struct high_step){step[i], i};
  if (done && count)
    qsort(high, count, sizeof *high, compare_steps);
  for (size_t i = 0; done && !failed && i < count && i < steps && high[i].memory > level; i++) {
    struct pp_barrier_limits exact = {.memory = INT64_MAX,
                                      .cost = limits->cost,
                                      .nodes = limits->states,
                                      .work = 16 * barrier_work,
                                      .stop = limits->stop,
                                      .data = limits->data};
    struct pp_barrier barrier;
    enum pp_remat_result result = pp_remat_barrier(facts, base, high[i].place, &exact, &barrier);
    failed = result == PP_REMAT_LIMIT; /* the others would most likely, too */
    done = result != PP_REMAT_MEMORY && (result || add_step(bound, &barrier));
    pp_barrier_free(&barrier);
  }
  free(high);
  free(step);
  return done;
}

void pp_remat_bound_free(struct pp_remat_bound *bound) {
  free(bound->label.items);
  free(bound->start.items);
  *bound = (struct pp_remat_bound){0};
}

bool pp_remat_bound_at(const struct pp_remat_bound *bound, int64_t peak,
                       struct pp_remat_cost *cost) {
  *cost = (struct pp_remat_cost){0};
  for (size_t k = 0, first = 0; k < bound->start.count; first = bound->start.items[k++]) {
    size_t i = first;
    while (i < bound->start.items[k] && bound->label.items[i].peak > peak)
      i++;
    if (i == bound->start.items[k])
      return false;
    if (pp_cost_compare(bound->label.items[i].cost, *cost) > 0)
      *cost = bound->label.items[i].cost;
  }
  return true;
}

bool pp_remat_proves(const struct pp_remat_bound *bound, const struct pp_remat_front *front,
                     size_t entry) {
  struct pp_remat_label label = front->entry.items[entry].label;
  struct pp_remat_cost cost;
  if (entry) {
    int64_t above = front->entry.items[entry - 1].label.peak;
    if (pp_remat_bound_at(bound, above - 1, &cost) && pp_cost_compare(cost, label.cost) < 0)
      return false;
  }
  return !pp_remat_bound_at(bound, label.peak - 1, &cost) || pp_cost_compare(cost, label.cost) > 0;
}
