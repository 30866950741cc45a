/* Traps (THEORY.md section 2): grow a set T by exits that are cheap; when every exit of T is
 * expensive, so is every order. The cost of an exit is a minimum cut. The network of a cut holds
 * only statements that can be executed or not (T without the ancestors of the exit), and of these
 * only what flow can reach. */
#include "trap.h"

#include "error.h"

#include <string.h>

bool pp_trap_init(struct pp_trap *trap, struct pp_view view) {
  size_t n = (size_t)view.n;
  *trap = (struct pp_trap){.version = 1};
  bool done = pp_run_init(&trap->run, view);
  done &= pp_cut_init(&trap->cut, &trap->run);
  done &= (trap->place = pp_alloc(n, sizeof *trap->place)) != NULL;
  done &= (trap->after = pp_zalloc(n, sizeof *trap->after)) != NULL;
  done &= (trap->cost = pp_alloc(n, sizeof *trap->cost)) != NULL;
  done &= (trap->checked = pp_zalloc(n, sizeof *trap->checked)) != NULL;
  done &= (trap->is_before = pp_zalloc(n, sizeof *trap->is_before)) != NULL;
  done &= (trap->counted = pp_zalloc(n, sizeof *trap->counted)) != NULL;
  done &= (trap->free_after = pp_alloc(n, sizeof *trap->free_after)) != NULL;
  for (pp_index v = 0; done && v < view.n; v++) {
    trap->place[v] = -1;
    if (!trap->run.waiting[v]) {
      done = PP_ROOM(&trap->exits);
      if (done)
        trap->exits.items[trap->exits.count++] = v;
    }
  }
  return done;
}

void pp_trap_free(struct pp_trap *trap) {
  pp_run_free(&trap->run);
  free(trap->members.items);
  free(trap->maximal.items);
  free(trap->exits.items);
  free(trap->place);
  free(trap->after);
  free(trap->cost);
  free(trap->checked);
  free(trap->is_before);
  free(trap->counted);
  free(trap->free_after);
  pp_cut_free(&trap->cut);
}

/* ---- Growing ---- */

static bool push_exit(struct pp_trap *trap, pp_index v) {
  if (!PP_ROOM(&trap->exits))
    return false;
  trap->exits.items[trap->exits.count++] = v;
  return true;
}

static void leave_maximal(struct pp_trap *trap, pp_index v) {
  pp_index last = trap->maximal.items[--trap->maximal.count], place = trap->place[v];
  trap->maximal.items[place] = last;
  trap->place[last] = place;
  trap->place[v] = -1;
}

/* Costs found earlier hold until a storage ends that was constant, or an end of chains: then its
 * last accessor outside T joins T. */
static bool ends_storage(const struct pp_trap *trap, pp_index v) {
  const struct pp_run *run = &trap->run;
  PP_FOR_ROW (s, run->view.accessed, v)
    if (run->left[*s] == 1 && !pp_ends_never(&run->view, *s) && pp_run_begun(run, *s))
      return true;
  return false;
}

static bool add(struct pp_trap *trap, pp_index v) {
  const struct pp_view *view = &trap->run.view;
  if (!PP_ROOM(&trap->members) || !PP_ROOM(&trap->maximal))
    return false;
  trap->version += ends_storage(trap, v);
  pp_run_step(&trap->run, v);
  trap->members.items[trap->members.count++] = v;
  trap->place[v] = (pp_index)trap->maximal.count;
  trap->maximal.items[trap->maximal.count++] = v;
  PP_FOR_ROW (p, view->predecessors, v)
    if (!trap->after[*p]++)
      leave_maximal(trap, *p);
  PP_FOR_ROW (x, view->successors, v)
    if (!trap->run.waiting[*x] && !push_exit(trap, *x))
      return false;
  return true;
}

bool pp_trap_seed(struct pp_trap *trap, const pp_index *statement, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!add(trap, statement[i]))
      return false;
  return true;
}

/* ---- One cut ---- */

/* T without the ancestors of v, found from above: a statement is free if v does not need it
 * directly and all its successors in T are. */
