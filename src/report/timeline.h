/* Live bytes over the steps of an order, and the pictures of them. */
#ifndef PP_REPORT_TIMELINE_H
#define PP_REPORT_TIMELINE_H

#include "report/report.h"

typedef struct pp_timeline {
  pp_index steps, storages;
  int64_t peak;
  pp_index peak_step;     /* the first that reaches it; -1: the program has no statements */
  int64_t *step;          /* bytes that exist while each step runs */
  pp_index *first, *last; /* of each storage, as pp_lifetimes gives them */
} pp_timeline;

/* order NULL: the original one. Free it with pp_timeline_free, also after a failure. */
pp_status pp_timeline_make(const pp_program *program, const pp_index *order, pp_timeline *timeline,
                           pp_error *error);
void pp_timeline_free(pp_timeline *timeline);
/* The largest bytes of steps that fall into column `column` of `columns`. */
int64_t pp_timeline_column(const pp_timeline *timeline, pp_index column, pp_index columns);

/* "4.7 MiB", for where there is little room. */
const char *pp_bytes_short(char text[PP_BYTES_TEXT], int64_t bytes);

/* Bars of live bytes over the steps, `width` characters wide, the peak marked (bar.c). */
void pp_report_bar(const pp_timeline *timeline, const pp_style *style, int width, bool unicode);
/* Live bytes before and after, and the bound, as a picture (svg.c). why->plan must be there. */
pp_status pp_report_svg(const pp_why *why, pp_write *write, void *data, pp_error *error);
/* Trace events as Chrome and Perfetto show them, a track a storage; a step is a millisecond
 * (trace.c). */
pp_status pp_report_trace(const pp_why *why, pp_write *write, void *data, pp_error *error);
/* A page that needs nothing else (html.c). why->plan must be there. */
pp_status pp_report_html(const pp_why *why, pp_write *write, void *data, pp_error *error);

#endif
