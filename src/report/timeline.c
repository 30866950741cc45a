/* Live bytes over the steps of an order. */
#include "report/timeline.h"

#include "error.h"
#include "memory.h"

pp_status pp_timeline_make(const pp_program *program, const pp_index *order, pp_timeline *timeline,
                           pp_error *error) {
  pp_index n = pp_program_statements(program), m = pp_program_storages(program);
  *timeline = (pp_timeline){.steps = n,
                            .storages = m,
                            .peak_step = -1,
                            .step = pp_alloc((size_t)n, sizeof *timeline->step),
                            .first = pp_alloc((size_t)m, sizeof *timeline->first),
                            .last = pp_alloc((size_t)m, sizeof *timeline->last)};
  if (!timeline->step || !timeline->first || !timeline->last)
    return pp_fail_memory(error);
  pp_status status = pp_simulate(program, order, &timeline->peak, timeline->step, NULL, error);
  if (!status)
    status = pp_lifetimes(program, order, timeline->first, timeline->last, error);
  for (pp_index i = 0; !status && i < n && timeline->peak_step < 0; i++)
    if (timeline->step[i] == timeline->peak)
      timeline->peak_step = i;
  return status;
}

void pp_timeline_free(pp_timeline *timeline) {
  free(timeline->step);
  free(timeline->first);
  free(timeline->last);
  *timeline = (pp_timeline){0};
}

int64_t pp_timeline_column(const pp_timeline *timeline, pp_index column, pp_index columns) {
  int64_t n = timeline->steps, largest = 0;
  int64_t from = n * column / columns, to = n * (column + 1) / columns;
  for (int64_t i = from; i < to || i == from; i++)
    if (timeline->step[i] > largest)
      largest = timeline->step[i];
  return largest;
}

const char *pp_bytes_short(char text[PP_BYTES_TEXT], int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
    value /= 1024;
  snprintf(text, PP_BYTES_TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}
