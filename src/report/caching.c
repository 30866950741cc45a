/* The reports of `peakproof cuda`: text and JSON. */
#include "report/caching.h"

#include <inttypes.h>

#include "format/json.h"

/* ---- The rows of a decomposition ---- */

static const struct row {
  const char *name, *key;
  size_t at;
  bool change;
} rows[] = {{"requested", "requested", offsetof(pp_caching_causes, requested), false},
            {"+ rounding", "rounding", offsetof(pp_caching_causes, rounding), true},
            {"+ remainders", "remainder", offsetof(pp_caching_causes, remainder), true},
            {"+ fragmentation", "fragmentation", offsetof(pp_caching_causes, fragmentation), true},
            {"+ segment sizes", "segments", offsetof(pp_caching_causes, segments), true},
            {"+ history", "history", offsetof(pp_caching_causes, history), true},
            {"= reserved", "reserved", offsetof(pp_caching_causes, reserved), false},
            {"allocated", "allocated", offsetof(pp_caching_causes, allocated), false}};
enum { ROWS = sizeof rows / sizeof *rows };

static int64_t value(const pp_caching_causes *causes, const struct row *row) {
  return *(const int64_t *)((const char *)causes + row->at);
}

/* ---- Text ---- */

static void say_table(const pp_caching_program *it, const pp_style *style) {
  FILE *file = style->file;
  fprintf(file, "  %-16s", "peaks, in bytes");
  for (size_t k = 0; k < it->orders; k++)
    fprintf(file, "%16s", it->ordered[k].name);
  fputc('\n', file);
  for (size_t i = 0; i < ROWS; i++) {
    fprintf(file, "  %-16s", rows[i].name);
    for (size_t k = 0; k < it->orders; k++)
      fprintf(file, rows[i].change ? "%+16" PRId64 : "%16" PRId64,
              value(&it->ordered[k].causes, &rows[i]));
    fputc('\n', file);
  }
}

static void say_full(const pp_caching_program *it, const pp_style *style) {
  pp_index n = pp_program_statements(it->program);
  for (size_t k = 0; k < it->orders; k++) {
    pp_index full = it->ordered[k].causes.full;
    if (full >= n)
      continue;
    fprintf(style->file, "  %s: the device is full ", it->ordered[k].name);
    if (full < 0)
      fputs("before the first step: the arguments do not fit\n", style->file);
    else
      fprintf(style->file, "at step %d of %d; the peaks are those up to there\n", full, n);
  }
}

static void say_steps(const pp_caching_program *it, const pp_style *style) {
  pp_index n = pp_program_statements(it->program);
  for (size_t k = 0; k < it->orders; k++) {
    const pp_caching_ordered *ordered = &it->ordered[k];
    if (!ordered->step)
      continue;
    fprintf(style->file, "  %s\n  %6s  %14s  %14s  %14s  statement\n", ordered->name, "step",
            "requested", "allocated", "reserved");
    for (pp_index i = 0; i < n; i++) {
      const pp_caching_figures *f = &ordered->step[i];
      pp_index v = ordered->order ? ordered->order[i] : i;
      pp_print(style->file, "  %6d  %14" PRId64 "  %14" PRId64 "  %14" PRId64 "  %s", i,
               f->requested, f->allocated, f->reserved, pp_program_statement(it->program, v).name);
      fputc('\n', style->file);
    }
  }
}

static void say_bound(const pp_caching_program *it, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  const pp_caching_ordered *last = &it->ordered[it->orders - 1];
  if (last->causes.full < pp_program_statements(it->program))
    return;
  fprintf(style->file, "  %s: ", last->name);
  if (last->causes.reserved == it->bound)
    fputs("no order reserves less in the model\n", style->file);
  else
    fprintf(style->file, "no order reserves less than %s in the model\n",
            pp_bytes_text(text, it->bound));
}

