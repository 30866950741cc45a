/* Compares a permuted file with its original: nodes are recognised by the first value that they
 * make, which no other node of the graph makes; then the original, spliced in the order that was
 * found, must be the permuted file byte for byte. */
#include <inttypes.h>
#include <string.h>

#include "format/onnx.h"
#include "format/onnx_model.h"

struct comparison {
  const pp_onnx *original, *permuted;
  uint32_t *twin;   /* per graph of `permuted`: that of `original` */
  uint32_t **place; /* per graph of `original`: its nodes as `permuted` has them */
  pp_error *error;
};

/* The first value that a node makes, or NULL. */
static const char *first_output(const pp_onnx *onnx, const pp_onnx_node *node) {
  for (uint32_t i = 0; i < node->outputs; i++)
    if (onnx->reference.items[node->output + i].value != PP_ONNX_NONE)
      return onnx->reference.items[node->output + i].name;
  return NULL;
}

/* The node of the original that a node of the permuted file is. Those without outputs keep their
 * order: *mute is the next of them. */
static uint32_t find_twin(const struct comparison *comparison, uint32_t graph,
                          const pp_onnx_node *node, uint32_t *mute) {
  const pp_onnx *original = comparison->original;
  const pp_onnx_graph *twin = original->graph.items + graph;
  const char *name = first_output(comparison->permuted, node);
  if (name) {
    uint32_t value = pp_onnx_find(original, graph, name);
    return value == PP_ONNX_NONE ? PP_ONNX_NONE : original->value.items[value].producer;
  }
  for (; *mute < twin->nodes; ++*mute)
    if (!first_output(original, original->node.items + twin->node + *mute))
      return twin->node + (*mute)++;
  return PP_ONNX_NONE;
}

static pp_status pair_bodies(struct comparison *comparison, const pp_onnx_node *from,
                             const pp_onnx_node *to) {
  if (from->callees != to->callees)
    return pp_fail_at(comparison->error, PP_ERROR_INPUT, to->at, "a node has other bodies");
  for (uint32_t i = 0; i < to->callees; i++)
    comparison->twin[to->callee + i] = from->callee + i;
  return PP_OK;
}

static pp_status match_graph(struct comparison *comparison, uint32_t index) {
  const pp_onnx *original = comparison->original, *permuted = comparison->permuted;
  const pp_onnx_graph *graph = permuted->graph.items + index;
  uint32_t twin = comparison->twin[index], mute = 0;
  const pp_onnx_graph *expected = original->graph.items + twin;
  if (graph->nodes != expected->nodes)
    return pp_fail_at(comparison->error, PP_ERROR_INPUT, graph->body,
                      "a graph has another number of nodes");
  uint32_t *place = comparison->place[twin] = pp_alloc(graph->nodes, sizeof *place);
  bool *taken = pp_zalloc(graph->nodes, sizeof *taken);
  pp_status status = place && taken ? PP_OK : pp_fail_memory(comparison->error);
  for (uint32_t k = 0; k < graph->nodes && !status; k++) {
    const pp_onnx_node *node = permuted->node.items + graph->node + k;
    place[k] = find_twin(comparison, twin, node, &mute);
    if (place[k] == PP_ONNX_NONE || taken[place[k] - expected->node]) {
      char name[100];
      pp_onnx_show_node(permuted, graph->node + k, name, sizeof name);
      status = pp_fail_at(comparison->error, PP_ERROR_INPUT, node->at,
                          "node \"%s\" is none of the original", name);
    } else {
      taken[place[k] - expected->node] = true;
      status = pair_bodies(comparison, original->node.items + place[k], node);
    }
  }
  free(taken);
  return status;
}

static pp_status compare_bytes(const struct comparison *comparison) {
  uint8_t *expected;
  const pp_onnx *permuted = comparison->permuted;
  pp_status status =
      pp_onnx_splice(comparison->original, comparison->place, &expected, comparison->error);
  if (status)
    return status;
  for (size_t i = 0; i < permuted->size && !status; i++)
    if (permuted->bytes[i] != expected[i])
      status = pp_fail_at(comparison->error, PP_ERROR_INPUT, i,
                          "another byte than the original has in this order");
  free(expected);
  return status;
}

