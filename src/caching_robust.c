/* Among the orders of least requested peak, one that reserves little: local search. Deterministic:
 * the moves come from a generator that starts at the same place each time. */
#include "caching.h"

#include <string.h>

#include "error.h"
#include "order.h"
#include "random.h"

enum { DEFAULT_RUNS = 2000 };

struct search {
  const pp_caching_config *config;
  const pp_caching *history;
  const struct pp_program *program;
  pp_index n, *order, *trial, *place; /* place[v]: where v stands in order */
  int64_t requested;                  /* what no order may exceed */
  int64_t reserved, allocated;        /* of order */
  int64_t tried;
  uint64_t random;
  pp_error *error;
};

static pp_index pick(struct search *s, pp_index below) {
  return (pp_index)(pp_random(&s->random) % (uint64_t)below);
}

/* INT64_MAX where the device does not hold it. */
static pp_status measure(struct search *s, const pp_index *order, int64_t *reserved,
                         int64_t *allocated) {
  pp_caching *caching;
  pp_index full;
  pp_status status = s->history ? pp_caching_copy(s->history, &caching, s->error)
                                : pp_caching_new(s->config, &caching, s->error);
  if (status)
    return status;
  s->tried++;
  status = pp_caching_run(caching, s->program, order, NULL, &full, s->error);
  pp_caching_figures figures = pp_caching_now(caching);
  pp_caching_free(caching);
  bool fits = full == s->n;
  *reserved = fits ? figures.reserved_peak : INT64_MAX;
  *allocated = fits ? figures.allocated_peak : INT64_MAX;
  return status;
}

/* Where v may stand: behind the last predecessor, before the first successor. */
static void range(const struct search *s, pp_index v, pp_index *low, pp_index *high) {
  *low = 0;
  *high = s->n - 1;
  PP_FOR_ROW (u, &s->program->predecessors, v)
    if (s->place[*u] + 1 > *low)
      *low = s->place[*u] + 1;
  PP_FOR_ROW (x, &s->program->successors, v)
    if (s->place[*x] - 1 < *high)
      *high = s->place[*x] - 1;
}

/* Moves one statement in `trial`; false: it cannot move. */
static bool move(struct search *s) {
  pp_index v = pick(s, s->n), low, high, from = s->place[v];
  range(s, v, &low, &high);
  if (low == high)
    return false;
  pp_index to = low + pick(s, high - low);
  to += to >= from;
  memcpy(s->trial, s->order, (size_t)s->n * sizeof *s->trial);
  if (to < from)
    memmove(s->trial + to + 1, s->trial + to, (size_t)(from - to) * sizeof *s->trial);
  else
    memmove(s->trial + from, s->trial + from + 1, (size_t)(to - from) * sizeof *s->trial);
  s->trial[to] = v;
  return true;
}

static void accept(struct search *s, int64_t reserved, int64_t allocated) {
  pp_index *order = s->order;
  memcpy(order, s->trial, (size_t)s->n * sizeof *order);
  for (pp_index i = 0; i < s->n; i++)
    s->place[order[i]] = i;
  s->reserved = reserved;
  s->allocated = allocated;
}

static pp_status try_move(struct search *s) {
  int64_t requested, reserved, allocated;
  if (!move(s))
    return PP_OK;
  pp_status status = pp_simulate(s->program, s->trial, &requested, NULL, NULL, s->error);
  if (status || requested > s->requested)
    return status;
  status = measure(s, s->trial, &reserved, &allocated);
  if (!status && (reserved < s->reserved || (reserved == s->reserved && allocated <= s->allocated)))
    accept(s, reserved, allocated); /* equal ones too: plateaus are wide */
  return status;
}

static pp_status climb(struct search *s, const pp_caching_robust_options *options) {
  int64_t runs = options && options->runs > 0 ? options->runs : DEFAULT_RUNS;
  pp_status status = pp_simulate(s->program, s->order, &s->requested, NULL, NULL, s->error);
  if (!status)
    status = measure(s, s->order, &s->reserved, &s->allocated);
  /* Moves that the peak rules out are cheap, but there must be an end to them as well. */
  for (int64_t moves = 0; !status && s->tried < runs && moves < runs * 8 && s->n > 1; moves++) {
    if (options && options->stop && moves % 64 == 0 && options->stop(options->data))
      break;
    status = try_move(s);
  }
  return status;
}

pp_status pp_caching_robust(const pp_caching_config *config, const pp_caching *history,
                            const pp_program *program, pp_index *order,
                            const pp_caching_robust_options *options, int64_t *tried,
                            pp_error *error) {
  size_t n = (size_t)program->n;
  struct search s = {.config = config,
                     .history = history,
                     .program = program,
                     .n = program->n,
                     .order = order,
                     .trial = pp_alloc(n, sizeof *s.trial),
                     .place = pp_alloc(n, sizeof *s.place),
                     .error = error};
  pp_status status = s.trial && s.place ? PP_OK : pp_fail_memory(error);
  for (size_t i = 0; i < n && !status; i++)
    if (order[i] < 0 || order[i] >= program->n)
      status = pp_fail(error, PP_ERROR_INPUT, "step %zu: there is no statement %d", i, order[i]);
    else
      s.place[order[i]] = (pp_index)i;
  if (!status)
    status = climb(&s, options);
  if (!status && tried)
    *tried = s.tried;
  free(s.trial);
  free(s.place);
  return status;
}
