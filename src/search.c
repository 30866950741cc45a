/* Exact search by two-sided commits (THEORY.md section 3).
 *
 * From a down-set S one explores upward until some set R with M(R) <= M(S) is met and commits to
 * the largest minimiser of M between S and R: if any order of peak <= level passes through S, one
 * goes on from there. The reversed program shrinks the rest from the other end. What is left
 * between both falls into components, which are explored alone: every commit found so is valid, and
 * the level is infeasible when one of them can neither commit nor complete while no other can
 * commit. */
#include "search.h"

pp_search *pp_search_new(const pp_program *program) {
  size_t n = (size_t)program->n;
  pp_search *search = pp_zalloc(1, sizeof *search);
  if (!search)
    return NULL;
  search->program = program;
  search->left = program->n;
  bool done = pp_explorer_init(&search->explorer, program->n);
  for (int k = 0; k < 2; k++) {
    struct pp_search_side *side = search->side + k;
    done &= pp_run_init(&side->run, pp_view_of(program, k));
    done &= pp_cut_init(&side->cut, &side->run);
  }
  done &= (search->component = pp_alloc(n, sizeof *search->component)) != NULL;
  done &= (search->parent = pp_alloc(n, sizeof *search->parent)) != NULL;
  if (done)
    return search;
  pp_search_free(search);
  return NULL;
}

void pp_search_free(pp_search *search) {
  if (!search)
    return;
  for (int k = 0; k < 2; k++) {
    pp_run_free(&search->side[k].run);
    pp_cut_free(&search->side[k].cut);
    free(search->side[k].order.items);
    free(search->side[k].commits.items);
  }
  free(search->component);
  free(search->parent);
  free(search->members.items);
  free(search->starts.items);
  pp_explorer_free(&search->explorer);
  free(search);
}

void pp_search_order(const pp_search *search, pp_index *order) {
  const struct pp_search_side *front = search->side, *back = search->side + 1;
  for (size_t i = 0; i < front->order.count; i++)
    *order++ = front->order.items[i];
  for (size_t i = back->order.count; i--;)
    *order++ = back->order.items[i];
}

/* ---- Components ---- */

bool pp_search_in_middle(const pp_search *search, pp_index v) {
  return !search->side[0].run.done[v] && !search->side[1].run.done[v];
}

static pp_index find(pp_index *parent, pp_index v) {
  while (parent[v] != v)
    v = parent[v] = parent[parent[v]];
  return v;
}

static void join(pp_index *parent, pp_index a, pp_index b) {
  a = find(parent, a);
  b = find(parent, b);
  if (a < b)
    parent[b] = a;
  else
    parent[a] = b;
}

/* A storage that is live at both ends of the middle stays live throughout: it joins nothing. */
static bool can_change(const pp_search *search, pp_index s) {
  return !(pp_run_begun(&search->side[0].run, s) && pp_run_begun(&search->side[1].run, s));
}

static void join_all(pp_search *search) {
  const struct pp_view *view = &search->side[0].run.view;
  pp_index *parent = search->parent;
  for (pp_index v = 0; v < view->n; v++)
    parent[v] = v;
  for (pp_index v = 0; v < view->n; v++)
    if (pp_search_in_middle(search, v))
      PP_FOR_ROW (p, view->predecessors, v)
        if (pp_search_in_middle(search, *p))
          join(parent, *p, v);
  for (pp_index s = 0; s < view->m; s++) {
    pp_index first = -1;
    if (can_change(search, s))
      PP_FOR_ROW (v, view->accessors, s)
        if (pp_search_in_middle(search, *v)) {
          if (first < 0)
            first = *v;
          join(parent, first, *v);
        }
  }
}

/* Numbers the components by their first statements and lists their members, ascending. */
bool pp_search_components(pp_search *search) {
  pp_index n = search->program->n, count = 0;
  join_all(search);
  search->starts.count = 0;
  for (pp_index v = 0; v < n; v++)
    if (pp_search_in_middle(search, v) && search->parent[v] == v) {
      if (!PP_ROOM(&search->starts))
        return false;
      search->starts.items[search->starts.count++] = 0;
      search->component[v] = count++;
    }
  if (!PP_ROOM(&search->starts) ||
      !pp_reserve((void **)&search->members.items, &search->members.capacity, (size_t)search->left,
                  sizeof(pp_index)))
    return false;
  search->starts.items[search->starts.count++] = 0;
  size_t *start = search->starts.items;
  for (pp_index v = 0; v < n; v++)
    if (pp_search_in_middle(search, v)) {
      search->component[v] = search->component[find(search->parent, v)];
      start[search->component[v] + 1]++;
    } else
      search->component[v] = -1;
  for (pp_index k = 0; k < count; k++)
    start[k + 1] += start[k];
  for (pp_index v = n; v-- > 0;)
    if (pp_search_in_middle(search, v))
      search->members.items[--start[search->component[v] + 1]] = v;
  for (pp_index k = 0; k < count; k++) /* start[k + 1] fell to where k begins */
    start[k] = start[k + 1];
  start[count] = (size_t)search->left;
  return true;
}

/* ---- Commits ---- */

bool pp_search_turn(pp_search *search, int side, pp_index component) {
  struct pp_search_side *here = search->side + side;
  const size_t *start = search->starts.items;
  struct pp_explorer *explorer = &search->explorer;
  explorer->level = search->level;
  explorer->component = search->component;
  explorer->explored = component;
  explorer->left = search->left;
  explorer->open = 0;
  for (size_t i = start[component]; i < start[component + 1]; i++)
    explorer->open += pp_search_in_middle(search, search->members.items[i]);
  return pp_explorer_begin(explorer, &here->run, &here->cut,
                           search->members.items + start[component],
                           start[component + 1] - start[component]);
}

