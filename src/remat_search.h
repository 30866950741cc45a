/* Repeated repair of the step that needs most, with rescheduling in between. */
#ifndef PP_REMAT_SEARCH_H
#define PP_REMAT_SEARCH_H

#include "remat_barrier.h"

struct pp_remat_search {
  const struct pp_remat_facts *facts;
  const struct pp_remat_limits *limits;
  struct pp_remat_front *front;
  const struct pp_sequence *base; /* every statement once */
  const pp_options *solve;        /* for rescheduling */
  PP_VECTOR(struct pp_remat_label) expanded;
  PP_VECTOR(int64_t) swept;
  /* Of barriers: whole Pareto sets and chains of any length until that is too much. */
  bool thin;
  size_t depth;    /* 0: any */
  int64_t repairs; /* barriers solved */
  int64_t work;    /* by them */
  int64_t states;  /* by rescheduling */
  bool limited;    /* stopped before the front stood still */
};

/* Adds to the front what repair finds from the base, which is added too. */
pp_status pp_remat_search(struct pp_remat_search *search, pp_error *error);

/* What no sequence whose first runs stand in the base's order can do: for every step of the base
 * the least cost at which its memory falls to a level. */
struct pp_remat_bound {
  PP_VECTOR(struct pp_remat_label) label; /* all steps together: (memory, least cost of it) */
  PP_VECTOR(size_t) start;                /* of each step's in label; and the end */
};
/* Steps of the base above `level`, the highest first, as many as `steps`. False when out of
 * memory. */
bool pp_remat_bound_init(struct pp_remat_bound *bound, const struct pp_remat_facts *facts,
                         const struct pp_sequence *base, int64_t level,
                         const struct pp_remat_limits *limits, size_t steps);
void pp_remat_bound_free(struct pp_remat_bound *bound);
/* The least cost with which a peak of at most `peak` may be possible; false if none is. */
bool pp_remat_bound_at(const struct pp_remat_bound *bound, int64_t peak,
                       struct pp_remat_cost *cost);
/* Among all sequences whose first runs stand in the base's order: does none with a peak below that
 * of the entry before cost less than this one, and has none that costs no more a lower peak? */
bool pp_remat_proves(const struct pp_remat_bound *bound, const struct pp_remat_front *front,
                     size_t entry);

#endif
