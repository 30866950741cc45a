/* A graph becomes a program: nodes that are not folded are statements, values that are not constant
 * are storages. A statement that needs a shape (through folded nodes) comes behind the statement
 * that makes the value whose shape it is: nothing is read, but no runtime knows the shape before.
 */
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
  bool *looks;       /* per node of the graph: it is folded, and a shape is in it */
  uint64_t *mark;    /* per node of the graph: the last search that met it */
  uint32_t *stack;   /* nodes of the model */
  uint64_t searches;
  int64_t needed, optional; /* steps that searches may still take */
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

/* ---- Shapes ---- */

/* The node of the graph that makes use i of a node, or none; *constant: the value is. */
static uint32_t maker(const struct build *build, const pp_onnx_node *node, uint32_t i,
                      bool *constant) {
  const pp_onnx *onnx = build->onnx;
  uint32_t value = i < node->inputs ? onnx->reference.items[node->input + i].value
                                    : onnx->capture.items[node->capture + i - node->inputs].value;
  if (value == PP_ONNX_NONE || onnx->value.items[value].graph != build->index)
    return PP_ONNX_NONE;
  *constant = onnx->value.items[value].flags & VALUE_CONSTANT;
  return onnx->value.items[value].producer;
}

/* Which folded nodes look at the shape of a statement's result, themselves or through others. */
static void find_looking(struct build *build) {
  const pp_onnx_graph *graph = build->graph;
  for (uint32_t k = 0; k < graph->nodes; k++) {
    const pp_onnx_node *node = build->onnx->node.items + graph->sorted[k];
    bool looks = false;
    for (uint32_t i = 0; node->folded && i < node->inputs; i++) {
      bool constant = false;
      uint32_t before = maker(build, node, i, &constant);
      looks |= before != PP_ONNX_NONE && (!constant || build->looks[before - graph->node]);
    }
    build->looks[graph->sorted[k] - graph->node] = looks;
  }
}

/* Pushes the makers of what a node uses, each once a search: statements, or folded nodes that look
 * at shapes. */
static uint32_t push_makers(struct build *build, uint32_t index, bool folded, uint32_t depth) {
  const pp_onnx_node *node = build->onnx->node.items + index;
  for (uint32_t i = 0; i < node->inputs + node->captures; i++) {
    bool constant = false;
    uint32_t before = maker(build, node, i, &constant), at = before - build->graph->node;
    if (before == PP_ONNX_NONE || constant != folded || (folded && !build->looks[at]) ||
        build->mark[at] == build->searches)
      continue;
    build->mark[at] = build->searches;
    build->stack[depth++] = before;
  }
  return depth;
}

/* Whether a statement's results reach another through what statements read. */
static bool reaches(struct build *build, uint32_t from, uint32_t to) {
  build->searches++;
  uint32_t depth = push_makers(build, build->graph->statement[to], false, 0);
  while (depth && build->optional-- > 0) {
    uint32_t index = build->stack[--depth], statement = build->onnx->node.items[index].statement;
    if (statement == from)
      return true;
    if (statement > from) /* those before it cannot come from it */
      depth = push_makers(build, index, false, depth);
  }
  return false;
}

static pp_status fail_shapes(const struct build *build) {
  return pp_fail_at(build->error, PP_ERROR_OVERFLOW, build->graph->body,
                    "too many nodes need the shapes of too many values");
}

/* Puts a statement behind all that make a value whose shape it needs. `source` receives them: each
 * pair has a search of its own. */
static pp_status add_shape_orders(struct build *build, uint32_t statement, uint32_t *source) {
  pp_status status = PP_OK;
  uint32_t sources = 0, depth;
  build->searches++;
  depth = push_makers(build, build->graph->statement[statement], true, 0);
  for (; depth && build->needed > 0; build->needed--) {
    uint32_t index = build->stack[--depth];
    depth = push_makers(build, index, true, depth);
    uint32_t more = push_makers(build, index, false, depth);
    for (; depth < more; more--)
      source[sources++] = build->onnx->node.items[build->stack[more - 1]].statement;
  }
  build->needed -= (int64_t)16 * sources; /* a pair takes memory too */
  if (build->needed <= 0)
    return fail_shapes(build);
  for (uint32_t i = 0; i < sources && !status; i++)
    if (!reaches(build, source[i], statement))
      status = pp_program_add_order(build->program, (pp_index)source[i], (pp_index)statement,
                                    build->error);
  return status;
}

static pp_status order_shapes(struct build *build) {
  size_t nodes = build->graph->nodes;
  uint32_t *source = pp_alloc(nodes, sizeof *source);
  build->looks = pp_zalloc(nodes, sizeof *build->looks);
  build->mark = pp_zalloc(nodes, sizeof *build->mark);
  build->stack = pp_alloc(nodes, sizeof *build->stack);
  build->needed = (int64_t)1 << 29;
  build->optional = (int64_t)1 << 25; /* beyond, needless pairs are told, which harms nothing */
  pp_status status =
      source && build->looks && build->mark && build->stack ? PP_OK : pp_fail_memory(build->error);
  if (!status)
    find_looking(build);
  for (uint32_t i = 0; i < build->graph->statements && !status; i++)
    status = add_shape_orders(build, i, source);
  free(source);
  free(build->looks);
  free(build->mark);
  free(build->stack);
  return status;
}

/* ---- Statements ---- */

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
  if (!status)
    status = order_shapes(build);
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
    pp_fail_memory(error);
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
