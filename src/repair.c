/* Local search by cuts. Of the statements near the dearest step v, those that v needs come before
 * it, those that need v behind it; for the others a minimum cut (THEORY.md section 2) says on which
 * side they make v cheapest. All of them change sides, or else one alone with what goes with it.
 * Both sides keep their order. Windows grow until one helps. */
#include "repair.h"

#include <string.h>

#include "cut.h"

enum { SMALLEST_WINDOW = 4, LARGEST_FOR_ONE = 64, WORK_EACH = 16, WORK = 1 << 22 };

struct repair {
  struct pp_run run; /* executed the first `at` statements of the order, and more for a while */
  struct pp_cut cut;
  pp_index *order, at;
  int64_t *cost; /* of the steps of the order */
  bool *before;  /* of a statement of the window: to run before v */
  bool *behind;  /* likewise: needs v */
  bool *wanted;  /* likewise: v is cheapest when it runs before v */
  pp_index *window;
  int64_t *fresh; /* what the window's steps would cost */
  int64_t peak;
  int64_t work; /* steps that may still be made */
};

static bool begin(struct repair *repair, struct pp_view view, pp_index *order) {
  size_t n = (size_t)view.n;
  *repair = (struct repair){.order = order};
  bool done = pp_run_init(&repair->run, view);
  done &= pp_cut_init(&repair->cut, &repair->run);
  done &= (repair->cost = pp_alloc(n, sizeof *repair->cost)) != NULL;
  done &= (repair->before = pp_zalloc(n, sizeof *repair->before)) != NULL;
  done &= (repair->behind = pp_zalloc(n, sizeof *repair->behind)) != NULL;
  done &= (repair->wanted = pp_zalloc(n, sizeof *repair->wanted)) != NULL;
  done &= (repair->window = pp_alloc(n, sizeof *repair->window)) != NULL;
  done &= (repair->fresh = pp_alloc(n, sizeof *repair->fresh)) != NULL;
  repair->work = WORK + WORK_EACH * (int64_t)n;
  return done;
}

static void end(struct repair *repair) {
  pp_run_free(&repair->run);
  pp_cut_free(&repair->cut);
  free(repair->cost);
  free(repair->before);
  free(repair->behind);
  free(repair->wanted);
  free(repair->window);
  free(repair->fresh);
}

static int64_t step(struct repair *repair, pp_index v) {
  repair->work--;
  return pp_run_step(&repair->run, v);
}

static void go_to(struct repair *repair, pp_index place) {
  while (repair->at > place)
    pp_run_undo(&repair->run, repair->order[--repair->at]);
  while (repair->at < place) {
    repair->cost[repair->at] = step(repair, repair->order[repair->at]);
    repair->at++;
  }
}

/* The first of the dearest steps. */
static pp_index dearest(struct repair *repair) {
  pp_index place = 0;
  for (pp_index i = 1; i < repair->run.view.n; i++)
    if (repair->cost[i] > repair->cost[place])
      place = i;
  repair->peak = repair->cost[place];
  return place;
}

/* Marks what v at `place` needs within the window, and what needs it. */
static void mark(struct repair *repair, pp_index from, pp_index place, pp_index to) {
  const struct pp_view *view = &repair->run.view;
  const pp_index *order = repair->order;
  for (pp_index i = from; i < to; i++)
    repair->before[order[i]] = false;
  repair->before[order[place]] = true;
  for (pp_index i = place; i >= from; i--)
    if (repair->before[order[i]])
      PP_FOR_ROW (p, view->predecessors, order[i])
        repair->before[*p] = true; /* those in front of the window do not matter */
  repair->before[order[place]] = false;
  repair->behind[order[place]] = true;
  for (pp_index i = place + 1; i < to; i++)
    PP_FOR_ROW (p, view->predecessors, order[i])
      repair->behind[order[i]] |= repair->behind[*p];
}

/* Which of the window's other statements make v cheapest when they run before it: marks them.
 * *helps: v gets cheaper than the peak. The run is at `from` before and after. */
static bool divide(struct repair *repair, pp_index from, pp_index place, pp_index to, bool *helps) {
  const pp_index *order = repair->order;
  int64_t value;
  bool done = pp_cut_begin(&repair->cut);
  for (pp_index i = from; i < to; i++)
    if (!repair->behind[order[i]]) {
      step(repair, order[i]);
      done = done && (repair->before[order[i]] || pp_cut_add(&repair->cut, order[i]));
    }
  done = done && pp_cut_value(&repair->cut, order[place], repair->peak, true, &value);
  *helps = done && value < repair->peak;
  done = done && (!*helps || pp_cut_members(&repair->cut, repair->before));
  for (pp_index i = to; i-- > from;)
    if (!repair->behind[order[i]])
      pp_run_undo(&repair->run, order[i]);
  return done;
}

