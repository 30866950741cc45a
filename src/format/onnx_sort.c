/* Topological orders of the nodes, and what follows from them: constants, state, statements. */
#include <inttypes.h>
#include <string.h>

#include "format/onnx_model.h"

/* ---- Dependences ---- */

/* Use i of a node: its inputs first, then its captures. */
static uint32_t uses(const pp_onnx_node *node) {
  return node->inputs + node->captures;
}

static uint32_t use(const pp_onnx *onnx, const pp_onnx_node *node, uint32_t i) {
  return i < node->inputs ? onnx->reference.items[node->input + i].value
                          : onnx->capture.items[node->capture + i - node->inputs].value;
}

/* The node of the same graph that makes use i, or none. */
static uint32_t maker(const pp_onnx *onnx, const pp_onnx_node *node, uint32_t i) {
  uint32_t value = use(onnx, node, i);
  return value == PP_ONNX_NONE || onnx->value.items[value].graph != node->graph
             ? PP_ONNX_NONE
             : onnx->value.items[value].producer;
}

pp_status pp_onnx_is_sorted(const pp_onnx *onnx, uint32_t index, const uint32_t *order,
                            bool *sorted, pp_error *error) {
  const pp_onnx_graph *graph = onnx->graph.items + index;
  bool *done = pp_zalloc(graph->nodes, sizeof *done);
  if (!done)
    return pp_fail_memory(error);
  *sorted = true;
  for (uint32_t k = 0; k < graph->nodes && *sorted; k++) {
    uint32_t n = order ? order[k] : graph->node + k;
    const pp_onnx_node *node = onnx->node.items + n;
    for (uint32_t i = 0; i < uses(node); i++) {
      uint32_t before = maker(onnx, node, i);
      *sorted &= before == PP_ONNX_NONE || done[before - graph->node];
    }
    done[n - graph->node] = true;
  }
  free(done);
  return PP_OK;
}

/* ---- Sorting (Kahn), first in the file first ---- */

struct sort {
  const pp_onnx *onnx;
  const pp_onnx_graph *graph;
  size_t *first;      /* the users of node n: follower[first[n]] up to first[n + 1] */
  uint32_t *follower; /* all relative to the graph's first node */
  uint32_t *waiting;  /* uses that are not there yet */
  uint32_t *heap, heaped;
};

static void push(struct sort *sort, uint32_t node) {
  uint32_t at = sort->heaped++;
  for (; at && sort->heap[(at - 1) / 2] > node; at = (at - 1) / 2)
    sort->heap[at] = sort->heap[(at - 1) / 2];
  sort->heap[at] = node;
}

static uint32_t pop(struct sort *sort) {
  uint32_t top = sort->heap[0], last = sort->heap[--sort->heaped], at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= sort->heaped)
      break;
    if (child + 1 < sort->heaped && sort->heap[child + 1] < sort->heap[child])
      child++;
    if (sort->heap[child] >= last)
      break;
    sort->heap[at] = sort->heap[child];
    at = child;
  }
  sort->heap[at] = last;
  return top;
}

/* Followers of all nodes, in two passes: count, fill. */
static void find_followers(struct sort *sort) {
  uint32_t n = sort->graph->nodes, base = sort->graph->node;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < n; k++) {
      const pp_onnx_node *node = sort->onnx->node.items + base + k;
      for (uint32_t i = 0; i < uses(node); i++) {
        uint32_t before = maker(sort->onnx, node, i);
        if (before == PP_ONNX_NONE)
          continue;
        if (pass)
          sort->follower[--sort->first[before - base]] = k;
        else
          sort->first[before - base]++;
        sort->waiting[k] += !pass;
      }
    }
    for (uint32_t k = 0; !pass && k < n; k++)
      sort->first[k + 1] += sort->first[k];
  }
}

static pp_status fail_cycle(const struct sort *sort, pp_error *error) {
  for (uint32_t k = 0; k < sort->graph->nodes; k++) {
    if (!sort->waiting[k])
      continue;
    char name[120];
    pp_onnx_show_node(sort->onnx, sort->graph->node + k, name, sizeof name);
    return pp_fail_at(error, PP_ERROR_INPUT, sort->onnx->node.items[sort->graph->node + k].at,
                      "node \"%s\" waits for itself: the graph has a cycle", name);
  }
  return PP_OK;
}

static pp_status run_sort(struct sort *sort, uint32_t *sorted, pp_error *error) {
  uint32_t n = sort->graph->nodes, count = 0;
  find_followers(sort);
  for (uint32_t k = 0; k < n; k++)
    if (!sort->waiting[k])
      push(sort, k);
  while (sort->heaped) {
    uint32_t k = pop(sort);
    sorted[count++] = sort->graph->node + k;
    for (size_t i = sort->first[k]; i < sort->first[k + 1]; i++)
      if (!--sort->waiting[sort->follower[i]])
        push(sort, sort->follower[i]);
  }
  return count == n ? PP_OK : fail_cycle(sort, error);
}

