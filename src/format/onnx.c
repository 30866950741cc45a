/* Reads ONNX files into models: decode (onnx_decode.c), resolve names, sort and fold, measure. */
#include "format/onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/onnx_model.h"

/* ---- What is an ONNX file ---- */

/* The wire types of the fields of ModelProto, by number; others are newer than we. */
static bool is_model_field(const pp_wire_field *field) {
  switch (field->number) {
  case 1: /* ir_version */
  case 5: /* model_version */
    return field->type == WIRE_VARINT;
  case 2:
  case 3:
  case 4:
  case 6:
  case 7: /* graph */
  case 8:
  case 14:
  case 20:
  case 25:
    return field->type == WIRE_BYTES;
  }
  return false;
}

/* Nearly all files begin with their ir_version; the others must be whole. */
bool pp_onnx_test(const uint8_t *bytes, size_t size) {
  pp_wire_field field;
  size_t at = 0;
  bool graph = false;
  if (size >= 2 && bytes[0] == 0x08 && bytes[1] > 0 && bytes[1] < 0x80)
    return true;
  while (at < size) {
    bool first = !at;
    if (pp_wire_next(bytes, size, &at, &field, NULL) || (first && !is_model_field(&field)))
      return false;
    graph |= field.number == 7 && field.type == WIRE_BYTES;
  }
  return graph;
}

/* ---- Notices ---- */

static void tell_folded(const pp_onnx *onnx, pp_notices *notices) {
  size_t folded = 0;
  for (size_t i = 0; i < onnx->node.count; i++)
    folded += onnx->node.items[i].folded;
  if (folded)
    pp_notices_add(
        notices,
        "%zu of %zu nodes compute constants or look at shapes only: they are folded, and "
        "their results are not counted",
        folded, onnx->node.count);
}

static void tell_calls(const pp_onnx *onnx, pp_notices *notices) {
  size_t calls = 0;
  uint32_t first = 0;
  for (uint32_t i = 0; i < onnx->node.count; i++)
    if (pp_onnx_is_function(onnx, onnx->node.items + i))
      first = calls++ ? first : i;
  if (!calls)
    return;
  char name[120];
  pp_onnx_show_node(onnx, first, name, sizeof name);
  pp_notices_add(
      notices,
      "%zu nodes call functions of the model (\"%s\" is the first): the memory inside is "
      "not counted, and their order is kept",
      calls, name);
}

/* Custom operators: nothing is known of them, so they keep their order. */
static void tell_unknown(const pp_onnx *onnx, pp_notices *notices) {
  size_t unknown = 0;
  uint32_t first = 0;
  for (uint32_t i = 0; i < onnx->node.count; i++)
    if (onnx->node.items[i].class == CLASS_UNKNOWN)
      first = unknown++ ? first : i;
  if (!unknown)
    return;
  char name[120];
  pp_onnx_show(onnx->node.items[first].operator_, name, sizeof name);
  pp_notices_add(notices,
                 "%zu nodes have unknown operators (\"%s\" is the first): they keep their "
                 "order",
                 unknown, name);
}

static void tell(const pp_onnx *onnx, pp_model *model) {
  for (uint32_t i = 0; i < onnx->graph.count; i++)
    if (onnx->graph.items[i].unsorted)
      pp_notices_add(&model->notices, "%s: nodes stand before others that they need: sorted",
                     model->name[i]);
  tell_folded(onnx, &model->notices);
  tell_calls(onnx, &model->notices);
  tell_unknown(onnx, &model->notices);
}

/* ---- Models ---- */

void pp_onnx_free(pp_onnx *onnx) {
  if (!onnx)
    return;
  for (size_t i = 0; i < onnx->graph.count; i++) {
    free(onnx->graph.items[i].sorted);
    free(onnx->graph.items[i].statement);
  }
  for (size_t i = 0; i < onnx->text.count; i++)
    free(onnx->text.items[i]);
  free(onnx->graph.items);
  free(onnx->node.items);
  free(onnx->value.items);
  free(onnx->info.items);
  free(onnx->reference.items);
  free(onnx->dim.items);
  free(onnx->capture.items);
  free(onnx->function.items);
  free(onnx->text.items);
  for (size_t i = 0; i < onnx->location.count; i++)
    free(onnx->location.items[i]);
  free(onnx->location.items);
  free(onnx->index);
  free(onnx);
}

static void free_data(pp_model *model) {
  pp_onnx_free(model->data);
}

static const struct pp_model_operations operations = {pp_onnx_build, pp_onnx_write, free_data};

/* "main", and "body3.If.then_branch" for the third body. */
static char *make_name(const pp_onnx *onnx, uint32_t index) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const pp_onnx_graph *graph = onnx->graph.items + index;
  char name[140];
  if (!index)
    return strdup("main");
  int length = snprintf(name, sizeof name, "body%" PRIu32 ".%.50s.%.50s", index,
                        onnx->node.items[graph->owner].operator_, graph->attribute);
  for (int i = 0; i < length; i++)
    if (!strchr(allowed, name[i]))
      name[i] = '_';
  return strdup(name);
}

static pp_status make_programs(const pp_onnx *onnx, pp_model *model, pp_error *error) {
  size_t count = onnx->graph.count;
  model->name = pp_zalloc(count, sizeof *model->name);
  model->sequence = pp_alloc(count, sizeof *model->sequence);
  if (!model->name || !model->sequence)
    return pp_fail_memory(error);
  model->programs = count;
  for (size_t i = 0; i < count; i++) {
    model->sequence[i] = count - 1 - i; /* callers come before their bodies in the list */
    if (!(model->name[i] = make_name(onnx, (uint32_t)i)))
      return pp_fail_memory(error);
  }
  return PP_OK;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The model gets the names of its other files, each once. */
static pp_status take_companions(pp_onnx *onnx, pp_model *model, pp_error *error) {
  size_t count = onnx->location.count;
  if (!count)
    return PP_OK;
  qsort(onnx->location.items, count, sizeof *onnx->location.items, compare_texts);
  model->companion = pp_alloc(count, sizeof *model->companion);
  if (!model->companion)
    return pp_fail_memory(error);
  for (size_t i = 0; i < count; i++) {
    char *name = onnx->location.items[i];
    if (i && !strcmp(name, model->companion[model->companions - 1]))
      free(name);
    else
      model->companion[model->companions++] = name;
  }
  onnx->location.count = 0;
  return PP_OK;
}

pp_status pp_onnx_read(pp_model *model, const pp_read_options *options, pp_error *error) {
  pp_onnx *onnx = pp_zalloc(1, sizeof *onnx);
  if (!onnx)
    return pp_fail_memory(error);
  model->data = onnx;
  model->operations = &operations;
  model->format = PP_FORMAT_ONNX;
  onnx->bytes = model->bytes;
  onnx->size = model->size;
  onnx->options = options;
  pp_status status;
  if ((status = pp_onnx_decode(onnx, error)) || (status = pp_onnx_resolve(onnx, error)) ||
      (status = pp_onnx_sort(onnx, error)) || (status = make_programs(onnx, model, error)) ||
      (status = take_companions(onnx, model, error)))
    return status;
  tell(onnx, model);
  status = pp_onnx_measure(onnx, &model->notices, error);
  onnx->options = NULL;
  return status;
}
