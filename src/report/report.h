/* What a plan says, for people and for programs. */
#ifndef PP_REPORT_REPORT_H
#define PP_REPORT_REPORT_H

#include <stdarg.h>
#include <stdio.h>

#include "report/planned.h"

/* How text is written. */
typedef struct pp_style {
  FILE *file;
  bool color;
} pp_style;

/* "3200 bytes (3.1 KiB)"; below 1 KiB without the parentheses. */
#define PP_BYTES_TEXT 64
const char *pp_bytes_text(char text[PP_BYTES_TEXT], int64_t bytes);

/* Prints as fprintf does, with every control character, which can only come from a name or a path,
 * as \xNN: a name must not move the cursor or fake a line. Line ends are the caller's: putc. */
void pp_print(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pp_vprint(FILE *file, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The report of `peakproof plan` as text (doc/cli.md). */
void pp_report_text(const pp_planned *planned, const pp_style *style);

/* A question about memory, for the JSON report. */
typedef struct pp_budget {
  bool asked;
  int64_t bytes;
} pp_budget;

/* The report of `peakproof plan --json` (doc/cli.md). */
pp_status pp_report_json(const pp_planned *planned, const pp_budget *budget, pp_write *write,
                         void *data, pp_error *error);

/* Why the peak of program `index` is what it is, in the given order (NULL: the original one; `plan`
 * may then be NULL). */
typedef struct pp_why {
  const char *path, *name; /* of the model and of the program */
  const pp_program *program;
  const pp_plan *plan; /* what is known about the program; NULL: nothing */
  const pp_index *order;
  int bar;      /* the width of the bars of live bytes in characters; 0: none */
  bool unicode; /* the bars may use block elements */
} pp_why;
/* The part of it that says what can still lower the peak. */
pp_status pp_report_levers(const pp_why *why, FILE *file, pp_error *error);
pp_status pp_report_why(const pp_why *why, const pp_style *style, pp_error *error);
pp_status pp_report_why_json(const pp_why *why, pp_write *write, void *data, pp_error *error);

#endif
