/* Trace events: statements on the first track, then a track a storage. Format: "Trace Event Format"
 * (Chrome); Perfetto reads it too. A step is a millisecond, since a program has no clock. */
#include "format/json.h"
#include "report/timeline.h"

enum { STEP = 1000 }; /* microseconds */

static void name_track(pp_json *json, int64_t track, const char *name) {
  pp_json_key_integer(json, ",\n{\"ph\": \"M\", \"pid\": 1, \"tid\": ", track);
  pp_json_key_string(json, ", \"name\": \"thread_name\", \"args\": {\"name\": ", name);
  pp_json_key_integer(json, "}},\n{\"ph\": \"M\", \"pid\": 1, \"tid\": ", track);
  pp_json_key_integer(json,
                      ", \"name\": \"thread_sort_index\", \"args\": {\"sort_index\": ", track);
  pp_json_text(json, "}}");
}

static void begin_span(pp_json *json, int64_t track, const char *name, int64_t from, int64_t to) {
  pp_json_key_integer(json, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": ", track);
  pp_json_key_string(json, ", \"name\": ", name);
  pp_json_key_integer(json, ", \"ts\": ", from * STEP);
  pp_json_key_integer(json, ", \"dur\": ", (to - from) * STEP);
  pp_json_text(json, ", \"args\": {");
}

static void write_step(pp_json *json, const pp_why *why, const pp_timeline *timeline, pp_index i) {
  pp_index v = why->order ? why->order[i] : i;
  pp_statement_info info = pp_program_statement(why->program, v);
  begin_span(json, 0, *info.name ? info.name : "statement", i, (int64_t)i + 1);
  pp_json_key_integer(json, "\"statement\": ", v);
  pp_json_key_integer(json, ", \"work\": ", info.work);
  pp_json_key_integer(json,
                      "}},\n{\"ph\": \"C\", \"pid\": 1, \"tid\": 0, \"name\": \"live bytes\", "
                      "\"ts\": ",
                      (int64_t)i * STEP);
  pp_json_key_integer(json, ", \"args\": {\"bytes\": ", timeline->step[i]);
  pp_json_text(json, "}}");
}

static void write_storage(pp_json *json, const pp_why *why, const pp_timeline *timeline,
                          pp_index s) {
  pp_storage_info info = pp_program_storage(why->program, s);
  pp_index first = timeline->first[s], last = timeline->last[s], n = timeline->steps;
  if (first == -1 && last == -1)
    return;
  char number[32];
  snprintf(number, sizeof number, "storage %d", s);
  const char *name = *info.name ? info.name : number;
  name_track(json, (int64_t)s + 1, name);
  begin_span(json, (int64_t)s + 1, name, first < 0 ? 0 : first, last < n ? (int64_t)last + 1 : n);
  pp_json_key_integer(json, "\"storage\": ", s);
  pp_json_key_integer(json, ", \"bytes\": ", info.bytes);
  pp_json_key_bool(json, ", \"before_the_start\": ", first < 0);
  pp_json_key_bool(json, ", \"after_the_end\": ", last == n);
  pp_json_text(json, "}}");
}

pp_status pp_report_trace(const pp_why *why, pp_write *write, void *data, pp_error *error) {
  pp_timeline timeline;
  pp_json json;
  pp_status status = pp_timeline_make(why->program, why->order, &timeline, error);
  if (!status) {
    pp_json_begin(&json, write, data);
    pp_json_text(&json, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
                        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_name\", "
                        "\"args\": ");
    pp_json_key_string(&json, "{\"name\": ", why->name);
    pp_json_text(&json, "}}");
    name_track(&json, 0, "statements");
    for (pp_index i = 0; i < timeline.steps; i++)
      write_step(&json, why, &timeline, i);
    for (pp_index s = 0; s < timeline.storages; s++)
      write_storage(&json, why, &timeline, s);
    pp_json_text(&json, "\n]}\n");
    status = pp_json_end(&json, error);
  }
  pp_timeline_free(&timeline);
  return status;
}
