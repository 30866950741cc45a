/* A model with a plan for each of its programs. */
#include "report/planned.h"

#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"

size_t pp_model_find(const pp_model *model, const char *name) {
  size_t i = 0;
  while (i < model->programs && strcmp(model->name[i], name))
    i++;
  return i;
}

/* Does anything that program i may call have another value in `other` than its planned peak? */
static bool differs(const pp_planned *planned, size_t i, const int64_t *other) {
  for (const size_t *j = planned->model->sequence; *j != i; j++)
    if (other[*j] != planned->peak[*j])
      return true;
  return false;
}

/* The peak of the original order when callees run in their original order too. */
static pp_status find_peak_before(pp_planned *planned, size_t i, pp_error *error) {
  pp_planned_program *it = planned->program + i;
  it->peak_before = pp_plan_peak_before(it->plan);
  pp_status status = PP_OK;
  if (differs(planned, i, planned->peak_before)) {
    pp_program *program;
    status = pp_model_build(planned->model, i, planned->peak_before, &program, error);
    if (status)
      return status;
    status = pp_simulate(program, NULL, &it->peak_before, NULL, NULL, error);
    pp_program_free(program);
  }
  planned->peak_before[i] = it->peak_before;
  return status;
}

/* A certificate takes the callees' planned peaks as given. If a callee could go as low as its
 * bound, the work of some statement falls by d, and the bound by at most the largest d. */
static pp_status find_lower_bound(pp_planned *planned, size_t i, pp_error *error) {
  pp_planned_program *it = planned->program + i;
  it->lower_bound = pp_plan_lower_bound(it->plan);
  int64_t *bound = pp_alloc(planned->model->programs, sizeof *bound), largest = 0;
  pp_status status = PP_OK;
  if (!bound)
    return pp_fail_memory(error);
  for (size_t j = 0; j < planned->model->programs; j++)
    bound[j] = planned->program[j].lower_bound;
  if (differs(planned, i, bound)) {
    pp_program *low;
    status = pp_model_build(planned->model, i, bound, &low, error);
    for (pp_index v = 0; !status && v < pp_program_statements(low); v++) {
      int64_t d = pp_program_statement(it->program, v).work - pp_program_statement(low, v).work;
      largest = d > largest ? d : largest;
    }
    if (!status)
      pp_program_free(low);
    it->lower_bound -= largest < it->lower_bound ? largest : it->lower_bound;
  }
  free(bound);
  return status;
}

static pp_status plan_one(pp_planned *planned, size_t i, const pp_options *options,
                          pp_error *error) {
  pp_planned_program *it = planned->program + i;
  pp_status status = pp_model_build(planned->model, i, planned->peak, &it->program, error);
  if (status || (status = pp_solve(it->program, options, &it->plan, error)))
    return status;
  planned->peak[i] = pp_plan_peak(it->plan);
  if ((status = find_peak_before(planned, i, error)) ||
      (status = find_lower_bound(planned, i, error)))
    return status;
  return PP_OK;
}

static void add_up(pp_planned *planned) {
  planned->optimal = true;
  for (size_t i = 0; i < planned->model->programs; i++) {
    const pp_planned_program *it = planned->program + i;
    if (!it->plan)
      continue;
    if (it->peak_before > planned->peak_before_all)
      planned->peak_before_all = it->peak_before;
    if (planned->peak[i] > planned->peak_all)
      planned->peak_all = planned->peak[i];
    if (it->lower_bound > planned->lower_bound_all)
      planned->lower_bound_all = it->lower_bound;
    planned->optimal &= pp_plan_optimal(it->plan);
    planned->limited |= pp_plan_limited(it->plan);
  }
}

pp_status pp_planned_make(const pp_model *model, const pp_planned_options *options,
                          pp_planned *planned, pp_error *error) {
  double begin = pp_now();
  *planned = (pp_planned){.model = model,
                          .program = pp_zalloc(model->programs, sizeof *planned->program),
                          .peak = pp_zalloc(model->programs, sizeof *planned->peak),
                          .peak_before = pp_zalloc(model->programs, sizeof *planned->peak_before)};
  if (!planned->program || !planned->peak || !planned->peak_before)
    return pp_fail_memory(error);
  pp_options solve = options->solve;
  for (size_t k = 0; k < model->programs; k++) {
    size_t i = model->sequence[k];
    if (options->solve.time_limit > 0) {
      double left = options->solve.time_limit - (pp_now() - begin);
      solve.time_limit = left > 1e-3 ? left : 1e-3; /* 0 would be no limit */
    }
    if (options->begin)
      options->begin(model->name[i], solve.data);
    pp_status status = plan_one(planned, i, &solve, error);
    if (status)
      return status;
    if (options->only && !strcmp(model->name[i], options->only))
      break;
  }
  add_up(planned);
  return PP_OK;
}

void pp_planned_free(pp_planned *planned) {
  for (size_t i = 0; planned->program && i < planned->model->programs; i++) {
    pp_plan_free(planned->program[i].plan);
    pp_program_free(planned->program[i].program);
  }
  free(planned->program);
  free(planned->peak);
  free(planned->peak_before);
  *planned = (pp_planned){0};
}
