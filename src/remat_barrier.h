/* One step that needs too much: what to hold over it and what to run again after it, at least cost.
 * Exact for small treewidth of the dependence graph (remat_barrier.c). */
#ifndef PP_REMAT_BARRIER_H
#define PP_REMAT_BARRIER_H

#include "remat.h"

struct pp_barrier_point {
  int64_t memory; /* at the step */
  struct pp_remat_cost cost;
  size_t first, count; /* of `rerun` */
};

struct pp_barrier {
  PP_VECTOR(struct pp_barrier_point) points; /* memory falls, cost rises: the whole Pareto curve */
  PP_VECTOR(pp_index) rerun;                 /* statements, ascending for each point */
  pp_index variables, width;                 /* of the elimination */
  int64_t nodes, work;                       /* labels made; sums tried */
  bool thinned; /* choices were left out: the points are possible, but maybe not the best */
};

struct pp_barrier_limits {
  int64_t memory;            /* no point above this is wanted */
  struct pp_remat_cost cost; /* nor one that costs more */
  int64_t nodes, work;
  size_t thin;  /* keep at most so many labels a cell of a table; 0: all */
  size_t depth; /* chains of at most so many statements one after the other; 0: any */
  bool (*stop)(void *);
  void *data;
};

/* For run number `place` of a sequence. PP_REMAT_LIMIT: too wide, or too many labels. Free *barrier
 * in any case. */
enum pp_remat_result pp_remat_barrier(const struct pp_remat_facts *facts,
                                      const struct pp_sequence *sequence, size_t place,
                                      const struct pp_barrier_limits *limits,
                                      struct pp_barrier *barrier);
void pp_barrier_free(struct pp_barrier *barrier);

/* The sequence with the statements of a point run again after run `place`, each right before the
 * first run that needs it. False when out of memory. */
bool pp_barrier_apply(const struct pp_remat_facts *facts, const struct pp_sequence *sequence,
                      size_t place, const struct pp_barrier *barrier, size_t point,
                      struct pp_sequence *out);

#endif
