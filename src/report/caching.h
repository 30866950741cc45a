/* What the CUDA caching allocator makes of orders, for people and for programs. */
#ifndef PP_REPORT_CACHING_H
#define PP_REPORT_CACHING_H

#include "report/report.h"

enum { PP_CACHING_ORDERS = 3 }; /* original, planned, robust */

typedef struct pp_caching_ordered {
  const char *name;
  const pp_index *order; /* NULL: the original one */
  pp_caching_causes causes;
  pp_caching_figures *step; /* of each statement; NULL: not asked for */
} pp_caching_ordered;

typedef struct pp_caching_program {
  const char *name;
  const pp_program *program;
  const pp_plan *plan;
  size_t orders;
  pp_caching_ordered ordered[PP_CACHING_ORDERS];
  int64_t tried; /* orders that --robust ran; 0: it was not asked for */
  int64_t bound; /* no order reserves less */
} pp_caching_program;

typedef struct pp_caching_report {
  const char *path, *preset, *settings, *history; /* settings, history: NULL if not given */
  int64_t capacity, warm;
  pp_caching_figures start; /* of the history */
  int64_t private_bytes;
  size_t programs;
  const pp_caching_program *program;
} pp_caching_report;

void pp_report_caching(const pp_caching_report *report, const pp_style *style);
pp_status pp_report_caching_json(const pp_caching_report *report, pp_write *write, void *data,
                                 pp_error *error);

/* What came of replaying a snapshot's trace. */
typedef struct pp_caching_replayed {
  const char *path, *preset, *settings, *history;
  size_t entries, at; /* replayed: at == entries if all were */
  bool same_trace, same_blocks;
  const char *why;            /* what differed first */
  size_t segments, blocks;    /* of the snapshot */
  pp_caching_figures figures; /* of the model at the end */
} pp_caching_replayed;

void pp_report_replayed(const pp_caching_replayed *replayed, const pp_style *style);
pp_status pp_report_replayed_json(const pp_caching_replayed *replayed, pp_write *write, void *data,
                                  pp_error *error);

#endif
