/* A subgraph becomes a program: operators are statements, arena tensors are storages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_operator.h"
#include "format/tflite_schema.h"

/* A statement and a piece of state that it touches. */
struct touch {
  uint32_t token;
  pp_index statement;
};

struct build {
  const pp_tflite *tflite;
  const pp_tflite_subgraph *subgraph;
  uint32_t index; /* of the subgraph */
  const int64_t *peak;
  pp_program *program;
  pp_index *storage; /* per tensor, or -1 */
  pp_index *seen;    /* per tensor: the last statement that accesses it */
  PP_VECTOR(struct touch) touches;
  pp_index wall;                /* the last statement of unknown effects, or -1 */
  PP_VECTOR(pp_index) stateful; /* those with known effects since then */
  pp_error *error;
};

/* ---- Storages ---- */

enum { ACCESSED = 4 }; /* beside PP_LIVE_IN and PP_LIVE_OUT */

static void mark(const struct build *build, pp_flat_vector list, uint8_t flag, uint8_t *flags) {
  for (uint32_t i = 0; i < list.count; i++) {
    int32_t tensor = pp_tflite_int(build->tflite, list, i);
    if (tensor >= 0)
      flags[tensor] |= flag;
  }
}

/* Names go into terminals, JSON and HTML: printable ASCII is safe everywhere. */
static void copy_name(const pp_tflite *tflite, pp_flat_vector text, char *name, size_t size) {
  size_t length = text.count < size - 1 ? text.count : size - 1, i = 0;
  for (; i < length; i++) {
    uint8_t c = tflite->flat.bytes[text.at + i];
    name[i] = c < ' ' || c > '~' ? '?' : (char)c;
  }
  name[i] = 0;
}

static pp_status add_storages(struct build *build, const uint8_t *flags) {
  const pp_tflite *tflite = build->tflite;
  for (uint32_t i = 0; i < build->subgraph->tensors.count; i++) {
    size_t t = (size_t)build->subgraph->tensor + i;
    build->storage[i] = build->seen[i] = -1;
    if (!flags[i] || tflite->kind[t] != TENSOR_ARENA)
      continue;
    char name[200];
    size_t table = pp_tflite_at(tflite, build->subgraph->tensors, i);
    copy_name(tflite, pp_flat_elements(&tflite->flat, table, TENSOR_NAME), name, sizeof name);
    if (!*name)
      snprintf(name, sizeof name, "tensor%" PRIu32, i);
    pp_status status = pp_program_add_storage(build->program, name, tflite->bytes[t],
                                              flags[i] & (PP_LIVE_IN | PP_LIVE_OUT),
                                              build->storage + i, build->error);
    if (status)
      return status;
  }
  return PP_OK;
}

static pp_status make_storages(struct build *build) {
  uint8_t *flags = pp_zalloc(build->subgraph->tensors.count, 1);
  if (!flags)
    return pp_fail(build->error, PP_ERROR_MEMORY, "out of memory");
  mark(build, build->subgraph->inputs, PP_LIVE_IN, flags);
  mark(build, build->subgraph->outputs, PP_LIVE_OUT, flags);
  for (uint32_t i = 0; i < build->subgraph->operators.count; i++) {
    const pp_flat *flat = &build->tflite->flat;
    size_t operator_ = pp_tflite_at(build->tflite, build->subgraph->operators, i);
    mark(build, pp_flat_elements(flat, operator_, OPERATOR_INPUTS), ACCESSED, flags);
    mark(build, pp_flat_elements(flat, operator_, OPERATOR_OUTPUTS), ACCESSED, flags);
  }
  pp_status status = add_storages(build, flags);
  free(flags);
  return status;
}

/* ---- Statements ---- */

static pp_status add_access(struct build *build, int32_t tensor, unsigned flags) {
  return pp_program_add_access(build->program, build->storage[tensor], PP_WHOLE, PP_WHOLE, flags,
                               build->error);
}

