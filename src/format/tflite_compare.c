/* Tells whether a file is another one with its operators permuted, and nothing else. */
#include <inttypes.h>
#include <string.h>

#include "format/tflite.h"
#include "format/tflite_model.h"
#include "format/tflite_schema.h"

/* ---- Bytes that may differ ---- */

struct range {
  size_t from, to;
};
typedef PP_VECTOR(struct range) ranges;

static bool add_range(ranges *list, size_t from, size_t bytes) {
  if (!PP_ROOM(list))
    return false;
  list->items[list->count++] = (struct range){from, from + bytes};
  return true;
}

/* The ranges of the original whose bytes a permutation may change; what they hold is compared one
 * by one. Objects that serve something else too are not among them. */
static bool find_ranges(const pp_tflite *original, ranges *list) {
  const pp_tflite_control *control = &original->control;
  pp_flat_vector metadata = original->metadata;
  bool good = true;
  for (uint32_t s = 0; s < original->subgraphs && good; s++) {
    pp_flat_vector operators = original->subgraph[s].operators;
    if (operators.count && !original->subgraph[s].shared)
      good = add_range(list, operators.at, 4 * (size_t)operators.count);
  }
  if (good && original->plans && !original->metadata_shared)
    good = add_range(list, metadata.at - 4, 4 + 4 * (size_t)metadata.count);
  if (good && control->buffer && !control->shared)
    good = add_range(list, control->at, control->size) &&
           add_range(list, pp_flat_field(&original->flat, control->buffer, BUFFER_DATA, 4), 4);
  return good;
}

static int compare_ranges(const void *a, const void *b) {
  const struct range *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* Bytes from <= b < to are the same in both. */
static pp_status compare_bytes(const pp_tflite *original, const pp_tflite *permuted, size_t from,
                               size_t to, pp_error *error) {
  const uint8_t *a = original->flat.bytes, *b = permuted->flat.bytes;
  if (from >= to || !memcmp(a + from, b + from, to - from))
    return PP_OK;
  while (a[from] == b[from])
    from++;
  return pp_fail_at(error, PP_ERROR_INPUT, from,
                    "this byte differs, and no permutation of operators changes it");
}

static pp_status compare_rest(const pp_tflite *original, const pp_tflite *permuted,
                              pp_error *error) {
  ranges list = {0};
  pp_status status = PP_OK;
  size_t at = 0;
  if (permuted->flat.size < original->flat.size)
    return pp_fail_at(error, PP_ERROR_INPUT, permuted->flat.size,
                      "the file is shorter than the original");
  if (find_ranges(original, &list)) {
    if (list.count)
      qsort(list.items, list.count, sizeof *list.items, compare_ranges);
    for (size_t i = 0; i < list.count && !status; at = list.items[i++].to)
      status = compare_bytes(original, permuted, at, list.items[i].from, error);
    if (!status)
      status = compare_bytes(original, permuted, at, original->flat.size, error);
  } else {
    status = pp_fail_memory(error);
  }
  free(list.items);
  return status;
}

/* ---- Operators ---- */

struct place {
  size_t table;
  pp_index index;
};

static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->table != y->table)
    return x->table < y->table ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

/* Sorted by table; where one table stands twice, in order. */
static struct place *sorted_places(const pp_tflite *tflite, pp_flat_vector operators) {
  struct place *place = pp_alloc(operators.count, sizeof *place);
  for (uint32_t i = 0; place && i < operators.count; i++)
    place[i] = (struct place){pp_tflite_at(tflite, operators, i), (pp_index)i};
  if (place && operators.count)
    qsort(place, operators.count, sizeof *place, compare_places);
  return place;
}

/* The same tables, one for one: the i-th of one sorted list is the i-th of the other. */
static pp_status match(const pp_tflite *original, const pp_tflite *permuted, uint32_t s,
                       pp_index *order, pp_error *error) {
  pp_flat_vector before = original->subgraph[s].operators;
  pp_flat_vector after = permuted->subgraph[s].operators;
  if (before.at != after.at || before.count != after.count)
    return pp_fail_at(error, PP_ERROR_INPUT, after.at,
                      "subgraph %" PRIu32 " has another vector of operators", s);
  struct place *x = sorted_places(original, before), *y = sorted_places(permuted, after);
  pp_status status = x && y ? PP_OK : pp_fail_memory(error);
  for (uint32_t i = 0; i < before.count && !status; i++) {
    if (x[i].table == y[i].table)
      order[y[i].index] = x[i].index;
    else
      status = pp_fail_at(error, PP_ERROR_INPUT, after.at + 4 * (size_t)y[i].index,
                          "operator %" PRId32 " of subgraph %" PRIu32
                          " is none of the original's, or stands there twice",
                          y[i].index, s);
  }
  free(x);
  free(y);
  return status;
}

static bool changed(const pp_tflite *tflite, pp_index *const *order) {
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].operators.count; i++)
      if (order[s][i] != (pp_index)i)
        return true;
  return false;
}

/* ---- Metadata ---- */

