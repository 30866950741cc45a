/* Lower bounds by traps (THEORY.md section 2). */
#ifndef PP_TRAP_H
#define PP_TRAP_H

#include "cut.h"
#include "order.h"
#include "proof.h"

/* A trap that grows, and the room that its cuts need. */
struct pp_trap {
  struct pp_run run;  /* executed is T, memory is M(T) */
  pp_indices members; /* T in the order in which it grew */
  pp_indices maximal; /* members without a successor in T */
  pp_index *place;    /* of a statement in maximal, or -1 */
  pp_index *after;    /* of a statement: successors in T */
  pp_indices exits;   /* and statements that were exits once */
  int64_t *cost;      /* of an exit, at least: found when the version was `checked` */
  int32_t *checked;
  int32_t version; /* changes when an earlier cost may no longer hold */
  /* To find what is free for an exit v: valid where the stamp is `epoch`. */
  int32_t epoch;
  int32_t *is_before;   /* direct predecessors of v */
  int32_t *counted;     /* statements whose free_after is valid */
  pp_index *free_after; /* successors in T that are free */
  struct pp_cut cut;
};

bool pp_trap_init(struct pp_trap *trap, struct pp_view view);
void pp_trap_free(struct pp_trap *trap);

/* Puts statements into T without a look at their cost: all predecessors of each must already be
 * there. */
bool pp_trap_seed(struct pp_trap *trap, const pp_index *statement, size_t count);

/* Grows T by exits of cost < level until none is left. Then T is everything (pp_trap_whole), or
 * every exit costs at least `level`. Returns PP_OK, PP_ERROR_MEMORY, or PP_ERROR_USAGE when `stop`
 * said so. */
pp_status pp_trap_grow(struct pp_trap *trap, int64_t level, bool (*stop)(void *), void *data);

static inline bool pp_trap_whole(const struct pp_trap *trap) {
  return trap->run.executed == trap->run.view.n;
}

/* Grows T to everything, each time by the cheapest exit, from `level` on: the largest cost ever
 * needed is the best bound that a trap proves, *bound; T was then the first *count members. *bound
 * is `level` and *count 0 if nothing better was found. */
pp_status pp_trap_climb(struct pp_trap *trap, int64_t level, int64_t *bound, size_t *count,
                        bool (*stop)(void *), void *data);

/* The smallest cost of an exit: what this trap proves. T must not be everything. */
bool pp_trap_bound(struct pp_trap *trap, int64_t *bound);

/* *cost := min c(S, v) over down-sets S of T that contain all ancestors of the exit v; see
 * pp_cut_value. What is free for v is trap->cut.statements afterwards. */
bool pp_trap_cut(struct pp_trap *trap, pp_index v, int64_t target, bool exact, int64_t *cost);

/* The proof that no order has a peak below `level`, after pp_trap_grow(level). */
bool pp_trap_proof(struct pp_trap *trap, int64_t level, struct pp_proof *proof);

#endif