static pp_status sort_nodes(const pp_onnx *onnx, const pp_onnx_graph *graph, uint32_t *sorted,
                            pp_error *error) {
  struct sort sort = {.onnx = onnx, .graph = graph};
  size_t total = 0;
  for (uint32_t k = 0; k < graph->nodes; k++)
    total += uses(onnx->node.items + graph->node + k);
  sort.first = pp_zalloc((size_t)graph->nodes + 1, sizeof *sort.first);
  sort.follower = pp_alloc(total, sizeof *sort.follower);
  sort.waiting = pp_zalloc(graph->nodes, sizeof *sort.waiting);
  sort.heap = pp_alloc(graph->nodes, sizeof *sort.heap);
  pp_status status = sort.first && sort.follower && sort.waiting && sort.heap
                         ? run_sort(&sort, sorted, error)
                         : pp_fail_memory(error);
  free(sort.first);
  free(sort.follower);
  free(sort.waiting);
  free(sort.heap);
  return status;
}

static pp_status sort_graph(pp_onnx *onnx, uint32_t index, pp_error *error) {
  pp_onnx_graph *graph = onnx->graph.items + index;
  graph->sorted = pp_alloc(graph->nodes, sizeof *graph->sorted);
  graph->statement = pp_alloc(graph->nodes, sizeof *graph->statement);
  if (!graph->sorted || !graph->statement)
    return pp_fail_memory(error);
  bool sorted;
  pp_status status = pp_onnx_is_sorted(onnx, index, NULL, &sorted, error);
  if (status)
    return status;
  graph->unsorted = !sorted;
  if (!sorted)
    return sort_nodes(onnx, graph, graph->sorted, error);
  for (uint32_t k = 0; k < graph->nodes; k++)
    graph->sorted[k] = graph->node + k;
  return PP_OK;
}

/* ---- Folding ---- */

/* A node is folded if its result follows from the model alone: it looks only at the shape of its
 * input, or all that it reads is constant. One that calls bodies never is. */
static bool is_folded(const pp_onnx *onnx, const pp_onnx_node *node) {
  if (node->callees || (node->class != CLASS_PURE && node->class != CLASS_SHAPE))
    return false;
  for (uint32_t i = 0; i < node->inputs && node->class == CLASS_PURE; i++) {
    uint32_t value = use(onnx, node, i);
    if (value != PP_ONNX_NONE && !(onnx->value.items[value].flags & VALUE_CONSTANT))
      return false;
  }
  return true;
}

static bool has_output(const pp_onnx *onnx, const pp_onnx_node *node) {
  for (uint32_t i = 0; i < node->outputs; i++)
    if (onnx->reference.items[node->output + i].value != PP_ONNX_NONE)
      return true;
  return false;
}

static void fold_graph(pp_onnx *onnx, pp_onnx_graph *graph) {
  for (uint32_t k = 0; k < graph->nodes; k++) {
    pp_onnx_node *node = onnx->node.items + graph->sorted[k];
    node->class = pp_onnx_classify(onnx, node);
    node->folded = has_output(onnx, node) && is_folded(onnx, node);
    for (uint32_t i = 0; node->folded && i < node->outputs; i++) {
      uint32_t value = onnx->reference.items[node->output + i].value;
      if (value != PP_ONNX_NONE)
        onnx->value.items[value].flags |= VALUE_CONSTANT;
    }
    if (node->folded)
      continue;
    node->statement = graph->statements;
    graph->statement[graph->statements++] = graph->sorted[k];
  }
}

/* What draws random numbers, is not known, or calls such nodes, keeps its order. So does a node
 * without outputs: only its place tells it from its like (onnx_compare.c). */
static void find_ordered(pp_onnx *onnx, pp_onnx_graph *graph) {
  for (uint32_t k = 0; k < graph->nodes; k++) {
    pp_onnx_node *node = onnx->node.items + graph->node + k;
    node->ordered =
        node->class == CLASS_RANDOM || node->class == CLASS_UNKNOWN || !has_output(onnx, node);
    for (uint32_t i = 0; i < node->callees; i++)
      node->ordered |= onnx->graph.items[node->callee + i].ordered;
    graph->ordered |= node->ordered;
  }
}

pp_status pp_onnx_sort(pp_onnx *onnx, pp_error *error) {
  for (uint32_t i = 0; i < onnx->graph.count; i++) { /* callers first: they know constants */
    pp_status status = sort_graph(onnx, i, error);
    if (status)
      return status;
    fold_graph(onnx, onnx->graph.items + i);
  }
  for (size_t i = onnx->graph.count; i--;) /* callees first */
    find_ordered(onnx, onnx->graph.items + i);
  return PP_OK;
}