/* The same entries, but for plans that were removed. */
static pp_status compare_metadata(const pp_tflite *original, const pp_tflite *permuted,
                                  bool reordered, pp_error *error) {
  pp_flat_vector before = original->metadata, after = permuted->metadata;
  uint32_t k = 0;
  if (before.at != after.at || before.count < after.count)
    return pp_fail_at(error, PP_ERROR_INPUT, after.at, "other metadata");
  if (reordered && permuted->plans)
    return pp_fail_at(error, PP_ERROR_INPUT, after.at,
                      "an offline memory plan for another order is left");
  for (uint32_t i = 0; i < before.count; i++) {
    size_t entry = pp_tflite_at(original, before, i);
    if (k < after.count && entry == pp_tflite_at(permuted, after, k))
      k++;
    else if (!pp_tflite_is_plan(original, i))
      return pp_fail_at(error, PP_ERROR_INPUT, after.at,
                        "metadata %" PRIu32 " of the original is missing", i);
  }
  if (k < after.count)
    return pp_fail_at(error, PP_ERROR_INPUT, after.at + 4 * (size_t)k,
                      "metadata %" PRIu32 " is not the original's", k);
  for (size_t at = after.at + 4 * (size_t)after.count; at < before.at + 4 * (size_t)before.count;
       at++)
    if (permuted->flat.bytes[at])
      return pp_fail_at(error, PP_ERROR_INPUT, at, "bytes behind the metadata are not 0");
  return PP_OK;
}

static int compare_edges(const void *a, const void *b) {
  return memcmp(a, b, 2 * sizeof(int32_t)); /* any total order will do */
}

static pp_status compare_edges_of(const pp_tflite *original, const pp_tflite *permuted, uint32_t s,
                                  const pp_index *order, pp_error *error) {
  const pp_tflite_subgraph *before = original->subgraph + s, *after = permuted->subgraph + s;
  size_t edges = before->edges;
  if (after->edges != edges)
    return pp_fail_at(error, PP_ERROR_INPUT, permuted->control.at,
                      "subgraph %" PRIu32 " has another number of control dependencies", s);
  if (!edges)
    return PP_OK;
  int32_t *x = pp_alloc(2 * edges, sizeof *x), *y = pp_alloc(2 * edges, sizeof *y);
  pp_status status = x && y ? PP_OK : pp_fail_memory(error);
  if (!status) {
    memcpy(x, original->edge.items + 2 * before->edge, 2 * edges * sizeof *x);
    for (size_t i = 0; i < 2 * edges; i++)
      y[i] = order[permuted->edge.items[2 * after->edge + i]];
    qsort(x, edges, 2 * sizeof *x, compare_edges);
    qsort(y, edges, 2 * sizeof *y, compare_edges);
    if (memcmp(x, y, 2 * edges * sizeof *x) != 0)
      status = pp_fail_at(error, PP_ERROR_INPUT, permuted->control.at,
                          "subgraph %" PRIu32 " has other control dependencies", s);
  }
  free(x);
  free(y);
  return status;
}

/* The data stays in its place or moved to the end of the file; nothing else may be there. */
static pp_status compare_tail(const pp_tflite *original, const pp_tflite *permuted,
                              pp_error *error) {
  size_t from = original->flat.size, to = permuted->flat.size;
  size_t at = permuted->control.at, size = permuted->control.size;
  if (from == to && (at != original->control.at || size != original->control.size))
    return pp_fail_at(error, PP_ERROR_INPUT, at, "the control dependencies moved");
  if (from == to)
    return PP_OK;
  if (!at || at < from + 4 || at - 4 - from >= 16 || at + size != to)
    return pp_fail_at(error, PP_ERROR_INPUT, from, "%zu bytes behind the end of the original",
                      to - from);
  for (; from < at - 4; from++)
    if (permuted->flat.bytes[from])
      return pp_fail_at(error, PP_ERROR_INPUT, from,
                        "bytes between the original and what was added are not 0");
  return compare_bytes(original, permuted, original->control.at,
                       original->control.at + original->control.size, error);
}

static pp_status compare_control(const pp_tflite *original, const pp_tflite *permuted,
                                 pp_index *const *order, pp_error *error) {
  if (original->control.buffer != permuted->control.buffer ||
      original->control.subgraphs != permuted->control.subgraphs)
    return pp_fail_at(error, PP_ERROR_INPUT, permuted->control.at, "other control dependencies");
  pp_status status = compare_tail(original, permuted, error);
  for (uint32_t s = 0; s < original->subgraphs && !status; s++)
    status = compare_edges_of(original, permuted, s, order[s], error);
  return status;
}

/* ---- The whole ---- */

static pp_status match_all(const pp_tflite *original, const pp_tflite *permuted, pp_index **order,
                           pp_error *error) {
  if (original->subgraphs != permuted->subgraphs)
    return pp_fail_at(error, PP_ERROR_INPUT, permuted->root, "another number of subgraphs");
  for (uint32_t s = 0; s < original->subgraphs; s++) {
    order[s] = pp_alloc(original->subgraph[s].operators.count, sizeof **order);
    if (!order[s])
      return pp_fail_memory(error);
    pp_status status = match(original, permuted, s, order[s], error);
    if (status)
      return status;
  }
  pp_status status = compare_metadata(original, permuted, changed(original, order), error);
  return status ? status : compare_control(original, permuted, order, error);
}

pp_status pp_tflite_compare_files(const pp_tflite *original, const pp_tflite *permuted,
                                  pp_index ***order, pp_error *error) {
  pp_status status = compare_rest(original, permuted, error);
  if (status)
    return status;
  pp_index **found = pp_zalloc(original->subgraphs, sizeof *found);
  status = found ? match_all(original, permuted, found, error) : pp_fail_memory(error);
  if (status)
    pp_orders_free(found, original->subgraphs);
  else
    *order = found;
  return status;
}

pp_status pp_tflite_compare(const pp_model *original, const pp_model *permuted, pp_index ***order,
                            pp_error *error) {
  if (original->format != PP_FORMAT_TFLITE || permuted->format != PP_FORMAT_TFLITE)
    return pp_fail(error, PP_ERROR_USAGE, "both models must be .tflite files");
  pp_index **found;
  pp_status status = pp_tflite_compare_files(original->data, permuted->data, &found, error);
  return status ? status : pp_orders_accept(original, found, order, error);
}
