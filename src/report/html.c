/* The page of a program: page.html with the data in place of @DATA@. */
#include <string.h>

#include "error.h"
#include "format/json.h"
#include "memory.h"
#include "page.h"
#include "report/timeline.h"

/* In JSON "<" stands only inside strings; escaped, no name can end the script element. */
struct inside_script {
  pp_write *write;
  void *data;
};

static bool write_inside_script(const void *bytes, size_t size, void *data) {
  struct inside_script *script = data;
  const char *c = bytes;
  for (size_t i = 0, from = 0; i <= size; i++) {
    if (i < size && c[i] != '<')
      continue;
    if (i > from && !script->write(c + from, i - from, script->data))
      return false;
    if (i < size && !script->write("\\u003c", 6, script->data))
      return false;
    from = i + 1;
  }
  return true;
}

static void write_order(pp_json *json, const char *key, const pp_timeline *timeline,
                        const pp_index *order) {
  pp_json_text(json, key);
  pp_json_key_integer(json, "{\"peak\": ", timeline->peak);
  pp_json_key_integer(json, ", \"peakStep\": ", timeline->peak_step);
  pp_json_text(json, ", \"order\": [");
  for (pp_index i = 0; i < timeline->steps; i++)
    pp_json_key_integer(json, i ? "," : "", order ? order[i] : i);
  pp_json_text(json, "], \"live\": [");
  for (pp_index i = 0; i < timeline->steps; i++)
    pp_json_key_integer(json, i ? "," : "", timeline->step[i]);
  pp_json_text(json, "], \"span\": [");
  for (pp_index s = 0; s < timeline->storages; s++) {
    pp_json_key_integer(json, s ? ",[" : "[", timeline->first[s]);
    pp_json_key_integer(json, ",", timeline->last[s]);
    pp_json_text(json, "]");
  }
  pp_json_text(json, "]}");
}

static void write_names(pp_json *json, const pp_program *program) {
  pp_json_text(json, ",\n\"statements\": [");
  for (pp_index v = 0; v < pp_program_statements(program); v++) {
    pp_statement_info info = pp_program_statement(program, v);
    pp_json_key_string(json, v ? ",[" : "[", info.name);
    pp_json_key_integer(json, ",", info.work);
    pp_json_text(json, "]");
  }
  pp_json_text(json, "],\n\"storages\": [");
  for (pp_index s = 0; s < pp_program_storages(program); s++) {
    pp_storage_info info = pp_program_storage(program, s);
    pp_json_key_string(json, s ? ",[" : "[", info.name);
    pp_json_key_integer(json, ",", info.bytes);
    pp_json_text(json, "]");
  }
  pp_json_text(json, "]");
}

static void write_data(pp_json *json, const pp_why *why, const pp_timeline *before,
                       const pp_timeline *after, const char *levers) {
  pp_json_key_string(json, "{\"model\": ", why->path);
  pp_json_key_string(json, ", \"program\": ", why->name);
  pp_json_key_string(json, ", \"version\": ", pp_version());
  pp_json_key_integer(json, ", \"bound\": ", pp_plan_lower_bound(why->plan));
  pp_json_key_bool(json, ", \"optimal\": ", pp_plan_optimal(why->plan));
  pp_json_key_string(json, ", \"proof\": ", pp_proof_name(pp_plan_proof(why->plan)));
  pp_json_key_string(json, ", \"levers\": ", levers);
  write_order(json, ",\n\"before\": ", before, NULL);
  write_order(json, ",\n\"after\": ", after, pp_plan_order(why->plan));
  write_names(json, why->program);
  pp_json_text(json, "}");
}

/* What `why` says can help, as a string to be freed. */
static pp_status say_levers(const pp_why *why, char **text, pp_error *error) {
  size_t size;
  FILE *file = open_memstream(text, &size);
  if (!file)
    return pp_fail_memory(error);
  pp_status status = pp_report_levers(why, file, error);
  if (fclose(file) && !status)
    status = pp_fail_memory(error);
  return status;
}

static pp_status write_page(const pp_why *why, const pp_timeline *before, const pp_timeline *after,
                            const char *levers, pp_write *write, void *data, pp_error *error) {
  struct inside_script script = {write, data};
  const char *place = strstr(page, "@DATA@");
  pp_json json;
  if (!write(page, (size_t)(place - page), data))
    return pp_fail(error, PP_ERROR_IO, "cannot write");
  pp_json_begin(&json, write_inside_script, &script);
  write_data(&json, why, before, after, levers);
  pp_status status = pp_json_end(&json, error);
  if (!status && !write(place + 6, strlen(place + 6), data))
    return pp_fail(error, PP_ERROR_IO, "cannot write");
  return status;
}

pp_status pp_report_html(const pp_why *why, pp_write *write, void *data, pp_error *error) {
  pp_timeline before, after = {0};
  char *levers = NULL;
  pp_status status = pp_timeline_make(why->program, NULL, &before, error);
  if (!status)
    status = pp_timeline_make(why->program, pp_plan_order(why->plan), &after, error);
  if (!status)
    status = say_levers(why, &levers, error);
  if (!status)
    status = write_page(why, &before, &after, levers, write, data, error);
  pp_timeline_free(&before);
  pp_timeline_free(&after);
  free(levers);
  return status;
}
