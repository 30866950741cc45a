/* An ONNX file as its readers and writers see it: graphs, nodes and values in tables, and where
 * they are in the file. Internal to src/format/onnx*.c.
 *
 * Graph 0 is the model's; the bodies of If, Loop, Scan follow, callers before callees. A body's
 * graph sees the values of the graphs around it: a node that has bodies reads all that they
 * capture. */
#ifndef PP_FORMAT_ONNX_MODEL_H
#define PP_FORMAT_ONNX_MODEL_H

#include "format/model.h"
#include "format/onnx_wire.h"
#include "memory.h"

#define PP_ONNX_NONE UINT32_MAX /* no graph, node or value */

enum {
  VALUE_INPUT = 1,
  VALUE_OUTPUT = 2,
  VALUE_INITIALIZER = 4,
  VALUE_CONSTANT = 8 /* an initialiser, or the result of a folded node */
};

typedef enum pp_onnx_shape_state {
  SHAPE_MISSING, /* the model says nothing of the value */
  SHAPE_UNKNOWN, /* it has a type, but no shape */
  SHAPE_OTHER,   /* a sequence, map or sparse tensor, which have no shape that says their size */
  SHAPE_KNOWN
} pp_onnx_shape_state;

typedef struct pp_onnx_value {
  const char *name;
  uint32_t graph;
  uint32_t producer; /* node, or none */
  uint8_t flags;
  uint8_t state;
  int32_t type; /* TensorProto.DataType */
  size_t dim;   /* its dimensions: the first of pp_onnx.dim, */
  uint32_t dims;
  size_t at;     /* what declares it */
  int64_t bytes; /* of a storage */
} pp_onnx_value;

typedef enum pp_onnx_class {
  CLASS_PURE,   /* outputs are a function of inputs, and all it does */
  CLASS_SHAPE,  /* pure, and looks at nothing but the shape of its input */
  CLASS_RANDOM, /* draws random numbers */
  CLASS_CALL,   /* executes its bodies, and that is all it does */
  CLASS_UNKNOWN /* custom, a function of the model, or newer than this program */
} pp_onnx_class;

/* A use or definition of a value: by name at first, by number once all names are known. */
typedef struct pp_onnx_reference {
  const char *name;
  uint32_t value; /* none: an optional input or output that is absent */
} pp_onnx_reference;

typedef struct pp_onnx_node {
  size_t at, body, end; /* the record in the file: tag, payload */
  const char *name, *operator_, *domain;
  uint32_t graph;
  size_t input, output; /* of pp_onnx.reference */
  uint32_t inputs, outputs;
  size_t capture; /* of pp_onnx.capture: values from outside that its bodies use */
  uint32_t captures;
  uint32_t callee, callees; /* graphs: its bodies */
  pp_onnx_class class;
  bool transposed;      /* attribute transA */
  bool training;        /* a Dropout that may be training */
  const char *equation; /* of Einsum, or NULL */
  bool folded;          /* a constant or a shape: no statement */
  bool ordered;         /* keeps its place among all ordered nodes */
  uint32_t statement;   /* of its graph's program, or none */
} pp_onnx_node;

typedef struct pp_onnx_graph {
  size_t body, end; /* the message in the file */
  uint32_t owner;   /* the node whose body it is, or none */
  const char *attribute;
  uint32_t node, nodes; /* its own nodes, in file order */
  uint32_t value;       /* its own values, up to those of the next graph */
  size_t result;        /* its outputs, of pp_onnx.reference */
  uint32_t results;
  uint32_t *sorted;    /* its nodes in an order that obeys the dependences */
  bool unsorted;       /* the file's order does not */
  bool ordered;        /* any of its nodes is */
  uint32_t statements; /* its nodes that are not folded, as sorted: pp_onnx_statement(..., i) */
  uint32_t *statement;
} pp_onnx_graph;

/* What a ValueInfoProto says, before it is known which value it is about. */
typedef struct pp_onnx_info {
  const char *name;
  uint32_t graph;
  size_t at;
  uint8_t state;
  int32_t type;
  size_t dim;
  uint32_t dims;
} pp_onnx_info;

/* A dimension: a number, or what it is called ("" if nothing). */
typedef struct pp_onnx_dimension {
  int64_t size; /* the number; or what counts for it */
  const char *symbol;
  bool set; /* it is a number, or the user gave one */
} pp_onnx_dimension;

