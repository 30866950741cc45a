/* The report of a plan as text. */
#include <inttypes.h>
#include <string.h>

#include "report/report.h"

const char *pp_bytes_text(char text[PP_BYTES_TEXT], int64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int used = snprintf(text, PP_BYTES_TEXT, "%" PRId64 " bytes", bytes);
  double value = (double)bytes / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
    value /= 1024;
  if (bytes >= 1024)
    snprintf(text + used, PP_BYTES_TEXT - (size_t)used, " (%.1f %s)", value, units[unit]);
  return text;
}

static double percent(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void colored(const pp_style *style, bool good, const char *text) {
  if (style->color)
    fprintf(style->file, "\033[%sm%s\033[0m", good ? "32" : "33", text);
  else
    fputs(text, style->file);
}

/* "proved optimal (floor)", or what is open. */
static void verdict(const pp_planned_program *it, const pp_style *style) {
  char text[128];
  int64_t peak = pp_plan_peak(it->plan), bound = pp_plan_lower_bound(it->plan);
  if (pp_plan_optimal(it->plan))
    snprintf(text, sizeof text, "proved optimal (%s)", pp_proof_name(pp_plan_proof(it->plan)));
  else
    snprintf(text, sizeof text, "not proved optimal: %.1f%% open", percent(peak - bound, peak));
  colored(style, pp_plan_optimal(it->plan), text);
}

/* What only the search knows, and that a limit was reached. */
static void remarks(const pp_planned *planned, const pp_style *style) {
  for (size_t i = 0; i < planned->model->programs; i++) {
    const pp_plan *plan = planned->program[i].plan;
    char text[PP_BYTES_TEXT];
    const char *name = planned->model->name[i];
    if (!plan)
      continue;
    if (pp_plan_searched_bound(plan) > pp_plan_lower_bound(plan))
      fprintf(style->file,
              "  %s: the search found that no order is below %s; no certificate says so\n", name,
              pp_bytes_text(text, pp_plan_searched_bound(plan)));
    if (pp_plan_limited(plan))
      fprintf(style->file, "  %s: a limit or an interrupt cut the search short\n", name);
  }
}

static void saving(const pp_style *style, int64_t before, int64_t after) {
  if (after < before)
    fprintf(style->file, ", %.1f%% less", percent(before - after, before));
}

static void one_program(const pp_planned *planned, size_t i, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  const pp_planned_program *it = planned->program + i;
  pp_print(style->file, "%s: %d statements, %d storages", planned->model->path,
           pp_program_statements(it->program), pp_program_storages(it->program));
  putc('\n', style->file);
  fprintf(style->file, "  peak before  %s\n", pp_bytes_text(text, it->peak_before));
  fprintf(style->file, "  peak after   %s", pp_bytes_text(text, planned->peak[i]));
  saving(style, it->peak_before, planned->peak[i]);
  fprintf(style->file, "\n  lower bound  %s, ", pp_bytes_text(text, it->lower_bound));
  verdict(it, style);
  fputc('\n', style->file);
}

static void many_programs(const pp_planned *planned, const pp_style *style) {
  const pp_model *model = planned->model;
  int width = 7;
  for (size_t i = 0; i < model->programs; i++)
    if ((int)strlen(model->name[i]) > width)
      width = (int)strlen(model->name[i]);
  pp_print(style->file, "%s: %zu programs", model->path, model->programs);
  putc('\n', style->file);
  fprintf(style->file, "  %-*s  statements  peak before   peak after  lower bound\n", width,
          "program");
  for (size_t i = 0; i < model->programs; i++) {
    const pp_planned_program *it = planned->program + i;
    if (!it->plan)
      continue;
    fprintf(style->file, "  %-*s  %10d  %11" PRId64 "  %11" PRId64 "  %11" PRId64 "  ", width,
            model->name[i], pp_program_statements(it->program), it->peak_before, planned->peak[i],
            it->lower_bound);
    verdict(it, style);
    fputc('\n', style->file);
  }
  fprintf(style->file, "  %-*s  %10s  %11" PRId64 "  %11" PRId64 "  %11" PRId64 "  ", width,
          "maximum", "", planned->peak_before_all, planned->peak_all, planned->lower_bound_all);
  colored(style, planned->optimal,
          planned->optimal ? "all proved optimal" : "not all proved optimal");
  saving(style, planned->peak_before_all, planned->peak_all);
  fputc('\n', style->file);
}

void pp_report_text(const pp_planned *planned, const pp_style *style) {
  if (planned->model->programs == 1)
    one_program(planned, 0, style);
  else
    many_programs(planned, style);
  remarks(planned, style);
}
