/* The report of a plan as JSON. Keys stand in a fixed order; only "seconds" differs between runs.
 */
#include <stdio.h>

#include "format/json.h"
#include "report/report.h"

static void write_order(pp_json *json, const pp_index *order, pp_index n) {
  pp_json_text(json, ", \"order\": [");
  for (pp_index i = 0; i < n; i++) {
    if (i)
      pp_json_text(json, ", ");
    pp_json_integer(json, order[i]);
  }
  pp_json_text(json, "]");
}

static void write_program(pp_json *json, const pp_planned *planned, size_t i) {
  const pp_planned_program *it = planned->program + i;
  const pp_plan *plan = it->plan;
  char seconds[32];
  pp_json_key_string(json, "{\"name\": ", planned->model->name[i]);
  pp_json_key_integer(json, ", \"statements\": ", pp_program_statements(it->program));
  pp_json_key_integer(json, ", \"storages\": ", pp_program_storages(it->program));
  pp_json_key_integer(json, ", \"peak_before\": ", it->peak_before);
  pp_json_key_integer(json, ", \"peak_after\": ", pp_plan_peak(plan));
  pp_json_key_integer(json, ", \"lower_bound\": ", pp_plan_lower_bound(plan));
  pp_json_key_integer(json, ", \"floor\": ", pp_floor(it->program, NULL));
  pp_json_key_bool(json, ", \"optimal\": ", pp_plan_optimal(plan));
  pp_json_key_string(json, ", \"proof\": ", pp_proof_name(pp_plan_proof(plan)));
  write_order(json, pp_plan_order(plan), pp_program_statements(it->program));
  snprintf(seconds, sizeof seconds, "%.6f", pp_plan_seconds(plan));
  pp_json_text(json, ", \"seconds\": ");
  pp_json_text(json, seconds);
  pp_json_key_integer(json, ", \"searched_bound\": ", pp_plan_searched_bound(plan));
  pp_json_key_integer(json, ", \"states\": ", pp_plan_states(plan));
  pp_json_key_bool(json, ", \"limited\": ", pp_plan_limited(plan));
  pp_json_text(json, "}");
}

static void write_notices(pp_json *json, const pp_notices *notices) {
  pp_json_text(json, ", \"notices\": [");
  for (size_t i = 0; i < notices->count; i++)
    pp_json_key_string(json, i ? ", " : "", notices->text[i]);
  pp_json_text(json, "]");
}

static void write_budget(pp_json *json, const pp_planned *planned, const pp_budget *budget) {
  pp_json_key_integer(json, ", \"budget\": {\"bytes\": ", budget->bytes);
  pp_json_key_bool(json, ", \"peak_fits\": ", planned->peak_all <= budget->bytes);
  pp_json_key_bool(json, ", \"possible\": ", planned->lower_bound_all <= budget->bytes);
  pp_json_text(json, ", \"arena_checked\": false}");
}

pp_status pp_report_json(const pp_planned *planned, const pp_budget *budget, pp_write *write,
                         void *data, pp_error *error) {
  pp_json json;
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"model\": ", planned->model->path);
  pp_json_key_integer(&json, ", \"peak_before\": ", planned->peak_before_all);
  pp_json_key_integer(&json, ", \"peak_after\": ", planned->peak_all);
  pp_json_key_integer(&json, ", \"lower_bound\": ", planned->lower_bound_all);
  pp_json_key_bool(&json, ", \"optimal\": ", planned->optimal);
  pp_json_key_bool(&json, ", \"limited\": ", planned->limited);
  if (budget->asked)
    write_budget(&json, planned, budget);
  write_notices(&json, &planned->model->notices);
  pp_json_text(&json, ",\n \"programs\": [");
  for (size_t i = 0; i < planned->model->programs; i++) {
    if (i)
      pp_json_text(&json, ",\n  ");
    write_program(&json, planned, i);
  }
  pp_json_text(&json, "]}\n");
  return pp_json_end(&json, error);
}
