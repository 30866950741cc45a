/* Maximum flow by shortest augmenting paths whose lengths are mended where they change, with a look
 * for gaps: R. K. Ahuja, J. B. Orlin, Distance-directed augmenting path algorithms for maximum flow
 * and parametric maximum flow problems, Naval Research Logistics 38 (1991). */
#include "flow.h"

/* Where even the shortest paths have so many arcs, preflows are better. */
enum { LONG_PATH = 100 };

bool pp_flow_node(struct pp_flow *flow, pp_index label, pp_index *node) {
  if (flow->nodes.count >= INT32_MAX || !PP_ROOM(&flow->nodes))
    return false;
  if (node)
    *node = (pp_index)flow->nodes.count;
  flow->nodes.items[flow->nodes.count++] =
      (struct pp_flow_node){.first = -1, .current = -1, .level = -1, .label = label};
  return true;
}

bool pp_flow_reset(struct pp_flow *flow) {
  flow->nodes.count = flow->arcs.count = 0;
  return pp_flow_node(flow, -1, NULL) && pp_flow_node(flow, -1, NULL);
}

void pp_flow_free(struct pp_flow *flow) {
  free(flow->nodes.items);
  free(flow->arcs.items);
  free(flow->path.items);
  free(flow->queue.items);
}

static void link_arc(struct pp_flow *flow, pp_index from, pp_index to, int64_t residual,
                     pp_index label) {
  struct pp_flow_node *node = flow->nodes.items + from;
  flow->arcs.items[flow->arcs.count] =
      (struct pp_arc){.to = to, .next = node->first, .residual = residual, .label = label};
  node->first = (int32_t)flow->arcs.count++;
}

bool pp_flow_arc(struct pp_flow *flow, pp_index from, pp_index to, int64_t capacity,
                 pp_index label) {
  if (flow->arcs.count + 2 > INT32_MAX ||
      !pp_reserve((void **)&flow->arcs.items, &flow->arcs.capacity, flow->arcs.count + 2,
                  sizeof *flow->arcs.items))
    return false;
  link_arc(flow, from, to, capacity, label);
  link_arc(flow, to, from, 0, label);
  return true;
}

static bool room_for_search(struct pp_flow *flow) {
  return pp_reserve((void **)&flow->queue.items, &flow->queue.capacity, flow->nodes.count,
                    sizeof *flow->queue.items) &&
         pp_reserve((void **)&flow->path.items, &flow->path.capacity, flow->nodes.count,
                    sizeof *flow->path.items);
}

/* level := distance to the sink along residual arcs, found breadth first from there, or -1 where it
 * is not found. Ends early where the source is met, if `near`. */
static void set_levels(struct pp_flow *flow, bool near) {
  struct pp_flow_node *node = flow->nodes.items;
  const struct pp_arc *arc = flow->arcs.items;
  pp_index *queue = flow->queue.items;
  size_t head = 0, tail = 0;
  for (size_t i = 0; i < flow->nodes.count; i++)
    node[i].level = -1;
  node[PP_FLOW_SINK].level = 0;
  queue[tail++] = PP_FLOW_SINK;
  while (head < tail && !(near && node[PP_FLOW_SOURCE].level >= 0)) {
    pp_index u = queue[head++];
    for (int32_t a = node[u].first; a >= 0; a = arc[a].next)
      if (arc[a ^ 1].residual > 0 && node[arc[a].to].level < 0) {
        node[arc[a].to].level = node[u].level + 1;
        queue[tail++] = arc[a].to;
      }
  }
}

/* Pushes along flow->path; what the first saturated arc leaves of the path can be used again. */
static int64_t push_path(struct pp_flow *flow, int64_t limit) {
  struct pp_arc *arc = flow->arcs.items;
  const int32_t *path = flow->path.items;
  size_t usable = flow->path.count;
  for (size_t i = flow->path.count; i--;)
    if (arc[path[i]].residual <= limit) {
      limit = arc[path[i]].residual;
      usable = i;
    }
  for (size_t i = 0; i < flow->path.count; i++) {
    arc[path[i]].residual -= limit;
    arc[path[i] ^ 1].residual += limit;
  }
  flow->path.count = usable;
  return limit;
}

