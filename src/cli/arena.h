/* A call of peakproof arena, in parts: arena.c has its options and its course. */
#ifndef PP_CLI_ARENA_H
#define PP_CLI_ARENA_H

#include "cli/cli.h"
#include "format/csv.h"
#include "format/tflite_arena.h"
#include "report/arena.h"

/* Whose rules say what lives when, and what offsets are multiples of. */
enum pp_runtime {
  PP_RUNTIME_DEFAULT, /* what the format suggests; not after pp_arena_read */
  PP_RUNTIME_TFLM,
  PP_RUNTIME_LITERT,
  PP_RUNTIME_PLAIN /* nobody's: tensors live from first to last use */
};

/* One arena in the making. */
typedef struct pp_arena_job {
  char *name; /* of the program, or "" for the whole file */
  size_t count;
  pp_buffer *buffer; /* sizes as the runtime counts them */
  char **label;
  int64_t *tensor; /* its number in the file or program; -1: scratch, work, or of a CSV */
  int64_t *offset;
  pp_lives lives; /* .tflite only */
  pp_arena *packed;
  int64_t greedy, promised, scratch; /* as in pp_arena_view */
} pp_arena_job;

typedef struct pp_arena_call {
  pp_common common;
  const char *path, *output, *header, *svg, *scratch_path, *certificate, *ordered;
  enum pp_runtime runtime;
  int64_t alignment, node_limit;
  pp_budget budget;
  pp_model *model; /* or */
  pp_csv csv;
  bool is_csv;
  pp_scratch *scratch; /* of --scratch */
  size_t scratches;
  pp_arena_job *job;
  size_t jobs;
  bool reorder;
  pp_model *given;          /* with --reorder: the model as it was read, */
  pp_planned planned;       /* its plans, */
  pp_refinement refinement; /* and what came of looking among orders of the same peak */
  pp_error error;
} pp_arena_call;

/* Those that return an int return an exit code, after saying what was wrong. */

/* ---- Reading (arena_read.c) ---- */

/* The input, and the file of --scratch; settles runtime and alignment. */
int pp_arena_read(pp_arena_call *call);

/* ---- Another order (arena_reorder.c) ---- */

/* --reorder: plans the model, and goes on with it in an order of lowest peak. */
int pp_arena_reorder(pp_arena_call *call);
/* --ordered: the model as it was given, in the chosen orders. */
pp_status pp_arena_write_ordered(const pp_arena_call *call, pp_write *write, void *data,
                                 pp_error *error);

/* ---- Jobs (arena_jobs.c) ---- */

/* These fill jobs whose fields are zero; free a job after a failure, too. */
pp_status pp_arena_jobs_of_runtime(pp_arena_call *call);
pp_status pp_arena_job_of_csv(pp_arena_call *call);
/* order NULL: the original one. */
pp_status pp_arena_job_of_program(pp_arena_job *job, const pp_program *program,
                                  const pp_index *order, const char *name, pp_error *error);
void pp_arena_job_free(pp_arena_job *job);

/* ---- Packing (arena_pack.c) ---- */

/* How each program is packed. */
pp_arena_options pp_arena_how(const pp_arena_call *call);
/* Makes the jobs and packs them. */
int pp_arena_pack(pp_arena_call *call);

/* ---- Writing (arena_write.c) ---- */

/* The files and the report. */
int pp_arena_finish(const pp_arena_call *call);

#endif
