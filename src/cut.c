/* The network holds only statements that can be executed or not, and of these only what flow can
 * reach. */
#include "cut.h"

#include <string.h>

bool pp_cut_init(struct pp_cut *cut, const struct pp_run *run) {
  size_t n = (size_t)run->view.n, m = (size_t)run->view.m;
  *cut = (struct pp_cut){.run = run};
  bool done = (cut->is_free = pp_zalloc(n, sizeof *cut->is_free)) != NULL;
  done &= (cut->seen = pp_zalloc(m, sizeof *cut->seen)) != NULL;
  done &= (cut->free_accessors = pp_alloc(m, sizeof *cut->free_accessors)) != NULL;
  done &= (cut->node = pp_alloc(n, sizeof *cut->node)) != NULL;
  done &= (cut->begun_node = pp_alloc(m, sizeof *cut->begun_node)) != NULL;
  done &= (cut->ended_node = pp_alloc(m, sizeof *cut->ended_node)) != NULL;
  return done;
}

void pp_cut_free(struct pp_cut *cut) {
  free(cut->is_free);
  free(cut->seen);
  free(cut->free_accessors);
  free(cut->node);
  free(cut->begun_node);
  free(cut->ended_node);
  free(cut->statements.items);
  free(cut->storages.items);
  free(cut->taken);
  pp_flow_free(&cut->flow);
}

bool pp_cut_begin(struct pp_cut *cut) {
  if (cut->epoch == INT32_MAX) {
    memset(cut->is_free, 0, (size_t)cut->run->view.n * sizeof *cut->is_free);
    memset(cut->seen, 0, (size_t)cut->run->view.m * sizeof *cut->seen);
    cut->epoch = 0;
  }
  cut->epoch++;
  cut->statements.count = cut->storages.count = 0;
  return pp_flow_reset(&cut->flow);
}

bool pp_cut_add(struct pp_cut *cut, pp_index u) {
  if (!PP_ROOM(&cut->statements))
    return false;
  cut->statements.items[cut->statements.count++] = u;
  cut->is_free[u] = cut->epoch;
  cut->node[u] = -1;
  return true;
}

static bool find_storages(struct pp_cut *cut, pp_index v) {
  const struct pp_view *view = &cut->run->view;
  if (v >= 0)
    PP_FOR_ROW (s, view->accessed, v) {
      cut->seen[*s] = cut->epoch;
      cut->free_accessors[*s] = -1;
    }
  for (size_t i = 0; i < cut->statements.count; i++)
    PP_FOR_ROW (s, view->accessed, cut->statements.items[i]) {
      if (cut->seen[*s] != cut->epoch) {
        if (!PP_ROOM(&cut->storages))
          return false;
        cut->storages.items[cut->storages.count++] = *s;
        cut->seen[*s] = cut->epoch;
        cut->free_accessors[*s] = 0;
        cut->begun_node[*s] = cut->ended_node[*s] = -1;
      }
      cut->free_accessors[*s] += cut->free_accessors[*s] >= 0;
    }
  return true;
}

/* Does the storage exist because of what v needs (an accessor among its ancestors) or from the
 * start? */
static bool surely_begun(const struct pp_cut *cut, pp_index s) {
  const struct pp_run *run = cut->run;
  pp_index inside = (pp_index)pp_row_size(run->view.accessors, s) - run->left[s];
  return pp_begins(&run->view, s) || inside > cut->free_accessors[s];
}

static bool never_ended(const struct pp_cut *cut, pp_index s) {
  return cut->run->left[s] > 0 || pp_ends_never(&cut->run->view, s);
}

/* What the base chains that count leave of a storage. */
static int64_t room(const struct pp_cut *cut, pp_index s) {
  return cut->run->view.bytes[s] - (cut->base ? cut->taken[s] : 0);
}

/* The network is built from the source outwards, node by node, in the order of creation. A storage
 * that one free statement alone accesses has that statement's node for both of its own. */
static bool node_of_statement(struct pp_cut *cut, pp_index u, pp_index *node) {
  if (cut->node[u] < 0 && !pp_flow_node(&cut->flow, u, &cut->node[u]))
    return false;
  *node = cut->node[u];
  return true;
}

static bool node_of_storage(struct pp_cut *cut, pp_index s, pp_index *place, pp_index *node) {
  if (*place < 0) {
    if (cut->free_accessors[s] == 1) {
      PP_FOR_ROW (u, cut->run->view.accessors, s)
        if (pp_cut_is_free(cut, *u))
          return node_of_statement(cut, *u, node);
    }
    /* Labels of nodes: a statement, or ~s with the arcs told apart by which of the two it is. */
    if (!pp_flow_node(&cut->flow, ~s, place))
      return false;
  }
  *node = *place;
  return true;
}

