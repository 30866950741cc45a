/* Explores one component of the middle from one side, depth first, with commits inside (THEORY.md
 * section 3). */
#ifndef PP_EXPLORE_H
#define PP_EXPLORE_H

#include "cut.h"
#include "order.h"

/* What is known of a state. */
enum pp_settled {
  PP_OPEN,      /* nothing yet */
  PP_PASSED,    /* a free move led on, to the state's only child */
  PP_EXPANDED,  /* every statement leads to a settled state or costs too much */
  PP_COMMITTED, /* commits to the state `target` */
  PP_REACHED,   /* reached from the settled state `target`: it leads to an end only if that one does
                 */
  PP_ABANDONED  /* left with choices untried: to be explored if met again */
};

/* A state is its parent's set and one more statement. State 0 is the root: nothing beyond what the
 * side has executed. */
struct pp_state {
  uint64_t hash; /* of the set: the sum of its statements' */
  int64_t memory;
  int32_t parent; /* or -1 */
  int32_t depth;  /* statements since the root */
  pp_index statement;
  int32_t target;
  uint8_t settled; /* enum pp_settled */
};

/* A state on the way from the root to where the exploration is, and the statements that it can
 * still go on with: choices next .. end - 1. */
struct pp_frame {
  int32_t state;
  size_t next, end;
  size_t settles;  /* where in `settling` what is settled together with this state begins */
  int32_t deepest; /* the largest depth of what stands there before the state itself */
  bool aimed;      /* goals were tried */
};

struct pp_choice {
  int64_t change;
  pp_index statement;
};

struct pp_slot {
  int32_t epoch, state;
};

struct pp_explorer {
  struct pp_run *run;        /* of the side that is explored */
  struct pp_cut *cut;        /* on that run */
  const pp_index *component; /* of every statement */
  pp_index explored;         /* the component */
  pp_index open;             /* its statements that are not executed */
  pp_index left;             /* those of the whole middle */
  int64_t level;             /* steps that cost more are not taken */
  int64_t blocked;           /* the least cost of a step not taken */
  int64_t visited;           /* states, by all explorations */
  pp_indices ready;
  pp_index *place; /* in ready, or -1 */
  PP_VECTOR(struct pp_state) states;
  int32_t current; /* the state in which the run is */
  PP_VECTOR(struct pp_frame) frames;
  PP_VECTOR(struct pp_choice) choices;
  PP_VECTOR(int32_t) settling;
  struct pp_slot *table;
  size_t slots, entries;
  int32_t epoch;
  int32_t *stamp; /* for comparing sets */
  int32_t stamps;
  size_t statements;
  pp_indices moves, path;
  bool *keep;
  /* Goals: see goal.h. */
  pp_indices goals, closure;
  int32_t *goal_stamp, *closure_stamp;
  int64_t *failed; /* of a goal at the root: memory with which it failed; INT64_MAX: not tried */
};

enum pp_outcome {
  PP_COMMIT,    /* explorer->moves, last one first, lose nothing */
  PP_COMPLETED, /* no commit, but the component's end was reached */
  PP_STUCK,     /* neither */
  PP_LIMITED,
  PP_NO_MEMORY
};

/* A stamp that no statement bears in `stamp`, `goal_stamp` or `closure_stamp`. */
int32_t pp_explorer_stamp(struct pp_explorer *explorer);

bool pp_explorer_init(struct pp_explorer *explorer, pp_index statements);
void pp_explorer_free(struct pp_explorer *explorer);

/* Turns to a component, whose members are given: those in the middle are ready or wait for others.
 * False when out of memory, here and below. */
bool pp_explorer_begin(struct pp_explorer *explorer, struct pp_run *run, struct pp_cut *cut,
                       const pp_index *member, size_t count);
/* Executes a ready statement for good. */
bool pp_explorer_execute(struct pp_explorer *explorer, pp_index v);
/* A ready statement within the level that leaves no more than it found, or -1: executing it loses
 * nothing. */
pp_index pp_explorer_free_move(struct pp_explorer *explorer);
/* One exploration. The run is at the root before and after. */
enum pp_outcome pp_explore(struct pp_explorer *explorer, int64_t budget, bool (*stop)(void *),
                           void *data);
/* The state in the table with the same set as `index`, or -1. */
int32_t pp_explorer_find(struct pp_explorer *explorer, int32_t index);
bool pp_explorer_same_set(struct pp_explorer *explorer, int32_t a, int32_t b);
/* Brings the run to a state. */
bool pp_explorer_go_to(struct pp_explorer *explorer, int32_t target);

#endif