static bool execute(pp_search *search, struct pp_search_side *side, pp_index v) {
  if (!PP_ROOM(&side->order) || !pp_explorer_execute(&search->explorer, v))
    return false;
  side->order.items[side->order.count++] = v;
  search->explorer.left = --search->left;
  search->explorer.open--;
  return true;
}

static bool end_commit(struct pp_search_side *side) {
  if (!PP_ROOM(&side->commits))
    return false;
  side->commits.items[side->commits.count++] = side->order.count;
  return true;
}

bool pp_search_follow(pp_search *search, const pp_search *from) {
  search->proved.side = from->proved.side; /* what was hard will be again */
  search->proved.budget = from->proved.budget;
  for (int k = 0; k < 2; k++) {
    struct pp_search_side *side = search->side + k;
    size_t commits = from->proved.commits[k];
    size_t count = commits ? from->side[k].commits.items[commits - 1] : 0;
    for (size_t i = 0, next = 0; i < count; i++) {
      pp_index v = from->side[k].order.items[i];
      if (!PP_ROOM(&side->order))
        return false;
      pp_run_step(&side->run, v);
      side->order.items[side->order.count++] = v;
      search->left--;
      if (from->side[k].commits.items[next] == i + 1) {
        next++;
        if (!end_commit(side))
          return false;
      }
    }
  }
  return true;
}

static bool commit_free_moves(pp_search *search, struct pp_search_side *side, bool *committed) {
  for (pp_index v; (v = pp_explorer_free_move(&search->explorer)) >= 0; *committed = true)
    if (!execute(search, side, v) || !end_commit(side))
      return false;
  return true;
}

static bool commit_moves(pp_search *search, struct pp_search_side *side) {
  const struct pp_explorer *explorer = &search->explorer;
  for (size_t i = explorer->moves.count; i--;)
    if (!execute(search, side, explorer->moves.items[i]))
      return false;
  return end_commit(side);
}

/* Explores a component from one side until it is used up or does not yield. */
static enum pp_outcome explore_component(pp_search *search, int which, pp_index component,
                                         int64_t budget, bool *committed) {
  struct pp_search_side *side = search->side + which;
  if (!pp_search_turn(search, which, component))
    return PP_NO_MEMORY;
  for (;;) {
    if (!commit_free_moves(search, side, committed))
      return PP_NO_MEMORY;
    if (!search->explorer.open)
      return PP_COMMIT;
    enum pp_outcome outcome = pp_explore(&search->explorer, budget, search->stop, search->data);
    if (outcome != PP_COMMIT)
      return outcome;
    *committed = true;
    if (!commit_moves(search, side))
      return PP_NO_MEMORY;
  }
}

/* All components from one side. PP_STUCK: nothing was committed, and the level is infeasible. */
static enum pp_outcome explore_side(pp_search *search, int side, int64_t budget, bool *committed) {
  enum pp_outcome worst = PP_COMPLETED;
  bool moved = false;
  if (!pp_search_components(search))
    return PP_NO_MEMORY;
  search->explorer.blocked = INT64_MAX;
  for (pp_index k = 0; k + 1 < (pp_index)search->starts.count; k++) {
    enum pp_outcome outcome = explore_component(search, side, k, budget, &moved);
    if (outcome == PP_NO_MEMORY)
      return outcome;
    if (outcome == PP_LIMITED || (outcome == PP_STUCK && worst != PP_LIMITED))
      worst = outcome;
  }
  *committed |= moved;
  return moved ? PP_COMMIT : worst;
}

/* `bound` is 0 where nothing is proved: the commits hold all the same. */
static void keep_commits(pp_search *search, int side, int64_t budget, int64_t bound) {
  search->proved = (struct pp_search_bound){
      .bound = bound,
      .side = side,
      .budget = budget,
      .commits = {search->side[0].commits.count, search->side[1].commits.count}};
}

static pp_search_result infeasible(pp_search *search, int side, int64_t budget, int64_t bound) {
  keep_commits(search, side, budget, bound);
  return PP_SEARCH_INFEASIBLE;
}

static pp_search_result limited(pp_search *search, int64_t budget) {
  keep_commits(search, 0, budget, 0);
  return PP_SEARCH_LIMIT;
}

pp_search_result pp_search_run(pp_search *search, int64_t level, int64_t states,
                               bool (*stop)(void *), void *data) {
  search->level = level;
  search->stop = stop;
  search->data = data;
  if (search->side[0].run.memory > level)
    return infeasible(search, 0, 0, search->side[0].run.memory);
  int first = search->proved.side;
  int64_t budget = search->proved.budget < states ? search->proved.budget : states;
  for (budget = budget > 64 ? budget : 64; search->left;) {
    bool committed = false;
    for (int k = 0; k < 2 && search->left; k++) {
      int side = first ^ k;
      enum pp_outcome outcome = explore_side(search, side, budget, &committed);
      if (outcome == PP_NO_MEMORY)
        return PP_SEARCH_MEMORY;
      if (outcome == PP_STUCK)
        return infeasible(search, side, budget, search->explorer.blocked);
    }
    if (stop && stop(data))
      return limited(search, budget);
    if (committed)
      continue;
    if (budget >= states)
      return limited(search, budget);
    budget = budget * 4 < states ? budget * 4 : states;
  }
  return PP_SEARCH_FOUND;
}
