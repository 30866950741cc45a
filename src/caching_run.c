/* Programs through the caching allocator: what an order requests and frees, and why more is
 * reserved. */
#include "caching.h"
#include "error.h"
#include "program.h"

/* ---- Runs ---- */

struct run {
  pp_caching *caching;
  const struct pp_program *program;
  const pp_index *first, *last; /* of each storage: pp_lifetimes */
  pp_index *held;               /* the block of each storage, or PP_CACHING_NOTHING */
  PP_VECTOR(pp_index) work;     /* blocks of the statement that runs */
  bool full;
  pp_error *error;
};

static pp_status request(struct run *run, int64_t bytes, pp_index *block) {
  pp_status status = pp_caching_allocate(run->caching, bytes, 0, block, run->error);
  if (!status && *block == PP_CACHING_FULL) {
    run->full = true;
    *block = PP_CACHING_NOTHING;
  }
  return status;
}

static void give_back(struct run *run, pp_index *block) {
  pp_caching_release(run->caching, *block);
  *block = PP_CACHING_NOTHING;
}

static pp_status take_arguments(struct run *run) {
  const struct pp_program *p = run->program;
  pp_status status = PP_OK;
  for (pp_index s = 0; s < p->m && !status && !run->full; s++) {
    unsigned flags = p->storages.items[s].flags;
    bool counts = pp_row_size(&p->accessors, s) || flags & PP_LIVE_OUT;
    if (flags & PP_LIVE_IN && counts)
      status = request(run, p->bytes[s], &run->held[s]);
  }
  return status;
}

static pp_status take_work(struct run *run, pp_index v) {
  const struct pp_program *p = run->program;
  const struct pp_statement *statement = &p->statements.items[v];
  size_t end = v + 1 < p->n ? statement[1].request : p->requests.count;
  pp_status status = PP_OK;
  for (size_t i = statement->request; i < end && !status && !run->full; i++) {
    pp_index block;
    if (!PP_ROOM(&run->work))
      return pp_fail_memory(run->error);
    status = request(run, p->requests.items[i], &block);
    if (!status)
      run->work.items[run->work.count++] = block;
  }
  return status;
}

static pp_status run_step(struct run *run, pp_index v, pp_index i, pp_caching_figures *figures) {
  const struct pp_program *p = run->program;
  pp_status status = PP_OK;
  PP_FOR_ROW (s, &p->accessed, v)
    if (run->first[*s] == i && !status && !run->full)
      status = request(run, p->bytes[*s], &run->held[*s]);
  if (!status && !run->full)
    status = take_work(run, v);
  if (figures)
    *figures = pp_caching_now(run->caching);
  while (run->work.count)
    give_back(run, &run->work.items[--run->work.count]);
  PP_FOR_ROW (s, &p->accessed, v)
    if (run->last[*s] == i)
      give_back(run, &run->held[*s]);
  return status;
}

static pp_status run_all(struct run *run, const pp_index *order, pp_caching_figures *step,
                         pp_index *full) {
  pp_index n = run->program->n;
  pp_caching_reset_peaks(run->caching);
  pp_status status = take_arguments(run);
  *full = run->full ? -1 : n;
  for (pp_index i = 0; i < n && !status && !run->full; i++) {
    status = run_step(run, order ? order[i] : i, i, step ? step + i : NULL);
    if (run->full)
      *full = i;
  }
  for (pp_index s = 0; s < run->program->m && !status; s++)
    give_back(run, &run->held[s]);
  return status;
}

pp_status pp_caching_run(pp_caching *caching, const pp_program *program, const pp_index *order,
                         pp_caching_figures *step, pp_index *full, pp_error *error) {
  size_t m = (size_t)program->m;
  pp_index *first = pp_alloc(m, sizeof *first), *last = pp_alloc(m, sizeof *last);
  pp_index *held = pp_alloc(m, sizeof *held);
  struct run run = {.caching = caching,
                    .program = program,
                    .first = first,
                    .last = last,
                    .held = held,
                    .error = error};
  pp_status status = first && last && held ? PP_OK : pp_fail_memory(error);
  for (size_t s = 0; s < m && !status; s++)
    held[s] = PP_CACHING_NOTHING;
  if (!status)
    status = pp_lifetimes(program, order, first, last, error);
  if (!status)
    status = run_all(&run, order, step, full);
  free(run.work.items);
  free(first);
  free(last);
  free(held);
  return status;
}

/* ---- A bound ---- */

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Where the driver refuses, or is not asked beyond a limit, cached memory may go back; where it
 * never does, what is reserved stays and grows by whole segments. */
int64_t pp_caching_bound(const pp_caching_config *config, const pp_caching *history,
                         int64_t requested) {
  int64_t held = history ? history->figures.allocated : 0;
  int64_t reserved = history ? history->figures.reserved : 0;
  int64_t needed = requested > INT64_MAX - held ? INT64_MAX : held + requested;
  if (config->capacity)
    return needed;
  int64_t missing = needed > reserved ? needed - reserved : 0;
  int64_t unit = common_divisor(config->small_buffer, config->large_buffer);
  if (!config->expandable_segments)
    unit = common_divisor(unit, config->round_large);
  int64_t units = missing / unit + (missing % unit != 0);
  return units > (INT64_MAX - reserved) / unit ? needed : reserved + units * unit;
}

/* ---- Causes ---- */

/* The peaks of an order from an empty cache, or from a copy of a history. */
static pp_status peaks(const pp_caching_config *config, const pp_caching *history,
                       const pp_program *program, const pp_index *order,
                       pp_caching_figures *figures, pp_index *full, pp_error *error) {
  pp_caching *caching;
  pp_status status =
      history ? pp_caching_copy(history, &caching, error) : pp_caching_new(config, &caching, error);
  if (status)
    return status;
  status = pp_caching_run(caching, program, order, NULL, full, error);
  *figures = pp_caching_now(caching);
  pp_caching_free(caching);
  return status;
}

pp_status pp_caching_explain(const pp_caching_config *config, const pp_caching *history,
                             const pp_program *program, const pp_index *order,
                             pp_caching_causes *causes, pp_error *error) {
  /* Without a limit: where the device is full, what an order would have needed is not known. */
  pp_caching_config endless = *config;
  endless.capacity = 0;
  endless.memory_fraction = 0;
  pp_caching_config exact = endless;
  exact.exact_segments = true;
  exact.expandable_segments = false;
  pp_caching_figures empty, tight, real;
  pp_index full;
  pp_status status = peaks(&endless, NULL, program, order, &empty, &full, error);
  if (!status)
    status = peaks(&exact, NULL, program, order, &tight, &full, error);
  if (!status)
    status = peaks(config, history, program, order, &real, &full, error);
  if (status)
    return status;
  *causes = (pp_caching_causes){.requested = empty.requested_peak,
                                .rounding = empty.rounded_peak - empty.requested_peak,
                                .remainder = empty.allocated_peak - empty.rounded_peak,
                                .fragmentation = tight.reserved_peak - empty.allocated_peak,
                                .segments = empty.reserved_peak - tight.reserved_peak,
                                .history = real.reserved_peak - empty.reserved_peak,
                                .reserved = real.reserved_peak,
                                .allocated = real.allocated_peak,
                                .full = full};
  return PP_OK;
}
