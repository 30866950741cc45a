/* Exact search by two-sided commits (THEORY.md section 3).
 *
 * From a down-set S one explores upward until some set R with M(R) <= M(S) is met and commits to
 * the largest minimiser of M between S and R: if any order of peak <= level passes through S, one
 * goes on from there. The reversed program shrinks the rest from the other end. What is left
 * between both falls into components, which are explored alone: every commit found so is valid, and
 * the level is infeasible when one of them can neither commit nor complete while no other can
 * commit. */
#include "search.h"

#include <string.h>

/* A state is its parent's set and one more statement. Only states that stand in the heap or the
 * table were normalized. */
struct state {
  uint64_t hash; /* of the set: the sum of its statements' */
  int64_t memory;
  int32_t parent; /* or -1: the root */
  int32_t depth;  /* statements since the root */
  pp_index statement;
  bool abandoned; /* left with choices untried: to be explored if met again */
};

struct side {
  struct pp_run run;
  PP_VECTOR(pp_index) order; /* committed */
  struct pp_cut cut;
};

struct slot {
  int32_t epoch, state;
};

/* A state on the way from the root to where the exploration is, and the statements that it can
 * still go on with: choices next .. end - 1. */
struct frame {
  int32_t state;
  size_t next, end;
  size_t settles; /* where in `settling` what is settled together with this state begins */
};

struct choice {
  int64_t change;
  pp_index statement;
};

enum outcome { COMMITTED, COMPLETED, STUCK, LIMITED, OUT_OF_MEMORY };

struct pp_search {
  const pp_program *program;
  struct side side[2]; /* forward, backward */
  pp_index left;       /* statements of the middle */
  int64_t level, blocked, visited;
  bool (*stop)(void *);
  void *data;
  /* Components of the middle: members of component k are member[start[k]] .. */
  pp_index *component, *parent;
  PP_VECTOR(pp_index) members;
  PP_VECTOR(size_t) starts;
  /* The exploration of one component from one side. */
  struct side *here;
  pp_index explored; /* component */
  pp_index open;     /* its statements that are not committed */
  PP_VECTOR(pp_index) ready;
  pp_index *place; /* in ready, or -1 */
  PP_VECTOR(struct state) states;
  int32_t current; /* the state in which here->run is */
  PP_VECTOR(struct frame) frames;
  PP_VECTOR(int32_t) settling;      /* states that are dead ends if the frames turn out to be */
  PP_VECTOR(struct choice) choices; /* of all frames, the last frame's last */
  struct slot *table;
  size_t slots, entries;
  int32_t epoch;
  int32_t *stamp; /* for comparing sets */
  int32_t stamps;
  PP_VECTOR(pp_index) moves, path;
  bool *keep;
};

pp_search *pp_search_new(const pp_program *program) {
  size_t n = (size_t)program->n;
  pp_search *search = pp_zalloc(1, sizeof *search);
  if (!search)
    return NULL;
  search->program = program;
  search->left = program->n;
  bool done = true;
  for (int k = 0; k < 2; k++) {
    struct side *side = search->side + k;
    done &= pp_run_init(&side->run, pp_view_of(program, k));
    done &= pp_cut_init(&side->cut, &side->run);
  }
  done &= (search->component = pp_alloc(n, sizeof *search->component)) != NULL;
  done &= (search->parent = pp_alloc(n, sizeof *search->parent)) != NULL;
  done &= (search->place = pp_alloc(n, sizeof *search->place)) != NULL;
  done &= (search->stamp = pp_zalloc(n, sizeof *search->stamp)) != NULL;
  done &= (search->keep = pp_zalloc(n, sizeof *search->keep)) != NULL;
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
  }
  free(search->component);
  free(search->parent);
  free(search->members.items);
  free(search->starts.items);
  free(search->ready.items);
  free(search->place);
  free(search->states.items);
  free(search->frames.items);
  free(search->choices.items);
  free(search->settling.items);
  free(search->table);
  free(search->stamp);
  free(search->moves.items);
  free(search->path.items);
  free(search->keep);
  free(search);
}

int64_t pp_search_next_level(const pp_search *search) {
  return search->blocked;
}

int64_t pp_search_states(const pp_search *search) {
  return search->visited;
}

void pp_search_order(const pp_search *search, pp_index *order) {
  const struct side *front = search->side, *back = search->side + 1;
  for (size_t i = 0; i < front->order.count; i++)
    *order++ = front->order.items[i];
  for (size_t i = back->order.count; i--;)
    *order++ = back->order.items[i];
}

