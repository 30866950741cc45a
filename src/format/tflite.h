/* .tflite files: what `peakproof verify` asks of two of them. Reading and writing go through
 * format/model.h; doc/tflite.md says what is modelled and what a written file changes. */
#ifndef PP_FORMAT_TFLITE_H
#define PP_FORMAT_TFLITE_H

#include "format/orders.h"

/* Checks that `permuted` is `original` with its operators in another legal order, and nothing else:
 * every byte is the same except the vectors of operators (which must hold the same operator
 * tables), control dependencies (which must say the same of the new numbers) and an offline memory
 * plan (which must be gone if an order changed). Both models come from pp_model_read. On success
 * *order holds, for each program, original->programs in all, the original operators in the order in
 * which `permuted` executes them; free it with pp_orders_free. On failure error->offset is a
 * byte of `permuted`, where one can be named. */
pp_status pp_tflite_compare(const pp_model *original, const pp_model *permuted, pp_index ***order,
                            pp_error *error);

#endif
