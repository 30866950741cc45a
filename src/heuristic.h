/* Orders that are found fast and often optimal. */
#ifndef PP_HEURISTIC_H
#define PP_HEURISTIC_H

#include "order.h"

/* Greedy list scheduling of a view: always the ready statement that changes memory least; among
 * equals the one that costs least, then the one that became ready last. order receives n statements
 * in the view's direction. O(accesses log n) where few storages have many accessors. False when out
 * of memory. */
bool pp_greedy_order(struct pp_view view, pp_index *order);

#endif
