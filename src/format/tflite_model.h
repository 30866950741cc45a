/* A .tflite file as its readers and writers see it: positions in the file's bytes, and what follows
 * from them. Internal to src/format/tflite*.c. */
#ifndef PP_FORMAT_TFLITE_MODEL_H
#define PP_FORMAT_TFLITE_MODEL_H

#include "error.h"
#include "format/model.h"
#include "format/tflite_flat.h"

/* A tensor is in the arena unless it is constant or a variable. */
enum { TENSOR_ARENA, TENSOR_CONSTANT, TENSOR_STATE };

typedef struct pp_tflite_code {
  int32_t builtin; /* of enum BuiltinOperator */
  pp_flat_vector custom;
} pp_tflite_code;

/* What must keep its order: a token stands for one piece of state (a variable, a resource, a random
 * generator). `unknown`: may touch any state at all. */
enum { TOKENS = 32 }; /* a statement that touches more counts as unknown */
typedef struct pp_tflite_effects {
  bool unknown;
  unsigned count;
  uint32_t token[TOKENS];
} pp_tflite_effects;

typedef struct pp_tflite_subgraph {
  size_t table;
  pp_flat_vector tensors, inputs, outputs, operators, name;
  bool shared;               /* the vector of operators is another object too */
  uint32_t tensor;           /* number of its first tensor, counting those of all subgraphs */
  size_t edge, edges;        /* its control dependences, of pp_tflite.edge */
  pp_tflite_effects effects; /* of executing it */
} pp_tflite_subgraph;

/* Where the metadata `model_control_dependencies` is; at 0: there is none. */
typedef struct pp_tflite_control {
  size_t at, size;    /* the data */
  size_t buffer;      /* the table of its buffer */
  bool shared;        /* the data, or the buffer, serves something else too */
  uint32_t subgraphs; /* the first ones, which it has lists of */
} pp_tflite_control;

typedef struct pp_tflite {
  pp_flat flat;
  size_t root;
  pp_flat_vector buffers, metadata;
  bool metadata_shared;
  uint32_t codes, subgraphs, tensors; /* tensors: of all subgraphs */
  pp_tflite_code *code;
  pp_tflite_subgraph *subgraph;
  uint8_t *kind;      /* per tensor: TENSOR_... */
  int64_t *bytes;     /* per tensor */
  uint32_t *resource; /* per tensor: the token of the resource that it is a handle of, or 0 */
  uint32_t resources; /* distinct ones */
  pp_tflite_control control;
  PP_VECTOR(int32_t) edge; /* pairs: before, after */
  size_t plans;            /* metadata entries that are offline memory plans */
} pp_tflite;

/* Table `i` of a vector of tables, element `i` of a vector of 4-byte integers. */
static inline size_t pp_tflite_at(const pp_tflite *tflite, pp_flat_vector vector, uint32_t i) {
  return pp_flat_target(&tflite->flat, vector.at + 4 * (size_t)i);
}
static inline int32_t pp_tflite_int(const pp_tflite *tflite, pp_flat_vector vector, uint32_t i) {
  return pp_flat_i32(&tflite->flat, vector.at + 4 * (size_t)i);
}

/* ---- tflite_tensor.c ---- */

/* Fills kind and bytes of all tensors and notes what cannot be known. */
pp_status pp_tflite_read_tensors(pp_tflite *tflite, pp_notices *notices, pp_error *error);
/* Whether a tensor has no elements. */
bool pp_tflite_is_empty(const pp_tflite *tflite, uint32_t subgraph, uint32_t index);
/* Tensor types of the schema that other files ask for. */
enum { TYPE_STRING = 5, TYPE_RESOURCE = 13, TYPE_VARIANT = 14 };

/* ---- tflite_operator.c ---- */

/* The operator's name in lower case ("conv_2d"); a number for one that we do not know. */
void pp_tflite_operator_name(const pp_tflite *tflite, size_t operator_, char *name, size_t size);
/* The code of the operator that a table holds. */
const pp_tflite_code *pp_tflite_operator_code(const pp_tflite *tflite, size_t operator_);
typedef enum pp_tflite_class {
  CLASS_PURE,      /* outputs are a function of inputs, and all it does */
  CLASS_RECURRENT, /* pure but for the variables among its inputs */
  CLASS_RANDOM,
  CLASS_HANDLE,   /* gives a handle of a resource */
  CLASS_RESOURCE, /* reads or changes the resource that its first input is a handle of */
  CLASS_CALL,     /* executes other subgraphs */
  CLASS_UNKNOWN   /* custom, delegated, or newer than this program */
} pp_tflite_class;
pp_tflite_class pp_tflite_operator_class(int32_t builtin);
/* Whether the schema that this program knows has such an operator. */
bool pp_tflite_operator_known(int32_t builtin);
/* The multiply-accumulates of an operator, or PP_MACS_UNKNOWN. */
int64_t pp_tflite_macs(const pp_tflite *tflite, const pp_tflite_subgraph *subgraph,
                       size_t operator_);

/* ---- tflite_state.c ---- */

/* The subgraphs that an operator executes. */
typedef struct pp_tflite_callees {
  uint32_t count;
  int32_t one[2];      /* count <= 2 and no vector, */
  pp_flat_vector many; /* or these */
} pp_tflite_callees;
pp_status pp_tflite_find_callees(const pp_tflite *tflite, uint32_t subgraph, uint32_t index,
                                 pp_tflite_callees *callees, pp_error *error);
static inline int32_t pp_tflite_callee(const pp_tflite *tflite, const pp_tflite_callees *callees,
                                       uint32_t i) {
  return callees->many.at ? pp_tflite_int(tflite, callees->many, i) : callees->one[i];
}
/* Finds resources, callees and effects; sequence receives all subgraphs, callees first. */
pp_status pp_tflite_read_state(pp_tflite *tflite, size_t *sequence, pp_error *error);
/* What operator `index` of a subgraph touches. Callees are those of the operator. */
void pp_tflite_find_effects(const pp_tflite *tflite, uint32_t subgraph, uint32_t index,
                            const pp_tflite_callees *callees, pp_tflite_effects *effects);

/* ---- tflite_metadata.c ---- */

/* Finds control dependencies and offline plans. */
pp_status pp_tflite_read_metadata(pp_tflite *tflite, const pp_claims *claims, pp_notices *notices,
                                  pp_error *error);
/* Whether entry `i` of the metadata is an offline memory plan. */
bool pp_tflite_is_plan(const pp_tflite *tflite, uint32_t i);
/* The control dependencies with operators at new places (position[i] NULL: subgraph i keeps its
 * order), malloc'ed. */
pp_status pp_tflite_encode_control(const pp_tflite *tflite, pp_index *const *position,
                                   uint8_t **bytes, size_t *size, pp_error *error);

/* ---- tflite_compare.c ---- */

/* pp_tflite_compare but for the legality of the orders. */
pp_status pp_tflite_compare_files(const pp_tflite *original, const pp_tflite *permuted,
                                  pp_index ***order, pp_error *error);

/* ---- tflite_write.c ---- */

pp_status pp_tflite_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                          void *data, pp_error *error);

/* ---- tflite_build.c ---- */

pp_status pp_tflite_build(const pp_model *model, size_t index, const int64_t *peak,
                          pp_program **program, pp_error *error);

#endif