/* Gives u the level that its residual arcs allow now, or -1. False: then no path is left, because u
 * was the last of its level, and nothing can step over a level. */
static bool raise(struct pp_flow *flow, pp_index u) {
  struct pp_flow_node *node = flow->nodes.items + u;
  int32_t *count = flow->queue.items, lowest = -1;
  for (int32_t a = node->first; a >= 0; a = flow->arcs.items[a].next) {
    int32_t level = flow->nodes.items[flow->arcs.items[a].to].level;
    if (flow->arcs.items[a].residual > 0 && level >= 0 && (lowest < 0 || level < lowest))
      lowest = level;
  }
  bool gap = !--count[node->level];
  node->level = lowest < 0 || (size_t)lowest + 1 >= flow->nodes.count ? -1 : lowest + 1;
  node->current = node->first;
  if (node->level >= 0)
    count[node->level]++;
  return !gap;
}

/* Extends flow->path to the sink, one level down with each arc, and raises what is in the way.
 * False: no path is left (the source's level is -1), or `work` is used up, or the source's level is
 * above `highest`. */
static bool extend_path(struct pp_flow *flow, int32_t highest, int64_t *work) {
  struct pp_flow_node *node = flow->nodes.items;
  const struct pp_arc *arc = flow->arcs.items;
  int32_t *path = flow->path.items;
  size_t length = flow->path.count;
  pp_index u = length ? arc[path[length - 1]].to : PP_FLOW_SOURCE;
  bool found = true;
  while (found && u != PP_FLOW_SINK) {
    int32_t a = node[u].current;
    for (; a >= 0 && !(arc[a].residual > 0 && node[arc[a].to].level == node[u].level - 1);
         a = arc[a].next)
      --*work;
    node[u].current = a;
    if (a >= 0) {
      path[length++] = a;
      u = arc[a].to;
      continue;
    }
    if (!raise(flow, u))
      node[PP_FLOW_SOURCE].level = -1;
    if (length)
      u = arc[path[--length] ^ 1].to;
    found = node[PP_FLOW_SOURCE].level >= 0 && node[PP_FLOW_SOURCE].level <= highest && *work > 0;
  }
  flow->path.count = length;
  return found;
}

/* Augments along shortest paths, whose lengths are kept from path to path. Where mending them costs
 * more than finding them anew, it ends; one path at least is found, since levels are right at
 * first. */
static void augment(struct pp_flow *flow, int32_t highest, int64_t *limit, int64_t *value) {
  int32_t *count = flow->queue.items;
  int64_t work = (int64_t)(flow->nodes.count + flow->arcs.count) / 2;
  for (size_t i = 0; i < flow->nodes.count; i++)
    count[i] = 0;
  for (size_t i = 0; i < flow->nodes.count; i++) {
    flow->nodes.items[i].current = flow->nodes.items[i].first;
    if (flow->nodes.items[i].level >= 0)
      count[flow->nodes.items[i].level]++;
  }
  flow->path.count = 0;
  while (*limit > 0 && extend_path(flow, highest, &work)) {
    int64_t pushed = push_path(flow, *limit);
    *limit -= pushed;
    *value += pushed;
  }
}

bool pp_flow_run(struct pp_flow *flow, int64_t limit, int64_t *value) {
  if (!room_for_search(flow))
    return false;
  for (int round = 0; limit > 0; round++) {
    bool near = round < 2; /* the shortest paths are often enough */
    set_levels(flow, near);
    int32_t distance = flow->nodes.items[PP_FLOW_SOURCE].level;
    if (distance < 0)
      return true;
    if (round && distance > LONG_PATH) {
      int64_t before = *value;
      if (!pp_flow_push(flow, limit, value))
        return false;
      limit -= *value - before;
    } else {
      augment(flow, near || distance > LONG_PATH ? distance : LONG_PATH, &limit, value);
      if (!near && flow->nodes.items[PP_FLOW_SOURCE].level < 0)
        return true;
    }
  }
  return true;
}