static void say_program(const pp_caching_program *it, const pp_style *style, bool named) {
  if (named) {
    pp_print(style->file, " %s", it->name);
    fputc('\n', style->file);
  }
  say_table(it, style);
  if (!pp_plan_optimal(it->plan))
    fputs("  the planned order is not proved optimal\n", style->file);
  if (it->tried)
    fprintf(style->file, "  robust: of %" PRId64 " orders of that requested peak\n", it->tried);
  say_bound(it, style);
  say_full(it, style);
  say_steps(it, style);
}

void pp_report_caching(const pp_caching_report *report, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  pp_print(style->file, "%s: the caching allocator of %s%s%s", report->path, report->preset,
           report->settings ? ", " : "", report->settings ? report->settings : "");
  if (report->capacity)
    fprintf(style->file, ", a device of %s", pp_bytes_text(text, report->capacity));
  fputc('\n', style->file);
  if (report->history || report->warm) {
    fputs("  history      ", style->file);
    pp_print(style->file, "%s%s", report->history ? report->history : "",
             report->history && report->warm ? ", then " : "");
    if (report->warm)
      fprintf(style->file, "%" PRId64 " runs of the original order", report->warm);
    if (report->programs == 1 || !report->warm)
      fprintf(style->file, "; %s reserved, ", pp_bytes_text(text, report->start.reserved)),
          fprintf(style->file, "%s of it allocated", pp_bytes_text(text, report->start.allocated));
    fputc('\n', style->file);
  }
  if (report->private_bytes)
    fprintf(style->file, "  private pools hold %s more, which are not counted here\n",
            pp_bytes_text(text, report->private_bytes));
  for (size_t i = 0; i < report->programs; i++)
    say_program(&report->program[i], style, report->programs > 1);
}

static void say_difference(const pp_caching_replayed *replayed, const pp_style *style) {
  if (!replayed->same_trace)
    fprintf(style->file, "  differs at entry %zu: %s\n", replayed->at, replayed->why);
  else if (!replayed->same_blocks)
    fprintf(style->file, "  the trace is reproduced, but not the snapshot: %s\n", replayed->why);
  else
    fprintf(style->file, "  reproduced: every address, %zu segments, %zu blocks\n",
            replayed->segments, replayed->blocks);
}

void pp_report_replayed(const pp_caching_replayed *replayed, const pp_style *style) {
  const pp_caching_figures *f = &replayed->figures;
  pp_print(style->file, "%s: %zu entries through the caching allocator of %s%s%s", replayed->path,
           replayed->entries, replayed->preset, replayed->settings ? ", " : "",
           replayed->settings ? replayed->settings : "");
  fputc('\n', style->file);
  say_difference(replayed, style);
  fprintf(style->file, "  %-12s %14s %14s\n", "bytes", "at the end", "at most");
  fprintf(style->file, "  %-12s %14" PRId64 " %14" PRId64 "\n", "requested", f->requested,
          f->requested_peak);
  fprintf(style->file, "  %-12s %14" PRId64 " %14" PRId64 "\n", "allocated", f->allocated,
          f->allocated_peak);
  fprintf(style->file, "  %-12s %14" PRId64 " %14" PRId64 "\n", "reserved", f->reserved,
          f->reserved_peak);
}

/* ---- JSON ---- */

static void optional(pp_json *json, const char *key, const char *text) {
  pp_json_text(json, key);
  if (text)
    pp_json_string(json, text);
  else
    pp_json_text(json, "null");
}

static void write_steps(pp_json *json, const pp_caching_ordered *ordered, pp_index n) {
  pp_json_text(json, ", \"steps\": [");
  for (pp_index i = 0; i < n; i++) {
    pp_json_key_integer(json, i ? ", [" : "[", ordered->step[i].requested);
    pp_json_key_integer(json, ", ", ordered->step[i].allocated);
    pp_json_key_integer(json, ", ", ordered->step[i].reserved);
    pp_json_text(json, "]");
  }
  pp_json_text(json, "]");
}