static bool grow_from_statement(struct pp_cut *cut, pp_index u, pp_index node) {
  const struct pp_view *view = &cut->run->view;
  pp_index other;
  PP_FOR_ROW (p, view->predecessors, u)
    if (pp_cut_is_free(cut, *p) && (!node_of_statement(cut, *p, &other) ||
                                    !pp_flow_arc(&cut->flow, node, other, PP_FLOW_INFINITE, -1)))
      return false;
  PP_FOR_ROW (s, view->accessed, u) {
    if (cut->free_accessors[*s] < 0 || surely_begun(cut, *s))
      continue;
    if (!node_of_storage(cut, *s, &cut->begun_node[*s], &other))
      return false;
    if (other != node) {
      if (!pp_flow_arc(&cut->flow, node, other, PP_FLOW_INFINITE, -1))
        return false;
    } else if (never_ended(cut, *s) &&
               !pp_flow_arc(&cut->flow, node, PP_FLOW_SINK, room(cut, *s), *s))
      return false;
  }
  return true;
}

static bool grow_from_begun(struct pp_cut *cut, pp_index s, pp_index node) {
  pp_index ended = PP_FLOW_SINK;
  if (!never_ended(cut, s) && !node_of_storage(cut, s, &cut->ended_node[s], &ended))
    return false;
  return pp_flow_arc(&cut->flow, node, ended, room(cut, s), s);
}

static bool grow_from_ended(struct pp_cut *cut, pp_index s, pp_index node) {
  pp_index other;
  PP_FOR_ROW (u, cut->run->view.accessors, s)
    if (pp_cut_is_free(cut, *u) && (!node_of_statement(cut, *u, &other) ||
                                    !pp_flow_arc(&cut->flow, node, other, PP_FLOW_INFINITE, -1)))
      return false;
  return true;
}

/* Source arcs only; returns their capacity. */
static bool grow_from_source(struct pp_cut *cut, int64_t *capacity) {
  *capacity = 0;
  if (!pp_flow_reset(&cut->flow))
    return false;
  for (size_t i = 0; i < cut->storages.count; i++) {
    pp_index s = cut->storages.items[i], node;
    int64_t bytes = room(cut, s);
    if (!bytes || !surely_begun(cut, s) || never_ended(cut, s))
      continue;
    if (!node_of_storage(cut, s, &cut->ended_node[s], &node) ||
        !pp_flow_arc(&cut->flow, PP_FLOW_SOURCE, node, bytes, s))
      return false;
    *capacity += bytes;
  }
  return true;
}

static bool grow_network(struct pp_cut *cut) {
  for (size_t i = 2; i < cut->flow.nodes.count; i++) {
    pp_index label = cut->flow.nodes.items[i].label, node = (pp_index)i;
    bool done = label >= 0                               ? grow_from_statement(cut, label, node)
                : cut->begun_node[~label] == (pp_index)i ? grow_from_begun(cut, ~label, node)
                                                         : grow_from_ended(cut, ~label, node);
    if (!done)
      return false;
  }
  return true;
}

/* The cut without any flow: every storage that may or may not exist is left out. */
static int64_t constant_part(const struct pp_cut *cut, pp_index v) {
  int64_t value = v < 0 ? cut->run->memory : pp_run_cost(cut->run, v);
  for (size_t i = 0; i < cut->storages.count; i++) {
    pp_index s = cut->storages.items[i];
    if (!surely_begun(cut, s) && never_ended(cut, s))
      value -= cut->run->view.bytes[s];
  }
  return value;
}

bool pp_cut_set_base(struct pp_cut *cut, const struct pp_chains *base) {
  cut->base = base;
  free(cut->taken);
  cut->taken = base ? pp_zalloc((size_t)cut->run->view.m, sizeof *cut->taken) : NULL;
  return !base || cut->taken;
}

/* A base chain counts unless v accesses one of its storages, or one is constant for v. */
static bool counts(const struct pp_cut *cut, const struct pp_chain *chain) {
  for (size_t i = chain->begin; i < chain->end; i++) {
    pp_index s = ~cut->base->tokens.items[i];
    if (s < 0)
      continue;
    bool in_network = cut->seen[s] == cut->epoch;
    if (in_network && cut->free_accessors[s] < 0)
      return false;
    if (never_ended(cut, s) && (!in_network || surely_begun(cut, s)))
      return false;
  }
  return true;
}

