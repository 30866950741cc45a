/* ONNX files: what `peakproof verify` asks of two of them. Reading and writing go through
 * format/model.h; doc/onnx.md says what is modelled and what a written file changes. */
#ifndef PP_FORMAT_ONNX_H
#define PP_FORMAT_ONNX_H

#include "format/orders.h"

/* Checks that `permuted` is `original` with the nodes of its graphs in another legal order, and
 * nothing else: every byte is the same but for the places of the node messages. Both models come
 * from pp_model_read. On success *order holds, for each program, original->programs in all, the
 * original statements in the order in which `permuted` has them; free it with pp_orders_free.
 * On failure error->offset is a byte of `permuted`, where one can be named. */
pp_status pp_onnx_compare(const pp_model *original, const pp_model *permuted, pp_index ***order,
                          pp_error *error);

/* Whether bytes look like an ONNX model (protobuf has no magic number). */
bool pp_onnx_test(const uint8_t *bytes, size_t size);

#endif
