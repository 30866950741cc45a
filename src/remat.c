/* Recomputation: floor test, search, bounds and exact methods become a curve. */
#include <string.h>

#include "clock.h"
#include "error.h"
#include "remat_search.h"

/* Labels that one exact method may hold, unless the caller says otherwise. */
enum { DEFAULT_STATES = 1 << 18, DEFAULT_CAP = 2, JOINT_MAX = 24, BOUND_STEPS = 64 };
/* For rescheduling: its answer need not be proved. */
enum { SOLVE_STATES = 1 << 12 };

struct pp_remat {
  const pp_program *program;
  struct pp_remat_facts facts;
  struct pp_remat_front front;
  pp_remat_status *status; /* of each entry */
  int64_t floor, macs;
  pp_index statement, repeatable;
  bool at_floor, limited;
  double seconds;
  int64_t states;
};

struct work {
  pp_remat *remat;
  const pp_plan *plan;
  pp_options solve; /* for rescheduling */
  struct pp_limits limits;
  struct pp_remat_limits method; /* of each method */
  struct pp_sequence base;
};

static bool should_stop(void *data) {
  struct work *work = data;
  if (pp_limits_due(&work->limits)) {
    const struct pp_remat_front *front = &work->remat->front;
    size_t count = front->entry.count;
    pp_progress progress = {.peak = count ? front->entry.items[count - 1].label.peak
                                          : pp_plan_peak(work->plan),
                            .lower_bound = work->remat->floor,
                            .states = work->remat->states};
    pp_limits_look(&work->limits, &progress);
  }
  return work->limits.stopped;
}

static bool solve_progress(const pp_progress *progress, void *data) {
  (void)progress;
  return should_stop(data);
}

/* ---- Status ---- */

static bool all_proved(const pp_remat *remat) {
  for (size_t i = 0; i < remat->front.entry.count; i++)
    if (remat->status[i] == PP_REMAT_HEURISTIC)
      return false;
  return true;
}

static bool set_status(pp_remat *remat, pp_remat_status status) {
  free(remat->status);
  remat->status = pp_alloc(remat->front.entry.count, sizeof *remat->status);
  for (size_t i = 0; remat->status && i < remat->front.entry.count; i++)
    remat->status[i] = status;
  return remat->status != NULL;
}

/* ---- The methods, one after the other ---- */

static pp_status search(struct work *work, pp_error *error) {
  struct pp_remat_search search = {.facts = &work->remat->facts,
                                   .limits = &work->method,
                                   .front = &work->remat->front,
                                   .base = &work->base,
                                   .solve = &work->solve};
  pp_status status = pp_remat_search(&search, error);
  return status;
}

static pp_status bound_points(struct work *work, pp_error *error) {
  pp_remat *remat = work->remat;
  struct pp_remat_bound bound;
  const struct pp_remat_entry *last = remat->front.entry.items + remat->front.entry.count - 1;
  struct pp_remat_limits limits = work->method;
  limits.states *= 16; /* nodes are small, and a whole curve is wanted */
  bool done = pp_remat_bound_init(&bound, &remat->facts, &work->base, last->label.peak - 1, &limits,
                                  BOUND_STEPS);
  for (size_t i = 0; done && i < remat->front.entry.count; i++)
    if (pp_remat_proves(&bound, &remat->front, i))
      remat->status[i] = PP_REMAT_EXACT_ORDER;
  pp_remat_bound_free(&bound);
  return done ? PP_OK : pp_fail_memory(error);
}

static pp_status exact(struct work *work, bool joint, pp_error *error) {
  pp_remat *remat = work->remat;
  struct pp_remat_statistics statistics = {0};
  enum pp_remat_result result =
      joint ? pp_remat_joint(&remat->facts, &work->method, &remat->front, &statistics)
            : pp_remat_fixed(&remat->facts, work->base.run.items, &work->method, &remat->front,
                             &statistics);
  remat->states += statistics.states;
  if (result == PP_REMAT_MEMORY)
    return pp_fail_memory(error);
  if (result == PP_REMAT_DONE && !set_status(remat, joint ? PP_REMAT_EXACT : PP_REMAT_EXACT_ORDER))
    return pp_fail_memory(error);
  return PP_OK;
}

/* A curve that a limit kept from being proved is cut short only if the caller set the limit. */
static pp_status find_curve(struct work *work, pp_error *error) {
  pp_remat *remat = work->remat;
  pp_status status = search(work, error);
  if (!status && !set_status(remat, PP_REMAT_HEURISTIC))
    status = pp_fail_memory(error);
  if (!status && remat->facts.n <= JOINT_MAX && !should_stop(work))
    status = exact(work, true, error);
  if (!status && !all_proved(remat) && !should_stop(work))
    status = bound_points(work, error);
  if (!status && !all_proved(remat) && !should_stop(work))
    status = exact(work, false, error);
  return status;
}

/* ---- The whole ---- */

static void add_up(pp_remat *remat) {
  for (pp_index v = 0; v < remat->facts.n; v++) {
    remat->macs = pp_saturating_add(remat->macs, remat->facts.cost[v].macs);
    remat->repeatable += remat->facts.cap[v] > 1;
  }
}

/* Point 0, and nothing else. */
static pp_status only_base(struct work *work, pp_remat_status status, pp_error *error) {
  pp_remat *remat = work->remat;
  struct pp_remat_label label;
  bool done = pp_sequence_label(&remat->facts, &work->base, &label, NULL) &&
              pp_front_add(&remat->front, label, &work->base) && set_status(remat, status);
  return done ? PP_OK : pp_fail_memory(error);
}

