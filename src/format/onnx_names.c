/* Names become values. A name means the value of its own graph or, in a body, of the nearest graph
 * around it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/onnx_model.h"

/* ---- Names for people ---- */

/* Names go into terminals, JSON and HTML: printable ASCII is safe everywhere. */
void pp_onnx_show(const char *name, char *shown, size_t size) {
  size_t i = 0;
  for (; name[i] && i < size - 1; i++)
    shown[i] = name[i] < ' ' || name[i] > '~' ? '?' : name[i];
  shown[i] = 0;
}

void pp_onnx_show_node(const pp_onnx *onnx, uint32_t index, char *shown, size_t size) {
  const pp_onnx_node *node = onnx->node.items + index;
  if (*node->name) {
    pp_onnx_show(node->name, shown, size);
    return;
  }
  char name[60];
  pp_onnx_show(*node->operator_ ? node->operator_ : "node", name, sizeof name);
  snprintf(shown, size, "%s_%" PRIu32, name, index - onnx->graph.items[node->graph].node);
}

/* ---- The index ---- */

static int compare_keys(uint32_t graph, const char *name, const pp_onnx_value *value) {
  if (graph != value->graph)
    return graph < value->graph ? -1 : 1;
  return strcmp(name, value->name);
}

/* qsort has no room for the values themselves, so entries carry what is compared. */
struct entry {
  uint32_t graph, value;
  const char *name;
  uint8_t flags;
};

static int compare_entries(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->graph != y->graph)
    return x->graph < y->graph ? -1 : 1;
  int by_name = strcmp(x->name, y->name);
  if (by_name)
    return by_name;
  /* An initialiser beats the input that it is the default of. */
  if ((x->flags ^ y->flags) & VALUE_INITIALIZER)
    return x->flags & VALUE_INITIALIZER ? -1 : 1;
  return x->value < y->value ? -1 : 1;
}

static pp_status fail_twice(const pp_onnx *onnx, uint32_t value, pp_error *error) {
  char name[120];
  pp_onnx_show(onnx->value.items[value].name, name, sizeof name);
  return pp_fail_at(error, PP_ERROR_INPUT, onnx->value.items[value].at,
                    "value \"%s\" is defined twice", name);
}

static pp_status make_index(pp_onnx *onnx, pp_error *error) {
  size_t count = onnx->value.count;
  struct entry *entry = pp_alloc(count, sizeof *entry);
  onnx->index = pp_alloc(count, sizeof *onnx->index);
  pp_status status = entry && onnx->index ? PP_OK : pp_fail_memory(error);
  for (size_t i = 0; i < count && !status; i++) {
    const pp_onnx_value *value = onnx->value.items + i;
    entry[i] = (struct entry){value->graph, (uint32_t)i, value->name, value->flags};
  }
  if (!status && count)
    qsort(entry, count, sizeof *entry, compare_entries);
  for (size_t i = 0; i < count && !status; i++) {
    const struct entry *before = i ? entry + i - 1 : NULL;
    if (!before || before->graph != entry[i].graph || strcmp(before->name, entry[i].name) != 0)
      onnx->index[onnx->indexed++] = entry[i].value;
    else if ((before->flags | entry[i].flags) != (VALUE_INITIALIZER | VALUE_INPUT | VALUE_CONSTANT))
      status = fail_twice(onnx, entry[i].value, error);
    else
      onnx->value.items[entry[i].value].flags |= VALUE_CONSTANT; /* the input is not used */
  }
  free(entry);
  return status;
}

uint32_t pp_onnx_find(const pp_onnx *onnx, uint32_t graph, const char *name) {
  size_t from = 0, to = onnx->indexed;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    int order = compare_keys(graph, name, onnx->value.items + onnx->index[middle]);
    if (!order)
      return onnx->index[middle];
    if (order < 0)
      to = middle;
    else
      from = middle + 1;
  }
  return PP_ONNX_NONE;
}

static uint32_t graph_around(const pp_onnx *onnx, uint32_t graph) {
  uint32_t owner = onnx->graph.items[graph].owner;
  return owner == PP_ONNX_NONE ? PP_ONNX_NONE : onnx->node.items[owner].graph;
}

/* A name as a graph sees it; all nodes around that graph, out to where the value is, capture it. */
static pp_status look_up(pp_onnx *onnx, uint32_t graph, const char *name, uint32_t *value,
                         pp_error *error) {
  uint32_t where = graph;
  *value = PP_ONNX_NONE;
  while (where != PP_ONNX_NONE && (*value = pp_onnx_find(onnx, where, name)) == PP_ONNX_NONE)
    where = graph_around(onnx, where);
  if (*value == PP_ONNX_NONE)
    return PP_OK;
  for (uint32_t g = graph; g != where; g = graph_around(onnx, g)) {
    if (!PP_ROOM(&onnx->capture))
      return pp_fail_memory(error);
    onnx->capture.items[onnx->capture.count++] =
        (pp_onnx_capture){onnx->graph.items[g].owner, *value};
  }
  return PP_OK;
}

