/* Orders of a model's programs: are they legal? */
#include "format/orders.h"

#include "error.h"
#include "memory.h"

void pp_orders_free(pp_index **order, size_t programs) {
  for (size_t i = 0; order && i < programs; i++)
    free(order[i]);
  free(order);
}

static pp_status check(const pp_model *model, size_t i, const pp_index *order, const int64_t *zero,
                       pp_error *error) {
  pp_program *program;
  int64_t peak;
  pp_status status = pp_model_build(model, i, zero, &program, error);
  if (status)
    return status;
  status = pp_simulate(program, order, &peak, NULL, NULL, error);
  pp_program_free(program);
  if (status && error) {
    pp_error inner = *error;
    pp_fail(error, status, "%s: %.200s", model->name[i], inner.message);
  }
  return status;
}

pp_status pp_orders_check(const pp_model *model, const pp_index *const *order, pp_error *error) {
  /* The peaks of callees do not matter for what is legal. */
  int64_t *zero = pp_zalloc(model->programs, sizeof *zero);
  pp_status status = zero ? PP_OK : pp_fail_memory(error);
  for (size_t i = 0; i < model->programs && !status; i++)
    if (order[i])
      status = check(model, i, order[i], zero, error);
  free(zero);
  return status;
}

pp_status pp_orders_accept(const pp_model *model, pp_index **found, pp_index ***order,
                           pp_error *error) {
  pp_status status = pp_orders_check(model, (const pp_index *const *)found, error);
  if (status)
    pp_orders_free(found, model->programs);
  else
    *order = found;
  return status;
}