/* Whether a graph of the original has its nodes where they were. */
static bool is_unmoved(const struct comparison *comparison, uint32_t index) {
  const pp_onnx_graph *graph = comparison->original->graph.items + index;
  for (uint32_t k = 0; k < graph->nodes; k++)
    if (comparison->place[index][k] != graph->node + k)
      return false;
  return true;
}

/* An order of its own must be one that a runtime can execute as it stands. */
static pp_status check_sorted(const struct comparison *comparison) {
  const pp_onnx *permuted = comparison->permuted;
  for (uint32_t i = 0; i < permuted->graph.count; i++)
    if (permuted->graph.items[i].unsorted && !is_unmoved(comparison, comparison->twin[i]))
      return pp_fail_at(comparison->error, PP_ERROR_INPUT, permuted->graph.items[i].body,
                        "nodes stand before others that they need");
  return PP_OK;
}

/* The statements of a graph of the original in the order of the permuted file; if it is the
 * original's, and not sorted, in the order in which both are executed. */
static pp_index *order_of(const struct comparison *comparison, uint32_t index) {
  const pp_onnx *original = comparison->original;
  const pp_onnx_graph *graph = original->graph.items + index;
  pp_index *order = pp_alloc(graph->statements, sizeof *order);
  bool as_is = graph->unsorted && is_unmoved(comparison, index);
  uint32_t count = 0;
  for (uint32_t k = 0; order && k < graph->nodes; k++) {
    uint32_t node = as_is ? graph->sorted[k] : comparison->place[index][k];
    if (original->node.items[node].statement != PP_ONNX_NONE)
      order[count++] = (pp_index)original->node.items[node].statement;
  }
  return order;
}

static pp_status match_all(struct comparison *comparison) {
  const pp_onnx *permuted = comparison->permuted;
  if (comparison->original->size != permuted->size)
    return pp_fail(comparison->error, PP_ERROR_INPUT, "the file has another size");
  if (comparison->original->graph.count != permuted->graph.count)
    return pp_fail(comparison->error, PP_ERROR_INPUT, "another number of graphs");
  pp_status status = PP_OK;
  /* Callers come first, so a body knows its twin when its turn comes. */
  for (uint32_t i = 0; i < permuted->graph.count && !status; i++)
    status = match_graph(comparison, i);
  if (status || (status = compare_bytes(comparison)))
    return status;
  return check_sorted(comparison);
}

static pp_status find_orders(const struct comparison *comparison, pp_index ***order) {
  size_t graphs = comparison->original->graph.count;
  pp_index **found = pp_zalloc(graphs, sizeof *found);
  bool complete = found;
  for (uint32_t i = 0; complete && i < graphs; i++)
    complete = (found[i] = order_of(comparison, i));
  if (!complete) {
    pp_orders_free(found, graphs);
    return pp_fail_memory(comparison->error);
  }
  *order = found;
  return PP_OK;
}

pp_status pp_onnx_compare_files(const pp_onnx *original, const pp_onnx *permuted, pp_index ***order,
                                pp_error *error) {
  struct comparison comparison = {.original = original, .permuted = permuted, .error = error};
  size_t graphs = original->graph.count;
  comparison.twin = pp_zalloc(permuted->graph.count, sizeof *comparison.twin);
  comparison.place = pp_zalloc(graphs, sizeof *comparison.place);
  pp_status status =
      comparison.twin && comparison.place ? match_all(&comparison) : pp_fail_memory(error);
  if (!status)
    status = find_orders(&comparison, order);
  for (size_t i = 0; comparison.place && i < graphs; i++)
    free(comparison.place[i]);
  free(comparison.place);
  free(comparison.twin);
  return status;
}

pp_status pp_onnx_compare(const pp_model *original, const pp_model *permuted, pp_index ***order,
                          pp_error *error) {
  if (original->format != PP_FORMAT_ONNX || permuted->format != PP_FORMAT_ONNX)
    return pp_fail(error, PP_ERROR_USAGE, "both models must be ONNX files");
  pp_index **found;
  pp_status status = pp_onnx_compare_files(original->data, permuted->data, &found, error);
  return status ? status : pp_orders_accept(original, found, order, error);
}
