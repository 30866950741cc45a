/* A model with a plan for each of its programs, made callees first. */
#ifndef PP_REPORT_PLANNED_H
#define PP_REPORT_PLANNED_H

#include "format/model.h"

typedef struct pp_planned_program {
  pp_program *program; /* NULL: not planned */
  pp_plan *plan;
  int64_t peak_before; /* of the original order, with callees in theirs */
  int64_t lower_bound; /* as certified, less what is open about the callees' peaks */
} pp_planned_program;

typedef struct pp_planned {
  const pp_model *model;
  pp_planned_program *program; /* model->programs of them */
  int64_t *peak, *peak_before; /* of each program */
  /* Over all programs: maxima, and whether all are so. */
  int64_t peak_before_all, peak_all, lower_bound_all;
  bool optimal;
  bool limited; /* some program was cut short */
} pp_planned;

/* Called before each program is planned: options->data belongs to the caller and is not touched. */
typedef struct pp_planned_options {
  pp_options solve;                            /* solve.time_limit is for all programs together */
  void (*begin)(const char *name, void *data); /* may be NULL; data is solve.data */
  const char *only; /* plan this program and what stands before it in the sequence; NULL: all */
} pp_planned_options;

/* The model must outlive *planned. Free it with pp_planned_free, also after a failure. */
pp_status pp_planned_make(const pp_model *model, const pp_planned_options *options,
                          pp_planned *planned, pp_error *error);
void pp_planned_free(pp_planned *planned);

/* The index of the program of that name, or model->programs. */
size_t pp_model_find(const pp_model *model, const char *name);

#endif
