/* What the runtimes of .tflite files place in their arenas, and TFLM's offline plan.
 *
 * Two runtimes, two rules (TFLITE.md section 2, doc/arena.md). TFLM has one arena for all
 * subgraphs; LiteRT has one for each, which it plans itself. */
#ifndef PP_FORMAT_TFLITE_ARENA_H
#define PP_FORMAT_TFLITE_ARENA_H

#include "format/model.h"

enum { PP_TFLM_ALIGNMENT = 16, PP_LITERT_ALIGNMENT = 64 };

/* Scratch that operators ask for when they are prepared, which no file tells. */
typedef struct pp_scratch {
  uint32_t subgraph, operator_;
  int64_t bytes;
} pp_scratch;

typedef struct pp_life {
  pp_buffer buffer; /* first and last are the runtime's own times */
  int64_t tensor;   /* counting those of all subgraphs, or -1: scratch */
  uint32_t subgraph;
  uint32_t index; /* of the tensor in its subgraph, or of the operator */
} pp_life;

typedef struct pp_lives {
  size_t count;
  pp_life *life;
  int64_t persistent; /* bytes of variables, which live elsewhere */
} pp_lives;

/* The model must have been read from a .tflite file. Scratch of one operator is one buffer, since
 * a planner that fills gaps from below can then place its parts wherever it likes without going
 * above it. Free with pp_lives_free. */
pp_status pp_lives_tflm(const pp_model *model, const pp_scratch *scratch, size_t scratches,
                        pp_lives *lives, pp_error *error);
pp_status pp_lives_litert(const pp_model *model, uint32_t subgraph, const pp_scratch *scratch,
                          size_t scratches, pp_lives *lives, pp_error *error);
void pp_lives_free(pp_lives *lives);

size_t pp_tflite_subgraphs(const pp_model *model);
size_t pp_tflite_tensors(const pp_model *model); /* of all subgraphs */
size_t pp_tflite_operators(const pp_model *model, uint32_t subgraph);
/* The tensor's name, printable, or the operator's ("conv_2d_7"). */
void pp_tflite_life_name(const pp_model *model, const pp_life *life, char *name, size_t size);

/* ---- TFLM's plan (tflite_plan.c) ---- */

/* The offsets of the model's OfflineMemoryAllocation metadata, one a tensor (-1: the runtime's to
 * place), malloc'ed; *offset is NULL if there is none. A block that is cut short, of another
 * version, not of this model's number of tensors, or given twice is an error. */
pp_status pp_tflite_read_plan(const pp_model *model, int64_t **offset, pp_error *error);
/* Tensors that TFLM must be left to place, although a plan for them could be written: it looks a
 * variable's offset up as if its subgraph were the first, and never allocates one for which it
 * finds an offset there. `keep` has one flag a tensor. */
void pp_tflite_unplannable(const pp_model *model, bool *keep);
/* Writes the model with a plan. Where the file allows it, the plan is appended and a few pointers
 * are set to it: a buffer that held nothing, the tensor that used it, the list of metadata. Where
 * the file has no place for these pointers they go in front, and the rest of the file follows
 * unchanged behind them. */
pp_status pp_tflite_write_plan(const pp_model *model, const int64_t *offset, pp_write *write,
                               void *data, pp_error *error);

#endif
