/* Heuristics, bounds and search become a plan (THEORY.md sections 2 and 3). */
#include <string.h>

#include "clock.h"
#include "error.h"
#include "heuristic.h"
#include "plan.h"
#include "probe.h"
#include "repair.h"
#include "search.h"
#include "trap.h"

/* States that one exploration may hold unless the caller says otherwise: at least so many, and some
 * for each statement. */
enum { STATES = 1 << 20, STATES_EACH = 16 };

/* Probing looks at so many statements in cuts, of programs that are no larger. */
enum { PROBED_WORK = 1 << 22, PROBED_MOST = 1 << 12 };

enum {
  LOWEST_TRIES = 4,   /* levels tried one after the other, each the lowest possible */
  LARGEST_HALVING = 6 /* then 1/64 of what is open, 1/32, ... */
};

struct solver {
  const pp_program *program;
  const pp_options *options;
  pp_plan *plan;
  pp_index *spare; /* n: an order being tried */
  struct pp_limits limits;
  int64_t states;            /* of searches that ended */
  pp_search *prover;         /* the search that proved the highest level infeasible, or NULL */
  pp_search *lead;           /* its commits hold at every level that is still open; or NULL */
  struct pp_probing probing; /* `strict` if it found edges */
  const pp_program *strict;  /* has all the orders that are better than the plan's */
};

static bool should_stop(void *data) {
  struct solver *solver = data;
  if (pp_limits_due(&solver->limits)) {
    pp_progress progress = {
        .peak = solver->plan->peak, .lower_bound = solver->plan->bound, .states = solver->states};
    pp_limits_look(&solver->limits, &progress);
  }
  return solver->limits.stopped;
}

static void turn(pp_index *order, pp_index n) {
  for (pp_index i = 0, j = n - 1; i < j; i++, j--) {
    pp_index v = order[i];
    order[i] = order[j];
    order[j] = v;
  }
}

/* Keeps the spare order if it is better. */
static pp_status offer(struct solver *solver, pp_error *error) {
  pp_plan *plan = solver->plan;
  int64_t peak;
  pp_status status = pp_peak(pp_view_of(solver->program, false), solver->spare, &peak, error);
  if (status)
    return pp_fail(error, PP_ERROR_INTERNAL, "a solver's order is not legal");
  if (peak < plan->peak) {
    pp_index *order = plan->order;
    plan->order = solver->spare;
    solver->spare = order;
    plan->peak = peak;
  }
  return PP_OK;
}

static pp_status try_greedy(struct solver *solver, bool reverse, pp_error *error) {
  if (!pp_greedy_order(pp_view_of(solver->program, reverse), solver->spare))
    return pp_fail_memory(error);
  if (reverse)
    turn(solver->spare, solver->program->n);
  return offer(solver, error);
}

/* ---- Traps ---- */

/* Everything that the plan's order executes before its first step of cost >= level is in T without
 * a cut. */
static bool seed_from_order(struct solver *solver, struct pp_trap *trap, int64_t level) {
  struct pp_run run;
  bool done = pp_run_init(&run, trap->run.view);
  pp_index n = solver->program->n;
  for (pp_index i = 0; done && i < n; i++) {
    pp_index v = solver->plan->order[trap->run.view.reverse ? n - 1 - i : i];
    if (run.waiting[v] || pp_run_step(&run, v) >= level)
      break;
    done = pp_trap_seed(trap, &v, 1);
  }
  pp_run_free(&run);
  return done;
}

/* Takes a better proof into the plan; `proof` is empty afterwards. */
static bool take_proof(struct solver *solver, struct pp_proof *proof) {
  pp_plan *plan = solver->plan;
  bool done = true;
  if (proof->bound > plan->bound) {
    done = pp_edges_copy(&solver->probing.found, &proof->probed);
    pp_proof_free(&plan->proof);
    plan->proof = *proof;
    plan->bound = proof->bound;
    if (plan->searched < plan->bound)
      plan->searched = plan->bound;
  } else
    pp_proof_free(proof);
  *proof = (struct pp_proof){0};
  return done;
}

