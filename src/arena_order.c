/* Among orders of one peak, one whose arena is small (THEORY.md section 5).
 *
 * The peak is the lower bound of every arena, so the search ends when an order meets it. With an
 * alignment the bound is that of the same program with all sizes rounded up. If the orders of this
 * peak are few, all are packed. Otherwise a walk goes from order to order: a statement moves as far
 * as its neighbours in the dependence graph allow, or two adjacent runs of statements change
 * places; a step that raises the peak or the arena is not taken. */
#include "arena.h"

#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "order.h"
#include "plan.h"

enum {
  DEFAULT_WORK = 1000000, /* buffers of all orders that are packed */
  MOST_ORDERS = 20000,
  LEAST_ORDERS = 16,
  COUNT_STEPS = 20, /* of the enumeration, for each order that may be packed */
  WALK_NODES = 500, /* of the packer, an order */
  ALL_NODES = 200000,
  STALE = 200, /* steps without a better arena before the walk starts again from the best order */
  KICK = 4,    /* then so many steps are taken unseen */
  LONGEST_RUN = 16
};

struct refiner {
  pp_plan *plan;
  const pp_program *program;
  const pp_arena_options *options;
  pp_refinement *refinement;
  double start;
  int64_t limit;   /* of refinement->orders */
  int64_t peak;    /* not to be passed */
  int64_t goal;    /* an arena of so many bytes cannot be improved on */
  int64_t bytes;   /* of the best arena */
  pp_arena *arena; /* if it is not the first order's */
  int64_t nodes;   /* of the packer, an order; 0: its default */
  bool stopped;    /* by the clock or the caller */
  bool inexact;    /* some order was not packed to the end */
  size_t buffers;  /* m + n */
  pp_buffer *buffer;
  pp_index *first, *last; /* m */
  pp_index *order;        /* n: of the walk */
  pp_index *trial;        /* n */
  pp_index *place;        /* n: of a statement in `order` */
  uint64_t seed;
};

/* ---- Buffers ---- */

static void fill_buffers(const pp_program *program, const pp_index *order, const pp_index *first,
                         const pp_index *last, pp_buffer *buffer) {
  pp_index n = program->n, m = program->m;
  for (pp_index s = 0; s < m; s++) {
    unsigned flags = program->storages.items[s].flags;
    bool kept = pp_row_size(&program->accessors, s) || flags == (PP_LIVE_IN | PP_LIVE_OUT);
    buffer[s] = (pp_buffer){kept ? program->bytes[s] : 0, first[s], last[s]};
  }
  for (pp_index i = 0; i < n; i++) {
    pp_index v = order ? order[i] : i;
    buffer[m + v] = (pp_buffer){program->work[v], i, i};
  }
}

pp_status pp_arena_buffers(const pp_program *program, const pp_index *order, pp_buffer *buffer,
                           pp_error *error) {
  int64_t peak;
  pp_status status = pp_simulate(program, order, &peak, NULL, NULL, error);
  if (status)
    return status;
  pp_index *first = pp_alloc((size_t)program->m, sizeof *first),
           *last = pp_alloc((size_t)program->m, sizeof *last);
  status = first && last ? pp_lifetimes(program, order, first, last, error) : pp_fail_memory(error);
  if (!status)
    fill_buffers(program, order, first, last, buffer);
  free(first);
  free(last);
  return status;
}

/* ---- What no order can do better ---- */

static bool round_up(int64_t *bytes, int64_t alignment) {
  int64_t rest = *bytes % alignment;
  return rest == 0 || !__builtin_add_overflow(*bytes, alignment - rest, bytes);
}

static pp_status add_rounded(pp_program *rounded, const pp_program *program, int64_t alignment,
                             pp_index v, pp_error *error) {
  int64_t work = program->work[v];
  if (!round_up(&work, alignment))
    return PP_ERROR_OVERFLOW;
  pp_statement_info info = pp_program_statement(program, v);
  pp_status status = pp_program_add_statement(rounded, NULL, error);
  if (!status)
    status = pp_program_add_work(rounded, work, error);
  for (size_t i = 0; i < info.accesses && !status; i++)
    status = pp_program_add_access(rounded, info.access[i].storage, info.access[i].from,
                                   info.access[i].to, info.access[i].flags, error);
  return status;
}

