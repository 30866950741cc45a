/* Choices under pairwise constraints, with two costs: the whole Pareto curve, by elimination of one
 * variable after the other. */
#ifndef PP_REMAT_ELIMINATE_H
#define PP_REMAT_ELIMINATE_H

#include "remat.h"

/* Choice 0 is "made again", choice 1 + b holds the values whose bits are in b. */
struct pp_variable {
  uint32_t choices;
  size_t option; /* its choices' labels are options[option .. option + choices - 1] */
};
struct pp_option {
  int64_t memory; /* < 0: not allowed */
  struct pp_remat_cost cost;
};
/* If `user` chooses 0, `maker` must choose 0 or hold value `bit`. */
struct pp_demand_edge {
  int32_t user, maker;
  uint32_t bit;
};

struct pp_elimination_label {
  int64_t memory;
  struct pp_remat_cost cost;
  int32_t node;
};
struct pp_elimination_node { /* two labels together */
  int32_t a, b;
};

struct pp_elimination {
  PP_VECTOR(struct pp_variable) variables;
  PP_VECTOR(struct pp_option) options;
  PP_VECTOR(struct pp_demand_edge) edges;
  /* Labels above these are dropped. */
  int64_t memory;
  struct pp_remat_cost cost;
  int64_t limit;      /* nodes that may be made */
  int64_t work_limit; /* cells and sums of labels that may be tried */
  size_t thin;        /* keep at most so many labels a cell; 0: all */
  bool (*stop)(void *);
  void *data;
  /* The result: memory falls, cost rises. */
  PP_VECTOR(struct pp_elimination_label) curve;
  PP_VECTOR(struct pp_elimination_node) nodes;
  int64_t work;
  int32_t width; /* neighbours of an eliminated variable, at most */
  bool thinned;
};

/* PP_REMAT_LIMIT: too wide, or too many labels. */
enum pp_remat_result pp_eliminate(struct pp_elimination *elimination);
void pp_elimination_free(struct pp_elimination *elimination);
/* choice[v] of every variable in a label of the curve. False when out of memory. */
bool pp_elimination_choices(const struct pp_elimination *elimination, size_t label,
                            uint32_t *choice);

#endif