/* `changed`: one byte an input, not 0 where the operator changes it (or no vector). */
static pp_status add_inputs(struct build *build, pp_flat_vector list, pp_flat_vector changed,
                            pp_index statement) {
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < list.count && !status; i++) {
    int32_t tensor = pp_tflite_int(build->tflite, list, i);
    bool change = i < changed.count && build->tflite->flat.bytes[changed.at + i];
    if (tensor < 0 || build->storage[tensor] < 0 || (build->seen[tensor] == statement && !change))
      continue; /* seen: e.g. both inputs of x * x */
    build->seen[tensor] = statement;
    status = add_access(build, tensor, change ? PP_READ | PP_WRITE : PP_READ);
  }
  return status;
}

static pp_status add_outputs(struct build *build, pp_flat_vector list, unsigned flags) {
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < list.count && !status; i++) {
    int32_t tensor = pp_tflite_int(build->tflite, list, i);
    if (tensor >= 0 && build->storage[tensor] >= 0)
      status = add_access(build, tensor, flags);
  }
  return status;
}

/* The callees of an operator run one after another, inside it. */
static pp_status add_callees(struct build *build, const pp_tflite_callees *callees) {
  int64_t work = 0;
  for (uint32_t i = 0; i < callees->count; i++) {
    int64_t peak = build->peak[pp_tflite_callee(build->tflite, callees, i)];
    work = peak > work ? peak : work;
  }
  return work ? pp_program_add_work(build->program, work, build->error) : PP_OK;
}

static pp_status add_touches(struct build *build, const pp_tflite_effects *effects,
                             pp_index statement) {
  for (unsigned i = 0; i < effects->count; i++) {
    if (!PP_ROOM(&build->touches))
      return pp_fail(build->error, PP_ERROR_MEMORY, "out of memory");
    build->touches.items[build->touches.count++] = (struct touch){effects->token[i], statement};
  }
  return PP_OK;
}

/* Statements of unknown effects are walls: everything stateful stays on its side of them. */
static pp_status add_walls(struct build *build, const pp_tflite_effects *effects,
                           pp_index statement) {
  pp_status status = PP_OK;
  if (!effects->unknown && !effects->count)
    return PP_OK;
  if (build->wall >= 0 && (!effects->unknown || !build->stateful.count))
    status = pp_program_add_order(build->program, build->wall, statement, build->error);
  if (!effects->unknown) {
    if (!PP_ROOM(&build->stateful))
      return pp_fail(build->error, PP_ERROR_MEMORY, "out of memory");
    build->stateful.items[build->stateful.count++] = statement;
    return status;
  }
  for (size_t i = 0; i < build->stateful.count && !status; i++)
    status =
        pp_program_add_order(build->program, build->stateful.items[i], statement, build->error);
  build->stateful.count = 0;
  build->wall = statement;
  return status;
}

static pp_status describe(struct build *build, size_t operator_, pp_tflite_class class,
                          const pp_tflite_effects *effects) {
  int64_t macs = pp_tflite_macs(build->tflite, build->subgraph, operator_);
  bool pure = class == CLASS_PURE && !effects->unknown && !effects->count;
  pp_status status = pp_program_set_pure(build->program, pure, build->error);
  if (!status && macs != PP_MACS_UNKNOWN)
    status = pp_program_set_macs(build->program, macs, build->error);
  return status;
}

static pp_status add_statement(struct build *build, uint32_t index) {
  const pp_tflite *tflite = build->tflite;
  size_t operator_ = pp_tflite_at(tflite, build->subgraph->operators, index);
  char name[80], numbered[100];
  pp_tflite_operator_name(tflite, operator_, name, sizeof name);
  snprintf(numbered, sizeof numbered, "%s_%" PRIu32, name, index);
  pp_tflite_callees callees;
  pp_tflite_effects effects;
  pp_status status;
  if ((status = pp_program_add_statement(build->program, numbered, build->error)) ||
      (status = pp_tflite_find_callees(tflite, build->index, index, &callees, build->error)))
    return status;
  pp_tflite_find_effects(tflite, build->index, index, &callees, &effects);
  pp_tflite_class class =
      pp_tflite_operator_class(pp_tflite_operator_code(tflite, operator_)->builtin);
  unsigned write = class == CLASS_PURE ? PP_WRITE | PP_OVERWRITE : PP_WRITE;
  const pp_flat *flat = &tflite->flat;
  if ((status =
           add_inputs(build, pp_flat_elements(flat, operator_, OPERATOR_INPUTS),
                      pp_flat_elements(flat, operator_, OPERATOR_MUTATING), (pp_index)index)) ||
      (status = add_outputs(build, pp_flat_elements(flat, operator_, OPERATOR_OUTPUTS), write)) ||
      (status = add_callees(build, &callees)) ||
      (status = describe(build, operator_, class, &effects)) ||
      (status = add_touches(build, &effects, (pp_index)index)))
    return status;
  return add_walls(build, &effects, (pp_index)index);
}

