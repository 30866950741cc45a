/* Depth first through the states of one component. On the stack stand states that hold more and
 * more. A state that holds no more than one of them makes the stack commit: THEORY.md section 3,
 * with the lemma used not only at the root. What is once settled is never explored again. */
#include "explore.h"

#include <string.h>

#include "goal.h"

/* States until which goals are tried: they shorten the way to an order, but not a proof that there
 * is none. */
enum { AIMED_STATES = 1000 };

bool pp_explorer_init(struct pp_explorer *explorer, pp_index statements) {
  size_t n = (size_t)statements;
  *explorer = (struct pp_explorer){.statements = n};
  bool done = (explorer->place = pp_alloc(n, sizeof *explorer->place)) != NULL;
  done &= (explorer->stamp = pp_zalloc(n, sizeof *explorer->stamp)) != NULL;
  done &= (explorer->keep = pp_zalloc(n, sizeof *explorer->keep)) != NULL;
  return done & pp_goals_init(explorer, n);
}

int32_t pp_explorer_stamp(struct pp_explorer *explorer) {
  if (explorer->stamps == INT32_MAX) {
    size_t bytes = explorer->statements * sizeof(int32_t);
    memset(explorer->stamp, 0, bytes);
    memset(explorer->goal_stamp, 0, bytes);
    memset(explorer->closure_stamp, 0, bytes);
    explorer->stamps = 0;
  }
  return ++explorer->stamps;
}

void pp_explorer_free(struct pp_explorer *explorer) {
  free(explorer->ready.items);
  free(explorer->place);
  free(explorer->states.items);
  free(explorer->frames.items);
  free(explorer->choices.items);
  free(explorer->settling.items);
  free(explorer->table);
  free(explorer->stamp);
  free(explorer->moves.items);
  free(explorer->path.items);
  free(explorer->keep);
  pp_goals_free(explorer);
}

/* ---- Moving between states ---- */

static bool is_mine(const struct pp_explorer *explorer, pp_index v) {
  return explorer->component[v] == explorer->explored;
}

static bool add_ready(struct pp_explorer *explorer, pp_index v) {
  if (!PP_ROOM(&explorer->ready))
    return false;
  explorer->place[v] = (pp_index)explorer->ready.count;
  explorer->ready.items[explorer->ready.count++] = v;
  return true;
}

static void drop_ready(struct pp_explorer *explorer, pp_index v) {
  pp_index last = explorer->ready.items[--explorer->ready.count];
  explorer->ready.items[explorer->place[v]] = last;
  explorer->place[last] = explorer->place[v];
  explorer->place[v] = -1;
}

static bool step(struct pp_explorer *explorer, pp_index v) {
  struct pp_run *run = explorer->run;
  drop_ready(explorer, v);
  pp_run_step(run, v);
  PP_FOR_ROW (x, run->view.successors, v)
    if (!run->waiting[*x] && is_mine(explorer, *x) && !add_ready(explorer, *x))
      return false;
  return true;
}

static bool step_back(struct pp_explorer *explorer, pp_index v) {
  struct pp_run *run = explorer->run;
  PP_FOR_ROW (x, run->view.successors, v)
    if (!run->waiting[*x] && is_mine(explorer, *x))
      drop_ready(explorer, *x);
  pp_run_undo(run, v);
  return add_ready(explorer, v);
}

/* Undoes up to the common ancestor, then redoes down to `target`. */
bool pp_explorer_go_to(struct pp_explorer *explorer, int32_t target) {
  const struct pp_state *state = explorer->states.items;
  int32_t up = explorer->current, down = target;
  explorer->path.count = 0;
  while (up != down) {
    if (state[up].depth >= state[down].depth) {
      if (!step_back(explorer, state[up].statement))
        return false;
      up = state[up].parent;
    } else {
      if (!PP_ROOM(&explorer->path))
        return false;
      explorer->path.items[explorer->path.count++] = state[down].statement;
      down = state[down].parent;
    }
  }
  while (explorer->path.count)
    if (!step(explorer, explorer->path.items[--explorer->path.count]))
      return false;
  explorer->current = target;
  return true;
}

/* ---- The set of states ---- */

