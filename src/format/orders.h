/* Orders of a model's programs, as they are compared and written. */
#ifndef PP_FORMAT_ORDERS_H
#define PP_FORMAT_ORDERS_H

#include "format/model.h"

/* Each of them and the list; NULL is none. */
void pp_orders_free(pp_index **order, size_t programs);
/* Whether each order is a legal one of its program (NULL: the original one, which is). */
pp_status pp_orders_check(const pp_model *model, const pp_index *const *order, pp_error *error);
/* Hands the orders that were found in a file on if they are legal, else frees them. */
pp_status pp_orders_accept(const pp_model *model, pp_index **found, pp_index ***order,
                           pp_error *error);

#endif
