/* Maximum flow by preflows: A. V. Goldberg and R. E. Tarjan, A new approach to the maximum-flow
 * problem, J. ACM 35 (1988); the highest node first, exact distances from time to time (Cherkassky
 * and Goldberg 1997). In a long network augmenting paths are long, and each saturates little: here
 * what comes together goes on together. */
#include "flow.h"

/* A node's `level` is a lower bound of its distance to the target, or -1: it cannot reach it. */
struct preflow {
  struct pp_flow *flow;
  pp_index from, to; /* excess goes to `to`, never through `from` */
  int64_t *excess;   /* of a node */
  pp_index *first;   /* of a level: an active node, or -1 */
  pp_index *next;    /* of a node: the next active one of its level, or -1 */
  pp_index highest;  /* no active node has a higher level */
  size_t work, room; /* arcs looked at since the distances were exact; when to find them anew */
};

static void activate(struct preflow *preflow, pp_index u) {
  pp_index level = preflow->flow->nodes.items[u].level;
  if (u < 2 || level < 0)
    return;
  preflow->next[u] = preflow->first[level];
  preflow->first[level] = u;
  if (level > preflow->highest)
    preflow->highest = level;
}

/* Exact distances to the target, found breadth first against residual arcs. */
static void find_distances(struct preflow *preflow) {
  struct pp_flow *flow = preflow->flow;
  struct pp_flow_node *node = flow->nodes.items;
  const struct pp_arc *arc = flow->arcs.items;
  pp_index *queue = flow->queue.items, count = (pp_index)flow->nodes.count;
  size_t head = 0, tail = 0;
  for (pp_index u = 0; u < count; u++) {
    node[u].level = preflow->first[u] = -1;
    node[u].current = node[u].first;
  }
  node[preflow->to].level = 0;
  queue[tail++] = preflow->to;
  while (head < tail) {
    pp_index u = queue[head++];
    for (int32_t a = node[u].first; a >= 0; a = arc[a].next)
      if (arc[a ^ 1].residual > 0 && node[arc[a].to].level < 0 && arc[a].to != preflow->from) {
        node[arc[a].to].level = node[u].level + 1;
        queue[tail++] = arc[a].to;
      }
  }
  preflow->highest = 0;
  for (pp_index u = 2; u < count; u++)
    if (preflow->excess[u] > 0)
      activate(preflow, u);
  preflow->work = 0;
}

static void push(struct preflow *preflow, pp_index u, int32_t a) {
  struct pp_arc *arc = preflow->flow->arcs.items;
  pp_index to = arc[a].to;
  int64_t amount = preflow->excess[u] < arc[a].residual ? preflow->excess[u] : arc[a].residual;
  arc[a].residual -= amount;
  arc[a ^ 1].residual += amount;
  preflow->excess[u] -= amount;
  if (!preflow->excess[to])
    activate(preflow, to);
  preflow->excess[to] += amount;
}

/* The level after the lowest that u can push to, or -1. */
static int32_t raised(struct preflow *preflow, pp_index u) {
  const struct pp_flow_node *node = preflow->flow->nodes.items;
  const struct pp_arc *arc = preflow->flow->arcs.items;
  int32_t level = -1;
  for (int32_t a = node[u].first; a >= 0; a = arc[a].next) {
    int32_t other = node[arc[a].to].level;
    if (arc[a].residual > 0 && other >= 0 && (level < 0 || other < level))
      level = other;
    preflow->work++;
  }
  return level < 0 || level + 1 >= (int32_t)preflow->flow->nodes.count ? -1 : level + 1;
}

static void discharge(struct preflow *preflow, pp_index u) {
  struct pp_flow_node *node = preflow->flow->nodes.items + u;
  const struct pp_arc *arc = preflow->flow->arcs.items;
  while (preflow->excess[u] > 0 && node->level >= 0) {
    int32_t a = node->current;
    for (; a >= 0; a = arc[a].next, preflow->work++)
      if (arc[a].residual > 0 && preflow->flow->nodes.items[arc[a].to].level == node->level - 1) {
        push(preflow, u, a);
        if (!preflow->excess[u])
          break;
      }
    node->current = a;
    if (a < 0) {
      node->level = raised(preflow, u);
      node->current = node->first;
    }
  }
}

/* Moves excess to the target until `enough` is there or nothing more can reach it. */
static void move_excess(struct preflow *preflow, int64_t enough) {
  find_distances(preflow);
  while (preflow->excess[preflow->to] < enough) {
    while (preflow->highest > 0 && preflow->first[preflow->highest] < 0)
      preflow->highest--;
    pp_index u = preflow->first[preflow->highest];
    if (u < 0)
      return;
    preflow->first[preflow->highest] = preflow->next[u];
    discharge(preflow, u);
    if (preflow->work > preflow->room)
      find_distances(preflow);
  }
}

/* Fills the arcs out of the source. */
static void fill(struct preflow *preflow) {
  struct pp_flow *flow = preflow->flow;
  struct pp_arc *arc = flow->arcs.items;
  for (int32_t a = flow->nodes.items[PP_FLOW_SOURCE].first; a >= 0; a = arc[a].next) {
    preflow->excess[arc[a].to] += arc[a].residual;
    arc[a ^ 1].residual += arc[a].residual;
    arc[a].residual = 0;
  }
}

bool pp_flow_push(struct pp_flow *flow, int64_t limit, int64_t *value) {
  size_t count = flow->nodes.count;
  struct preflow preflow = {.flow = flow,
                            .from = PP_FLOW_SOURCE,
                            .to = PP_FLOW_SINK,
                            .room = 4 * flow->arcs.count,
                            .excess = pp_zalloc(count, sizeof *preflow.excess),
                            .first = pp_alloc(count, sizeof *preflow.first),
                            .next = pp_alloc(count, sizeof *preflow.next)};
  bool done = preflow.excess && preflow.first && preflow.next;
  if (done) {
    fill(&preflow);
    move_excess(&preflow, limit);
    *value += preflow.excess[PP_FLOW_SINK];
    preflow.from = PP_FLOW_SINK; /* what did not get through goes back */
    preflow.to = PP_FLOW_SOURCE;
    move_excess(&preflow, INT64_MAX);
  }
  free(preflow.excess);
  free(preflow.first);
  free(preflow.next);
  return done;
}