/* The program with sizes rounded up. */
static pp_status fill_rounded(pp_program *rounded, const pp_program *program, int64_t alignment,
                              pp_error *error) {
  pp_status status = PP_OK;
  for (pp_index s = 0; s < program->m && !status; s++) {
    int64_t bytes = program->bytes[s];
    if (!round_up(&bytes, alignment))
      return PP_ERROR_OVERFLOW;
    status =
        pp_program_add_storage(rounded, NULL, bytes, program->storages.items[s].flags, NULL, error);
  }
  for (pp_index v = 0; v < program->n && !status; v++)
    status = add_rounded(rounded, program, alignment, v, error);
  const pp_index *pair;
  size_t pairs = pp_program_orders(program, &pair);
  for (size_t i = 0; i < pairs && !status; i++)
    status = pp_program_add_order(rounded, pair[2 * i], pair[2 * i + 1], error);
  return status ? status : pp_program_finish(rounded, error);
}

/* A bound for the rounded program is one for arenas whose last buffer is rounded up as well. */
static void find_goal(struct refiner *refiner, int64_t alignment) {
  refiner->goal = refiner->plan->bound;
  if (alignment == 1)
    return;
  pp_program *rounded = pp_program_new(NULL);
  pp_plan *plan;
  pp_options options = {.state_limit = 20000};
  if (rounded && !fill_rounded(rounded, refiner->program, alignment, NULL) &&
      !pp_solve(rounded, &options, &plan, NULL)) {
    if (plan->bound > refiner->goal)
      refiner->goal = plan->bound;
    pp_plan_free(plan);
  }
  pp_program_free(rounded);
}

/* ---- Packing ---- */

static bool stopped(struct refiner *refiner) {
  const pp_arena_options *options = refiner->options;
  double seconds = pp_now() - refiner->start;
  if (options->time_limit > 0 && seconds >= options->time_limit)
    refiner->stopped = true;
  if (options->progress && !refiner->stopped) {
    pp_arena_progress progress = {refiner->bytes, refiner->goal, seconds, 0};
    refiner->stopped = options->progress(&progress, options->data);
  }
  return refiner->stopped;
}

static bool done(struct refiner *refiner) {
  return refiner->bytes <= refiner->goal || refiner->refinement->orders >= refiner->limit ||
         stopped(refiner);
}

/* Packs an order of the program. `wanted`: a larger arena is of no use; 0: the smallest. */
static pp_status pack(struct refiner *refiner, const pp_index *order, int64_t wanted,
                      pp_arena **arena, pp_error *error) {
  pp_arena_options options = *refiner->options;
  pp_status status = pp_lifetimes(refiner->program, order, refiner->first, refiner->last, error);
  if (status)
    return status;
  fill_buffers(refiner->program, order, refiner->first, refiner->last, refiner->buffer);
  options.capacity = wanted;
  if (refiner->nodes)
    options.node_limit = refiner->nodes;
  if (options.time_limit > 0) {
    double left = options.time_limit - (pp_now() - refiner->start);
    options.time_limit = left > 1e-3 ? left : 1e-3; /* 0 would be no limit */
  }
  return pp_arena_solve(refiner->buffer, refiner->buffers, &options, arena, error);
}

/* Packs an order, and keeps it if no other was so small. An order that no arena below 2^63 bytes
 * holds counts as the largest. */
