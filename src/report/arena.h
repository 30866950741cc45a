/* What a packing says, for people, for programs, for firmware, and as a picture. */
#ifndef PP_REPORT_ARENA_H
#define PP_REPORT_ARENA_H

#include "report/planned.h"
#include "report/report.h"

/* One arena: buffers with names and offsets. */
typedef struct pp_arena_view {
  const char *name; /* of the program, or "" for the whole file */
  size_t count;
  const pp_buffer *buffer; /* sizes as the runtime counts them */
  const int64_t *offset;
  char *const *label;
  const int64_t *tensor;  /* its number, -1: none; NULL: nowhere */
  const pp_arena *packed; /* the packer's result */
  int64_t greedy;         /* the runtime's own planner; -1: it has none */
  int64_t promised;       /* bytes that the runtime will need with these offsets */
  int64_t scratch;        /* bytes of known scratch among the buffers */
  int64_t persistent;     /* bytes that the runtime keeps outside the arena */
} pp_arena_view;

typedef struct pp_arena_report {
  const char *path, *runtime;
  int64_t alignment;
  bool scratch_known; /* --scratch was given */
  size_t arenas;
  const pp_arena_view *arena;
  const pp_budget *budget;
  const pp_planned *planned; /* what the order is; NULL: the model's own */
  pp_refinement refinement;  /* of all its programs: the sum of the orders */
} pp_arena_report;

void pp_report_arena(const pp_arena_report *report, const pp_style *style);
pp_status pp_report_arena_json(const pp_arena_report *report, pp_write *write, void *data,
                               pp_error *error);
/* A C header: the arena's size and alignment, and a table of offsets and sizes. */
pp_status pp_report_arena_header(const pp_arena_report *report, pp_write *write, void *data,
                                 pp_error *error);
/* Bytes upwards, time to the right. */
pp_status pp_report_arena_svg(const pp_arena_view *arena, pp_write *write, void *data,
                              pp_error *error);

#endif
