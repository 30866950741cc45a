/* What is known of the operators themselves: names, purity, multiply-accumulates. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_operator.h"
#include "format/tflite_schema.h"

/* enum BuiltinOperator of schema.fbs. */
static const char *const names[] = {
    "add",
    "average_pool_2d",
    "concatenation",
    "conv_2d",
    "depthwise_conv_2d",
    "depth_to_space",
    "dequantize",
    "embedding_lookup",
    "floor",
    "fully_connected",
    "hashtable_lookup",
    "l2_normalization",
    "l2_pool_2d",
    "local_response_normalization",
    "logistic",
    "lsh_projection",
    "lstm",
    "max_pool_2d",
    "mul",
    "relu",
    "relu_n1_to_1",
    "relu6",
    "reshape",
    "resize_bilinear",
    "rnn",
    "softmax",
    "space_to_depth",
    "svdf",
    "tanh",
    "concat_embeddings",
    "skip_gram",
    "call",
    "custom",
    "embedding_lookup_sparse",
    "pad",
    "unidirectional_sequence_rnn",
    "gather",
    "batch_to_space_nd",
    "space_to_batch_nd",
    "transpose",
    "mean",
    "sub",
    "div",
    "squeeze",
    "unidirectional_sequence_lstm",
    "strided_slice",
    "bidirectional_sequence_rnn",
    "exp",
    "topk_v2",
    "split",
    "log_softmax",
    "delegate",
    "bidirectional_sequence_lstm",
    "cast",
    "prelu",
    "maximum",
    "arg_max",
    "minimum",
    "less",
    "neg",
    "padv2",
    "greater",
    "greater_equal",
    "less_equal",
    "select",
    "slice",
    "sin",
    "transpose_conv",
    "sparse_to_dense",
    "tile",
    "expand_dims",
    "equal",
    "not_equal",
    "log",
    "sum",
    "sqrt",
    "rsqrt",
    "shape",
    "pow",
    "arg_min",
    "fake_quant",
    "reduce_prod",
    "reduce_max",
    "pack",
    "logical_or",
    "one_hot",
    "logical_and",
    "logical_not",
    "unpack",
    "reduce_min",
    "floor_div",
    "reduce_any",
    "square",
    "zeros_like",
    "fill",
    "floor_mod",
    "range",
    "resize_nearest_neighbor",
    "leaky_relu",
    "squared_difference",
    "mirror_pad",
    "abs",
    "split_v",
    "unique",
    "ceil",
    "reverse_v2",
    "add_n",
    "gather_nd",
    "cos",
    "where",
    "rank",
    "elu",
    "reverse_sequence",
    "matrix_diag",
    "quantize",
    "matrix_set_diag",
    "round",
    "hard_swish",
    "if",
    "while",
    "non_max_suppression_v4",
    "non_max_suppression_v5",
    "scatter_nd",
    "select_v2",
    "densify",
    "segment_sum",
    "batch_matmul",
    "placeholder_for_greater_op_codes",
    "cumsum",
    "call_once",
    "broadcast_to",
    "rfft2d",
    "conv_3d",
    "imag",
    "real",
    "complex_abs",
    "hashtable",
    "hashtable_find",
    "hashtable_import",
    "hashtable_size",
    "reduce_all",
    "conv_3d_transpose",
    "var_handle",
    "read_variable",
    "assign_variable",
    "broadcast_args",
    "random_standard_normal",
    "bucketize",
    "random_uniform",
    "multinomial",
    "gelu",
    "dynamic_update_slice",
    "relu_0_to_1",
    "unsorted_segment_prod",
    "unsorted_segment_max",
    "unsorted_segment_sum",
    "atan2",
    "unsorted_segment_min",
    "sign",
    "bitcast",
    "bitwise_xor",
    "right_shift",
    "stablehlo_logistic",
    "stablehlo_add",
    "stablehlo_divide",
    "stablehlo_multiply",
    "stablehlo_maximum",
    "stablehlo_reshape",
    "stablehlo_clamp",
    "stablehlo_concatenate",
    "stablehlo_broadcast_in_dim",
    "stablehlo_convolution",
    "stablehlo_slice",
    "stablehlo_custom_call",
    "stablehlo_reduce",
    "stablehlo_abs",
    "stablehlo_and",
    "stablehlo_cosine",
    "stablehlo_exponential",
    "stablehlo_floor",
    "stablehlo_log",
    "stablehlo_minimum",
    "stablehlo_negate",
    "stablehlo_or",
    "stablehlo_power",
    "stablehlo_remainder",
    "stablehlo_rsqrt",
    "stablehlo_select",
    "stablehlo_subtract",
    "stablehlo_tanh",
    "stablehlo_scatter",
    "stablehlo_compare",
    "stablehlo_convert",
    "stablehlo_dynamic_slice",
    "stablehlo_dynamic_update_slice",
    "stablehlo_pad",
    "stablehlo_iota",
    "stablehlo_dot_general",
    "stablehlo_reduce_window",
    "stablehlo_sort",
    "stablehlo_while",
    "stablehlo_gather",
    "stablehlo_transpose",
    "dilate",
    "stablehlo_rng_bit_generator",
    "reduce_window",
    "stablehlo_composite",
    "stablehlo_shift_left",
    "stablehlo_cbrt",
    "stablehlo_case",
};