/* The window anew: what is marked, v, the rest. Leaves the old one where it is no better. */
static void rearrange(struct repair *repair, pp_index from, pp_index place, pp_index to,
                      bool *better) {
  pp_index *order = repair->order, count = 0, dear = 0, v = order[place];
  for (pp_index i = from; i < to; i++) {
    dear += repair->cost[i] == repair->peak;
    if (repair->before[order[i]])
      repair->window[count++] = order[i];
  }
  repair->window[count++] = v;
  for (pp_index i = from; i < to; i++)
    if (!repair->before[order[i]] && order[i] != v)
      repair->window[count++] = order[i];
  pp_index done = 0;
  for (; done < count && dear >= 0; done++) {
    int64_t cost = repair->fresh[done] = step(repair, repair->window[done]);
    dear -= cost > repair->peak ? dear + 1 : cost == repair->peak;
  }
  *better = dear > 0;
  for (pp_index i = done; i-- > 0;)
    pp_run_undo(&repair->run, repair->window[i]);
  if (*better) {
    memcpy(order + from, repair->window, (size_t)count * sizeof *order);
    memcpy(repair->cost + from, repair->fresh, (size_t)count * sizeof *repair->cost);
  }
}

/* Marks the old order's first part, without the statement at `moved` and what needs it. */
static void keep_without(struct repair *repair, pp_index from, pp_index place, pp_index moved) {
  const struct pp_view *view = &repair->run.view;
  for (pp_index i = from; i < place; i++) {
    pp_index u = repair->order[i];
    repair->before[u] = i != moved;
    if (i > moved)
      PP_FOR_ROW (p, view->predecessors, u)
        repair->before[u] &= repair->before[*p] || repair->run.done[*p];
  }
}

/* Marks the old order's first part, and the statement at `moved` with what it needs. */
static void keep_with(struct repair *repair, pp_index from, pp_index place, pp_index moved) {
  const struct pp_view *view = &repair->run.view;
  for (pp_index i = from; i <= moved; i++)
    repair->before[repair->order[i]] = i < place || i == moved;
  for (pp_index i = moved; i > place; i--)
    if (repair->before[repair->order[i]])
      PP_FOR_ROW (p, view->predecessors, repair->order[i])
        repair->before[*p] = true;
}

/* One statement alone changes sides, as the cut wants it. The run is at `from`. */
static void move_one(struct repair *repair, pp_index from, pp_index place, pp_index to,
                     bool *better) {
  for (pp_index i = from; i < to; i++)
    repair->wanted[repair->order[i]] = repair->before[repair->order[i]];
  for (pp_index i = from; i < to && !*better && repair->work > 0; i++) {
    bool wanted = repair->wanted[repair->order[i]];
    if (i == place || wanted == (i < place))
      continue;
    for (pp_index j = place; j < to; j++)
      repair->before[repair->order[j]] = false;
    if (wanted)
      keep_with(repair, from, place, i);
    else
      keep_without(repair, from, place, i);
    rearrange(repair, from, place, to, better);
  }
}

static bool improve(struct repair *repair, bool *better) {
  pp_index n = repair->run.view.n, place = dearest(repair);
  repair->work -= n / 8; /* to look through the costs */
  for (pp_index size = SMALLEST_WINDOW; !*better && repair->work > 0; size *= 4) {
    pp_index from = place > size ? place - size : 0, to = n - place > size ? place + size : n;
    bool helps;
    go_to(repair, from);
    mark(repair, from, place, to);
    if (!divide(repair, from, place, to, &helps))
      return false;
    if (helps)
      rearrange(repair, from, place, to, better);
    if (helps && !*better && size <= LARGEST_FOR_ONE)
      move_one(repair, from, place, to, better);
    for (pp_index i = from; i < to; i++) /* for windows that begin behind these */
      repair->behind[repair->order[i]] = false;
    if (size > n)
      break;
  }
  return true;
}

bool pp_repair_order(struct pp_view view, pp_index *order, int64_t enough, bool (*stop)(void *),
                     void *data) {
  struct repair repair;
  bool done = begin(&repair, view, order);
  if (done)
    go_to(&repair, view.n);
  for (bool better = done && view.n > 0; better && done && !(stop && stop(data));) {
    better = false;
    done = improve(&repair, &better);
    better &= repair.peak > enough;
  }
  end(&repair);
  return done;
}
