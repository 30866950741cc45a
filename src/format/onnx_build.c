/* A graph becomes a program: nodes that are not folded are statements, values that are not constant
 * are storages. */
#include <inttypes.h>
#include <stdio.h>

#include "format/onnx_model.h"

struct build {
  const pp_onnx *onnx;
  const pp_onnx_graph *graph;
  uint32_t index, first, values; /* the graph, its values */
  const int64_t *peak;
  pp_program *program;
  pp_index *storage; /* per value of the graph, or -1 */
  uint32_t *seen;    /* per value of the graph: 1 + the last statement that reads it */
  pp_index last;     /* the last ordered statement, or -1 */
  pp_error *error;
};

static uint32_t values_end(const pp_onnx *onnx, uint32_t graph) {
  return graph + 1 < onnx->graph.count ? onnx->graph.items[graph + 1].value
                                       : (uint32_t)onnx->value.count;
}

static pp_status add_storages(struct build *build) {
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < build->values && !status; i++) {
    const pp_onnx_value *value = build->onnx->value.items + build->first + i;
    build->storage[i] = -1;
    if (value->flags & VALUE_CONSTANT)
      continue;
    char name[200];
    pp_onnx_show(value->name, name, sizeof name);
    unsigned flags = (value->flags & VALUE_INPUT ? PP_LIVE_IN : 0) |
                     (value->flags & VALUE_OUTPUT ? PP_LIVE_OUT : 0);
    status = pp_program_add_storage(build->program, name, value->bytes, flags, build->storage + i,
                                    build->error);
  }
  return status;
}

/* A value of another graph is that graph's storage: there, the node with the body reads it. */
static pp_status add_read(struct build *build, uint32_t value, uint32_t statement) {
  uint32_t i = value - build->first;
  if (value == PP_ONNX_NONE || value < build->first || i >= build->values ||
      build->storage[i] < 0 || build->seen[i] == statement + 1)
    return PP_OK;
  build->seen[i] = statement + 1;
  return pp_program_add_access(build->program, build->storage[i], PP_WHOLE, PP_WHOLE, PP_READ,
                               build->error);
}

static pp_status add_accesses(struct build *build, const pp_onnx_node *node, uint32_t statement) {
  const pp_onnx *onnx = build->onnx;
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < node->inputs && !status; i++)
    status = add_read(build, onnx->reference.items[node->input + i].value, statement);
  for (uint32_t i = 0; i < node->captures && !status; i++)
    status = add_read(build, onnx->capture.items[node->capture + i].value, statement);
  for (uint32_t i = 0; i < node->outputs && !status; i++) {
    uint32_t value = onnx->reference.items[node->output + i].value;
    if (value != PP_ONNX_NONE) /* a result is new memory: all of it is written, none is read */
      status = pp_program_add_access(build->program, build->storage[value - build->first], PP_WHOLE,
                                     PP_WHOLE, PP_WRITE | PP_OVERWRITE, build->error);
  }
  return status;
}

/* Bodies run one after another, or one of them, or one many times. */
static pp_status add_bodies(struct build *build, const pp_onnx_node *node) {
  int64_t work = 0;
  for (uint32_t i = 0; i < node->callees; i++)
    work = build->peak[node->callee + i] > work ? build->peak[node->callee + i] : work;
  return work ? pp_program_add_work(build->program, work, build->error) : PP_OK;
}

static pp_status add_statement(struct build *build, uint32_t statement) {
  uint32_t index = build->graph->statement[statement];
  const pp_onnx_node *node = build->onnx->node.items + index;
  char name[200];
  pp_onnx_show_node(build->onnx, index, name, sizeof name);
  int64_t macs = pp_onnx_macs(build->onnx, node);
  pp_status status;
  if ((status = pp_program_add_statement(build->program, name, build->error)) ||
      (status = add_accesses(build, node, statement)) || (status = add_bodies(build, node)) ||
      (status = pp_program_set_pure(build->program, node->class == CLASS_PURE && !node->ordered,
                                    build->error)))
    return status;
  if (macs != PP_MACS_UNKNOWN && (status = pp_program_set_macs(build->program, macs, build->error)))
    return status;
  if (!node->ordered)
    return PP_OK;
  if (build->last >= 0)
    status = pp_program_add_order(build->program, build->last, (pp_index)statement, build->error);
  build->last = (pp_index)statement;
  return status;
}

static pp_status fill(struct build *build) {
  pp_status status = add_storages(build);
  for (uint32_t i = 0; i < build->graph->statements && !status; i++)
    status = add_statement(build, i);
  return status ? status : pp_program_finish(build->program, build->error);
}

pp_status pp_onnx_build(const pp_model *model, size_t index, const int64_t *peak,
                        pp_program **program, pp_error *error) {
  const pp_onnx *onnx = model->data;
  struct build build = {.onnx = onnx,
                        .graph = onnx->graph.items + index,
                        .index = (uint32_t)index,
                        .first = onnx->graph.items[index].value,
                        .values =
                            values_end(onnx, (uint32_t)index) - onnx->graph.items[index].value,
                        .peak = peak,
                        .last = -1,
                        .error = error};
  build.storage = pp_alloc(build.values, sizeof *build.storage);
  build.seen = pp_zalloc(build.values, sizeof *build.seen);
  pp_status status = PP_ERROR_MEMORY;
  if (!build.storage || !build.seen)
    pp_onnx_fail_memory(error);
  else if ((build.program = pp_program_new(error)) &&
           !(status = pp_program_set_name(build.program, model->name[index], error)))
    status = fill(&build);
  free(build.storage);
  free(build.seen);
  if (status)
    pp_program_free(build.program);
  else
    *program = build.program;
  return status;
}
