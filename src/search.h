/* Exact search by two-sided commits (THEORY.md section 3). */
#ifndef PP_SEARCH_H
#define PP_SEARCH_H

#include "explore.h"
#include "proof.h"

typedef enum pp_search_result {
  PP_SEARCH_FOUND,      /* an order of peak <= level */
  PP_SEARCH_INFEASIBLE, /* there is none */
  PP_SEARCH_LIMIT,      /* the budget ran out */
  PP_SEARCH_MEMORY      /* out of memory */
} pp_search_result;

struct pp_search_side {
  struct pp_run run;
  struct pp_cut cut;
  pp_indices order;          /* committed */
  PP_VECTOR(size_t) commits; /* where each commit ends in `order` */
};

/* What an infeasible level left: the commits made until then and the side whose exploration ended.
 * After PP_SEARCH_LIMIT: the commits only. */
struct pp_search_bound {
  int64_t bound; /* no order has a smaller peak; 0: nothing is known */
  int side;
  int64_t budget; /* states that one exploration could hold in the end */
  size_t commits[2];
};

struct pp_search {
  const pp_program *program;
  struct pp_search_side side[2]; /* forward, backward */
  pp_index left;                 /* statements of the middle */
  int64_t level;
  struct pp_search_bound proved;
  /* Components of the middle: members of component k are member[start[k]] .. member[start[k + 1] -
   * 1]. */
  pp_index *component, *parent;
  pp_indices members;
  PP_VECTOR(size_t) starts;
  struct pp_explorer explorer;
  bool (*stop)(void *);
  void *data;
};
typedef struct pp_search pp_search;

/* NULL when out of memory. */
pp_search *pp_search_new(const pp_program *program);
void pp_search_free(pp_search *search);

/* Repeats the commits that `from` made when it ended: they hold at its level and every higher one.
 * `search` must be new. False when out of memory. */
bool pp_search_follow(pp_search *search, const pp_search *from);

/* Looks for an order of peak <= level with at most `states` states in one exploration. Levels must
 * not fall from call to call: commits are kept. `stop` may be NULL. After PP_SEARCH_INFEASIBLE,
 * search->proved says more: its bound, above the level, is INT64_MAX if no order exists at all. */
pp_search_result pp_search_run(pp_search *search, int64_t level, int64_t states,
                               bool (*stop)(void *), void *data);
/* After PP_SEARCH_FOUND: writes the order (n statements). */
void pp_search_order(const pp_search *search, pp_index *order);

/* The proof that no order has a peak below `bound` (at most search->proved.bound). False when out
 * of memory, or when more than `states` states would be needed: then proof->kind is PP_PROOF_NONE.
 */
bool pp_search_proof(const pp_search *search, int64_t bound, int64_t states,
                     struct pp_proof *proof);

/* For the proof: the middle, its components, one commit. */
bool pp_search_in_middle(const pp_search *search, pp_index v);
bool pp_search_components(pp_search *search);
/* Turns the explorer to a component and a side. */
bool pp_search_turn(pp_search *search, int side, pp_index component);

#endif
