/* What recomputation can do for a model, for people and for programs. */
#ifndef PP_REPORT_REMAT_H
#define PP_REPORT_REMAT_H

#include "report/report.h"

#define PP_NO_POINT SIZE_MAX

typedef struct pp_remat_program {
  pp_program *program; /* NULL: not looked at */
  pp_plan *plan;
  pp_remat *remat;
  size_t chosen;           /* point, or PP_NO_POINT */
  pp_rewriting *rewriting; /* of the chosen point; NULL: none, or no statement runs again */
  pp_plan *rewritten;      /* its plan */
} pp_remat_program;

typedef struct pp_remat_report {
  const pp_model *model;
  pp_remat_program *program; /* model->programs of them */
  bool curve;                /* all points, not the chosen one only */
  bool target_asked;
  int64_t target;
} pp_remat_report;

/* The peak that the choice leaves. */
int64_t pp_remat_chosen_peak(const pp_remat_program *it);

void pp_report_remat(const pp_remat_report *report, const pp_style *style);
pp_status pp_report_remat_json(const pp_remat_report *report, pp_write *write, void *data,
                               pp_error *error);
/* The curve of one program as a picture. */
pp_status pp_report_remat_svg(const pp_remat_program *it, const char *title, pp_write *write,
                              void *data, pp_error *error);

#endif