static pp_status try_order(struct refiner *refiner, const pp_index *order, int64_t *bytes,
                           pp_error *error) {
  pp_arena *arena;
  pp_status status = pack(refiner, order, refiner->bytes - 1, &arena, error);
  *bytes = INT64_MAX;
  if (status)
    return status == PP_ERROR_OVERFLOW ? PP_OK : status;
  *bytes = pp_arena_bytes(arena);
  refiner->inexact |= pp_arena_limited(arena);
  if (*bytes >= refiner->bytes) {
    pp_arena_free(arena);
    return PP_OK;
  }
  pp_arena_free(refiner->arena);
  refiner->arena = arena;
  refiner->bytes = *bytes;
  refiner->refinement->changed = true;
  memcpy(refiner->plan->order, order, (size_t)refiner->program->n * sizeof *order);
  return PP_OK;
}

/* ---- All orders ---- */

/* The next statement from v on that can run now within the peak, or n. */
static pp_index next_ready(const struct pp_run *run, pp_index v, int64_t peak) {
  while (v < run->view.n && (run->done[v] || run->waiting[v] || pp_run_cost(run, v) > peak))
    v++;
  return v;
}

/* A packing that is better than the best one so far need not be the best of its order. */
static pp_status pack_to_the_end(struct refiner *refiner, const pp_index *order, pp_error *error) {
  refiner->refinement->orders++;
  for (;;) {
    int64_t best = refiner->bytes, bytes;
    pp_status status = try_order(refiner, order, &bytes, error);
    if (status || bytes >= best || bytes <= refiner->goal)
      return status;
  }
}

/* Goes through all legal orders within the peak, in lexicographic order, and packs them if `packs`;
 * otherwise counts them. *complete: no limit ended it. */
static pp_status enumerate(struct refiner *refiner, struct pp_run *run, bool packs, int64_t *orders,
                           bool *complete, pp_error *error) {
  pp_index n = refiner->program->n, depth = 0, v = 0, *order = refiner->trial;
  int64_t steps = 0;
  pp_status status;
  *orders = 0;
  *complete = false;
  for (;;) {
    v = depth < n ? next_ready(run, v, refiner->peak) : n;
    if (v < n) {
      pp_run_step(run, v);
      order[depth++] = v;
      v = 0;
      if (++steps > refiner->limit * COUNT_STEPS)
        return PP_OK;
      continue;
    }
    if (depth == n) {
      if (++*orders > refiner->limit || (packs && done(refiner)))
        return PP_OK;
      if (packs && (status = pack_to_the_end(refiner, order, error)))
        return status;
    }
    if (depth == 0)
      break;
    v = order[--depth];
    pp_run_undo(run, v++);
  }
  *complete = true;
  return PP_OK;
}

static pp_status try_all(struct refiner *refiner, bool *all, pp_error *error) {
  struct pp_run run;
  int64_t orders;
  bool counted = false;
  *all = false;
  pp_status status =
      pp_run_init(&run, pp_view_of(refiner->program, false)) ? PP_OK : pp_fail_memory(error);
  if (!status)
    status = enumerate(refiner, &run, false, &orders, &counted, error);
  pp_run_free(&run);
  if (status || !counted)
    return status;
  if (!pp_run_init(&run, pp_view_of(refiner->program, false)))
    status = pp_fail_memory(error);
  refiner->nodes = ALL_NODES;
  refiner->limit++; /* the plan's order is among them once more */
  if (!status)
    status = enumerate(refiner, &run, true, &orders, all, error);
  pp_run_free(&run);
  return status;
}

/* ---- The walk ---- */

static pp_index below(struct refiner *refiner, pp_index n) {
  return (pp_index)(pp_random(&refiner->seed) % (uint64_t)n);
}

/* How early and how late the statement at `at` can stand while the others keep their order. */
static void find_window(const struct refiner *refiner, pp_index at, pp_index *from, pp_index *to) {
  const pp_program *program = refiner->program;
  pp_index v = refiner->order[at];
  *from = 0;
  *to = program->n - 1;
  PP_FOR_ROW (u, &program->predecessors, v)
    if (refiner->place[*u] >= *from)
      *from = refiner->place[*u] + 1;
  PP_FOR_ROW (x, &program->successors, v)
    if (refiner->place[*x] <= *to)
      *to = refiner->place[*x] - 1;
}