typedef struct pp_onnx_capture {
  uint32_t node, value;
} pp_onnx_capture;

typedef struct pp_onnx {
  const uint8_t *bytes;
  size_t size;
  const pp_read_options *options; /* while reading */
  bool inferred;                  /* onnx-shapes has been here */
  int64_t opset;                  /* version of the operators of ONNX itself */
  PP_VECTOR(pp_onnx_graph) graph;
  PP_VECTOR(pp_onnx_node) node;
  PP_VECTOR(pp_onnx_value) value;
  PP_VECTOR(pp_onnx_info) info;
  PP_VECTOR(pp_onnx_reference) reference;
  PP_VECTOR(pp_onnx_dimension) dim;
  PP_VECTOR(pp_onnx_capture) capture;
  PP_VECTOR(const char *) function; /* "domain:name" of the model's own functions, sorted */
  uint32_t *index;                  /* the values by graph and name */
  size_t indexed;
  PP_VECTOR(char *) text;     /* all strings live here, but for these: */
  PP_VECTOR(char *) location; /* files that hold data of tensors; some may stand here twice */
} pp_onnx;

/* ---- onnx_decode.c ---- */

/* Fills graphs, nodes, values, infos and references from the bytes. */
pp_status pp_onnx_decode(pp_onnx *onnx, pp_error *error);
/* Copies a string (NULL: "") to where it lives as long as the model; NULL when out of memory. */
const char *pp_onnx_text(pp_onnx *onnx, const char *text);

/* ---- onnx_names.c ---- */

/* Makes values of names: inputs, outputs, captures, shapes. */
pp_status pp_onnx_resolve(pp_onnx *onnx, pp_error *error);
/* The value that a name means in one graph alone, or none. */
uint32_t pp_onnx_find(const pp_onnx *onnx, uint32_t graph, const char *name);
/* A name that is safe to show: printable ASCII, "?" for other bytes, cut at `size`. */
void pp_onnx_show(const char *name, char *shown, size_t size);
/* A node's name, or its operator and number, shown. */
void pp_onnx_show_node(const pp_onnx *onnx, uint32_t node, char *shown, size_t size);

/* ---- onnx_sort.c ---- */

/* Sorts the nodes of all graphs; says what is folded and what is ordered; numbers statements. */
pp_status pp_onnx_sort(pp_onnx *onnx, pp_error *error);
/* Sets *sorted to whether an order of a graph's nodes (numbers in the model, all of them) obeys the
 * dependences. */
pp_status pp_onnx_is_sorted(const pp_onnx *onnx, uint32_t graph, const uint32_t *order,
                            bool *sorted, pp_error *error);
/* The order of a graph's nodes in the file so that statements run as `order` says: folded nodes
 * stand where they are needed or, when they look at a shape, where it is there first. */
pp_status pp_onnx_place(const pp_onnx *onnx, uint32_t graph, const pp_index *order, uint32_t *place,
                        pp_error *error);

/* ---- onnx_size.c ---- */

/* The bytes of all storages. */
pp_status pp_onnx_measure(pp_onnx *onnx, pp_notices *notices, pp_error *error);

/* ---- onnx_operator.c ---- */

/* Whether a node calls a function of the model. */
bool pp_onnx_is_function(const pp_onnx *onnx, const pp_onnx_node *node);
pp_onnx_class pp_onnx_classify(const pp_onnx *onnx, const pp_onnx_node *node);
/* The multiply-accumulates of a node, or PP_MACS_UNKNOWN. */
int64_t pp_onnx_macs(const pp_onnx *onnx, const pp_onnx_node *node);

/* ---- onnx_build.c ---- */

pp_status pp_onnx_build(const pp_model *model, size_t index, const int64_t *peak,
                        pp_program **program, pp_error *error);

/* ---- onnx_write.c ---- */

pp_status pp_onnx_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                        void *data, pp_error *error);
/* The bytes of the file with the nodes of graph g in the order place[g] (NULL: as they are),
 * malloc'ed, as many as before. */
pp_status pp_onnx_splice(const pp_onnx *onnx, uint32_t *const *place, uint8_t **bytes,
                         pp_error *error);

/* ---- onnx_compare.c ---- */

/* pp_onnx_compare but for the legality of the orders. */
pp_status pp_onnx_compare_files(const pp_onnx *original, const pp_onnx *permuted, pp_index ***order,
                                pp_error *error);
void pp_onnx_free(pp_onnx *onnx);

#endif