static void write_order(pp_json *json, const pp_caching_ordered *ordered, pp_index n) {
  pp_json_key_string(json, "{\"name\": ", ordered->name);
  for (size_t i = 0; i < ROWS; i++) {
    pp_json_text(json, ", \"");
    pp_json_text(json, rows[i].key);
    pp_json_key_integer(json, "\": ", value(&ordered->causes, &rows[i]));
  }
  pp_json_text(json, ", \"full\": ");
  if (ordered->causes.full < n)
    pp_json_integer(json, ordered->causes.full);
  else
    pp_json_text(json, "null");
  pp_json_text(json, ", \"order\": [");
  for (pp_index i = 0; i < n; i++)
    pp_json_key_integer(json, i ? ", " : "", ordered->order ? ordered->order[i] : i);
  pp_json_text(json, "]");
  if (ordered->step)
    write_steps(json, ordered, n);
  pp_json_text(json, "}");
}

static void write_program(pp_json *json, const pp_caching_program *it) {
  pp_json_key_string(json, "{\"name\": ", it->name);
  pp_json_key_integer(json, ", \"statements\": ", pp_program_statements(it->program));
  pp_json_key_integer(json, ", \"lower_bound\": ", pp_plan_lower_bound(it->plan));
  pp_json_key_bool(json, ", \"optimal\": ", pp_plan_optimal(it->plan));
  pp_json_key_integer(json, ", \"tried\": ", it->tried);
  pp_json_key_integer(json, ", \"reserved_bound\": ", it->bound);
  pp_json_text(json, ", \"orders\": [");
  for (size_t k = 0; k < it->orders; k++) {
    pp_json_text(json, k ? ",\n  " : "\n  ");
    write_order(json, &it->ordered[k], pp_program_statements(it->program));
  }
  pp_json_text(json, "]}");
}

pp_status pp_report_caching_json(const pp_caching_report *report, pp_write *write, void *data,
                                 pp_error *error) {
  pp_json json;
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"model\": ", report->path);
  pp_json_key_string(&json, ", \"preset\": ", report->preset);
  optional(&json, ", \"settings\": ", report->settings);
  pp_json_key_integer(&json, ", \"capacity\": ", report->capacity);
  optional(&json, ", \"history\": ", report->history);
  pp_json_key_integer(&json, ", \"warm\": ", report->warm);
  pp_json_key_integer(&json, ", \"private_bytes\": ", report->private_bytes);
  pp_json_text(&json, ", \"programs\": [");
  for (size_t i = 0; i < report->programs; i++) {
    pp_json_text(&json, i ? ",\n " : "\n ");
    write_program(&json, &report->program[i]);
  }
  pp_json_text(&json, "]}\n");
  return pp_json_end(&json, error);
}

pp_status pp_report_replayed_json(const pp_caching_replayed *replayed, pp_write *write, void *data,
                                  pp_error *error) {
  pp_json json;
  const pp_caching_figures *f = &replayed->figures;
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"snapshot\": ", replayed->path);
  pp_json_key_string(&json, ", \"preset\": ", replayed->preset);
  optional(&json, ", \"settings\": ", replayed->settings);
  optional(&json, ", \"history\": ", replayed->history);
  pp_json_key_integer(&json, ", \"entries\": ", (int64_t)replayed->entries);
  pp_json_key_integer(&json, ", \"replayed\": ", (int64_t)replayed->at);
  pp_json_key_bool(&json, ", \"same_trace\": ", replayed->same_trace);
  pp_json_key_bool(&json, ", \"same_blocks\": ", replayed->same_blocks);
  optional(&json, ", \"why\": ", replayed->why);
  pp_json_key_integer(&json, ", \"segments\": ", (int64_t)replayed->segments);
  pp_json_key_integer(&json, ", \"blocks\": ", (int64_t)replayed->blocks);
  pp_json_key_integer(&json, ", \"requested\": ", f->requested);
  pp_json_key_integer(&json, ", \"allocated\": ", f->allocated);
  pp_json_key_integer(&json, ", \"reserved\": ", f->reserved);
  pp_json_key_integer(&json, ", \"requested_peak\": ", f->requested_peak);
  pp_json_key_integer(&json, ", \"allocated_peak\": ", f->allocated_peak);
  pp_json_key_integer(&json, ", \"reserved_peak\": ", f->reserved_peak);
  pp_json_text(&json, "}\n");
  return pp_json_end(&json, error);
}