/* Makes `trial` from `order` with one statement elsewhere; false if it can only stand where it is.
 */
static bool move_statement(struct refiner *refiner) {
  pp_index n = refiner->program->n, at = below(refiner, n), from, to;
  find_window(refiner, at, &from, &to);
  if (from == to)
    return false;
  pp_index goal = from + below(refiner, to - from);
  goal += goal >= at;
  memcpy(refiner->trial, refiner->order, (size_t)n * sizeof *refiner->trial);
  for (pp_index i = at; i != goal; i += goal > at ? 1 : -1)
    refiner->trial[i] = refiner->order[goal > at ? i + 1 : i - 1];
  refiner->trial[goal] = refiner->order[at];
  return true;
}

/* Lets the runs from <= i < middle and middle <= i < to change places; false if a statement of the
 * second depends on one of the first. */
static bool swap_runs(struct refiner *refiner) {
  const pp_program *program = refiner->program;
  pp_index n = program->n, longest = n / 2 < LONGEST_RUN ? n / 2 : LONGEST_RUN;
  if (longest < 1)
    return false;
  pp_index a = 1 + below(refiner, longest), b = 1 + below(refiner, longest);
  pp_index from = below(refiner, n - a - b + 1), middle = from + a, to = middle + b;
  for (pp_index i = middle; i < to; i++)
    PP_FOR_ROW (u, &program->predecessors, refiner->order[i])
      if (refiner->place[*u] >= from && refiner->place[*u] < middle)
        return false;
  memcpy(refiner->trial, refiner->order, (size_t)n * sizeof *refiner->trial);
  memcpy(refiner->trial + from, refiner->order + middle, (size_t)b * sizeof *refiner->trial);
  memcpy(refiner->trial + from + b, refiner->order + from, (size_t)a * sizeof *refiner->trial);
  return true;
}

static void walk_to(struct refiner *refiner, const pp_index *order) {
  memmove(refiner->order, order, (size_t)refiner->program->n * sizeof *order);
  for (pp_index i = 0; i < refiner->program->n; i++)
    refiner->place[refiner->order[i]] = i;
}

/* Fills `trial` with a neighbour within the peak; *found: there is one. */
static pp_status find_neighbour(struct refiner *refiner, bool *found, pp_error *error) {
  *found = false;
  if (!(below(refiner, 2) ? move_statement(refiner) : swap_runs(refiner)))
    return PP_OK;
  int64_t peak;
  pp_status status = pp_simulate(refiner->program, refiner->trial, &peak, NULL, NULL, error);
  *found = !status && peak <= refiner->peak;
  return status;
}

static pp_status kick(struct refiner *refiner, pp_error *error) {
  walk_to(refiner, refiner->plan->order);
  for (int i = 0; i < KICK; i++) {
    bool found;
    pp_status status = find_neighbour(refiner, &found, error);
    if (status)
      return status;
    if (found)
      walk_to(refiner, refiner->trial);
  }
  return PP_OK;
}

static pp_status walk(struct refiner *refiner, pp_error *error) {
  int64_t now = refiner->bytes, bytes, tries = 0;
  int stale = 0;
  refiner->nodes = WALK_NODES;
  walk_to(refiner, refiner->plan->order);
  while (!done(refiner) && tries++ < refiner->limit * COUNT_STEPS) {
    bool found;
    pp_status status = find_neighbour(refiner, &found, error);
    if (!status && ++stale > STALE) {
      stale = 0;
      now = INT64_MAX;
      status = kick(refiner, error);
      found = false;
    }
    if (status)
      return status;
    if (!found)
      continue;
    int64_t best = refiner->bytes;
    refiner->refinement->orders++;
    status = try_order(refiner, refiner->trial, &bytes, error);
    if (status)
      return status;
    if (bytes <= now) { /* the walk needs steps that change nothing, too */
      walk_to(refiner, refiner->trial);
      now = bytes;
    }
    if (refiner->bytes < best)
      stale = 0;
  }
  return PP_OK;
}