/* Returns the sum of the weights. */
static int64_t count_base(struct pp_cut *cut) {
  int64_t sum = 0;
  for (size_t k = 0; cut->base && k < cut->base->chains.count; k++) {
    const struct pp_chain *chain = cut->base->chains.items + k;
    int64_t weight = counts(cut, chain) ? chain->weight : 0;
    sum += weight;
    for (size_t i = chain->begin; i < chain->end; i++)
      if (cut->base->tokens.items[i] < 0)
        cut->taken[~cut->base->tokens.items[i]] = weight;
  }
  return sum;
}

bool pp_cut_value(struct pp_cut *cut, pp_index v, int64_t target, bool exact, int64_t *value) {
  int64_t capacity;
  if (!find_storages(cut, v))
    return false;
  *value = constant_part(cut, v) + count_base(cut);
  if (*value >= target)
    return true;
  if (!grow_from_source(cut, &capacity))
    return false;
  if (!exact && *value + capacity < target) {
    *value += capacity;
    return true;
  }
  return grow_network(cut) && pp_flow_run(&cut->flow, target - *value, value);
}

/* The network is built anew: flow has been pushed, or it is not whole. */
static void forget_nodes(struct pp_cut *cut) {
  for (size_t i = 0; i < cut->statements.count; i++)
    cut->node[cut->statements.items[i]] = -1;
  for (size_t i = 0; i < cut->storages.count; i++)
    cut->begun_node[cut->storages.items[i]] = cut->ended_node[cut->storages.items[i]] = -1;
}

bool pp_cut_largest(struct pp_cut *cut, bool *member, int64_t *value) {
  int64_t capacity;
  pp_index node;
  if (!pp_cut_value(cut, -1, cut->run->memory, false, value))
    return false;
  if (*value >= cut->run->memory) { /* T itself is the largest minimiser */
    for (size_t i = 0; i < cut->statements.count; i++)
      member[cut->statements.items[i]] = true;
    return true;
  }
  forget_nodes(cut);
  if (!grow_from_source(cut, &capacity))
    return false;
  for (size_t i = 0; i < cut->statements.count; i++)
    if (!node_of_statement(cut, cut->statements.items[i], &node))
      return false;
  *value = constant_part(cut, -1);
  if (!grow_network(cut) || !pp_flow_run(&cut->flow, INT64_MAX, value) ||
      !pp_flow_largest_cut(&cut->flow))
    return false;
  for (size_t i = 0; i < cut->statements.count; i++) {
    pp_index u = cut->statements.items[i];
    member[u] = cut->flow.nodes.items[cut->node[u]].level >= 0;
  }
  return true;
}

bool pp_cut_members(struct pp_cut *cut, bool *member) {
  if (!pp_flow_largest_cut(&cut->flow))
    return false;
  for (size_t i = 0; i < cut->statements.count; i++) {
    pp_index u = cut->statements.items[i];
    if (cut->node[u] >= 0 && cut->flow.nodes.items[cut->node[u]].level >= 0)
      member[u] = true;
  }
  return true;
}

static bool push_token(struct pp_chains *chains, pp_index token) {
  if (!PP_ROOM(&chains->tokens))
    return false;
  chains->tokens.items[chains->tokens.count++] = token;
  return true;
}

/* A path of the flow is a chain: its labelled arcs are storages, its statements' nodes the runs. */
static bool push_chain(const struct pp_flow *flow, int64_t weight, struct pp_chains *chains) {
  struct pp_chain chain = {.weight = weight, .begin = chains->tokens.count};
  for (size_t i = 0; i < flow->path.count; i++) {
    const struct pp_arc *arc = flow->arcs.items + flow->path.items[i];
    pp_index label = flow->nodes.items[arc->to].label;
    if (arc->label >= 0 && !push_token(chains, ~arc->label))
      return false;
    if (arc->to != PP_FLOW_SINK && label >= 0 && !push_token(chains, label))
      return false;
  }
  chain.end = chains->tokens.count;
  if (!PP_ROOM(&chains->chains))
    return false;
  chains->chains.items[chains->chains.count++] = chain;
  return true;
}

bool pp_cut_chains(struct pp_cut *cut, struct pp_chains *chains) {
  struct pp_flow *flow = &cut->flow;
  pp_flow_paths(flow);
  for (;;) {
    int64_t weight;
    if (!pp_flow_take_path(flow, &weight))
      return false;
    if (!weight)
      return true;
    if (!push_chain(flow, weight, chains))
      return false;
  }
}