static uint64_t mix(uint64_t x) { /* splitmix64, Steele, Lea and Flood 2014 */
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Does the set of state a contain that of state b? Both are looked at only down to where they part.
 */
static bool contains(struct pp_explorer *explorer, int32_t a, int32_t b) {
  const struct pp_state *state = explorer->states.items;
  int32_t up = a, down = b, stamp = pp_explorer_stamp(explorer), missing = 0;
  if (state[a].depth < state[b].depth)
    return false;
  while (up != down)
    if (state[up].depth >= state[down].depth) {
      explorer->stamp[state[up].statement] = stamp;
      up = state[up].parent;
    } else
      down = state[down].parent;
  for (int32_t s = b; s != down; s = state[s].parent)
    missing += explorer->stamp[state[s].statement] != stamp;
  return !missing;
}

bool pp_explorer_same_set(struct pp_explorer *explorer, int32_t a, int32_t b) {
  const struct pp_state *state = explorer->states.items;
  return state[a].hash == state[b].hash && state[a].depth == state[b].depth &&
         contains(explorer, a, b);
}

static bool grow_table(struct pp_explorer *explorer) {
  size_t slots = explorer->slots ? explorer->slots * 2 : 256;
  if (explorer->slots && explorer->entries * 2 < explorer->slots)
    return true;
  struct pp_slot *table = pp_zalloc(slots, sizeof *table);
  if (!table)
    return false;
  for (size_t i = 0; i < explorer->slots; i++) {
    struct pp_slot slot = explorer->table[i];
    if (slot.epoch != explorer->epoch)
      continue;
    size_t at = explorer->states.items[slot.state].hash & (slots - 1);
    while (table[at].epoch == explorer->epoch)
      at = (at + 1) & (slots - 1);
    table[at] = slot;
  }
  free(explorer->table);
  explorer->table = table;
  explorer->slots = slots;
  return true;
}

/* Where the set of this state stands in the table, or the free slot where it belongs. */
static struct pp_slot *slot_of(struct pp_explorer *explorer, int32_t index) {
  size_t at = explorer->states.items[index].hash & (explorer->slots - 1);
  while (explorer->table[at].epoch == explorer->epoch &&
         !pp_explorer_same_set(explorer, explorer->table[at].state, index))
    at = (at + 1) & (explorer->slots - 1);
  return explorer->table + at;
}

int32_t pp_explorer_find(struct pp_explorer *explorer, int32_t index) {
  const struct pp_slot *slot = slot_of(explorer, index);
  return slot->epoch == explorer->epoch ? slot->state : -1;
}

/* *known: the set of this state was there already and need not be explored. Else the state stands
 * for it now. */
static bool remember(struct pp_explorer *explorer, int32_t index, bool *known) {
  if (!grow_table(explorer))
    return false;
  struct pp_slot *slot = slot_of(explorer, index);
  bool there = slot->epoch == explorer->epoch;
  *known = there && explorer->states.items[slot->state].settled != PP_ABANDONED;
  if (*known)
    return true;
  *slot = (struct pp_slot){explorer->epoch, index};
  explorer->entries += !there;
  return true;
}

/* ---- Exploring ---- */

/* Executes v and records the state reached. */
static bool descend(struct pp_explorer *explorer, pp_index v) {
  if (explorer->states.count >= INT32_MAX || !PP_ROOM(&explorer->states) || !step(explorer, v))
    return false;
  const struct pp_state *parent = explorer->states.items + explorer->current;
  explorer->states.items[explorer->states.count] =
      (struct pp_state){.hash = parent->hash + mix((uint64_t)v),
                        .memory = explorer->run->memory,
                        .parent = explorer->current,
                        .depth = parent->depth + 1,
                        .statement = v};
  explorer->current = (int32_t)explorer->states.count++;
  return true;
}

/* A ready statement within the level that leaves no more than it found, or -1: executing it loses
 * nothing. */
pp_index pp_explorer_free_move(struct pp_explorer *explorer) {
  for (size_t i = 0; i < explorer->ready.count; i++) {
    pp_index v = explorer->ready.items[i];
    if (pp_run_change(explorer->run, v) > 0)
      continue;
    int64_t cost = pp_run_cost(explorer->run, v);
    if (cost <= explorer->level)
      return v;
    if (cost < explorer->blocked)
      explorer->blocked = cost;
  }
  return -1;
}

/* Lists the statements between an ancestor and the current state, last one first. */
static bool list_moves(struct pp_explorer *explorer, int32_t ancestor) {
  const struct pp_state *state = explorer->states.items;
  explorer->moves.count = 0;
  for (int32_t s = explorer->current; s != ancestor; s = state[s].parent) {
    if (!PP_ROOM(&explorer->moves))
      return false;
    explorer->moves.items[explorer->moves.count++] = state[s].statement;
  }
  return true;
}

/* The current state holds no more than an ancestor: leaves in explorer->moves (last one first) the
 * way from the ancestor to the largest minimiser of M between both, and goes to the ancestor. The
 * way to the current state, restricted to the minimiser, stays within the level. */
static bool move_to_minimiser(struct pp_explorer *explorer, int32_t ancestor) {
  struct pp_cut *cut = explorer->cut;
  int64_t value;
  if (!list_moves(explorer, ancestor))
    return false;
  if (explorer->moves.count == 1)
    return pp_explorer_go_to(explorer, ancestor);
  if (!pp_cut_begin(cut))
    return false;
  for (size_t i = 0; i < explorer->moves.count; i++)
    if (!pp_cut_add(cut, explorer->moves.items[i]))
      return false;
  if (!pp_cut_largest(cut, explorer->keep, &value) || !pp_explorer_go_to(explorer, ancestor))
    return false;
  size_t kept = 0;
  for (size_t i = 0; i < explorer->moves.count; i++)
    if (explorer->keep[explorer->moves.items[i]])
      explorer->moves.items[kept++] = explorer->moves.items[i];
  explorer->moves.count = kept;
  return true;
}

static int compare_choices(const void *a, const void *b) {
  const struct pp_choice *x = a, *y = b;
  if (x->change != y->change)
    return x->change > y->change ? -1 : 1; /* the last one is taken first */
  return (x->statement < y->statement) - (x->statement > y->statement);
}

/* Makes the current state the last frame. What stands in `settling` from `settles` on is settled
 * with it. */
static bool push_frame(struct pp_explorer *explorer, size_t settles, int32_t deepest) {
  const struct pp_run *run = explorer->run;
  struct pp_frame frame = {.state = explorer->current,
                           .next = explorer->choices.count,
                           .settles = settles,
                           .deepest = deepest};
  for (size_t i = 0; i < explorer->ready.count; i++) {
    pp_index v = explorer->ready.items[i];
    int64_t cost = pp_run_cost(run, v);
    if (cost > explorer->level) {
      if (cost < explorer->blocked)
        explorer->blocked = cost;
      continue;
    }
    if (!PP_ROOM(&explorer->choices))
      return false;
    explorer->choices.items[explorer->choices.count++] =
        (struct pp_choice){.change = pp_run_change(run, v), .statement = v};
  }
  frame.end = explorer->choices.count;
  if (frame.end > frame.next) /* else there may be no array at all */
    qsort(explorer->choices.items + frame.next, frame.end - frame.next, sizeof(struct pp_choice),
          compare_choices);
  if (!PP_ROOM(&explorer->frames) || !PP_ROOM(&explorer->settling))
    return false;
  explorer->settling.items[explorer->settling.count++] = explorer->current;
  explorer->frames.items[explorer->frames.count++] = frame;
  return true;
}

/* All choices of the last frame were tried. */
static void pop_frame(struct pp_explorer *explorer) {
  struct pp_frame *frame = explorer->frames.items + --explorer->frames.count;
  explorer->states.items[frame->state].settled = PP_EXPANDED;
  explorer->choices.count = frame->next;
  explorer->settling.count = frame->settles;
}

static bool start_exploration(struct pp_explorer *explorer) {
  explorer->states.count = explorer->frames.count = explorer->choices.count = explorer->entries = 0;
  explorer->settling.count = 0;
  explorer->epoch++;
  if (!PP_ROOM(&explorer->states))
    return false;
  explorer->states.items[explorer->states.count++] =
      (struct pp_state){.memory = explorer->run->memory, .parent = -1, .statement = -1};
  explorer->current = 0;
  bool known;
  return remember(explorer, 0, &known) && push_frame(explorer, 0, 0);
}

/* Executes v and all free moves behind it. */
static bool descend_freely(struct pp_explorer *explorer, pp_index v) {
  if (!descend(explorer, v))
    return false;
  while (explorer->run->memory > explorer->states.items[0].memory &&
         (v = pp_explorer_free_move(explorer)) >= 0) {
    int32_t from = explorer->current;
    if (!descend(explorer, v))
      return false;
    explorer->states.items[from].settled = PP_PASSED;
    explorer->states.items[from].target = explorer->current;
  }
  return true;
}

static void reach(struct pp_explorer *explorer, int32_t index, int32_t from) {
  explorer->states.items[index].settled = PP_REACHED;
  explorer->states.items[index].target = from;
}

/* Goes through what is settled together with the last `popped` frames, from `first` on. What the
 * ancestor's frame brought keeps its reason. *deepest: of what is left. */
static void settle_all(struct pp_explorer *explorer, int32_t ancestor, size_t first,
                       int32_t *deepest) {
  struct pp_state *state = explorer->states.items;
  size_t kept = first;
  bool above = false;
  *deepest = 0;
  for (size_t i = first; i < explorer->settling.count; i++) {
    int32_t index = explorer->settling.items[i];
    if (contains(explorer, index, explorer->current)) {
      state[index].settled = PP_ABANDONED;
      continue;
    }
    if (above)
      reach(explorer, index, ancestor);
    above |= index == ancestor;
    explorer->settling.items[kept++] = index;
    if (state[index].depth > *deepest)
      *deepest = state[index].depth;
  }
  explorer->settling.count = kept;
}

/* The state `ancestor` commits to the current one. That settles every state between it and where
 * the commit was found (the last `popped` frames), and what was settled with these, once the
 * current one is settled: if one of them led to an end, so would the ancestor. But the current one
 * can lead to those that contain it: they must be explored when they are met again. They begin at
 * `first` in `settling`. */
static void settle_left(struct pp_explorer *explorer, int32_t ancestor, size_t first, size_t popped,
                        int32_t *deepest) {
  struct pp_state *state = explorer->states.items;
  const struct pp_frame *frame = explorer->frames.items + explorer->frames.count;
  *deepest = 0;
  for (size_t i = 0; i < popped; i++) {
    int32_t depth = state[frame[i].state].depth;
    *deepest = frame[i].deepest > *deepest ? frame[i].deepest : *deepest;
    *deepest = depth > *deepest ? depth : *deepest;
  }
  if (*deepest < state[explorer->current].depth)
    for (size_t i = 1; i < popped; i++)
      reach(explorer, frame[i].state, ancestor);
  else
    settle_all(explorer, ancestor, first, deepest);
  state[ancestor].settled = PP_COMMITTED;
  state[ancestor].target = explorer->current;
}

/* The current state holds no more than the last frame. Every frame that holds as much commits
 * (frames hold more and more from the root on): its other choices are forgotten. *root: that
 * reached the root itself, and the moves to make are in explorer->moves. */
static bool commit_inside(struct pp_explorer *explorer, size_t *settles, int32_t *deepest,
                          bool *root) {
  int32_t ancestor = -1;
  size_t all = explorer->frames.count;
  *root = false;
  for (;;) {
    int64_t memory = explorer->run->memory;
    const struct pp_state *state = explorer->states.items;
    size_t frames = explorer->frames.count;
    for (const struct pp_frame *frame; explorer->frames.count; explorer->frames.count--) {
      frame = explorer->frames.items + explorer->frames.count - 1;
      if (state[frame->state].memory < memory)
        break;
      ancestor = frame->state;
      *settles = frame->settles;
      explorer->choices.count = frame->next;
    }
    if (explorer->frames.count == frames) {
      settle_left(explorer, ancestor, *settles, all - frames, deepest);
      return true;
    }
    if (!move_to_minimiser(explorer, ancestor))
      return false;
    if (!ancestor) {
      *root = true;
      return true;
    }
    while (explorer->moves.count)
      if (!descend(explorer, explorer->moves.items[--explorer->moves.count]))
        return false;
  }
}

/* The end of the middle is reached within the level: all moves on the way are the rest of the
 * order. */
static enum pp_outcome reach_end(struct pp_explorer *explorer) {
  return list_moves(explorer, 0) && pp_explorer_go_to(explorer, 0) ? PP_COMMIT : PP_NO_MEMORY;
}

/* Goes on from the last frame: to a goal, if there is one, else by its next choice. *moved: it did,
 * else the frame is gone. */
static bool move_on(struct pp_explorer *explorer, bool *moved) {
  struct pp_frame *frame = explorer->frames.items + explorer->frames.count - 1;
  *moved = true;
  if (!frame->aimed && (frame->state == 0 || explorer->states.count < AIMED_STATES)) {
    bool found;
    int32_t since = explorer->frames.count > 1 ? frame[-1].state : 0;
    frame->aimed = true;
    if (!pp_explorer_go_to(explorer, frame->state) ||
        !pp_aim(explorer, frame->state == 0, since, &found))
      return false;
    while (found && explorer->moves.count)
      if (!descend(explorer, explorer->moves.items[--explorer->moves.count]))
        return false;
    if (found)
      return true;
  }
  if (frame->end == frame->next) {
    pop_frame(explorer);
    *moved = false;
    return true;
  }
  pp_index v = explorer->choices.items[--frame->end].statement;
  explorer->choices.count = frame->end;
  return pp_explorer_go_to(explorer, frame->state) && descend_freely(explorer, v);
}

/* One step of the exploration. PP_STUCK: go on. */
static enum pp_outcome advance(struct pp_explorer *explorer, bool *complete) {
  size_t settles = explorer->settling.count;
  int32_t deepest = 0;
  bool known, moved, root = false;
  int32_t from = explorer->frames.items[explorer->frames.count - 1].state;
  if (!move_on(explorer, &moved))
    return PP_NO_MEMORY;
  if (!moved)
    return PP_STUCK;
  explorer->visited++;
  int32_t depth = explorer->states.items[explorer->current].depth;
  *complete |= depth == explorer->open;
  if (depth == explorer->left)
    return reach_end(explorer);
  if (explorer->run->memory <= explorer->states.items[from].memory) {
    if (!commit_inside(explorer, &settles, &deepest, &root))
      return PP_NO_MEMORY;
    if (root)
      return PP_COMMIT;
  }
  if (!remember(explorer, explorer->current, &known) ||
      (!known && !push_frame(explorer, settles, deepest)))
    return PP_NO_MEMORY;
  if (known)
    explorer->settling.count = settles;
  return PP_STUCK;
}

enum pp_outcome pp_explore(struct pp_explorer *explorer, int64_t budget, bool (*stop)(void *),
                           void *data) {
  bool complete = false;
  if (!start_exploration(explorer))
    return PP_NO_MEMORY;
  while (explorer->frames.count) {
    enum pp_outcome outcome = advance(explorer, &complete);
    if (outcome != PP_STUCK)
      return outcome;
    if ((int64_t)explorer->states.count > budget || (stop && stop(data)))
      return pp_explorer_go_to(explorer, 0) ? PP_LIMITED : PP_NO_MEMORY;
  }
  if (!pp_explorer_go_to(explorer, 0))
    return PP_NO_MEMORY;
  return complete ? PP_COMPLETED : PP_STUCK;
}

bool pp_explorer_begin(struct pp_explorer *explorer, struct pp_run *run, struct pp_cut *cut,
                       const pp_index *member, size_t count) {
  explorer->run = run;
  explorer->cut = cut;
  explorer->ready.count = 0;
  for (size_t i = 0; i < count; i++)
    if (!run->done[member[i]] && !run->waiting[member[i]] && !add_ready(explorer, member[i]))
      return false;
  return true;
}

bool pp_explorer_execute(struct pp_explorer *explorer, pp_index v) {
  bool done = step(explorer, v);
  pp_goals_forget(explorer, v);
  return done;
}