/* ---- All of it ---- */

static pp_status refine(struct refiner *refiner, int64_t alignment, pp_error *error) {
  find_goal(refiner, alignment);
  if (done(refiner))
    return PP_OK;
  bool all;
  pp_status status = try_all(refiner, &all, error);
  if (!status && !all)
    status = walk(refiner, error);
  refiner->refinement->all = all && !refiner->inexact;
  return status;
}

static bool allocate(struct refiner *refiner) {
  size_t n = (size_t)refiner->program->n, m = (size_t)refiner->program->m;
  refiner->buffer = pp_alloc(n + m, sizeof *refiner->buffer);
  refiner->first = pp_alloc(m, sizeof *refiner->first);
  refiner->last = pp_alloc(m, sizeof *refiner->last);
  refiner->order = pp_alloc(n, sizeof *refiner->order);
  refiner->trial = pp_alloc(n, sizeof *refiner->trial);
  refiner->place = pp_alloc(n, sizeof *refiner->place);
  return refiner->buffer && refiner->first && refiner->last && refiner->order && refiner->trial &&
         refiner->place;
}

static int64_t default_orders(size_t buffers) {
  int64_t orders = DEFAULT_WORK / ((int64_t)buffers + 1);
  return orders > MOST_ORDERS ? MOST_ORDERS : orders < LEAST_ORDERS ? LEAST_ORDERS : orders;
}

/* The best order once more with the caller's limits: what is kept may have been cut short. */
static pp_status pack_again(struct refiner *refiner, pp_arena **arena, pp_error *error) {
  pp_arena *again;
  refiner->nodes = 0;
  pp_status status = pack(refiner, refiner->plan->order, 0, &again, error);
  if (status)
    return status;
  bool better = pp_arena_bytes(again) <= refiner->bytes;
  pp_arena_free(*arena);
  *arena = better ? again : refiner->arena;
  pp_arena_free(better ? refiner->arena : again);
  refiner->arena = NULL;
  return PP_OK;
}

static pp_status run(struct refiner *refiner, int64_t alignment, pp_arena **arena,
                     pp_error *error) {
  pp_plan *plan = refiner->plan;
  pp_status status = pack(refiner, plan->order, 0, arena, error);
  if (status)
    return status;
  refiner->bytes = pp_arena_bytes(*arena);
  refiner->refinement->orders = 1;
  if (refiner->bytes > plan->peak)
    status = refine(refiner, alignment, error);
  if (!status && refiner->arena)
    status = pack_again(refiner, arena, error);
  if (!status)
    status = pp_simulate(plan->program, plan->order, &plan->peak, NULL, NULL, error);
  pp_arena_free(refiner->arena);
  if (status)
    pp_arena_free(*arena);
  return status;
}

pp_status pp_arena_refine(pp_plan *plan, const pp_arena_options *options, int64_t orders,
                          pp_refinement *refinement, pp_arena **arena, pp_error *error) {
  static const pp_arena_options defaults = {0};
  struct refiner refiner = {.plan = plan,
                            .program = plan->program,
                            .options = options ? options : &defaults,
                            .refinement = refinement,
                            .start = pp_now(),
                            .peak = plan->peak};
  int64_t alignment = refiner.options->alignment ? refiner.options->alignment : 1;
  if (refiner.options->capacity || orders < 0 || alignment < 1)
    return pp_fail(error, PP_ERROR_USAGE,
                   "refining takes no capacity, and wants an alignment of at least 1");
  refiner.buffers = (size_t)plan->program->n + (size_t)plan->program->m;
  refiner.limit = orders ? orders : default_orders(refiner.buffers);
  *refinement = (pp_refinement){0};
  pp_status status = allocate(&refiner) ? PP_OK : pp_fail_memory(error);
  if (!status)
    status = run(&refiner, alignment, arena, error);
  free(refiner.buffer);
  free(refiner.first);
  free(refiner.last);
  free(refiner.order);
  free(refiner.trial);
  free(refiner.place);
  return status;
}