const pp_tflite_code *pp_tflite_operator_code(const pp_tflite *tflite, size_t operator_) {
  return tflite->code + pp_flat_get32(&tflite->flat, operator_, OPERATOR_CODE, 0);
}

void pp_tflite_operator_name(const pp_tflite *tflite, size_t operator_, char *name, size_t size) {
  const pp_tflite_code *code = pp_tflite_operator_code(tflite, operator_);
  int length = (int)(code->custom.count < 60 ? code->custom.count : 60);
  if (code->builtin == BUILTIN_CUSTOM && length)
    snprintf(name, size, "%.*s", length, (const char *)tflite->flat.bytes + code->custom.at);
  else if (pp_tflite_operator_known(code->builtin))
    snprintf(name, size, "%s", names[code->builtin]);
  else
    snprintf(name, size, "builtin_%" PRId32, code->builtin);
  for (char *c = name; *c; c++) /* a custom operator's name may hold anything */
    if (*c < ' ' || *c > '~')
      *c = '?';
}

bool pp_tflite_operator_known(int32_t builtin) {
  return builtin >= 0 && (size_t)builtin < sizeof names / sizeof *names;
}

pp_tflite_class pp_tflite_operator_class(int32_t builtin) {
  switch (builtin) {
  case BUILTIN_LSTM:
  case BUILTIN_RNN:
  case BUILTIN_SVDF:
  case BUILTIN_UNIDIRECTIONAL_SEQUENCE_RNN:
  case BUILTIN_UNIDIRECTIONAL_SEQUENCE_LSTM:
  case BUILTIN_BIDIRECTIONAL_SEQUENCE_RNN:
  case BUILTIN_BIDIRECTIONAL_SEQUENCE_LSTM:
    return CLASS_RECURRENT;
  case BUILTIN_RANDOM_STANDARD_NORMAL:
  case BUILTIN_RANDOM_UNIFORM:
  case BUILTIN_MULTINOMIAL:
  case BUILTIN_STABLEHLO_RNG_BIT_GENERATOR:
    return CLASS_RANDOM;
  case BUILTIN_VAR_HANDLE:
  case BUILTIN_HASHTABLE:
    return CLASS_HANDLE;
  case BUILTIN_READ_VARIABLE:
  case BUILTIN_ASSIGN_VARIABLE:
  case BUILTIN_HASHTABLE_FIND:
  case BUILTIN_HASHTABLE_IMPORT:
  case BUILTIN_HASHTABLE_SIZE:
    return CLASS_RESOURCE;
  case BUILTIN_CALL:
  case BUILTIN_IF:
  case BUILTIN_WHILE:
  case BUILTIN_CALL_ONCE:
  case BUILTIN_STABLEHLO_REDUCE:
  case BUILTIN_STABLEHLO_SCATTER:
  case BUILTIN_STABLEHLO_REDUCE_WINDOW:
  case BUILTIN_STABLEHLO_SORT:
  case BUILTIN_STABLEHLO_WHILE:
  case BUILTIN_STABLEHLO_COMPOSITE:
  case BUILTIN_STABLEHLO_CASE:
    return CLASS_CALL;
  case BUILTIN_CUSTOM:
  case BUILTIN_DELEGATE:
  case BUILTIN_PLACEHOLDER:
  case BUILTIN_STABLEHLO_CUSTOM_CALL:
    return CLASS_UNKNOWN;
  }
  return pp_tflite_operator_known(builtin) ? CLASS_PURE : CLASS_UNKNOWN;
}

/* ---- Multiply-accumulates ---- */

/* The shape of an operator's input or output; empty if there is none. */
static pp_flat_vector shape_of(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                               size_t operator_, unsigned field, uint32_t place) {
  pp_flat_vector list = pp_flat_elements(&tflite->flat, operator_, field);
  if (place >= list.count)
    return (pp_flat_vector){0, 0};
  int32_t tensor = pp_tflite_int(tflite, list, place);
  if (tensor < 0)
    return (pp_flat_vector){0, 0};
  size_t table = pp_tflite_at(tflite, subgraph->tensors, (uint32_t)tensor);
  return pp_flat_elements(&tflite->flat, table, TENSOR_SHAPE);
}

