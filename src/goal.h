/* Goals: statements a few steps ahead, tried with all that they need, before a state branches. */
#ifndef PP_GOAL_H
#define PP_GOAL_H

#include "explore.h"

bool pp_goals_init(struct pp_explorer *explorer, size_t statements);
void pp_goals_free(struct pp_explorer *explorer);

/* Looks for a goal that can be reached within the level and leaves no more memory than there is
 * now. *found: the way there stands in explorer->moves, last statement first. At the root (`root`)
 * all goals are looked at, else those that the statements executed since state `since` brought
 * near. False when out of memory. */
bool pp_aim(struct pp_explorer *explorer, bool root, int32_t since, bool *found);
/* A statement is executed for good: goals near it are to be tried again. */
void pp_goals_forget(struct pp_explorer *explorer, pp_index v);

#endif