bool pp_flow_largest_cut(struct pp_flow *flow) {
  if (!room_for_search(flow))
    return false;
  set_levels(flow, false);
  for (size_t i = 0; i < flow->nodes.count; i++)
    flow->nodes.items[i].level = flow->nodes.items[i].level < 0 ? 0 : -1;
  return true;
}

/* The flow on arc 2k is what its reverse could give back. */
static int64_t carried(const struct pp_flow *flow, int32_t a) {
  return a & 1 ? 0 : flow->arcs.items[a ^ 1].residual;
}

static void cancel(struct pp_flow *flow, size_t from, size_t to, int64_t weight) {
  for (size_t i = from; i < to; i++) {
    flow->arcs.items[flow->path.items[i]].residual += weight;
    flow->arcs.items[flow->path.items[i] ^ 1].residual -= weight;
  }
}

static int64_t least(const struct pp_flow *flow, size_t from, size_t to) {
  int64_t weight = INT64_MAX;
  for (size_t i = from; i < to; i++)
    if (carried(flow, flow->path.items[i]) < weight)
      weight = carried(flow, flow->path.items[i]);
  return weight;
}

void pp_flow_paths(struct pp_flow *flow) {
  for (size_t i = 0; i < flow->nodes.count; i++) {
    flow->nodes.items[i].level = -1;
    flow->nodes.items[i].current = flow->nodes.items[i].first;
  }
}

/* Leaves the path's nodes as pp_flow_paths made them, except for `current`: flow only gets less. */
static void forget_levels(struct pp_flow *flow, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    flow->nodes.items[flow->arcs.items[flow->path.items[i]].to].level = -1;
}

/* The arc that carries most out of a node, so that paths are few; at the source, which may have
 * very many, the first that carries any. Or -1: only at the source is there none, as what flows in
 * flows out. */
static int32_t widest(struct pp_flow *flow, pp_index u) {
  struct pp_flow_node *node = flow->nodes.items + u;
  int32_t best = node->current;
  while (best >= 0 && carried(flow, best) <= 0)
    best = flow->arcs.items[best].next;
  node->current = best;
  if (best < 0 || u == PP_FLOW_SOURCE)
    return best;
  for (int32_t a = flow->arcs.items[best].next; a >= 0; a = flow->arcs.items[a].next)
    if (carried(flow, a) > carried(flow, best))
      best = a;
  return best;
}

/* Walks along arcs that carry flow. A circle is cancelled where it closes. `level` is the place of
 * a node on the path, `current` the first of its arcs that may still carry flow. */
bool pp_flow_take_path(struct pp_flow *flow, int64_t *weight) {
  if (!room_for_search(flow))
    return false;
  struct pp_flow_node *node = flow->nodes.items;
  size_t length = 0;
  pp_index u = PP_FLOW_SOURCE;
  node[u].level = 0;
  *weight = 0;
  while (u != PP_FLOW_SINK) {
    int32_t a = widest(flow, u);
    if (a < 0)
      break;
    flow->path.items[length++] = a;
    u = flow->arcs.items[a].to;
    if (node[u].level >= 0) {
      size_t back = (size_t)node[u].level;
      cancel(flow, back, length, least(flow, back, length));
      forget_levels(flow, back, length);
      length = back;
      node[u].level = (int32_t)back;
    } else
      node[u].level = (int32_t)length;
  }
  node[PP_FLOW_SOURCE].level = -1;
  forget_levels(flow, 0, length);
  flow->path.count = length;
  if (!length)
    return true;
  *weight = least(flow, 0, length);
  cancel(flow, 0, length, *weight);
  return true;
}
