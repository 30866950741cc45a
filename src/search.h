/* Exact search by two-sided commits (THEORY.md section 3). */
#ifndef PP_SEARCH_H
#define PP_SEARCH_H

#include "cut.h"
#include "order.h"

typedef enum pp_search_result {
  PP_SEARCH_FOUND,      /* an order of peak <= level */
  PP_SEARCH_INFEASIBLE, /* there is none */
  PP_SEARCH_LIMIT,      /* the budget ran out */
  PP_SEARCH_MEMORY      /* out of memory */
} pp_search_result;

typedef struct pp_search pp_search;

/* NULL when out of memory. */
pp_search *pp_search_new(const pp_program *program);
void pp_search_free(pp_search *search);

/* Looks for an order of peak <= level with at most `states` states in one exploration. Levels must
 * not fall from call to call: commits are kept. `stop` may be NULL. */
pp_search_result pp_search_run(pp_search *search, int64_t level, int64_t states,
                               bool (*stop)(void *), void *data);
/* After PP_SEARCH_FOUND: writes the order (n statements). */
void pp_search_order(const pp_search *search, pp_index *order);
/* After PP_SEARCH_INFEASIBLE: the smallest level above that could be feasible. INT64_MAX: none. */
int64_t pp_search_next_level(const pp_search *search);
/* States visited by all runs. */
int64_t pp_search_states(const pp_search *search);

#endif