/* The trap has no exit below `level`: the plan gets the proof. */
static pp_status prove(struct solver *solver, struct pp_trap *trap, int64_t level) {
  struct pp_proof proof;
  if (!pp_trap_proof(trap, level, &proof))
    return PP_ERROR_MEMORY;
  return take_proof(solver, &proof) ? PP_OK : PP_ERROR_MEMORY;
}

/* Does a trap prove the plan's own peak? */
static pp_status prove_peak(struct solver *solver, bool reverse) {
  int64_t level = solver->plan->peak;
  struct pp_trap trap;
  bool done = pp_trap_init(&trap, pp_view_of(solver->strict, reverse)) &&
              seed_from_order(solver, &trap, level);
  pp_status status = done ? pp_trap_grow(&trap, level, should_stop, solver) : PP_ERROR_MEMORY;
  if (!status && !pp_trap_whole(&trap))
    status = prove(solver, &trap, level);
  pp_trap_free(&trap);
  return status;
}

/* The best trap of one direction, if it proves more than is proved. */
static pp_status prove_best(struct solver *solver, bool reverse) {
  struct pp_view view = pp_view_of(solver->strict, reverse);
  struct pp_trap climb, trap = {0};
  int64_t bound = 0;
  size_t count = 0;
  pp_status status = pp_trap_init(&climb, view) ? pp_trap_climb(&climb, solver->plan->bound, &bound,
                                                                &count, should_stop, solver)
                                                : PP_ERROR_MEMORY;
  if (bound > solver->plan->peak) /* of orders that are no better nothing is said */
    bound = solver->plan->peak;
  if (status != PP_ERROR_MEMORY && bound > solver->plan->bound)
    status = pp_trap_init(&trap, view) && pp_trap_seed(&trap, climb.members.items, count)
                 ? prove(solver, &trap, bound)
                 : PP_ERROR_MEMORY;
  pp_trap_free(&climb);
  pp_trap_free(&trap);
  return status;
}

static pp_status prove_by_traps(struct solver *solver, pp_error *error) {
  pp_plan *plan = solver->plan;
  pp_status status = PP_OK;
  for (int k = 0; status != PP_ERROR_MEMORY && k < 4 && plan->bound < plan->peak; k++)
    status = k < 2 ? prove_peak(solver, k % 2) : prove_best(solver, k % 2);
  return status == PP_ERROR_MEMORY ? pp_fail_memory(error) : PP_OK; /* else: stopped in time */
}

static pp_status repair(struct solver *solver, pp_error *error) {
  pp_plan *plan = solver->plan;
  struct pp_view view = pp_view_of(solver->program, false);
  memcpy(solver->spare, plan->order, (size_t)solver->program->n * sizeof *plan->order);
  if (!pp_repair_order(view, solver->spare, plan->searched, should_stop, solver))
    return pp_fail_memory(error);
  return offer(solver, error);
}

/* From here on only orders better than the plan's count: what all of them have in common makes
 * proofs easier. */
static pp_status probe(struct solver *solver, pp_error *error) {
  if (solver->program->n > PROBED_MOST)
    return PP_OK;
  pp_status status = pp_probe(solver->program, solver->plan->peak, PROBED_WORK, should_stop, solver,
                              &solver->probing);
  if (status == PP_ERROR_MEMORY)
    return pp_fail_memory(error);
  if (!solver->probing.found.edges.count)
    return PP_OK;
  solver->strict = &solver->probing.program;
  return prove_by_traps(solver, error);
}

/* ---- Search ---- */

/* The search's commits are where later ones begin. */
static void follow(struct solver *solver, pp_search *search) {
  if (solver->lead != solver->prover)
    pp_search_free(solver->lead);
  solver->lead = search;
}

