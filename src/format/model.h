/* A model file: one or more programs, and a way to write it back with other orders.
 *
 * Every reader fills a pp_model and sets its operations; callers (src/cli, src/report) know only
 * this header. A program may call others (control flow): the callee's peak is then work of the
 * calling statement, so programs are built callees first, each when the peaks of those that it
 * calls are known:
 *
 *   pp_model *model;
 *   pp_model_read(path, NULL, &model, &error);
 *   for (size_t k = 0; k < model->programs; k++) {
 *     size_t i = model->sequence[k];
 *     pp_program *program;
 *     pp_model_build(model, i, peak, &program, &error);     peak[j] is set for all j built before
 *     ... plan it; peak[i] = ...; order[i] = ...
 *   }
 *   pp_model_write(model, order, write, data, &error);
 */
#ifndef PP_FORMAT_MODEL_H
#define PP_FORMAT_MODEL_H

#include "peakproof.h"

typedef enum pp_format {
  PP_FORMAT_UNKNOWN = 0,
  PP_FORMAT_PROGRAM, /* program JSON, doc/program-json.md */
  PP_FORMAT_TFLITE,
  PP_FORMAT_ONNX,
  PP_FORMAT_SIMULATOR, /* Inductor's memory simulator JSON */
  PP_FORMAT_CSV,       /* minimalloc */
  PP_FORMAT_SESSION    /* a directory that an Inductor session was saved in */
} pp_format;

/* Things a user should know that are not errors ("subgraph 0, tensor 7: unknown size, counted as
 * 0"). Grows as needed; strings are owned. */
typedef struct pp_notices {
  size_t count, capacity;
  char **text;
} pp_notices;
/* printf-style; silently drops the notice when out of memory. */
void pp_notices_add(pp_notices *notices, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pp_notices_free(pp_notices *notices);

typedef struct pp_dimension { /* --dim NAME=VALUE */
  const char *name;
  int64_t value;
} pp_dimension;

typedef struct pp_read_options {
  size_t dimensions;
  const pp_dimension *dimension;
} pp_read_options;

typedef struct pp_model pp_model;

struct pp_model_operations {
  pp_status (*build)(const pp_model *model, size_t index, const int64_t *peak, pp_program **program,
                     pp_error *error);
  /* NULL where the format cannot be written back. */
  pp_status (*write)(const pp_model *model, const pp_index *const *order, pp_write *write,
                     void *data, pp_error *error);
  void (*free)(pp_model *model); /* frees `data` only */
};

struct pp_model {
  pp_format format;
  char *path; /* as given */
  uint8_t *bytes;
  size_t size; /* the whole file; bytes[size] is a terminating 0 that does not count */
  size_t programs;
  char **name;       /* unique, usable as a file name ([A-Za-z0-9._-]+), for --certificate DIR */
  size_t *sequence;  /* callees before callers */
  size_t companions; /* other files that hold a part of it, named as it names them: relative to */
  char **companion;  /* its directory. Nobody reads them, and no output may hit them */
  pp_notices notices;
  const struct pp_model_operations *operations;
  void *data; /* the reader's */
};

/* Reads a file, or a saved session if it is a directory; the format is told by the content, not the
 * name. Frees nothing of the caller's. */
pp_status pp_model_read(const char *path, const pp_read_options *options, pp_model **model,
                        pp_error *error);
/* The same of bytes in memory (malloc'ed, size + 1 bytes, bytes[size] = 0); the model takes them,
 * also on failure. */
pp_status pp_model_read_bytes(const char *path, uint8_t *bytes, size_t size,
                              const pp_read_options *options, pp_model **model, pp_error *error);
void pp_model_free(pp_model *model);

/* Builds program `index`; peak[j] must hold the peak of every program j that stands before it in
 * `sequence`. */
pp_status pp_model_build(const pp_model *model, size_t index, const int64_t *peak,
                         pp_program **program, pp_error *error);
/* Writes the model with program i executed in order[i] (NULL: the original one). Only what the
 * order says changes; what became stale by it is mended or removed. */
pp_status pp_model_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                         void *data, pp_error *error);

/* Whether it is there and a regular file, or one that the caller has opened (standard input,
 * /dev/fd/N): reading a device may never end, and opening a pipe may never return. */
pp_status pp_check_readable(const char *path, pp_error *error);
/* What does not say how long it is, a pipe or a device, may bring so much: it may have no end. */
enum { PP_STREAM_LIMIT = 1 << 30 };
/* A whole file ("-": standard input): malloc'ed, with a 0 behind its end. */
pp_status pp_read_file(const char *path, uint8_t **bytes, size_t *size, pp_error *error);

/* The readers. Each gets a model with path, bytes and size set, and sets the rest; on failure the
 * caller frees the model. */
pp_status pp_program_json_read(pp_model *model, const pp_read_options *options, pp_error *error);
pp_status pp_tflite_read(pp_model *model, const pp_read_options *options, pp_error *error);
pp_status pp_onnx_read(pp_model *model, const pp_read_options *options, pp_error *error);
pp_status pp_simulator_read(pp_model *model, const pp_read_options *options, pp_error *error);
/* Its path is the directory; it has the bytes of index.json. */
pp_status pp_session_read(pp_model *model, const pp_read_options *options, pp_error *error);

/* Writes a program as program JSON (doc/program-json.md): deterministic, one statement or storage a
 * line. */
pp_status pp_program_json_write(const pp_program *program, pp_write *write, void *data,
                                pp_error *error);

#endif
