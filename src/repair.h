/* Repairs an order where it is dearest. */
#ifndef PP_REPAIR_H
#define PP_REPAIR_H

#include "order.h"

/* Changes a legal order of the view, n statements, as long as its peak falls or fewer steps have
 * it: what had better run before the dearest step, or after it, is a minimum cut. Stops where the
 * peak is at most `enough`, or `stop` says so. False when out of memory. */
bool pp_repair_order(struct pp_view view, pp_index *order, int64_t enough, bool (*stop)(void *),
                     void *data);

#endif