/* ---- Components ---- */

static bool in_middle(const pp_search *search, pp_index v) {
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
    if (in_middle(search, v))
      PP_FOR_ROW(p, view->predecessors, v)
  if (in_middle(search, *p))
    join(parent, *p, v);
  for (pp_index s = 0; s < view->m; s++) {
    pp_index first = -1;
    if (can_change(search, s))
      PP_FOR_ROW(v, view->accessors, s)
    if (in_middle(search, *v)) {
      if (first < 0)
        first = *v;
      join(parent, first, *v);
    }
  }
}

/* Numbers the components by their first statements and lists their members, ascending. */
static bool find_components(pp_search *search) {
  pp_index n = search->program->n, count = 0;
  join_all(search);
  search->starts.count = 0;
  for (pp_index v = 0; v < n; v++)
    if (in_middle(search, v) && search->parent[v] == v) {
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
    if (in_middle(search, v)) {
      search->component[v] = search->component[find(search->parent, v)];
      start[search->component[v] + 1]++;
    } else
      search->component[v] = -1;
  for (pp_index k = 0; k < count; k++)
    start[k + 1] += start[k];
  for (pp_index v = n; v-- > 0;)
    if (in_middle(search, v))
      search->members.items[--start[search->component[v] + 1]] = v;
  for (pp_index k = 0; k < count; k++) /* start[k + 1] fell to where k begins */
    start[k] = start[k + 1];
  start[count] = (size_t)search->left;
  return true;
}

/* ---- Moving between states ---- */

static bool is_mine(const pp_search *search, pp_index v) {
  return search->component[v] == search->explored;
}

static bool add_ready(pp_search *search, pp_index v) {
  if (!PP_ROOM(&search->ready))
    return false;
  search->place[v] = (pp_index)search->ready.count;
  search->ready.items[search->ready.count++] = v;
  return true;
}

static void drop_ready(pp_search *search, pp_index v) {
  pp_index last = search->ready.items[--search->ready.count];
  search->ready.items[search->place[v]] = last;
  search->place[last] = search->place[v];
  search->place[v] = -1;
}

static bool step(pp_search *search, pp_index v) {
  struct pp_run *run = &search->here->run;
  drop_ready(search, v);
  pp_run_step(run, v);
  PP_FOR_ROW(x, run->view.successors, v)
  if (!run->waiting[*x] && is_mine(search, *x) && !add_ready(search, *x))
    return false;
  return true;
}

static bool step_back(pp_search *search, pp_index v) {
  struct pp_run *run = &search->here->run;
  PP_FOR_ROW(x, run->view.successors, v)
  if (!run->waiting[*x] && is_mine(search, *x))
    drop_ready(search, *x);
  pp_run_undo(run, v);
  return add_ready(search, v);
}

/* Undoes up to the common ancestor, then redoes down to `target`. */
static bool go_to(pp_search *search, int32_t target) {
  const struct state *state = search->states.items;
  int32_t up = search->current, down = target;
  search->path.count = 0;
  while (up != down) {
    if (state[up].depth >= state[down].depth) {
      if (!step_back(search, state[up].statement))
        return false;
      up = state[up].parent;
    } else {
      if (!PP_ROOM(&search->path))
        return false;
      search->path.items[search->path.count++] = state[down].statement;
      down = state[down].parent;
    }
  }
  while (search->path.count)
    if (!step(search, search->path.items[--search->path.count]))
      return false;
  search->current = target;
  return true;
}

/* ---- The set of states ---- */

static uint64_t mix(uint64_t x) { /* splitmix64, Steele, Lea and Flood 2014 */
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static bool same_set(pp_search *search, int32_t a, int32_t b) {
  const struct state *state = search->states.items;
  if (state[a].hash != state[b].hash || state[a].depth != state[b].depth ||
      state[a].memory != state[b].memory)
    return false;
  int32_t stamp = ++search->stamps;
  for (; state[a].parent >= 0; a = state[a].parent)
    search->stamp[state[a].statement] = stamp;
  for (; state[b].parent >= 0; b = state[b].parent)
    if (search->stamp[state[b].statement] != stamp)
      return false;
  return true;
}

static bool grow_table(pp_search *search) {
  size_t slots = search->slots ? search->slots * 2 : 256;
  if (search->slots && search->entries * 2 < search->slots)
    return true;
  struct slot *table = pp_zalloc(slots, sizeof *table);
  if (!table)
    return false;
  for (size_t i = 0; i < search->slots; i++) {
    struct slot slot = search->table[i];
    if (slot.epoch != search->epoch)
      continue;
    size_t at = search->states.items[slot.state].hash & (slots - 1);
    while (table[at].epoch == search->epoch)
      at = (at + 1) & (slots - 1);
    table[at] = slot;
  }
  free(search->table);
  search->table = table;
  search->slots = slots;
  return true;
}

/* *known: the set of this state was there already. Else it is there now. */
static bool remember(pp_search *search, int32_t index, bool *known) {
  if (!grow_table(search))
    return false;
  size_t at = search->states.items[index].hash & (search->slots - 1);
  *known = false;
  for (; search->table[at].epoch == search->epoch; at = (at + 1) & (search->slots - 1))
    if (same_set(search, search->table[at].state, index)) {
      *known = !search->states.items[search->table[at].state].abandoned;
      search->table[at].state = index;
      return true;
    }
  search->table[at] = (struct slot){search->epoch, index};
  search->entries++;
  return true;
}

/* ---- Exploring ---- */

/* Executes v and records the state reached. */
static bool descend(pp_search *search, pp_index v) {
  if (search->states.count >= INT32_MAX || !PP_ROOM(&search->states) || !step(search, v))
    return false;
  const struct state *parent = search->states.items + search->current;
  search->states.items[search->states.count] =
      (struct state){.hash = parent->hash + mix((uint64_t)v),
                     .memory = search->here->run.memory,
                     .parent = search->current,
                     .depth = parent->depth + 1,
                     .statement = v};
  search->current = (int32_t)search->states.count++;
  return true;
}

/* A ready statement within the level that leaves no more than it found, or -1: executing it loses
 * nothing. */
static pp_index free_move(pp_search *search) {
  for (size_t i = 0; i < search->ready.count; i++) {
    pp_index v = search->ready.items[i];
    if (pp_run_change(&search->here->run, v) > 0)
      continue;
    int64_t cost = pp_run_cost(&search->here->run, v);
    if (cost <= search->level)
      return v;
    if (cost < search->blocked)
      search->blocked = cost;
  }
  return -1;
}

static bool commit(pp_search *search, pp_index v) {
  struct side *side = search->here;
  if (!PP_ROOM(&side->order) || !step(search, v))
    return false;
  side->order.items[side->order.count++] = v;
  search->left--;
  search->open--;
  return true;
}

/* Lists the statements between an ancestor and the current state, last one first. */
static bool list_moves(pp_search *search, int32_t ancestor) {
  const struct state *state = search->states.items;
  search->moves.count = 0;
  for (int32_t s = search->current; s != ancestor; s = state[s].parent) {
    if (!PP_ROOM(&search->moves))
      return false;
    search->moves.items[search->moves.count++] = state[s].statement;
  }
  return true;
}

/* The current state holds no more than an ancestor: leaves in search->moves (last one first) the
 * way from the ancestor to the largest minimiser of M between both, and goes to the ancestor. The
 * way to the current state, restricted to the minimiser, stays within the level. */
static bool move_to_minimiser(pp_search *search, int32_t ancestor) {
  struct pp_cut *cut = &search->here->cut;
  int64_t value;
  if (!list_moves(search, ancestor))
    return false;
  if (search->moves.count == 1)
    return go_to(search, ancestor);
  if (!pp_cut_begin(cut))
    return false;
  for (size_t i = 0; i < search->moves.count; i++)
    if (!pp_cut_add(cut, search->moves.items[i]))
      return false;
  if (!pp_cut_largest(cut, search->keep, &value) || !go_to(search, ancestor))
    return false;
  size_t kept = 0;
  for (size_t i = 0; i < search->moves.count; i++)
    if (search->keep[search->moves.items[i]])
      search->moves.items[kept++] = search->moves.items[i];
  search->moves.count = kept;
  return true;
}

static enum outcome commit_moves(pp_search *search) {
  for (size_t i = search->moves.count; i--;)
    if (!commit(search, search->moves.items[i]))
      return OUT_OF_MEMORY;
  return COMMITTED;
}

static int compare_choices(const void *a, const void *b) {
  const struct choice *x = a, *y = b;
  if (x->change != y->change)
    return x->change > y->change ? -1 : 1; /* the last one is taken first */
  return (x->statement < y->statement) - (x->statement > y->statement);
}

/* Makes the current state the last frame. What stands in `settling` from `settles` on is settled
 * with it. */
static bool push_frame(pp_search *search, size_t settles) {
  const struct pp_run *run = &search->here->run;
  struct frame frame = {
      .state = search->current, .next = search->choices.count, .settles = settles};
  for (size_t i = 0; i < search->ready.count; i++) {
    pp_index v = search->ready.items[i];
    int64_t cost = pp_run_cost(run, v);
    if (cost > search->level) {
      if (cost < search->blocked)
        search->blocked = cost;
      continue;
    }
    if (!PP_ROOM(&search->choices))
      return false;
    search->choices.items[search->choices.count++] =
        (struct choice){.change = pp_run_change(run, v), .statement = v};
  }
  frame.end = search->choices.count;
  qsort(search->choices.items + frame.next, frame.end - frame.next, sizeof(struct choice),
        compare_choices);
  if (!PP_ROOM(&search->frames) || !PP_ROOM(&search->settling))
    return false;
  search->settling.items[search->settling.count++] = search->current;
  search->frames.items[search->frames.count++] = frame;
  return true;
}

static void pop_frame(pp_search *search) {
  struct frame *frame = search->frames.items + --search->frames.count;
  search->choices.count = frame->next;
  search->settling.count = frame->settles;
}

static bool start_exploration(pp_search *search) {
  search->states.count = search->frames.count = search->choices.count = search->entries = 0;
  search->settling.count = 0;
  search->epoch++;
  if (!PP_ROOM(&search->states))
    return false;
  search->states.items[search->states.count++] =
      (struct state){.memory = search->here->run.memory, .parent = -1, .statement = -1};
  search->current = 0;
  bool known;
  return remember(search, 0, &known) && push_frame(search, 0);
}

/* Executes v and all free moves behind it. */
static bool descend_freely(pp_search *search, pp_index v) {
  if (!descend(search, v))
    return false;
  while (search->here->run.memory > search->states.items[0].memory && (v = free_move(search)) >= 0)
    if (!descend(search, v))
      return false;
  return true;
}

/* A commit from a state A to Q settles every state between A and where the commit was found once Q
 * is settled: if one of them led to an end, so would A and then Q. But Q can lead to those that
 * contain it: they must be explored when they are met again. The states that the commit left begin
 * at `first` in `settling`. */
static void abandon_above(pp_search *search, size_t first) {
  struct state *state = search->states.items;
  int32_t stamp = ++search->stamps, depth = state[search->current].depth;
  for (int32_t s = search->current; state[s].parent >= 0; s = state[s].parent)
    search->stamp[state[s].statement] = stamp;
  size_t kept = first;
  for (size_t i = first; i < search->settling.count; i++) {
    int32_t common = 0, left = search->settling.items[i];
    for (int32_t s = left; state[s].parent >= 0; s = state[s].parent)
      common += search->stamp[state[s].statement] == stamp;
    state[left].abandoned = common == depth;
    if (!state[left].abandoned)
      search->settling.items[kept++] = left;
  }
  search->settling.count = kept;
}

/* The current state holds no more than the last frame. Every frame that holds as much commits
 * (frames hold more and more from the root on): its other choices are forgotten. *root: that
 * reached the root itself, and the moves to make are in search->moves. */
static bool commit_inside(pp_search *search, size_t *settles, bool *root) {
  *root = false;
  for (;;) {
    int64_t memory = search->here->run.memory;
    const struct state *state = search->states.items;
    int32_t ancestor = -1;
    while (search->frames.count &&
           state[search->frames.items[search->frames.count - 1].state].memory >= memory) {
      struct frame *frame = search->frames.items + search->frames.count - 1;
      ancestor = frame->state;
      *settles = frame->settles;
      search->choices.count = frame->next;
      search->frames.count--;
    }
    if (ancestor < 0) {
      abandon_above(search, *settles);
      return true;
    }
    if (!move_to_minimiser(search, ancestor))
      return false;
    *root = ancestor == 0;
    if (*root)
      return true;
    while (search->moves.count)
      if (!descend(search, search->moves.items[--search->moves.count]))
        return false;
  }
}

/* One step of the exploration: takes the next choice of the last frame. */
static enum outcome advance(pp_search *search, bool *complete) {
  struct frame *frame = search->frames.items + search->frames.count - 1;
  bool known, root = false;
  size_t settles = search->settling.count;
  if (frame->end == frame->next) {
    pop_frame(search);
    return STUCK;
  }
  pp_index v = search->choices.items[--frame->end].statement;
  search->choices.count = frame->end;
  if (!go_to(search, frame->state) || !descend_freely(search, v))
    return OUT_OF_MEMORY;
  search->visited++;
  int32_t depth = search->states.items[search->current].depth;
  *complete |= depth == search->open;
  if (depth == search->left) { /* the end of the middle: the rest of the order */
    if (!list_moves(search, 0) || !go_to(search, 0))
      return OUT_OF_MEMORY;
    return commit_moves(search);
  }
  if (search->here->run.memory <= search->states.items[frame->state].memory) {
    if (!commit_inside(search, &settles, &root))
      return OUT_OF_MEMORY;
    if (root)
      return commit_moves(search);
  }
  if (!remember(search, search->current, &known))
    return OUT_OF_MEMORY;
  if (known)
    search->settling.count = settles;
  else if (!push_frame(search, settles))
    return OUT_OF_MEMORY;
  return STUCK;
}

/* One exploration from the committed set, depth first. */
static enum outcome explore(pp_search *search, int64_t budget) {
  bool moved = false, complete = false;
  for (pp_index v; (v = free_move(search)) >= 0; moved = true)
    if (!commit(search, v))
      return OUT_OF_MEMORY;
  if (moved || !search->open)
    return COMMITTED;
  if (!start_exploration(search))
    return OUT_OF_MEMORY;
  while (search->frames.count) {
    enum outcome outcome = advance(search, &complete);
    if (outcome != STUCK)
      return outcome;
    if ((int64_t)search->states.count > budget || (search->stop && search->stop(search->data))) {
      return go_to(search, 0) ? LIMITED : OUT_OF_MEMORY;
    }
  }
  if (!go_to(search, 0))
    return OUT_OF_MEMORY;
  return complete ? COMPLETED : STUCK;
}

/* Explores a component from one side until it is used up or does not yield. */
static enum outcome explore_component(pp_search *search, int side, pp_index component,
                                      int64_t budget, bool *committed) {
  const size_t *start = search->starts.items;
  search->here = search->side + side;
  search->explored = component;
  search->open = 0;
  search->ready.count = 0;
  for (size_t i = start[component]; i < start[component + 1]; i++) {
    pp_index v = search->members.items[i];
    if (!in_middle(search, v))
      continue;
    search->open++;
    if (!search->here->run.waiting[v] && !add_ready(search, v))
      return OUT_OF_MEMORY;
  }
  enum outcome outcome = COMMITTED;
  while (outcome == COMMITTED && search->open) {
    outcome = explore(search, budget);
    *committed |= outcome == COMMITTED;
  }
  return outcome;
}

/* All components from one side. Infeasible is told only if nothing was committed. */
static enum outcome explore_side(pp_search *search, int side, int64_t budget, bool *committed) {
  enum outcome worst = COMPLETED;
  bool moved = false;
  if (!find_components(search))
    return OUT_OF_MEMORY;
  search->blocked = INT64_MAX;
  for (pp_index k = 0; k + 1 < (pp_index)search->starts.count; k++) {
    enum outcome outcome = explore_component(search, side, k, budget, &moved);
    if (outcome == OUT_OF_MEMORY)
      return outcome;
    if (outcome == LIMITED || (outcome == STUCK && worst != LIMITED))
      worst = outcome;
  }
  *committed |= moved;
  return moved ? COMMITTED : worst;
}

pp_search_result pp_search_run(pp_search *search, int64_t level, int64_t states,
                               bool (*stop)(void *), void *data) {
  search->level = level;
  search->stop = stop;
  search->data = data;
  if (search->side[0].run.memory > level)
    return search->blocked = search->side[0].run.memory, PP_SEARCH_INFEASIBLE;
  for (int64_t budget = 64; search->left;) {
    bool committed = false;
    for (int side = 0; side < 2 && search->left; side++) {
      enum outcome outcome = explore_side(search, side, budget, &committed);
      if (outcome == OUT_OF_MEMORY)
        return PP_SEARCH_MEMORY;
      if (outcome == STUCK)
        return PP_SEARCH_INFEASIBLE;
    }
    if (stop && stop(data))
      return PP_SEARCH_LIMIT;
    if (committed)
      continue;
    if (budget >= states)
      return PP_SEARCH_LIMIT;
    budget = budget * 4 < states ? budget * 4 : states;
  }
  return PP_SEARCH_FOUND;
}
