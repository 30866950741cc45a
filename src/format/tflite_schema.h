/* The schema of .tflite files, as far as it has pointers, and a verifier that walks it. */
#ifndef PP_FORMAT_TFLITE_SCHEMA_H
#define PP_FORMAT_TFLITE_SCHEMA_H

#include "format/tflite_flat.h"
#include "peakproof.h"

/* Fields by number, as TensorFlow's schema.fbs declares them. */
enum { MODEL_VERSION, MODEL_CODES, MODEL_SUBGRAPHS, MODEL_DESCRIPTION, MODEL_BUFFERS };
enum { MODEL_METADATA_BUFFER = 5, MODEL_METADATA, MODEL_SIGNATURES };
enum { CODE_DEPRECATED, CODE_CUSTOM, CODE_VERSION, CODE_BUILTIN };
enum { SUBGRAPH_TENSORS, SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS, SUBGRAPH_NAME };
enum { TENSOR_SHAPE, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_QUANTIZATION };
enum { TENSOR_VARIABLE = 5, TENSOR_SPARSITY, TENSOR_SIGNATURE, TENSOR_EXTERNAL = 10 };
enum { OPERATOR_CODE, OPERATOR_INPUTS, OPERATOR_OUTPUTS, OPERATOR_OPTIONS_TYPE, OPERATOR_OPTIONS };
enum { OPERATOR_MUTATING = 7, OPERATOR_INTERMEDIATES, OPERATOR_LARGE_OFFSET, OPERATOR_LARGE_SIZE };
enum { OPERATOR_OPTIONS2_TYPE = 11, OPERATOR_OPTIONS2 };
enum { BUFFER_DATA, BUFFER_OFFSET, BUFFER_SIZE };
enum { METADATA_NAME, METADATA_BUFFER };
enum { SIGNATURE_INPUTS, SIGNATURE_OUTPUTS, SIGNATURE_KEY, SIGNATURE_SUBGRAPH = 4 };
enum { TENSOR_MAP_NAME, TENSOR_MAP_TENSOR };

/* Walks every object that the root reaches by the schema: each lies inside the file, and no two
 * overlap. `claims` has begun; pp_claims_finish is left to the caller. Fields that the schema does
 * not know are not looked at. */
pp_status pp_tflite_verify(const pp_flat *flat, size_t root, pp_claims *claims, pp_error *error);

#endif
