/* Writes a model with its operators permuted, in place.
 *
 * SubGraph.operators is the execution order: a vector of relative offsets. To execute old operator
 * o at new place k, `table(o) - position(k)` is written at position(k), and nothing else moves
 * (TFLITE.md section 1). Metadata that names places follows. What was written is read and compared
 * with the original before a byte leaves the house. */
#include <inttypes.h>
#include <string.h>

#include "format/tflite.h"
#include "format/tflite_model.h"
#include "format/tflite_schema.h"

struct output {
  const pp_tflite *tflite;
  const pp_index *const *order;
  pp_index **position; /* per subgraph: the inverse of a changed order, or NULL */
  bool changed;        /* any */
  uint8_t *bytes;
  size_t size;
  pp_error *error;
};

static void put32(uint8_t *bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; i++)
    bytes[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

/* ---- Orders ---- */

static pp_status invert(const pp_index *order, pp_index n, pp_index *position, uint32_t s,
                        pp_error *error) {
  for (pp_index i = 0; i < n; i++)
    position[i] = -1;
  for (pp_index i = 0; i < n; i++) {
    if (order[i] < 0 || order[i] >= n || position[order[i]] >= 0)
      return pp_fail(error, PP_ERROR_USAGE, "the order of subgraph %" PRIu32 " is no permutation",
                     s);
    position[order[i]] = i;
  }
  return PP_OK;
}

static bool is_identity(const pp_index *order, pp_index n) {
  for (pp_index i = 0; i < n; i++)
    if (order[i] != i)
      return false;
  return true;
}

static pp_status find_positions(struct output *output) {
  const pp_tflite *tflite = output->tflite;
  for (uint32_t s = 0; s < tflite->subgraphs; s++) {
    pp_index n = (pp_index)tflite->subgraph[s].operators.count;
    if (!output->order[s] || is_identity(output->order[s], n))
      continue;
    if (tflite->subgraph[s].shared)
      return pp_fail_at(
          output->error, PP_ERROR_INPUT, tflite->subgraph[s].table,
          "subgraph %" PRIu32 " shares its operators with another one: they cannot be permuted", s);
    output->changed = true;
    if (!(output->position[s] = pp_alloc((size_t)n, sizeof(pp_index))))
      return pp_fail(output->error, PP_ERROR_MEMORY, "out of memory");
    pp_status status = invert(output->order[s], n, output->position[s], s, output->error);
    if (status)
      return status;
  }
  return PP_OK;
}

static void permute_operators(struct output *output) {
  const pp_tflite *tflite = output->tflite;
  for (uint32_t s = 0; s < tflite->subgraphs; s++) {
    pp_flat_vector operators = tflite->subgraph[s].operators;
    for (uint32_t k = 0; output->position[s] && k < operators.count; k++) {
      size_t at = operators.at + 4 * (size_t)k;
      size_t table = pp_tflite_at(tflite, operators, (uint32_t)output->order[s][k]);
      put32(output->bytes, at, (uint32_t)(table - at));
    }
  }
}

/* ---- Metadata ---- */

/* A plan for the old order would corrupt results under the new one. Its entry goes; the entries
 * behind it move up, and the vector ends earlier. (A name cannot be blanked instead: runtimes have
 * taken an empty name for that of a plan.) */
static pp_status remove_plans(struct output *output) {
  const pp_tflite *tflite = output->tflite;
  pp_flat_vector metadata = tflite->metadata;
  if (!tflite->plans)
    return PP_OK;
  if (tflite->metadata_shared)
    return pp_fail_at(output->error, PP_ERROR_INPUT, metadata.at,
                      "the vector of metadata serves something else too: the offline memory "
                      "plan cannot be removed");
  uint32_t kept = 0;
  for (uint32_t i = 0; i < metadata.count; i++) {
    if (pp_tflite_is_plan(tflite, i))
      continue;
    size_t at = metadata.at + 4 * (size_t)kept++;
    put32(output->bytes, at, (uint32_t)(pp_tflite_at(tflite, metadata, i) - at));
  }
  put32(output->bytes, metadata.at - 4, kept);
  memset(output->bytes + metadata.at + 4 * (size_t)kept, 0, 4 * (size_t)(metadata.count - kept));
  return PP_OK;
}

/* Appends a vector of bytes to the file (its elements on a multiple of 16 bytes, as schema.fbs asks
 * of buffers) and makes the buffer of the control dependencies point to it. */
static pp_status append_control(struct output *output, const uint8_t *bytes, size_t size) {
  const pp_tflite *tflite = output->tflite;
  size_t field = pp_flat_field(&tflite->flat, tflite->control.buffer, BUFFER_DATA, 4);
  size_t at = output->size + (12 - output->size % 16 + 16) % 16;
  /* FlatBuffers end at 2 GiB. */
  if (at > INT32_MAX || size > INT32_MAX - 4 - at)
    return pp_fail_at(output->error, PP_ERROR_OVERFLOW, output->size,
                      "the control dependencies in the new order do not fit into 2 GiB");
  uint8_t *grown = realloc(output->bytes, at + 4 + size + 1);
  if (!grown)
    return pp_fail(output->error, PP_ERROR_MEMORY, "out of memory");
  output->bytes = grown;
  memset(grown + output->size, 0, at - output->size);
  put32(grown, at, (uint32_t)size);
  memcpy(grown + at + 4, bytes, size);
  put32(grown, field, (uint32_t)(at - field));
  output->size = at + 4 + size;
  grown[output->size] = 0;
  return PP_OK;
}

static pp_status renumber_control(struct output *output) {
  const pp_tflite *tflite = output->tflite;
  const pp_tflite_control *control = &tflite->control;
  if (!control->buffer || !tflite->edge.count)
    return PP_OK;
  uint8_t *bytes;
  size_t size;
  pp_status status =
      pp_tflite_encode_control(tflite, output->position, &bytes, &size, output->error);
  if (status)
    return status;
  if (size == control->size && !memcmp(bytes, tflite->flat.bytes + control->at, size))
    status = PP_OK;
  else if (control->shared)
    status = pp_fail_at(output->error, PP_ERROR_INPUT, control->buffer,
                        "the buffer of the control dependencies serves something else too: "
                        "they cannot be renumbered");
  else if (size == control->size)
    memcpy(output->bytes + control->at, bytes, size);
  else
    status = append_control(output, bytes, size);
  free(bytes);
  return status;
}

/* ---- The whole ---- */

/* Reads what is about to be written and compares; any difference is our bug. */
static pp_status check_output(const struct output *output) {
  pp_model model = {.bytes = output->bytes, .size = output->size};
  pp_error inner;
  pp_index **order = NULL;
  pp_status status = pp_tflite_read(&model, NULL, &inner);
  if (!status)
    status = pp_tflite_compare_files(output->tflite, model.data, &order, &inner);
  for (uint32_t s = 0; !status && s < output->tflite->subgraphs; s++) {
    size_t n = output->tflite->subgraph[s].operators.count;
    if (output->position[s] && memcmp(order[s], output->order[s], n * sizeof(pp_index)) != 0)
      status = pp_fail(&inner, PP_ERROR_INTERNAL, "another order than asked for");
  }
  if (!status)
    pp_orders_free(order, output->tflite->subgraphs);
  for (size_t i = 0; model.name && i < model.programs; i++)
    free(model.name[i]);
  free(model.name);
  free(model.sequence);
  pp_notices_free(&model.notices);
  if (model.operations)
    model.operations->free(&model);
  if (!status || status == PP_ERROR_MEMORY)
    return status ? pp_fail_memory(output->error) : PP_OK;
  return pp_fail_at(output->error, PP_ERROR_INTERNAL, (size_t)inner.offset,
                    "the written file is not the same model: %.180s", inner.message);
}

static pp_status make_output(struct output *output) {
  const pp_flat *flat = &output->tflite->flat;
  pp_status status;
  if (!(output->bytes = pp_alloc(flat->size + 1, 1)))
    return pp_fail(output->error, PP_ERROR_MEMORY, "out of memory");
  memcpy(output->bytes, flat->bytes, flat->size);
  output->size = flat->size;
  output->bytes[output->size] = 0;
  permute_operators(output);
  if ((status = remove_plans(output)) || (status = renumber_control(output)))
    return status;
  return check_output(output);
}

pp_status pp_tflite_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                          void *data, pp_error *error) {
  const pp_tflite *tflite = model->data;
  struct output output = {.tflite = tflite, .order = order, .error = error};
  output.position = pp_zalloc(tflite->subgraphs, sizeof *output.position);
  pp_status status =
      output.position ? find_positions(&output) : pp_fail(error, PP_ERROR_MEMORY, "out of memory");
  if (!status && output.changed && !(status = pp_orders_check(model, order, error)))
    status = make_output(&output);
  if (!status && !write(output.changed ? output.bytes : model->bytes,
                        output.changed ? output.size : model->size, data))
    status = pp_fail(error, PP_ERROR_IO, "the model could not be written");
  for (uint32_t s = 0; output.position && s < tflite->subgraphs; s++)
    free(output.position[s]);
  free(output.position);
  free(output.bytes);
  return status;
}
