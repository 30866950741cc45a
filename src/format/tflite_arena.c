/* Lifetimes by the runtimes' own rules.
 *
 * TFLM: AllocationInfoBuilder::MarkAllocationLifetimes (micro_allocation_info.cc). LiteRT:
 * ArenaPlanner::PlanAllocations and IdentifyInPlaceTensors (arena_planner.cc). */
#include "format/tflite_arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_operator.h"
#include "format/tflite_schema.h"

enum { BUILTIN_RESHAPE = 22, TYPE_INT4 = 17 };

static pp_flat_vector operator_list(const pp_tflite *tflite, uint32_t subgraph, uint32_t index,
                                    unsigned field) {
  size_t table = pp_tflite_at(tflite, tflite->subgraph[subgraph].operators, index);
  return pp_flat_elements(&tflite->flat, table, field);
}

size_t pp_tflite_subgraphs(const pp_model *model) {
  return ((const pp_tflite *)model->data)->subgraphs;
}

size_t pp_tflite_tensors(const pp_model *model) {
  return ((const pp_tflite *)model->data)->tensors;
}

size_t pp_tflite_operators(const pp_model *model, uint32_t subgraph) {
  return ((const pp_tflite *)model->data)->subgraph[subgraph].operators.count;
}

void pp_lives_free(pp_lives *lives) {
  free(lives->life);
  *lives = (pp_lives){0};
}

void pp_tflite_life_name(const pp_model *model, const pp_life *life, char *name, size_t size) {
  const pp_tflite *tflite = model->data;
  const pp_tflite_subgraph *subgraph = tflite->subgraph + life->subgraph;
  if (life->tensor < 0) {
    char kind[80];
    pp_tflite_operator_name(tflite, pp_tflite_at(tflite, subgraph->operators, life->index), kind,
                            sizeof kind);
    snprintf(name, size, "scratch of %s_%" PRIu32, kind, life->index);
    return;
  }
  size_t table = pp_tflite_at(tflite, subgraph->tensors, life->index), i = 0;
  pp_flat_vector text = pp_flat_elements(&tflite->flat, table, TENSOR_NAME);
  for (; i < text.count && i < size - 1; i++) {
    uint8_t c = tflite->flat.bytes[text.at + i];
    name[i] = c < ' ' || c > '~' ? '?' : (char)c;
  }
  name[i] = 0;
  if (!i)
    snprintf(name, size, "tensor%" PRIu32, life->index);
}

static void add_persistent(pp_lives *lives, int64_t bytes) {
  if (__builtin_add_overflow(lives->persistent, bytes, &lives->persistent))
    lives->persistent = INT64_MAX;
}

/* ---- Scratch ---- */

static pp_status check_scratch(const pp_tflite *tflite, const pp_scratch *scratch, size_t count,
                               pp_error *error) {
  for (size_t i = 0; i < count; i++)
    if (scratch[i].subgraph >= tflite->subgraphs ||
        scratch[i].operator_ >= tflite->subgraph[scratch[i].subgraph].operators.count)
      return pp_fail(error, PP_ERROR_INPUT,
                     "scratch is given for operator %" PRIu32 " of subgraph %" PRIu32
                     ", which does not exist",
                     scratch[i].operator_, scratch[i].subgraph);
  return PP_OK;
}

/* The life of an operator's scratch, made when the first part of it is met; NULL: out of memory. */
static pp_life *scratch_life(pp_lives *lives, size_t tensors, const pp_scratch *scratch) {
  for (size_t i = tensors; i < lives->count; i++)
    if (lives->life[i].subgraph == scratch->subgraph && lives->life[i].index == scratch->operator_)
      return &lives->life[i];
  pp_life *life = &lives->life[lives->count++];
  *life = (pp_life){{0, 0, 0}, -1, scratch->subgraph, scratch->operator_};
  return life;
}

static pp_status add_scratch(pp_lives *lives, const pp_scratch *scratch, size_t count,
                             int64_t alignment, const int64_t *begin, const int64_t *end,
                             const size_t *first_operator, pp_error *error) {
  size_t tensors = lives->count;
  for (size_t i = 0; i < count; i++) {
    int64_t bytes = scratch[i].bytes, pad = bytes % alignment ? alignment - bytes % alignment : 0;
    size_t place = first_operator[scratch[i].subgraph] + scratch[i].operator_;
    if (begin[place] < 0)
      continue; /* its subgraph never runs */
    pp_life *life = scratch_life(lives, tensors, &scratch[i]);
    life->buffer.first = begin[place];
    life->buffer.last = end[place];
    if (__builtin_add_overflow(life->buffer.bytes, bytes, &life->buffer.bytes) ||
        __builtin_add_overflow(life->buffer.bytes, pad, &life->buffer.bytes))
      return pp_fail(error, PP_ERROR_OVERFLOW, "more than 2^63-1 scratch bytes");
  }
  return PP_OK;
}