static pp_status run(struct work *work, const pp_remat_options *options, pp_error *error) {
  pp_remat *remat = work->remat;
  const pp_program *program = remat->program;
  int32_t cap = options->cap ? options->cap : DEFAULT_CAP;
  if (cap < 1)
    return pp_fail(error, PP_ERROR_USAGE, "a cap is at least 1, not %d", cap);
  for (pp_index v = 0; options->caps && v < program->n; v++)
    if (options->caps[v] < 1)
      return pp_fail(error, PP_ERROR_USAGE, "the cap of statement %d is at least 1, not %d", v,
                     options->caps[v]);
  if (program->n > INT32_MAX - program->m)
    return pp_fail(error, PP_ERROR_OVERFLOW, "too many statements and storages");
  if (!pp_remat_facts_init(&remat->facts, program, cap, options->caps) ||
      !pp_sequence_set(&work->base, pp_plan_order(work->plan), (size_t)program->n))
    return pp_fail_memory(error);
  add_up(remat);
  remat->floor = pp_floor(program, &remat->statement);
  remat->at_floor = remat->floor == pp_plan_peak(work->plan);
  bool optimal = pp_plan_optimal(work->plan);
  if (remat->at_floor || !remat->repeatable)
    return only_base(work, optimal ? PP_REMAT_EXACT : PP_REMAT_HEURISTIC, error);
  return find_curve(work, error);
}

pp_status pp_remat_solve(const pp_program *program, const pp_plan *plan,
                         const pp_remat_options *options, pp_remat **remat, pp_error *error) {
  static const pp_remat_options defaults = {.max_extra_macs = -1};
  const pp_remat_options *given = options ? options : &defaults;
  struct work work = {.remat = pp_zalloc(1, sizeof *work.remat), .plan = plan};
  pp_limits_start(&work.limits, &given->solve);
  if (!work.remat)
    return pp_fail_memory(error);
  work.solve = (pp_options){.state_limit = SOLVE_STATES, .progress = solve_progress, .data = &work};
  work.method = (struct pp_remat_limits){
      .states = given->solve.state_limit > 0 ? given->solve.state_limit : DEFAULT_STATES,
      .cost = {given->max_extra_macs < 0 ? INT64_MAX : given->max_extra_macs, INT64_MAX},
      .stop = should_stop,
      .data = &work};
  work.remat->program = program;
  pp_status status = run(&work, given, error);
  pp_sequence_free(&work.base);
  work.remat->limited = work.limits.stopped;
  work.remat->seconds = pp_limits_seconds(&work.limits);
  if (status)
    pp_remat_free(work.remat);
  else
    *remat = work.remat;
  return status;
}

void pp_remat_free(pp_remat *remat) {
  if (!remat)
    return;
  pp_remat_facts_free(&remat->facts);
  pp_front_free(&remat->front);
  free(remat->status);
  free(remat);
}

const char *pp_remat_status_name(pp_remat_status status) {
  static const char *const names[] = {"heuristic", "exact-order", "exact"};
  return (size_t)status < sizeof names / sizeof *names ? names[status] : "heuristic";
}

bool pp_remat_at_floor(const pp_remat *remat) {
  return remat->at_floor;
}

int64_t pp_remat_floor(const pp_remat *remat, pp_index *statement) {
  if (statement)
    *statement = remat->statement;
  return remat->floor;
}

size_t pp_remat_points(const pp_remat *remat) {
  return remat->front.entry.count;
}

pp_remat_point pp_remat_point_of(const pp_remat *remat, size_t point) {
  const struct pp_remat_entry *entry = remat->front.entry.items + point;
  return (pp_remat_point){.peak = entry->label.peak,
                          .extra_macs = entry->label.cost.macs,
                          .extra_bytes = entry->label.cost.bytes,
                          .extra_runs = entry->sequence.run.count - (size_t)remat->facts.n,
                          .status = remat->status[point]};
}

int64_t pp_remat_macs(const pp_remat *remat) {
  return remat->macs;
}

pp_index pp_remat_repeatable(const pp_remat *remat) {
  return remat->repeatable;
}

bool pp_remat_limited(const pp_remat *remat) {
  return remat->limited;
}

double pp_remat_seconds(const pp_remat *remat) {
  return remat->seconds;
}

int64_t pp_remat_states(const pp_remat *remat) {
  return remat->states;
}

/* ---- Rewritings ---- */

struct pp_rewriting {
  struct pp_rewritten rewritten;
};

pp_status pp_remat_rewrite(const pp_remat *remat, size_t point, pp_rewriting **rewriting,
                           pp_error *error) {
  if (point >= remat->front.entry.count)
    return pp_fail(error, PP_ERROR_USAGE, "there is no point %zu", point);
  pp_rewriting *made = pp_zalloc(1, sizeof *made);
  if (!made)
    return pp_fail_memory(error);
  pp_status status = pp_rewrite(remat->program, &remat->front.entry.items[point].sequence,
                                &remat->facts, &made->rewritten, error);
  if (status)
    free(made);
  else
    *rewriting = made;
  return status;
}

void pp_rewriting_free(pp_rewriting *rewriting) {
  if (!rewriting)
    return;
  pp_rewritten_free(&rewriting->rewritten);
  free(rewriting);
}

const pp_program *pp_rewriting_program(const pp_rewriting *rewriting) {
  return rewriting->rewritten.program;
}

const pp_index *pp_rewriting_statements(const pp_rewriting *rewriting) {
  return rewriting->rewritten.statement;
}

const pp_index *pp_rewriting_storages(const pp_rewriting *rewriting) {
  return rewriting->rewritten.storage;
}
