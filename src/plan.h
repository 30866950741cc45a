/* What pp_solve found. */
#ifndef PP_PLAN_H
#define PP_PLAN_H

#include "proof.h"

struct pp_plan {
  const pp_program *program;
  pp_index *order;
  int64_t before;   /* peak of the original order */
  int64_t peak;     /* of `order` */
  int64_t bound;    /* proof.bound */
  int64_t searched; /* what the search knows, at least `bound` */
  struct pp_proof proof;
  bool limited;
  double seconds;
  int64_t states;
};

#endif