/* ---- TFLM ---- */

struct visit { /* a subgraph that is being executed */
  uint32_t subgraph, index, callee;
  int64_t begin; /* when its operator `index` began */
  pp_tflite_callees callees;
};

struct tflm {
  const pp_tflite *tflite;
  int64_t time, visited;
  int64_t *first, *last; /* of a tensor */
  int64_t *begin, *end;  /* of an operator */
  size_t *operators;     /* of a subgraph: the number of its first operator */
  struct visit *stack;
  size_t depth;
};

/* Subgraphs that call others twice, and so on, run for a time that is exponential in the file. */
enum { MOST_VISITED = 1 << 24 };

enum { HANDLE = -2 }; /* as the last time of a tensor that needs no memory */

/* TFLM keeps the nibbles of an INT4 apart, and counts a resource as 4 bytes. */
static int64_t tflm_bytes(const pp_tflite *tflite, uint32_t subgraph, uint32_t index) {
  size_t table = pp_tflite_at(tflite, tflite->subgraph[subgraph].tensors, index);
  uint8_t type = pp_flat_get8(&tflite->flat, table, TENSOR_TYPE, 0);
  if (type != TYPE_INT4 && type != TYPE_RESOURCE)
    return tflite->bytes[tflite->subgraph[subgraph].tensor + index];
  pp_flat_vector shape = pp_flat_elements(&tflite->flat, table, TENSOR_SHAPE);
  int64_t elements = 1;
  for (uint32_t i = 0; i < shape.count; i++) /* the reader has checked the product */
    if (__builtin_mul_overflow(elements, pp_tflite_int(tflite, shape, i), &elements))
      return 0;
  return type == TYPE_RESOURCE && elements <= INT64_MAX / 4 ? 4 * elements : elements;
}

static void create(struct tflm *tflm, uint32_t subgraph, pp_flat_vector list) {
  for (uint32_t i = 0; i < list.count; i++) {
    int32_t tensor = pp_tflite_int(tflm->tflite, list, i);
    size_t t = tflm->tflite->subgraph[subgraph].tensor + (size_t)(tensor < 0 ? 0 : tensor);
    if (tensor >= 0 && tflm->first[t] < 0)
      tflm->first[t] = tflm->time;
  }
}

static void use(struct tflm *tflm, uint32_t subgraph, pp_flat_vector list) {
  for (uint32_t i = 0; i < list.count; i++) {
    int32_t tensor = pp_tflite_int(tflm->tflite, list, i);
    if (tensor >= 0)
      tflm->last[tflm->tflite->subgraph[subgraph].tensor + (size_t)tensor] = tflm->time;
  }
}

static void enter(struct tflm *tflm, uint32_t subgraph) {
  const pp_tflite_subgraph *entered = tflm->tflite->subgraph + subgraph;
  create(tflm, subgraph, entered->inputs);
  use(tflm, subgraph, entered->inputs);
  tflm->stack[tflm->depth++] = (struct visit){.subgraph = subgraph};
}

static pp_status begin_operator(struct tflm *tflm, struct visit *visit, pp_error *error) {
  const pp_tflite *tflite = tflm->tflite;
  size_t table = pp_tflite_at(tflite, tflite->subgraph[visit->subgraph].operators, visit->index);
  int32_t builtin = pp_tflite_operator_code(tflite, table)->builtin;
  if (++tflm->visited > MOST_VISITED)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, table, "subgraphs call each other too often");
  tflm->time++;
  create(tflm, visit->subgraph,
         operator_list(tflite, visit->subgraph, visit->index, OPERATOR_OUTPUTS));
  visit->begin = tflm->time;
  visit->callees.count = 0;
  if (builtin == BUILTIN_IF || builtin == BUILTIN_WHILE || builtin == BUILTIN_CALL_ONCE)
    return pp_tflite_find_callees(tflite, visit->subgraph, visit->index, &visit->callees, error);
  return PP_OK;
}