/* ---- Placing folded nodes ---- */

struct place {
  const pp_onnx *onnx;
  const pp_onnx_graph *graph;
  uint32_t *place, placed;
  bool *done;
  uint32_t *stack, *next; /* nodes that are being placed, and the use that each is at */
};

/* Places a node (a number in the model) behind the folded nodes that it needs. */
static void place_node(struct place *place, uint32_t index) {
  uint32_t depth = 0, base = place->graph->node;
  if (place->done[index - base])
    return;
  place->stack[0] = index;
  place->next[0] = 0;
  depth = 1;
  while (depth) {
    uint32_t top = place->stack[depth - 1];
    const pp_onnx_node *node = place->onnx->node.items + top;
    if (place->next[depth - 1] == uses(node)) {
      place->done[top - base] = true;
      place->place[place->placed++] = top;
      depth--;
      continue;
    }
    uint32_t before = maker(place->onnx, node, place->next[depth - 1]++);
    /* A statement that is missing here is missing in the order: the caller checks it. */
    if (before == PP_ONNX_NONE || place->done[before - base] ||
        !place->onnx->node.items[before].folded)
      continue;
    place->stack[depth] = before;
    place->next[depth++] = 0;
  }
}

/* The statement whose result a folded node looks at the shape of; none: it is there from the
 * start. *early: the node looks at a shape at all. */
static uint32_t looks_at(const pp_onnx *onnx, const pp_onnx_node *node, bool *early) {
  *early = false;
  for (uint32_t i = 0; i < node->inputs; i++) {
    uint32_t value = use(onnx, node, i);
    if (value == PP_ONNX_NONE || onnx->value.items[value].flags & VALUE_CONSTANT)
      continue;
    *early = true;
    return maker(onnx, node, i);
  }
  return PP_ONNX_NONE;
}

/* watcher[s] starts the list of folded nodes that look at the result of statement s, [statements]
 * those that look at inputs. */
static void place_all(struct place *place, const pp_index *order, uint32_t *watcher,
                      uint32_t *link) {
  const pp_onnx_graph *graph = place->graph;
  const pp_onnx *onnx = place->onnx;
  uint32_t n = graph->statements;
  for (uint32_t s = 0; s <= n; s++)
    watcher[s] = PP_ONNX_NONE;
  for (uint32_t k = graph->nodes; k--;) {
    bool early;
    uint32_t index = graph->sorted[k];
    if (!onnx->node.items[index].folded)
      continue;
    uint32_t maker_ = looks_at(onnx, onnx->node.items + index, &early);
    if (!early)
      continue;
    uint32_t s = maker_ == PP_ONNX_NONE ? n : onnx->node.items[maker_].statement;
    link[index - graph->node] = watcher[s];
    watcher[s] = index;
  }
  for (uint32_t i = watcher[n]; i != PP_ONNX_NONE; i = link[i - graph->node])
    place_node(place, i);
  for (uint32_t s = 0; s < n; s++) {
    place_node(place, graph->statement[order[s]]);
    for (uint32_t i = watcher[order[s]]; i != PP_ONNX_NONE; i = link[i - graph->node])
      place_node(place, i);
  }
  for (uint32_t k = 0; k < graph->nodes; k++)
    place_node(place, graph->sorted[k]);
}

pp_status pp_onnx_place(const pp_onnx *onnx, uint32_t index, const pp_index *order, uint32_t *out,
                        pp_error *error) {
  const pp_onnx_graph *graph = onnx->graph.items + index;
  bool same = !graph->unsorted;
  for (uint32_t s = 0; s < graph->statements; s++)
    same &= order[s] == (pp_index)s;
  if (same) {
    memcpy(out, graph->sorted, graph->nodes * sizeof *out);
    return PP_OK;
  }
  struct place place = {.onnx = onnx, .graph = graph, .place = out};
  place.done = pp_zalloc(graph->nodes, sizeof *place.done);
  place.stack = pp_alloc(graph->nodes, sizeof *place.stack);
  place.next = pp_alloc(graph->nodes, sizeof *place.next);
  uint32_t *watcher = pp_alloc((size_t)graph->statements + 1, sizeof *watcher);
  uint32_t *link = pp_alloc(graph->nodes, sizeof *link);
  pp_status status = PP_OK;
  if (place.done && place.stack && place.next && watcher && link)
    place_all(&place, order, watcher, link);
  else
    status = pp_fail_memory(error);
  free(place.done);
  free(place.stack);
  free(place.next);
  free(watcher);
  free(link);
  return status;
}