/* One try at a level, from where a lower one left the program. */
static pp_status search_at(struct solver *solver, int64_t level, int64_t budget,
                           pp_search_result *result, pp_error *error) {
  pp_plan *plan = solver->plan;
  pp_search *search = pp_search_new(solver->strict);
  bool done = search && (!solver->lead || pp_search_follow(search, solver->lead));
  *result = done ? pp_search_run(search, level, budget, should_stop, solver) : PP_SEARCH_MEMORY;
  pp_status status = *result == PP_SEARCH_MEMORY ? pp_fail_memory(error) : PP_OK;
  if (search)
    solver->states += search->explorer.visited;
  if (*result == PP_SEARCH_FOUND) {
    pp_search_order(search, solver->spare);
    status = offer(solver, error);
    if (!status && plan->peak > level)
      status = pp_fail(error, PP_ERROR_INTERNAL, "the search's order is above its level");
    if (!status && plan->searched < plan->peak)
      status = repair(solver, error);
  } else if (*result == PP_SEARCH_INFEASIBLE) {
    int64_t bound = search->proved.bound < plan->peak ? search->proved.bound : plan->peak;
    if (bound > plan->searched)
      plan->searched = bound;
    follow(solver, NULL);
    pp_search_free(solver->prover);
    solver->prover = solver->lead = search;
    return status;
  } else if (*result == PP_SEARCH_LIMIT && level == plan->searched) {
    follow(solver, search);
    return status;
  }
  pp_search_free(search);
  return status;
}

/* Most often the optimum is not far above what is proved, and an infeasible level leaves its
 * commits to the next one: as long as tries are cheap, the first levels are the lowest possible,
 * then the steps grow. Else levels are bisected. Where a try ends at its budget, higher levels do
 * too, as a rule: few are tried. */
static pp_status bisect(struct solver *solver, int64_t budget, int64_t limit, pp_error *error) {
  pp_plan *plan = solver->plan;
  int64_t level = plan->searched, cheap = solver->states + 16 * (int64_t)solver->program->n;
  pp_status status = PP_OK;
  for (int limits = 0, tries = 0;
       !status && limits < 4 && level < plan->peak && !should_stop(solver); tries++) {
    pp_search_result result;
    int64_t states = level > plan->searched ? budget : budget < limit / 4 ? 4 * budget : limit;
    status = search_at(solver, level, states, &result, error);
    int64_t low = plan->searched;
    if (result == PP_SEARCH_LIMIT) {
      limits++;
      low = level + 1;
    }
    int halvings = limits || solver->states > cheap ? 1
                   : tries < LOWEST_TRIES           ? 62
                                                    : LARGEST_HALVING + LOWEST_TRIES - tries;
    level = low + ((plan->peak - low) >> (halvings > 1 ? halvings : 1));
  }
  return status;
}

static pp_status search(struct solver *solver, pp_error *error) {
  pp_plan *plan = solver->plan;
  int64_t limit = solver->options->state_limit, n = solver->program->n;
  if (limit <= 0)
    limit = STATES_EACH * n > STATES ? STATES_EACH * n : STATES;
  int64_t budget = 4096 + 8 * n; /* room for one way without a commit */
  pp_status status = PP_OK;
  for (bool more = true; more && !status && plan->searched < plan->peak && !should_stop(solver);) {
    more = budget < limit;
    status = bisect(solver, more ? budget : limit, limit, error);
    budget *= 4;
  }
  plan->limited |= plan->searched < plan->peak;
  return status;
}

/* What the search knows becomes a proof. A level that it kept raising may have cost commits that
 * the proof repeats: its own limit is the same as the search's. */
static bool prove_by_search(struct solver *solver) {
  pp_plan *plan = solver->plan;
  struct pp_proof proof;
  bool done = true;
  if (solver->prover && plan->searched > plan->bound &&
      pp_search_proof(solver->prover, plan->searched, INT32_MAX, &proof))
    done = take_proof(solver, &proof);
  follow(solver, NULL);
  pp_search_free(solver->prover);
  return done;
}

