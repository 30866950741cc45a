/* State and control flow: what must keep its order, and who calls whom.
 *
 * Every piece of state has a token: a variable tensor, a resource (what VAR_HANDLE or HASHTABLE
 * names), "random numbers", "subgraph i was called once". Executing a subgraph has the effects of
 * all its operators, and an operator that calls it has them too. What is not known (custom
 * operators, handles that come from elsewhere) may touch everything. */
#include <inttypes.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_operator.h"
#include "format/tflite_schema.h"

/* ---- Resources ---- */

enum { TOKEN_RANDOM = 0 }; /* then resources, then "once", then variables */

/* An operator that gives a handle, and what of. */
struct handle {
  size_t tensor; /* of all subgraphs */
  bool table;
  int32_t id;                   /* of a hash table */
  const char *container, *name; /* of a variable */
  uint32_t container_size, name_size;
};
typedef PP_VECTOR(struct handle) handles;

static int compare_text(const char *a, uint32_t a_size, const char *b, uint32_t b_size) {
  uint32_t size = a_size < b_size ? a_size : b_size;
  int order = size ? memcmp(a, b, size) : 0;
  return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* By what they name. */
static int compare_names(const struct handle *a, const struct handle *b) {
  if (a->table != b->table)
    return a->table ? 1 : -1;
  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  int order = compare_text(a->name, a->name_size, b->name, b->name_size);
  return order ? order
               : compare_text(a->container, a->container_size, b->container, b->container_size);
}

static int compare_handles(const void *a, const void *b) {
  const struct handle *x = a, *y = b;
  int order = compare_names(x, y);
  return order ? order : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static void set_text(const pp_tflite *tflite, pp_flat_vector text, const char **start,
                     uint32_t *size) {
  *start = text.at ? (const char *)tflite->flat.bytes + text.at : "";
  *size = text.count;
}

static pp_status add_handle(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                            size_t operator_, int32_t builtin, handles *list, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  pp_flat_vector outputs = pp_flat_elements(flat, operator_, OPERATOR_OUTPUTS);
  size_t options = pp_flat_table(flat, operator_, OPERATOR_OPTIONS);
  uint8_t type = pp_flat_get8(flat, operator_, OPERATOR_OPTIONS_TYPE, 0);
  bool table = builtin == BUILTIN_HASHTABLE;
  if (!outputs.count || pp_tflite_int(tflite, outputs, 0) < 0 || !options ||
      type != (table ? OPTIONS_HASHTABLE : OPTIONS_VAR_HANDLE))
    return PP_OK; /* a handle that nothing is known of: its users touch everything */
  struct handle handle = {.table = table, .container = "", .name = ""};
  handle.tensor = subgraph->tensor + (size_t)pp_tflite_int(tflite, outputs, 0);
  if (table) {
    handle.id = (int32_t)pp_flat_get32(flat, options, 0, 0);
  } else {
    set_text(tflite, pp_flat_elements(flat, options, 0), &handle.container, &handle.container_size);
    set_text(tflite, pp_flat_elements(flat, options, 1), &handle.name, &handle.name_size);
  }
  if (!PP_ROOM(list))
    return pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  list->items[list->count++] = handle;
  return PP_OK;
}

static pp_status find_resources(pp_tflite *tflite, pp_error *error) {
  handles list = {0};
  pp_status status = PP_OK;
  for (uint32_t s = 0; s < tflite->subgraphs && !status; s++) {
    const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
    for (uint32_t i = 0; i < subgraph->operators.count && !status; i++) {
      size_t operator_ = pp_tflite_at(tflite, subgraph->operators, i);
      int32_t builtin = pp_tflite_operator_code(tflite, operator_)->builtin;
      if (pp_tflite_operator_class(builtin) == CLASS_HANDLE)
        status = add_handle(tflite, subgraph, operator_, builtin, &list, error);
    }
  }
  if (!status && list.count) {
    qsort(list.items, list.count, sizeof *list.items, compare_handles);
    for (size_t i = 0; i < list.count; i++) {
      if (!i || compare_names(list.items + i - 1, list.items + i))
        tflite->resources++;
      tflite->resource[list.items[i].tensor] = TOKEN_RANDOM + tflite->resources;
    }
  }
  free(list.items);
  return status;
}

/* ---- Calls ---- */

/* Which field of which options of an operator holds a subgraph. */
static const struct call {
  int32_t builtin;
  bool second;    /* in builtin_options_2 */
  uint8_t type;   /* of the options */
  uint8_t fields; /* how many subgraphs, */
  uint8_t field;  /* from this field on */
  bool many;      /* the field is a vector of subgraphs */
} calls[] = {
    {BUILTIN_CALL, false, 16, 1, 0, false},
    {BUILTIN_IF, false, 92, 2, 0, false},
    {BUILTIN_WHILE, false, 93, 2, 0, false},
    {BUILTIN_CALL_ONCE, false, 103, 1, 0, false},
    {BUILTIN_STABLEHLO_REDUCE, true, 6, 1, 1, false},
    {BUILTIN_STABLEHLO_SCATTER, true, 7, 1, 6, false},
    {BUILTIN_STABLEHLO_REDUCE_WINDOW, true, 13, 1, 5, false},
    {BUILTIN_STABLEHLO_SORT, true, 14, 1, 2, false},
    {BUILTIN_STABLEHLO_WHILE, true, 15, 2, 0, false},
    {BUILTIN_STABLEHLO_COMPOSITE, true, 21, 1, 1, false},
    {BUILTIN_STABLEHLO_CASE, true, 23, 1, 0, true},
    {BUILTIN_STABLEHLO_CUSTOM_CALL, true, 5, 1, 4, true},
};

static const struct call *find_call(int32_t builtin) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (calls[i].builtin == builtin)
      return calls + i;
  return NULL;
}

pp_status pp_tflite_find_callees(const pp_tflite *tflite, uint32_t subgraph, uint32_t index,
                                 pp_tflite_callees *callees, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  size_t operator_ = pp_tflite_at(tflite, tflite->subgraph[subgraph].operators, index);
  const struct call *call = find_call(pp_tflite_operator_code(tflite, operator_)->builtin);
  *callees = (pp_tflite_callees){0};
  if (!call)
    return PP_OK;
  size_t options =
      pp_flat_table(flat, operator_, call->second ? OPERATOR_OPTIONS2 : OPERATOR_OPTIONS);
  uint8_t type = pp_flat_get8(flat, operator_,
                              call->second ? OPERATOR_OPTIONS2_TYPE : OPERATOR_OPTIONS_TYPE, 0);
  if (!options || type != call->type) {
    if (call->builtin == BUILTIN_STABLEHLO_CUSTOM_CALL)
      return PP_OK; /* it need not call anything */
    return pp_fail_at(error, PP_ERROR_INPUT, operator_,
                      "operator %" PRIu32 " of subgraph %" PRIu32
                      " does not say which subgraph it calls",
                      index, subgraph);
  }
  callees->count = call->fields;
  if (call->many) {
    callees->many = pp_flat_elements(flat, options, call->field);
    callees->count = callees->many.count;
  } else {
    for (uint32_t i = 0; i < call->fields; i++)
      callees->one[i] = (int32_t)pp_flat_get32(flat, options, call->field + i, 0);
  }
  for (uint32_t i = 0; i < callees->count; i++) {
    int32_t callee = pp_tflite_callee(tflite, callees, i);
    if (callee < 0 || (uint32_t)callee >= tflite->subgraphs)
      return pp_fail_at(error, PP_ERROR_INPUT, options,
                        "operator %" PRIu32 " of subgraph %" PRIu32 " calls subgraph %" PRId32
                        ", which does not exist",
                        index, subgraph, callee);
  }
  return PP_OK;
}

/* A subgraph whose calls are being followed: those of operator `index` from `callee` on. */
struct visit {
  uint32_t subgraph, index, callee;
  bool known; /* callees are those of the operator */
  pp_tflite_callees callees;
};
enum { UNSEEN, OPEN, DONE };

/* The next call of the operator at hand; *found is UINT32_MAX if it has no more to unseen
 * subgraphs. */
static pp_status next_callee(const pp_tflite *tflite, struct visit *visit, const uint8_t *state,
                             uint32_t *found, pp_error *error) {
  *found = UINT32_MAX;
  for (; visit->callee < visit->callees.count; visit->callee++) {
    uint32_t callee = (uint32_t)pp_tflite_callee(tflite, &visit->callees, visit->callee);
    if (state[callee] == OPEN)
      return pp_fail_at(
          error, PP_ERROR_INPUT,
          pp_tflite_at(tflite, tflite->subgraph[visit->subgraph].operators, visit->index),
          "operator %" PRIu32 " of subgraph %" PRIu32 " calls subgraph %" PRIu32
          ", which is recursion",
          visit->index, visit->subgraph, callee);
    if (state[callee] == UNSEEN) {
      *found = callee;
      return PP_OK;
    }
  }
  return PP_OK;
}

/* Goes on with a subgraph until it calls an unseen one (*found) or has no more operators. */
static pp_status next_call(const pp_tflite *tflite, struct visit *visit, const uint8_t *state,
                           uint32_t *found, pp_error *error) {
  uint32_t count = tflite->subgraph[visit->subgraph].operators.count;
  *found = UINT32_MAX;
  while (visit->index < count) {
    pp_status status = PP_OK;
    if (!visit->known)
      status =
          pp_tflite_find_callees(tflite, visit->subgraph, visit->index, &visit->callees, error);
    visit->known = true;
    if (status || (status = next_callee(tflite, visit, state, found, error)) ||
        *found != UINT32_MAX)
      return status;
    visit->index++;
    visit->callee = 0;
    visit->known = false;
  }
  return PP_OK;
}

/* Depth first over the calls from subgraph `root`, without recursion; those that are done are
 * appended to sequence. */
static pp_status visit_calls(const pp_tflite *tflite, uint32_t root, uint8_t *state,
                             struct visit *stack, size_t *sequence, size_t *done, pp_error *error) {
  size_t depth = 1;
  stack[0] = (struct visit){.subgraph = root};
  state[root] = OPEN;
  while (depth) {
    struct visit *top = stack + depth - 1;
    uint32_t found;
    pp_status status = next_call(tflite, top, state, &found, error);
    if (status)
      return status;
    if (found == UINT32_MAX) {
      state[top->subgraph] = DONE;
      sequence[(*done)++] = top->subgraph;
      depth--;
    } else {
      state[found] = OPEN;
      stack[depth++] = (struct visit){.subgraph = found};
    }
  }
  return PP_OK;
}

static pp_status find_sequence(const pp_tflite *tflite, size_t *sequence, pp_error *error) {
  uint8_t *state = pp_zalloc(tflite->subgraphs, 1);
  struct visit *stack = pp_alloc(tflite->subgraphs, sizeof *stack);
  size_t done = 0;
  pp_status status = PP_OK;
  if (!state || !stack)
    status = pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  for (uint32_t s = 0; s < tflite->subgraphs && !status; s++)
    if (state[s] == UNSEEN)
      status = visit_calls(tflite, s, state, stack, sequence, &done, error);
  free(state);
  free(stack);
  return status;
}

/* ---- Effects ---- */

static void add_token(pp_tflite_effects *effects, uint32_t token) {
  if (effects->unknown)
    return;
  for (unsigned i = 0; i < effects->count; i++)
    if (effects->token[i] == token)
      return;
  if (effects->count == TOKENS)
    effects->unknown = true;
  else
    effects->token[effects->count++] = token;
}

static void add_effects(pp_tflite_effects *effects, const pp_tflite_effects *more) {
  effects->unknown |= more->unknown;
  for (unsigned i = 0; i < more->count; i++)
    add_token(effects, more->token[i]);
}

/* The variables and handles in a list of tensors. An operator that is not made for handles gets to
 * what is behind them in ways that we do not know. */
static void add_tensors(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                        pp_flat_vector list, bool handles_too, pp_tflite_effects *effects) {
  for (uint32_t i = 0; i < list.count && !effects->unknown; i++) {
    int32_t index = pp_tflite_int(tflite, list, i);
    if (index < 0)
      continue;
    size_t tensor = subgraph->tensor + (size_t)index;
    if (tflite->kind[tensor] == TENSOR_STATE)
      add_token(effects, 1 + tflite->resources + tflite->subgraphs + (uint32_t)tensor);
    size_t table = pp_tflite_at(tflite, subgraph->tensors, (uint32_t)index);
    uint8_t type = pp_flat_get8(&tflite->flat, table, TENSOR_TYPE, 0);
    effects->unknown |= handles_too && (type == TYPE_RESOURCE || type == TYPE_VARIANT);
  }
}

/* The resource that the first tensor of a list is a handle of. */
static void add_resource(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                         pp_flat_vector list, pp_tflite_effects *effects) {
  int32_t index = list.count ? pp_tflite_int(tflite, list, 0) : -1;
  uint32_t token = index < 0 ? 0 : tflite->resource[subgraph->tensor + (size_t)index];
  if (token)
    add_token(effects, token);
  else
    effects->unknown = true;
}

void pp_tflite_find_effects(const pp_tflite *tflite, uint32_t s, uint32_t index,
                            const pp_tflite_callees *callees, pp_tflite_effects *effects) {
  const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
  size_t operator_ = pp_tflite_at(tflite, subgraph->operators, index);
  int32_t builtin = pp_tflite_operator_code(tflite, operator_)->builtin;
  pp_tflite_class class = pp_tflite_operator_class(builtin);
  pp_flat_vector inputs = pp_flat_elements(&tflite->flat, operator_, OPERATOR_INPUTS);
  pp_flat_vector outputs = pp_flat_elements(&tflite->flat, operator_, OPERATOR_OUTPUTS);
  effects->unknown = class == CLASS_UNKNOWN;
  effects->count = 0;
  if (class == CLASS_RANDOM)
    add_token(effects, TOKEN_RANDOM);
  if (class == CLASS_HANDLE)
    add_resource(tflite, subgraph, outputs, effects);
  if (class == CLASS_RESOURCE)
    add_resource(tflite, subgraph, inputs, effects);
  for (uint32_t i = 0; i < callees->count && !effects->unknown; i++) {
    uint32_t callee = (uint32_t)pp_tflite_callee(tflite, callees, i);
    add_effects(effects, &tflite->subgraph[callee].effects);
    if (builtin == BUILTIN_CALL_ONCE)
      add_token(effects, 1 + tflite->resources + callee);
  }
  bool stateless = class == CLASS_PURE || class == CLASS_RECURRENT || class == CLASS_RANDOM;
  add_tensors(tflite, subgraph, inputs, stateless, effects);
  add_tensors(tflite, subgraph, outputs, stateless, effects);
}

pp_status pp_tflite_read_state(pp_tflite *tflite, size_t *sequence, pp_error *error) {
  pp_status status = find_resources(tflite, error);
  if (status || (status = find_sequence(tflite, sequence, error)))
    return status;
  for (uint32_t k = 0; k < tflite->subgraphs; k++) {
    uint32_t s = (uint32_t)sequence[k];
    pp_tflite_subgraph *subgraph = tflite->subgraph + s;
    for (uint32_t i = 0; i < subgraph->operators.count && !subgraph->effects.unknown; i++) {
      pp_tflite_callees callees;
      pp_tflite_effects effects;
      if ((status = pp_tflite_find_callees(tflite, s, i, &callees, error)))
        return status;
      pp_tflite_find_effects(tflite, s, i, &callees, &effects);
      add_effects(&subgraph->effects, &effects);
    }
  }
  return PP_OK;
}