/* *product times the dimensions from <= i < to; PP_MACS_UNKNOWN once it overflows. */
static void multiply(const pp_tflite *tflite, pp_flat_vector shape, uint32_t from, uint32_t to,
                     int64_t *product) {
  for (uint32_t i = from; i < to; i++)
    if (*product != PP_MACS_UNKNOWN &&
        __builtin_mul_overflow(*product, pp_tflite_int(tflite, shape, i), product))
      *product = PP_MACS_UNKNOWN;
}

/* Weights of rank 2 meet every vector of the input once: a step of a sequence, a row of a batch.
 * Peepholes and biases are elementwise. */
static int64_t recurrent_macs(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                              size_t operator_) {
  pp_flat_vector inputs = pp_flat_elements(&tflite->flat, operator_, OPERATOR_INPUTS);
  pp_flat_vector in = shape_of(tflite, subgraph, operator_, OPERATOR_INPUTS, 0);
  int64_t sum = 0, vectors = 1;
  if (!in.count)
    return PP_MACS_UNKNOWN;
  multiply(tflite, in, 0, in.count - 1, &vectors);
  for (uint32_t i = 1; i < inputs.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, inputs, i);
    pp_flat_vector weights = shape_of(tflite, subgraph, operator_, OPERATOR_INPUTS, i);
    int64_t macs = vectors;
    if (weights.count != 2 ||
        tflite->kind[(size_t)subgraph->tensor + (size_t)tensor] != TENSOR_CONSTANT)
      continue;
    multiply(tflite, weights, 0, 2, &macs);
    if (macs == PP_MACS_UNKNOWN || __builtin_add_overflow(sum, macs, &sum))
      return PP_MACS_UNKNOWN;
  }
  return sum;
}

/* What multiplies in ways not counted here. */
static bool is_uncounted(int32_t builtin) {
  return builtin == BUILTIN_RFFT2D || builtin == BUILTIN_STABLEHLO_CONVOLUTION ||
         builtin == BUILTIN_STABLEHLO_DOT_GENERAL;
}

/* Of elementwise operators and of those that only move data: none. */
static int64_t other_macs(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                          size_t operator_) {
  int32_t builtin = pp_tflite_operator_code(tflite, operator_)->builtin;
  pp_tflite_class class = pp_tflite_operator_class(builtin);
  if (class == CLASS_RECURRENT)
    return recurrent_macs(tflite, subgraph, operator_);
  return class == CLASS_PURE && !is_uncounted(builtin) ? 0 : PP_MACS_UNKNOWN;
}

int64_t pp_tflite_macs(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                       size_t operator_) {
  const pp_flat *flat = &tflite->flat;
  pp_flat_vector in = shape_of(tflite, subgraph, operator_, OPERATOR_INPUTS, 0);
  pp_flat_vector weights = shape_of(tflite, subgraph, operator_, OPERATOR_INPUTS, 1);
  pp_flat_vector third = shape_of(tflite, subgraph, operator_, OPERATOR_INPUTS, 2);
  pp_flat_vector out = shape_of(tflite, subgraph, operator_, OPERATOR_OUTPUTS, 0);
  int64_t macs = 1;
  switch (pp_tflite_operator_code(tflite, operator_)->builtin) {
  case BUILTIN_CONV_2D: /* weights: out, height, width, in / groups */
    if (weights.count != 4 || out.count != 4)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 1, 4, &macs);
    break;
  case BUILTIN_DEPTHWISE_CONV_2D: /* 1, height, width, out */
    if (weights.count != 4 || out.count != 4)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 1, 3, &macs);
    break;
  case BUILTIN_CONV_3D: /* depth, height, width, in, out */
    if (weights.count != 5 || out.count != 5)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 0, 4, &macs);
    break;
  case BUILTIN_CONV_3D_TRANSPOSE: /* inputs: shape, weights, values */
    if (weights.count != 5 || third.count != 5)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 0, 4, &macs); /* depth, height, width, out, in */
    out = third;
    break;
  case BUILTIN_TRANSPOSE_CONV: /* inputs: shape, weights (out, height, width, in), values */
    if (weights.count != 4 || third.count != 4)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 0, 3, &macs);
    out = third; /* every value meets all weights of its channel */
    break;
  case BUILTIN_FULLY_CONNECTED: /* out, in */
    if (weights.count != 2)
      return PP_MACS_UNKNOWN;
    multiply(tflite, weights, 1, 2, &macs);
    break;
  case BUILTIN_BATCH_MATMUL: {
    size_t options = pp_flat_table(flat, operator_, OPERATOR_OPTIONS);
    bool transposed = options && pp_flat_get8(flat, options, 0, 0);
    if (in.count < 2 || weights.count < 2)
      return PP_MACS_UNKNOWN;
    uint32_t inner = in.count - (transposed ? 2 : 1);
    multiply(tflite, in, inner, inner + 1, &macs);
    break;
  }
  default:
    return other_macs(tflite, subgraph, operator_);
  }
  multiply(tflite, out, 0, out.count, &macs);
  return macs;
}
