/* Most commits are short: a few statements that together end what they begin. Found by depth first
 * they cost a detour wherever another statement is cheaper at first. So each statement near the
 * front is taken as a goal once: all that it needs and is not executed yet, if that is little, is
 * run greedily. Any way that is found so is a way like any other: nothing depends on this but time.
 */
#include "goal.h"

enum {
  CLOSURE_MAX = 24, /* statements that a goal may need */
  AHEAD = 3,        /* how many successors away goals are */
  GOALS_MAX = 32    /* for one state that is not the root */
};

bool pp_goals_init(struct pp_explorer *explorer, size_t n) {
  bool done = (explorer->goal_stamp = pp_zalloc(n, sizeof *explorer->goal_stamp)) != NULL;
  done &= (explorer->closure_stamp = pp_zalloc(n, sizeof *explorer->closure_stamp)) != NULL;
  done &= (explorer->failed = pp_alloc(n, sizeof *explorer->failed)) != NULL;
  for (size_t v = 0; done && v < n; v++)
    explorer->failed[v] = INT64_MAX;
  return done;
}

void pp_goals_free(struct pp_explorer *explorer) {
  free(explorer->goals.items);
  free(explorer->closure.items);
  free(explorer->goal_stamp);
  free(explorer->closure_stamp);
  free(explorer->failed);
}

void pp_goals_forget(struct pp_explorer *explorer, pp_index v) {
  const struct pp_run *run = explorer->run;
  PP_FOR_ROW (s, run->view.accessed, v) {
    pp_index all = (pp_index)pp_row_size(run->view.accessors, *s), left = run->left[*s];
    if (left == all - 1 || left == 1)
      PP_FOR_ROW (u, run->view.accessors, *s)
        explorer->failed[*u] = INT64_MAX;
  }
}

static bool is_open(const struct pp_explorer *explorer, pp_index v) {
  return explorer->component[v] == explorer->explored && !explorer->run->done[v];
}

static bool push_goal(struct pp_explorer *explorer, pp_index v) {
  if (explorer->goal_stamp[v] == explorer->stamps || !is_open(explorer, v))
    return true;
  explorer->goal_stamp[v] = explorer->stamps;
  if (!PP_ROOM(&explorer->goals))
    return false;
  explorer->goals.items[explorer->goals.count++] = v;
  return true;
}

/* Goals begin .. end - 1 lead to their successors, and so on. */
static bool push_ahead(struct pp_explorer *explorer, size_t most) {
  size_t begin = 0;
  for (int step = 0; step < AHEAD; step++) {
    size_t end = explorer->goals.count;
    for (; begin < end && explorer->goals.count < most; begin++)
      PP_FOR_ROW (x, explorer->run->view.successors, explorer->goals.items[begin])
        if (!push_goal(explorer, *x))
          return false;
  }
  return true;
}

/* explorer->closure := the goal and all that it needs and is not executed. *small: that is not too
 * much. */
static bool find_closure(struct pp_explorer *explorer, pp_index goal, bool *small) {
  int32_t stamp = pp_explorer_stamp(explorer);
  explorer->closure.count = 0;
  if (!pp_reserve((void **)&explorer->closure.items, &explorer->closure.capacity, CLOSURE_MAX + 1,
                  sizeof(pp_index)))
    return false;
  explorer->closure.items[explorer->closure.count++] = goal;
  for (size_t i = 0; i < explorer->closure.count; i++)
    PP_FOR_ROW (p, explorer->run->view.predecessors, explorer->closure.items[i]) {
      if (explorer->run->done[*p] || explorer->closure_stamp[*p] == stamp)
        continue;
      if (explorer->closure.count == CLOSURE_MAX) {
        *small = false;
        return true;
      }
      explorer->closure_stamp[*p] = stamp;
      explorer->closure.items[explorer->closure.count++] = *p;
    }
  *small = true;
  return true;
}

/* The ready statement of the closure from `begin` on that fits and changes memory least; its place,
 * or the closure's size. */
static size_t best_step(const struct pp_explorer *explorer, size_t begin) {
  const struct pp_run *run = explorer->run;
  size_t best = explorer->closure.count;
  int64_t least = INT64_MAX;
  for (size_t i = begin; i < explorer->closure.count; i++) {
    pp_index v = explorer->closure.items[i];
    if (run->waiting[v])
      continue;
    int64_t change = pp_run_change(run, v);
    if (change < least && pp_run_cost(run, v) <= explorer->level) {
      best = i;
      least = change;
    }
  }
  return best;
}

/* Runs the closure greedily until memory is back; the run is left as it was. Returns how many
 * statements, in front of the closure, that took, or 0. */
static size_t run_closure(struct pp_explorer *explorer) {
  struct pp_run *run = explorer->run;
  int64_t memory = run->memory;
  size_t count = 0;
  bool back = false;
  while (!back && count < explorer->closure.count) {
    size_t next = best_step(explorer, count);
    if (next == explorer->closure.count)
      break;
    pp_index v = explorer->closure.items[next];
    explorer->closure.items[next] = explorer->closure.items[count];
    explorer->closure.items[count++] = v;
    pp_run_step(run, v);
    back = run->memory <= memory;
  }
  for (size_t i = count; i--;)
    pp_run_undo(run, explorer->closure.items[i]);
  return back ? count : 0;
}

static bool keep_moves(struct pp_explorer *explorer, size_t count) {
  explorer->moves.count = 0;
  if (!pp_reserve((void **)&explorer->moves.items, &explorer->moves.capacity, count,
                  sizeof(pp_index)))
    return false;
  while (count--)
    explorer->moves.items[explorer->moves.count++] = explorer->closure.items[count];
  return true;
}

static bool push_first_goals(struct pp_explorer *explorer, bool root, int32_t since) {
  pp_explorer_stamp(explorer);
  explorer->goals.count = 0;
  if (root) {
    for (size_t i = 0; i < explorer->ready.count; i++)
      if (!push_goal(explorer, explorer->ready.items[i]))
        return false;
    return true;
  }
  const struct pp_state *state = explorer->states.items;
  for (int32_t s = explorer->current; s != since && state[s].parent >= 0; s = state[s].parent)
    PP_FOR_ROW (x, explorer->run->view.successors, state[s].statement)
      if (!push_goal(explorer, *x))
        return false;
  return true;
}

bool pp_aim(struct pp_explorer *explorer, bool root, int32_t since, bool *found) {
  *found = false;
  if (!push_first_goals(explorer, root, since) ||
      !push_ahead(explorer, root ? SIZE_MAX : GOALS_MAX))
    return false;
  for (size_t i = 0; i < explorer->goals.count; i++) {
    pp_index goal = explorer->goals.items[i];
    bool small;
    if (root && explorer->failed[goal] <= explorer->run->memory)
      continue;
    if (!find_closure(explorer, goal, &small))
      return false;
    size_t count = small ? run_closure(explorer) : 0;
    if (count) {
      *found = true;
      return keep_moves(explorer, count);
    }
    if (root)
      explorer->failed[goal] = explorer->run->memory;
  }
  return true;
}