static bool find_free(struct pp_trap *trap, pp_index v) {
  const struct pp_view *view = &trap->run.view;
  struct pp_cut *cut = &trap->cut;
  if (!pp_cut_begin(cut))
    return false;
  if (trap->epoch == INT32_MAX) {
    memset(trap->is_before, 0, (size_t)view->n * sizeof *trap->is_before);
    memset(trap->counted, 0, (size_t)view->n * sizeof *trap->counted);
    trap->epoch = 0;
  }
  int32_t epoch = ++trap->epoch;
  PP_FOR_ROW (p, view->predecessors, v)
    trap->is_before[*p] = epoch;
  for (size_t i = 0; i < trap->maximal.count; i++) {
    pp_index u = trap->maximal.items[i];
    if (trap->is_before[u] == epoch)
      continue;
    if (!pp_cut_add(cut, u))
      return false;
  }
  for (size_t i = 0; i < cut->statements.count; i++)
    PP_FOR_ROW (p, view->predecessors, cut->statements.items[i]) {
      if (trap->is_before[*p] == epoch)
        continue;
      if (trap->counted[*p] != epoch) {
        trap->counted[*p] = epoch;
        trap->free_after[*p] = 0;
      }
      if (++trap->free_after[*p] == trap->after[*p] && !pp_cut_add(cut, *p))
        return false;
    }
  return true;
}

bool pp_trap_cut(struct pp_trap *trap, pp_index v, int64_t target, bool exact, int64_t *cost) {
  return find_free(trap, v) && pp_cut_value(&trap->cut, v, target, exact, cost);
}

/* ---- Growing to a level ---- */

/* T itself is one of the sets S: no cut is needed where v is cheap after all of T. */
static bool add_cheap_after_all(struct pp_trap *trap, int64_t level, bool *grown) {
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < trap->exits.count; i++) {
      pp_index v = trap->exits.items[i];
      if (trap->run.done[v] || pp_run_cost(&trap->run, v) >= level)
        continue;
      if (!add(trap, v))
        return false;
      again = *grown = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < trap->exits.count; i++)
      if (!trap->run.done[trap->exits.items[i]])
        trap->exits.items[kept++] = trap->exits.items[i];
    trap->exits.count = kept;
  }
  return true;
}

pp_status pp_trap_grow(struct pp_trap *trap, int64_t level, bool (*stop)(void *), void *data) {
  for (bool grown = true; grown;) {
    grown = false;
    if (!add_cheap_after_all(trap, level, &grown))
      return PP_ERROR_MEMORY;
    grown = false;
    for (size_t i = 0; i < trap->exits.count; i++) {
      pp_index v = trap->exits.items[i];
      if (trap->run.done[v] || (trap->checked[v] == trap->version && trap->cost[v] >= level))
        continue;
      if (stop && stop(data))
        return PP_ERROR_USAGE;
      if (!pp_trap_cut(trap, v, level, false, &trap->cost[v]))
        return PP_ERROR_MEMORY;
      trap->checked[v] = trap->version;
      if (trap->cost[v] < level) {
        if (!add(trap, v))
          return PP_ERROR_MEMORY;
        grown = true;
      }
    }
  }
  return PP_OK;
}

bool pp_trap_bound(struct pp_trap *trap, int64_t *bound) {
  *bound = INT64_MAX;
  for (size_t i = 0; i < trap->exits.count; i++) {
    pp_index v = trap->exits.items[i];
    int64_t cost;
    if (trap->run.done[v])
      continue;
    if (!pp_trap_cut(trap, v, *bound, true, &cost))
      return false;
    if (cost < *bound)
      *bound = cost;
  }
  return true;
}

pp_status pp_trap_climb(struct pp_trap *trap, int64_t level, int64_t *bound, size_t *count,
                        bool (*stop)(void *), void *data) {
  *bound = level;
  *count = 0;
  for (;;) {
    pp_status status = pp_trap_grow(trap, level, stop, data);
    if (status || pp_trap_whole(trap))
      return status;
    if (!pp_trap_bound(trap, bound))
      return PP_ERROR_MEMORY;
    *count = trap->members.count;
    level = *bound + 1;
  }
}