/* ---- Order edges ---- */

static int compare_touches(const void *a, const void *b) {
  const struct touch *x = a, *y = b;
  if (x->token != y->token)
    return x->token < y->token ? -1 : 1;
  return (x->statement > y->statement) - (x->statement < y->statement);
}

/* Statements with the same token keep their order. */
static pp_status add_chain_of(struct build *build, struct touch *touch, size_t count) {
  pp_status status = PP_OK;
  if (count)
    qsort(touch, count, sizeof *touch, compare_touches);
  for (size_t i = 1; i < count && !status; i++)
    if (touch[i].token == touch[i - 1].token)
      status = pp_program_add_order(build->program, touch[i - 1].statement, touch[i].statement,
                                    build->error);
  return status;
}

/* The statements that touch one piece of state keep their order. */
static pp_status add_chains(struct build *build) {
  return add_chain_of(build, build->touches.items, build->touches.count);
}

static pp_status add_control(struct build *build) {
  pp_status status = PP_OK;
  const int32_t *edge = build->tflite->edge.items; /* NULL if there are none at all */
  size_t begin = build->subgraph->edge, end = begin + build->subgraph->edges;
  for (size_t i = begin; i < end && !status; i++)
    status = pp_program_add_order(build->program, edge[2 * i], edge[2 * i + 1], build->error);
  return status;
}

/* Entries of the vector that are one table cannot be told apart once they are permuted: they keep
 * their order. */
static pp_status add_twins(struct build *build) {
  size_t count = build->subgraph->operators.count;
  struct touch *twin = pp_alloc(count, sizeof *twin);
  if (!twin)
    return pp_fail(build->error, PP_ERROR_MEMORY, "out of memory");
  for (size_t i = 0; i < count; i++)
    twin[i] = (struct touch){
        .token = (uint32_t)pp_tflite_at(build->tflite, build->subgraph->operators, (uint32_t)i),
        .statement = (pp_index)i};
  pp_status status = add_chain_of(build, twin, count);
  free(twin);
  return status;
}

static pp_status fill(struct build *build) {
  pp_status status = make_storages(build);
  for (uint32_t i = 0; i < build->subgraph->operators.count && !status; i++)
    status = add_statement(build, i);
  if (status || (status = add_chains(build)) || (status = add_twins(build)) ||
      (status = add_control(build)))
    return status;
  return pp_program_finish(build->program, build->error);
}

pp_status pp_tflite_build(const pp_model *model, size_t index, const int64_t *peak,
                          pp_program **program, pp_error *error) {
  const pp_tflite *tflite = model->data;
  struct build build = {.tflite = tflite,
                        .subgraph = tflite->subgraph + index,
                        .index = (uint32_t)index,
                        .peak = peak,
                        .wall = -1,
                        .error = error};
  size_t tensors = build.subgraph->tensors.count;
  build.storage = pp_alloc(tensors, sizeof *build.storage);
  build.seen = pp_alloc(tensors, sizeof *build.seen);
  pp_status status = PP_ERROR_MEMORY;
  if (!build.storage || !build.seen)
    pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  else if ((build.program = pp_program_new(error)) &&
           !(status = pp_program_set_name(build.program, model->name[index], error)))
    status = fill(&build);
  free(build.storage);
  free(build.seen);
  free(build.touches.items);
  free(build.stateful.items);
  if (status)
    pp_program_free(build.program);
  else
    *program = build.program;
  return status;
}
