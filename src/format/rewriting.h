/* Writing a model with statements that run again: doc/remat.md says what each format gets. */
#ifndef PP_FORMAT_REWRITING_H
#define PP_FORMAT_REWRITING_H

#include "format/model.h"

/* A program's rewriting (pp_rewriting, peakproof.h), as writers need it. */
typedef struct pp_model_rewriting {
  const pp_program *original;
  const pp_program *program; /* NULL: no statement runs again */
  const pp_index *statement, *storage;
  const pp_index *order; /* of `program`, or of `original`; NULL: as it is */
} pp_model_rewriting;

/* Writes the model with program i rewritten as rewriting[i] says. What was written is read again
 * and compared with the original before a byte leaves the house. */
pp_status pp_model_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                               pp_write *write, void *data, pp_error *error);

/* The formats. At least one program is rewritten. */
pp_status pp_tflite_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                                pp_write *write, void *data, pp_error *error);
pp_status pp_onnx_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                              pp_write *write, void *data, pp_error *error);

/* Whether statements of a program may run again in a written model. */
bool pp_model_can_repeat(const pp_model *model, size_t index);

/* For them: does the program that was read from the written file compute what the original does?
 * Its statements are those of the rewriting in its order; its storage i is the rewriting's match[i]
 * (NULL: i). */
pp_status pp_remat_check_written(const pp_model_rewriting *rewriting, const pp_program *written,
                                 const pp_index *match, pp_error *error);

#endif
