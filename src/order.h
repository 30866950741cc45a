/* What an order costs. */
#ifndef PP_ORDER_H
#define PP_ORDER_H

#include "program.h"

/* A run of a view's statements: which have been executed, which storages live, how many bytes. */
struct pp_run {
  struct pp_view view;
  pp_index *left;    /* of each storage: accessors not yet executed */
  pp_index *waiting; /* of each statement: direct predecessors not yet executed */
  bool *done;        /* of each statement */
  int64_t memory;    /* bytes that live now: M(S) */
  pp_index executed;
};

/* Starts at the empty set. False when out of memory. Free with pp_run_free, also after a failure.
 */
bool pp_run_init(struct pp_run *run, struct pp_view view);
void pp_run_free(struct pp_run *run);

/* c(S, v) of a ready statement v (THEORY.md section 1): the bytes that exist while it runs now. */
int64_t pp_run_cost(const struct pp_run *run, pp_index v);
/* M(S + v) - M(S). */
int64_t pp_run_change(const struct pp_run *run, pp_index v);
/* Executes a ready statement; returns what it cost. */
int64_t pp_run_step(struct pp_run *run, pp_index v);
/* Takes the statement back that was executed last. */
void pp_run_undo(struct pp_run *run, pp_index v);

/* Has some accessor run, or does the storage exist from the start? */
static inline bool pp_run_begun(const struct pp_run *run, pp_index s) {
  return pp_begins(&run->view, s) || run->left[s] < (pp_index)pp_row_size(run->view.accessors, s);
}

/* The peak of a legal order of the view. */
pp_status pp_peak(struct pp_view view, const pp_index *order, int64_t *peak, pp_error *error);

#endif