static void end_operator(struct tflm *tflm, struct visit *visit) {
  const pp_tflite *tflite = tflm->tflite;
  size_t place = tflm->operators[visit->subgraph] + visit->index;
  use(tflm, visit->subgraph, operator_list(tflite, visit->subgraph, visit->index, OPERATOR_INPUTS));
  use(tflm, visit->subgraph,
      operator_list(tflite, visit->subgraph, visit->index, OPERATOR_OUTPUTS));
  if (tflm->begin[place] < 0)
    tflm->begin[place] = visit->begin;
  tflm->end[place] = tflm->time;
  visit->index++;
  visit->callee = 0;
}

/* Runs the model from subgraph 0 as TFLM counts time: a step for each operator and one more for
 * each subgraph that is entered. */
static pp_status run_tflm(struct tflm *tflm, pp_error *error) {
  enter(tflm, 0);
  while (tflm->depth > 0) {
    struct visit *visit = &tflm->stack[tflm->depth - 1];
    const pp_tflite_subgraph *subgraph = tflm->tflite->subgraph + visit->subgraph;
    if (visit->index == subgraph->operators.count) {
      create(tflm, visit->subgraph, subgraph->outputs);
      use(tflm, visit->subgraph, subgraph->outputs);
      tflm->depth--;
      continue;
    }
    if (visit->callee == 0) {
      pp_status status = begin_operator(tflm, visit, error);
      if (status)
        return status;
    }
    if (visit->callee == visit->callees.count) {
      end_operator(tflm, visit);
      continue;
    }
    uint32_t callee = (uint32_t)pp_tflite_callee(tflm->tflite, &visit->callees, visit->callee++);
    tflm->time++;
    enter(tflm, callee);
  }
  return PP_OK;
}

/* VAR_HANDLE keeps the handle that it gives in its own memory; it needs none in the arena. */
static void drop_handles(const struct tflm *tflm) {
  const pp_tflite *tflite = tflm->tflite;
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].operators.count; i++) {
      size_t table = pp_tflite_at(tflite, tflite->subgraph[s].operators, i);
      pp_flat_vector outputs = pp_flat_elements(&tflite->flat, table, OPERATOR_OUTPUTS);
      if (pp_tflite_operator_code(tflite, table)->builtin != BUILTIN_VAR_HANDLE || !outputs.count)
        continue;
      int32_t tensor = pp_tflite_int(tflite, outputs, 0);
      if (tensor >= 0)
        tflm->last[tflite->subgraph[s].tensor + (size_t)tensor] = HANDLE;
    }
}

static void collect_tflm(const struct tflm *tflm, pp_lives *lives) {
  const pp_tflite *tflite = tflm->tflite;
  drop_handles(tflm);
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t t = (size_t)tflite->subgraph[s].tensor + i;
      int64_t bytes = tflm_bytes(tflite, s, i);
      if (tflite->kind[t] == TENSOR_STATE)
        add_persistent(lives, bytes);
      if (tflite->kind[t] != TENSOR_ARENA || bytes == 0 || tflm->last[t] == HANDLE)
        continue;
      /* What no operator writes has no first time, which counts as the time before all others. */
      lives->life[lives->count++] =
          (pp_life){{bytes, tflm->first[t], tflm->last[t]}, (int64_t)t, s, i};
    }
}

static size_t count_operators(const pp_tflite *tflite, size_t *first) {
  size_t operators = 0;
  for (uint32_t s = 0; s < tflite->subgraphs; s++) {
    if (first)
      first[s] = operators;
    operators += tflite->subgraph[s].operators.count;
  }
  return operators;
}

