/* List scheduling by the change of memory (as LPMF and its relatives do), with a heap whose keys
 * follow the storages that begin or come to their last accessor. */
#include "heuristic.h"

struct greedy {
  struct pp_run run;
  pp_index *heap, *place; /* ready statements; places in the heap, or -1 */
  size_t count;
  int64_t *change, *extra; /* keys of ready statements: M after minus M before; cost minus M */
  pp_index *birth;         /* when the statement became ready */
};

static bool before(const struct greedy *g, pp_index a, pp_index b) {
  if (g->change[a] != g->change[b])
    return g->change[a] < g->change[b];
  if (g->extra[a] != g->extra[b])
    return g->extra[a] < g->extra[b];
  return g->birth[a] != g->birth[b] ? g->birth[a] > g->birth[b] : a < b;
}

static void put(struct greedy *g, size_t i, pp_index v) {
  g->heap[i] = v;
  g->place[v] = (pp_index)i;
}

static void sift(struct greedy *g, size_t i) {
  pp_index v = g->heap[i];
  for (; i && before(g, v, g->heap[(i - 1) / 2]); i = (i - 1) / 2)
    put(g, i, g->heap[(i - 1) / 2]);
  for (size_t child; (child = 2 * i + 1) < g->count; i = child) {
    child += child + 1 < g->count && before(g, g->heap[child + 1], g->heap[child]);
    if (!before(g, g->heap[child], v))
      break;
    put(g, i, g->heap[child]);
  }
  put(g, i, v);
}

static void set_keys(struct greedy *g, pp_index v) {
  g->change[v] = pp_run_change(&g->run, v);
  g->extra[v] = pp_run_cost(&g->run, v) - g->run.memory;
}

static void push(struct greedy *g, pp_index v) {
  set_keys(g, v);
  g->birth[v] = g->run.executed;
  put(g, g->count++, v);
  sift(g, g->count - 1);
}

static pp_index pop(struct greedy *g) {
  pp_index top = g->heap[0], last = g->heap[--g->count];
  g->place[top] = -1;
  if (g->count) {
    put(g, 0, last);
    sift(g, 0);
  }
  return top;
}

/* The keys of a storage's other accessors change when it begins and when one accessor is left. */
static void execute(struct greedy *g, pp_index v) {
  const struct pp_view *view = &g->run.view;
  pp_run_step(&g->run, v);
  PP_FOR_ROW (s, view->accessed, v) {
    pp_index all = (pp_index)pp_row_size(view->accessors, *s), left = g->run.left[*s];
    bool begins = left == all - 1 && !pp_begins(view, *s);
    if (left != 1 && !begins)
      continue;
    PP_FOR_ROW (u, view->accessors, *s)
      if (g->place[*u] >= 0) {
        set_keys(g, *u);
        sift(g, (size_t)g->place[*u]);
      }
  }
  PP_FOR_ROW (x, view->successors, v)
    if (!g->run.waiting[*x])
      push(g, *x);
}

bool pp_greedy_order(struct pp_view view, pp_index *order) {
  size_t n = (size_t)view.n;
  struct greedy g = {0};
  bool done = pp_run_init(&g.run, view);
  done &= (g.heap = pp_alloc(n, sizeof *g.heap)) != NULL;
  done &= (g.place = pp_alloc(n, sizeof *g.place)) != NULL;
  done &= (g.change = pp_alloc(n, sizeof *g.change)) != NULL;
  done &= (g.extra = pp_alloc(n, sizeof *g.extra)) != NULL;
  done &= (g.birth = pp_alloc(n, sizeof *g.birth)) != NULL;
  if (done) {
    for (pp_index v = 0; v < view.n; v++)
      g.place[v] = -1;
    for (pp_index v = 0; v < view.n; v++)
      if (!pp_row_size(view.predecessors, v))
        push(&g, v);
    for (pp_index i = 0; i < view.n; i++)
      execute(&g, order[i] = pop(&g));
  }
  pp_run_free(&g.run);
  free(g.heap);
  free(g.place);
  free(g.change);
  free(g.extra);
  free(g.birth);
  return done;
}