/* ---- Uses ---- */

static pp_status resolve_inputs(pp_onnx *onnx, uint32_t index, pp_error *error) {
  const pp_onnx_node *node = onnx->node.items + index;
  for (uint32_t i = 0; i < node->inputs; i++) {
    pp_onnx_reference *input = onnx->reference.items + node->input + i;
    if (!*input->name) /* an optional one that is absent */
      continue;
    pp_status status = look_up(onnx, node->graph, input->name, &input->value, error);
    if (status)
      return status;
    if (input->value == PP_ONNX_NONE) {
      char name[90], where[90];
      pp_onnx_show(input->name, name, sizeof name);
      pp_onnx_show_node(onnx, index, where, sizeof where);
      return pp_fail_at(error, PP_ERROR_INPUT, node->at,
                        "node \"%s\" reads \"%s\", which nothing defines", where, name);
    }
  }
  return PP_OK;
}

static pp_status resolve_results(pp_onnx *onnx, uint32_t index, pp_error *error) {
  const pp_onnx_graph *graph = onnx->graph.items + index;
  for (uint32_t i = 0; i < graph->results; i++) {
    pp_onnx_reference *result = onnx->reference.items + graph->result + i;
    pp_status status = look_up(onnx, index, result->name, &result->value, error);
    if (status)
      return status;
    if (result->value == PP_ONNX_NONE) {
      char name[120];
      pp_onnx_show(result->name, name, sizeof name);
      return pp_fail_at(error, PP_ERROR_INPUT, graph->body, "output \"%s\" is defined by nothing",
                        name);
    }
    if (onnx->value.items[result->value].graph == index)
      onnx->value.items[result->value].flags |= VALUE_OUTPUT;
  }
  return PP_OK;
}

static int compare_captures(const void *a, const void *b) {
  const pp_onnx_capture *x = a, *y = b;
  if (x->node != y->node)
    return x->node < y->node ? -1 : 1;
  return (x->value > y->value) - (x->value < y->value);
}

/* Each node gets its captures, each once. */
static void hand_out_captures(pp_onnx *onnx) {
  pp_onnx_capture *capture = onnx->capture.items;
  size_t kept = 0;
  if (onnx->capture.count)
    qsort(capture, onnx->capture.count, sizeof *capture, compare_captures);
  for (size_t i = 0; i < onnx->capture.count; i++) {
    if (kept && !compare_captures(capture + kept - 1, capture + i))
      continue;
    pp_onnx_node *node = onnx->node.items + capture[i].node;
    if (!node->captures++)
      node->capture = kept;
    capture[kept++] = capture[i];
  }
  onnx->capture.count = kept;
}

/* ---- Shapes ---- */

/* How many dimensions are numbers; less than 0 for less than a type and a shape. */
static int64_t knowledge(const pp_onnx *onnx, unsigned state, int32_t type, size_t dim,
                         uint32_t dims) {
  int64_t known = 0;
  if (state != SHAPE_KNOWN || !type)
    return state == SHAPE_MISSING ? -3 : state == SHAPE_OTHER ? -1 : -2;
  for (uint32_t i = 0; i < dims; i++)
    known += onnx->dim.items[dim + i].set;
  return known;
}

/* Several infos may be about one value: the one that knows most holds. */
static void attach_infos(pp_onnx *onnx) {
  for (size_t i = 0; i < onnx->info.count; i++) {
    const pp_onnx_info *info = onnx->info.items + i;
    uint32_t found = pp_onnx_find(onnx, info->graph, info->name);
    if (found == PP_ONNX_NONE)
      continue; /* the value is gone, what was known of it is not */
    pp_onnx_value *value = onnx->value.items + found;
    if (knowledge(onnx, info->state, info->type, info->dim, info->dims) <=
        knowledge(onnx, value->state, value->type, value->dim, value->dims))
      continue;
    value->state = info->state;
    value->type = info->type;
    value->dim = info->dim;
    value->dims = info->dims;
  }
}

pp_status pp_onnx_resolve(pp_onnx *onnx, pp_error *error) {
  pp_status status = make_index(onnx, error);
  if (status)
    return status;
  attach_infos(onnx);
  for (uint32_t i = 0; i < onnx->node.count && !status; i++)
    status = resolve_inputs(onnx, i, error);
  for (uint32_t i = 0; i < onnx->graph.count && !status; i++)
    status = resolve_results(onnx, i, error);
  hand_out_captures(onnx);
  return status;
}
