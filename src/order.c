/* Simulates orders (THEORY.md section 1: live, M, c, peak). */
#include "order.h"

#include "error.h"

static int64_t initial_memory(const struct pp_view *view) {
  int64_t memory = 0;
  for (pp_index s = 0; s < view->m; s++)
    if (pp_begins(view, s) && (pp_ends_never(view, s) || pp_row_size(view->accessors, s)))
      memory += view->bytes[s];
  return memory;
}

bool pp_run_init(struct pp_run *run, struct pp_view view) {
  *run = (struct pp_run){.view = view};
  run->left = pp_alloc((size_t)view.m, sizeof *run->left);
  run->waiting = pp_alloc((size_t)view.n, sizeof *run->waiting);
  run->done = pp_zalloc((size_t)view.n, sizeof *run->done);
  if (!run->left || !run->waiting || !run->done)
    return false;
  for (pp_index s = 0; s < view.m; s++)
    run->left[s] = (pp_index)pp_row_size(view.accessors, s);
  for (pp_index v = 0; v < view.n; v++)
    run->waiting[v] = (pp_index)pp_row_size(view.predecessors, v);
  run->memory = initial_memory(&view);
  return true;
}

void pp_run_free(struct pp_run *run) {
  free(run->left);
  free(run->waiting);
  free(run->done);
}

int64_t pp_run_cost(const struct pp_run *run, pp_index v) {
  int64_t cost = run->memory + run->view.work[v];
  PP_FOR_ROW (s, run->view.accessed, v)
    if (!pp_run_begun(run, *s))
      cost += run->view.bytes[*s];
  return cost;
}

int64_t pp_run_change(const struct pp_run *run, pp_index v) {
  int64_t change = 0;
  PP_FOR_ROW (s, run->view.accessed, v) {
    if (!pp_run_begun(run, *s))
      change += run->view.bytes[*s];
    if (run->left[*s] == 1 && !pp_ends_never(&run->view, *s))
      change -= run->view.bytes[*s];
  }
  return change;
}

int64_t pp_run_step(struct pp_run *run, pp_index v) {
  int64_t cost = pp_run_cost(run, v);
  run->memory += pp_run_change(run, v);
  PP_FOR_ROW (s, run->view.accessed, v)
    run->left[*s]--;
  PP_FOR_ROW (x, run->view.successors, v)
    run->waiting[*x]--;
  run->done[v] = true;
  run->executed++;
  return cost;
}

void pp_run_undo(struct pp_run *run, pp_index v) {
  PP_FOR_ROW (s, run->view.accessed, v)
    run->left[*s]++;
  PP_FOR_ROW (x, run->view.successors, v)
    run->waiting[*x]++;
  run->done[v] = false;
  run->executed--;
  run->memory -= pp_run_change(run, v);
}

static pp_status check_step(const struct pp_run *run, pp_index step, pp_index v, pp_error *error) {
  if (v < 0 || v >= run->view.n)
    return pp_fail(error, PP_ERROR_INPUT, "step %d: statement %d of %d", step, v, run->view.n);
  if (run->done[v])
    return pp_fail(error, PP_ERROR_INPUT, "step %d: statement %d runs twice", step, v);
  if (run->waiting[v])
    return pp_fail(error, PP_ERROR_INPUT,
                   "step %d: statement %d runs before a statement that it depends on", step, v);
  return PP_OK;
}

static pp_status simulate(struct pp_view view, const pp_index *order, int64_t *peak, int64_t *step,
                          int64_t *between, pp_error *error) {
  struct pp_run run;
  pp_status status = pp_run_init(&run, view) ? PP_OK : pp_fail_memory(error);
  int64_t highest = run.memory;
  for (pp_index i = 0; !status && i < view.n; i++) {
    pp_index v = order ? order[i] : view.reverse ? view.n - 1 - i : i;
    if ((status = check_step(&run, i, v, error)))
      break;
    if (between)
      between[i] = run.memory;
    int64_t cost = pp_run_step(&run, v);
    if (step)
      step[i] = cost;
    if (cost > highest)
      highest = cost;
  }
  if (!status && between)
    between[view.n] = run.memory;
  if (!status)
    *peak = highest;
  pp_run_free(&run);
  return status;
}

pp_status pp_peak(struct pp_view view, const pp_index *order, int64_t *peak, pp_error *error) {
  return simulate(view, order, peak, NULL, NULL, error);
}

static pp_status check_finished(const pp_program *program, pp_error *error) {
  return program->accessors.start && program->successors.start
             ? PP_OK
             : pp_fail(error, PP_ERROR_USAGE, "the program is not finished");
}

pp_status pp_simulate(const pp_program *program, const pp_index *order, int64_t *peak,
                      int64_t *step, int64_t *between, pp_error *error) {
  pp_status status = check_finished(program, error);
  return status ? status : simulate(pp_view_of(program, false), order, peak, step, between, error);
}

pp_status pp_lifetimes(const pp_program *program, const pp_index *order, pp_index *first,
                       pp_index *last, pp_error *error) {
  pp_status status = check_finished(program, error);
  if (status)
    return status;
  for (pp_index s = 0; s < program->m; s++)
    first[s] = last[s] = -1;
  for (pp_index i = 0; i < program->n; i++) {
    pp_index v = order ? order[i] : i;
    PP_FOR_ROW (s, &program->accessed, v) {
      if (first[*s] < 0)
        first[*s] = i;
      last[*s] = i;
    }
  }
  for (pp_index s = 0; s < program->m; s++) {
    unsigned flags = program->storages.items[s].flags;
    bool accessed = last[s] >= 0;
    if (flags & PP_LIVE_IN)
      first[s] = -1;
    if (flags & PP_LIVE_OUT && (accessed || flags & PP_LIVE_IN))
      last[s] = program->n;
  }
  return PP_OK;
}

int64_t pp_floor(const pp_program *program, pp_index *statement) {
  int64_t always = 0, best = initial_memory(&(struct pp_view){.program = program,
                                                              .m = program->m,
                                                              .accessors = &program->accessors,
                                                              .bytes = program->bytes,
                                                              .begin = PP_LIVE_IN,
                                                              .end = PP_LIVE_OUT});
  pp_index at = -1;
  for (pp_index s = 0; s < program->m; s++)
    if (program->storages.items[s].flags == (PP_LIVE_IN | PP_LIVE_OUT))
      always += program->bytes[s];
  for (pp_index v = 0; v < program->n; v++) {
    int64_t alone = always + program->work[v];
    PP_FOR_ROW (s, &program->accessed, v)
      if (program->storages.items[*s].flags != (PP_LIVE_IN | PP_LIVE_OUT))
        alone += program->bytes[*s];
    if (at < 0 ? alone >= best : alone > best) {
      best = alone;
      at = v;
    }
  }
  if (statement)
    *statement = at;
  return best;
}
