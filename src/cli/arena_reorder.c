/* peakproof arena --reorder: the order of lowest peak whose arena is smallest. */
#include <stdlib.h>

#include "cli/arena.h"
#include "error.h"
#include "format/collect.h"
#include "memory.h"

/* Scratch is given by the numbers that operators have in the file; in another order they have
 * others. */
static void renumber_scratch(pp_arena_call *call, size_t subgraph, const pp_index *order,
                             pp_index n) {
  for (size_t k = 0; k < call->scratches; k++) {
    pp_scratch *scratch = &call->scratch[k];
    if (scratch->subgraph != subgraph)
      continue;
    for (pp_index i = 0; i < n; i++)
      if (order[i] == (pp_index)scratch->operator_) {
        scratch->operator_ = (uint32_t)i;
        break;
      }
  }
}

pp_status pp_arena_write_ordered(const pp_arena_call *call, pp_write *write, void *data,
                                 pp_error *error) {
  const pp_model *given = call->given;
  const pp_index **order = pp_zalloc(given->programs, sizeof *order);
  if (!order)
    return pp_fail_memory(error);
  for (size_t i = 0; i < given->programs; i++)
    if (call->planned.program[i].plan)
      order[i] = pp_plan_order(call->planned.program[i].plan);
  pp_status status = pp_model_write(given, order, write, data, error);
  free(order);
  return status;
}

/* Makes that the model, as if it had been read so. */
static pp_status permute_model(pp_arena_call *call) {
  const pp_read_options how = {call->common.dimensions, call->common.dimension};
  pp_collected text = {0};
  for (size_t i = 0; i < call->given->programs; i++) {
    const pp_planned_program *it = &call->planned.program[i];
    if (it->plan)
      renumber_scratch(call, i, pp_plan_order(it->plan), pp_program_statements(it->program));
  }
  pp_status status = pp_arena_write_ordered(call, pp_collect, &text, &call->error);
  if (status) {
    free(text.bytes);
    return status;
  }
  return pp_model_read_bytes(call->path, text.bytes, text.size, &how, &call->model, &call->error);
}

static pp_status refine_all(pp_arena_call *call) {
  const pp_arena_options how = pp_arena_how(call);
  call->refinement.all = true;
  pp_status status = PP_OK;
  for (size_t i = 0; i < call->given->programs && !status; i++) {
    pp_refinement refinement;
    pp_arena *packed;
    if (!call->planned.program[i].plan)
      continue;
    status =
        pp_arena_refine(call->planned.program[i].plan, &how, 0, &refinement, &packed, &call->error);
    if (status)
      break;
    pp_arena_free(packed);
    call->refinement.orders += refinement.orders;
    call->refinement.all &= refinement.all;
    call->refinement.changed |= refinement.changed;
  }
  return status;
}

/* Plans the model, and goes on with it in an order of lowest peak. */
int pp_arena_reorder(pp_arena_call *call) {
  call->given = call->model;
  if (call->ordered && !call->model->operations->write)
    return pp_usage_error("arena", "models of this format cannot be written: leave out --ordered");
  int code = pp_plan_model(call->model, &call->common, &call->planned);
  if (code)
    return code;
  pp_status status = refine_all(call);
  if (!status && call->runtime != PP_RUNTIME_PLAIN) {
    call->model = NULL;
    status = permute_model(call);
  }
  return status ? pp_say_error(call->path, &call->error) : PP_EXIT_DONE;
}