pp_status pp_lives_tflm(const pp_model *model, const pp_scratch *scratch, size_t scratches,
                        pp_lives *lives, pp_error *error) {
  const pp_tflite *tflite = model->data;
  struct tflm tflm = {.tflite = tflite};
  size_t tensors = tflite->tensors, operators = count_operators(tflite, NULL);
  *lives = (pp_lives){0};
  tflm.first = pp_alloc(tensors, sizeof(int64_t));
  tflm.last = pp_alloc(tensors, sizeof(int64_t));
  tflm.begin = pp_alloc(operators, sizeof(int64_t));
  tflm.end = pp_alloc(operators, sizeof(int64_t));
  tflm.operators = pp_alloc(tflite->subgraphs, sizeof(size_t));
  tflm.stack = pp_alloc(tflite->subgraphs, sizeof *tflm.stack);
  lives->life = pp_alloc(tensors + scratches, sizeof *lives->life);
  pp_status status = check_scratch(tflite, scratch, scratches, error);
  if (!tflm.first || !tflm.last || !tflm.begin || !tflm.end || !tflm.operators || !tflm.stack ||
      !lives->life)
    status = pp_fail_memory(error);
  if (!status) {
    for (size_t t = 0; t < tensors; t++)
      tflm.first[t] = tflm.last[t] = -1;
    for (size_t i = 0; i < operators; i++)
      tflm.begin[i] = tflm.end[i] = -1;
    count_operators(tflite, tflm.operators);
    status = run_tflm(&tflm, error);
  }
  if (!status) {
    collect_tflm(&tflm, lives);
    status = add_scratch(lives, scratch, scratches, PP_TFLM_ALIGNMENT, tflm.begin, tflm.end,
                         tflm.operators, error);
  }
  free(tflm.first);
  free(tflm.last);
  free(tflm.begin);
  free(tflm.end);
  free(tflm.operators);
  free(tflm.stack);
  if (status)
    pp_lives_free(lives);
  return status;
}

/* ---- LiteRT ---- */

struct litert {
  const pp_tflite *tflite;
  uint32_t subgraph;
  uint8_t *held;   /* a tensor that is an input (1) or an output (2) of the subgraph */
  int32_t *actual; /* the tensor whose bytes it shares: itself, as a rule */
  int64_t *left;   /* uses to come */
  int64_t *begin, *end;
};

static bool in_arena(const struct litert *litert, int32_t tensor) {
  const pp_tflite *tflite = litert->tflite;
  size_t t = tflite->subgraph[litert->subgraph].tensor + (size_t)tensor;
  return tflite->kind[t] == TENSOR_ARENA;
}

/* RESHAPE alone works in place: its output is its input unless one of them is held. */
static void share(struct litert *litert, uint32_t index) {
  const pp_tflite *tflite = litert->tflite;
  size_t table = pp_tflite_at(tflite, tflite->subgraph[litert->subgraph].operators, index);
  pp_flat_vector inputs = pp_flat_elements(&tflite->flat, table, OPERATOR_INPUTS);
  pp_flat_vector outputs = pp_flat_elements(&tflite->flat, table, OPERATOR_OUTPUTS);
  if (pp_tflite_operator_code(tflite, table)->builtin != BUILTIN_RESHAPE || !inputs.count ||
      !outputs.count)
    return;
  int32_t in = pp_tflite_int(tflite, inputs, 0), out = pp_tflite_int(tflite, outputs, 0);
  if (in < 0 || out < 0 || !in_arena(litert, in) || !in_arena(litert, out) ||
      (litert->held[in] & 1) || (litert->held[out] & 2))
    return;
  uint32_t base = tflite->subgraph[litert->subgraph].tensor;
  if (tflite->bytes[base + (uint32_t)in] == tflite->bytes[base + (uint32_t)out])
    litert->actual[out] = litert->actual[in];
}

static void hold(struct litert *litert, pp_flat_vector list, uint8_t flag) {
  for (uint32_t i = 0; i < list.count; i++) {
    int32_t tensor = pp_tflite_int(litert->tflite, list, i);
    if (tensor < 0)
      continue;
    litert->held[tensor] |= flag;
    litert->left[tensor]++; /* never to be given back */
    if (flag & 1)
      litert->begin[tensor] = 0;
  }
}

static void run_litert(struct litert *litert) {
  const pp_tflite *tflite = litert->tflite;
  const pp_tflite_subgraph *subgraph = tflite->subgraph + litert->subgraph;
  hold(litert, subgraph->inputs, 1);
  hold(litert, subgraph->outputs, 2);
  for (uint32_t i = 0; i < subgraph->operators.count; i++)
    share(litert, i);
  for (uint32_t i = 0; i < subgraph->operators.count; i++) {
    pp_flat_vector inputs = operator_list(tflite, litert->subgraph, i, OPERATOR_INPUTS);
    for (uint32_t k = 0; k < inputs.count; k++)
      if (pp_tflite_int(tflite, inputs, k) >= 0)
        litert->left[litert->actual[pp_tflite_int(tflite, inputs, k)]]++;
  }
  for (uint32_t i = 0; i < subgraph->operators.count; i++) {
    pp_flat_vector inputs = operator_list(tflite, litert->subgraph, i, OPERATOR_INPUTS);
    pp_flat_vector outputs = operator_list(tflite, litert->subgraph, i, OPERATOR_OUTPUTS);
    for (uint32_t k = 0; k < outputs.count; k++) {
      int32_t tensor = pp_tflite_int(tflite, outputs, k);
      if (tensor >= 0 && litert->begin[tensor] < 0)
        litert->begin[tensor] = i;
    }
    for (uint32_t k = 0; k < inputs.count; k++) {
      int32_t tensor = pp_tflite_int(tflite, inputs, k);
      if (tensor >= 0 && --litert->left[litert->actual[tensor]] == 0)
        litert->end[litert->actual[tensor]] = i;
    }
  }
}

