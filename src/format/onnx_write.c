/* Writes a model with its nodes permuted, on the wire: each node's record (tag, length, message)
 * moves as it is into the place of another, and every other byte stays. A record that moves past
 * one of another size shifts what stands between, but the graph as a whole keeps its size, so no
 * length around it changes. What was written is read and compared before a byte leaves the house.
 */
#include <string.h>

#include "format/onnx.h"
#include "format/onnx_model.h"

/* ---- Splicing ---- */

/* Permutes the records of one graph in `bytes`. Bodies inside them may be permuted already, or may
 * be later: records keep their sizes. */
static pp_status splice_graph(const pp_onnx *onnx, const pp_onnx_graph *graph,
                              const uint32_t *place, uint8_t *bytes, pp_error *error) {
  if (!graph->nodes)
    return PP_OK;
  const pp_onnx_node *node = onnx->node.items + graph->node;
  size_t from = node[0].at, size = node[graph->nodes - 1].end - from, used = 0;
  uint8_t *region = pp_alloc(size, 1);
  if (!region)
    return pp_fail_memory(error);
  for (uint32_t k = 0; k < graph->nodes; k++) {
    const pp_onnx_node *moved = onnx->node.items + place[k];
    memcpy(region + used, bytes + moved->at, moved->end - moved->at);
    used += moved->end - moved->at;
    size_t gap = k + 1 < graph->nodes ? node[k + 1].at - node[k].end : 0;
    memcpy(region + used, bytes + node[k].end, gap);
    used += gap;
  }
  memcpy(bytes + from, region, size);
  free(region);
  return PP_OK;
}

pp_status pp_onnx_splice(const pp_onnx *onnx, uint32_t *const *place, uint8_t **bytes,
                         pp_error *error) {
  uint8_t *out = pp_alloc(onnx->size + 1, 1);
  pp_status status = out ? PP_OK : pp_fail_memory(error);
  if (!status) {
    memcpy(out, onnx->bytes, onnx->size);
    out[onnx->size] = 0;
  }
  /* Bodies first, while they are where they were. */
  for (size_t i = onnx->graph.count; i-- && !status;)
    if (place[i])
      status = splice_graph(onnx, onnx->graph.items + i, place[i], out, error);
  if (status)
    free(out);
  else
    *bytes = out;
  return status;
}

/* ---- Orders ---- */

static pp_status check_permutation(const pp_onnx *onnx, uint32_t index, const pp_index *order,
                                   pp_error *error) {
  uint32_t n = onnx->graph.items[index].statements;
  bool *seen = pp_zalloc(n, sizeof *seen);
  pp_status status = seen ? PP_OK : pp_fail_memory(error);
  for (uint32_t i = 0; i < n && !status; i++) {
    if (order[i] < 0 || (uint32_t)order[i] >= n || seen[order[i]])
      status = pp_fail(error, PP_ERROR_USAGE, "the order of graph %u is no permutation",
                       (unsigned)index);
    else
      seen[order[i]] = true;
  }
  free(seen);
  return status;
}

static void free_places(const pp_onnx *onnx, uint32_t **place) {
  for (size_t i = 0; place && i < onnx->graph.count; i++)
    free(place[i]);
  free(place);
}

static pp_status find_places(const pp_onnx *onnx, const pp_index *const *order, uint32_t **place,
                             pp_error *error) {
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < onnx->graph.count && !status; i++) {
    const pp_onnx_graph *graph = onnx->graph.items + i;
    if (!order[i])
      continue;
    place[i] = pp_alloc(graph->nodes, sizeof **place);
    if (!place[i])
      return pp_fail_memory(error);
    status = check_permutation(onnx, i, order[i], error);
    if (!status)
      status = pp_onnx_place(onnx, i, order[i], place[i], error);
  }
  return status;
}

/* ---- The whole ---- */

static void close_model(pp_model *model) {
  for (size_t i = 0; model->name && i < model->programs; i++)
    free(model->name[i]);
  free(model->name);
  free(model->sequence);
  pp_notices_free(&model->notices);
  pp_onnx_free(model->data);
}

/* Reads what is about to be written and compares; any difference is our bug. */
static pp_status check_output(const pp_onnx *onnx, const pp_index *const *order, uint8_t *bytes,
                              pp_error *error) {
  pp_model model = {.bytes = bytes, .size = onnx->size};
  pp_read_options none = {0};
  pp_error inner;
  pp_index **found = NULL;
  pp_status status = pp_onnx_read(&model, &none, &inner);
  if (!status)
    status = pp_onnx_compare_files(onnx, model.data, &found, &inner);
  for (size_t i = 0; !status && i < onnx->graph.count; i++)
    if (order[i] &&
        memcmp(found[i], order[i], onnx->graph.items[i].statements * sizeof **found) != 0)
      status = pp_fail(&inner, PP_ERROR_INTERNAL, "another order than asked for");
  pp_orders_free(found, onnx->graph.count);
  close_model(&model);
  if (!status || status == PP_ERROR_MEMORY)
    return status ? pp_fail_memory(error) : PP_OK;
  return pp_fail_at(error, PP_ERROR_INTERNAL, (size_t)inner.offset,
                    "the written file is not the same model: %.180s", inner.message);
}

static pp_status write_changed(const pp_onnx *onnx, const pp_index *const *order,
                               uint32_t *const *place, pp_write *write, void *data,
                               pp_error *error) {
  uint8_t *bytes;
  pp_status status = pp_onnx_splice(onnx, place, &bytes, error);
  if (status)
    return status;
  if (memcmp(bytes, onnx->bytes, onnx->size) != 0)
    status = check_output(onnx, order, bytes, error);
  if (!status && !write(bytes, onnx->size, data))
    status = pp_fail(error, PP_ERROR_IO, "the model could not be written");
  free(bytes);
  return status;
}

pp_status pp_onnx_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                        void *data, pp_error *error) {
  const pp_onnx *onnx = model->data;
  uint32_t **place = pp_zalloc(onnx->graph.count, sizeof *place);
  pp_status status = place ? find_places(onnx, order, place, error) : pp_fail_memory(error);
  if (!status)
    status = pp_orders_check(model, order, error);
  if (!status)
    status = write_changed(onnx, order, place, write, data, error);
  free_places(onnx, place);
  return status;
}