/* ---- The plan ---- */

static pp_status begin(struct solver *solver, pp_error *error) {
  const pp_program *program = solver->program;
  pp_plan *plan = solver->plan;
  plan->program = program;
  plan->order = pp_alloc((size_t)program->n, sizeof *plan->order);
  solver->spare = pp_alloc((size_t)program->n, sizeof *solver->spare);
  if (!plan->order || !solver->spare)
    return pp_fail_memory(error);
  for (pp_index v = 0; v < program->n; v++)
    plan->order[v] = v;
  pp_status status = pp_simulate(program, NULL, &plan->before, NULL, NULL, error);
  if (status)
    return status;
  plan->peak = plan->before;
  plan->bound = plan->searched = pp_floor(program, &plan->proof.statement);
  plan->proof.kind = PP_PROOF_FLOOR;
  plan->proof.bound = plan->bound;
  return PP_OK;
}

static pp_status solve(struct solver *solver, pp_error *error) {
  pp_plan *plan = solver->plan;
  pp_status status = begin(solver, error);
  for (int reverse = 0; !status && reverse < 2 && plan->bound < plan->peak; reverse++)
    status = try_greedy(solver, reverse, error);
  if (!status && plan->bound < plan->peak)
    status = prove_by_traps(solver, error);
  if (!status && plan->bound < plan->peak)
    status = repair(solver, error);
  if (!status && plan->bound < plan->peak)
    status = probe(solver, error);
  if (!status && plan->bound < plan->peak)
    status = search(solver, error);
  if (!prove_by_search(solver) && !status)
    status = pp_fail_memory(error);
  pp_probing_free(&solver->probing);
  plan->limited |= solver->limits.stopped;
  plan->states = solver->states;
  plan->seconds = pp_limits_seconds(&solver->limits);
  return status;
}

pp_status pp_solve(const pp_program *program, const pp_options *options, pp_plan **plan,
                   pp_error *error) {
  static const pp_options defaults = {0};
  struct solver solver = {.program = program,
                          .strict = program,
                          .options = options ? options : &defaults,
                          .plan = pp_zalloc(1, sizeof **plan)};
  pp_limits_start(&solver.limits, solver.options);
  pp_status status = solver.plan ? solve(&solver, error) : pp_fail_memory(error);
  free(solver.spare);
  if (status)
    pp_plan_free(solver.plan);
  else
    *plan = solver.plan;
  return status;
}

void pp_plan_free(pp_plan *plan) {
  if (!plan)
    return;
  free(plan->order);
  pp_proof_free(&plan->proof);
  free(plan);
}

const pp_index *pp_plan_order(const pp_plan *plan) {
  return plan->order;
}

int64_t pp_plan_peak_before(const pp_plan *plan) {
  return plan->before;
}

int64_t pp_plan_peak(const pp_plan *plan) {
  return plan->peak;
}

int64_t pp_plan_lower_bound(const pp_plan *plan) {
  return plan->bound;
}

int64_t pp_plan_searched_bound(const pp_plan *plan) {
  return plan->searched;
}

bool pp_plan_optimal(const pp_plan *plan) {
  return plan->bound == plan->peak;
}

pp_proof_kind pp_plan_proof(const pp_plan *plan) {
  bool trap =
      plan->proof.kind == PP_PROOF_FORWARD_TRAP || plan->proof.kind == PP_PROOF_REVERSE_TRAP;
  return trap && plan->proof.probed.edges.count ? PP_PROOF_PROBING : plan->proof.kind;
}

bool pp_plan_limited(const pp_plan *plan) {
  return plan->limited;
}

double pp_plan_seconds(const pp_plan *plan) {
  return plan->seconds;
}

int64_t pp_plan_states(const pp_plan *plan) {
  return plan->states;
}

const char *pp_proof_name(pp_proof_kind kind) {
  static const char *const names[] = {"none",         "floor",   "forward-trap",
                                      "reverse-trap", "probing", "search"};
  return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "none";
}