static void collect_litert(const struct litert *litert, pp_lives *lives) {
  const pp_tflite *tflite = litert->tflite;
  const pp_tflite_subgraph *subgraph = tflite->subgraph + litert->subgraph;
  int64_t never = subgraph->operators.count; /* later than all operators */
  for (uint32_t i = 0; i < subgraph->tensors.count; i++) {
    size_t t = (size_t)subgraph->tensor + i;
    if (tflite->kind[t] == TENSOR_STATE)
      add_persistent(lives, tflite->bytes[t]);
    if (tflite->kind[t] != TENSOR_ARENA || tflite->bytes[t] == 0 || litert->begin[i] < 0 ||
        litert->actual[i] != (int32_t)i)
      continue;
    int64_t end = litert->end[i] < 0 ? never : litert->end[i];
    lives->life[lives->count++] =
        (pp_life){{tflite->bytes[t], litert->begin[i], end}, (int64_t)t, litert->subgraph, i};
  }
}

/* Operators run at the times of their numbers. */
static pp_status add_temporaries(const struct litert *litert, const pp_scratch *scratch,
                                 size_t scratches, pp_lives *lives, pp_error *error) {
  const pp_tflite *tflite = litert->tflite;
  size_t operators = tflite->subgraph[litert->subgraph].operators.count, own = 0;
  int64_t *time = pp_alloc(operators, sizeof *time);
  size_t *first = pp_zalloc(tflite->subgraphs, sizeof *first);
  pp_scratch *mine = pp_alloc(scratches, sizeof *mine);
  pp_status status = time && first && mine ? PP_OK : pp_fail_memory(error);
  if (!status) {
    for (size_t i = 0; i < operators; i++)
      time[i] = (int64_t)i;
    for (size_t i = 0; i < scratches; i++)
      if (scratch[i].subgraph == litert->subgraph)
        mine[own++] = scratch[i];
    status = add_scratch(lives, mine, own, PP_LITERT_ALIGNMENT, time, time, first, error);
  }
  free(time);
  free(first);
  free(mine);
  return status;
}

pp_status pp_lives_litert(const pp_model *model, uint32_t subgraph, const pp_scratch *scratch,
                          size_t scratches, pp_lives *lives, pp_error *error) {
  const pp_tflite *tflite = model->data;
  struct litert litert = {.tflite = tflite, .subgraph = subgraph};
  size_t tensors = tflite->subgraph[subgraph].tensors.count;
  *lives = (pp_lives){0};
  litert.held = pp_zalloc(tensors, sizeof *litert.held);
  litert.actual = pp_alloc(tensors, sizeof *litert.actual);
  litert.left = pp_zalloc(tensors, sizeof *litert.left);
  litert.begin = pp_alloc(tensors, sizeof *litert.begin);
  litert.end = pp_alloc(tensors, sizeof *litert.end);
  lives->life = pp_alloc(tensors + scratches, sizeof *lives->life);
  pp_status status = check_scratch(tflite, scratch, scratches, error);
  if (!litert.held || !litert.actual || !litert.left || !litert.begin || !litert.end ||
      !lives->life)
    status = pp_fail_memory(error);
  if (!status) {
    for (size_t i = 0; i < tensors; i++) {
      litert.actual[i] = (int32_t)i;
      litert.begin[i] = litert.end[i] = -1;
    }
    run_litert(&litert);
    collect_litert(&litert, lives);
    status = add_temporaries(&litert, scratch, scratches, lives, error);
  }
  free(litert.held);
  free(litert.actual);
  free(litert.left);
  free(litert.begin);
  free(litert.end);
  if (status)
    pp_lives_free(lives);
  return status;
}
