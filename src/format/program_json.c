/* Program JSON as a model of one program, and its writer (doc/program-json.md). */
#include <string.h>

#include "error.h"
#include "format/json.h"
#include "format/model.h"
#include "format/program_reader.h"
#include "memory.h"

/* ---- Writer: one statement, storage or pair a line ---- */

static void write_access(pp_json *json, const pp_access *access) {
  if (access->from == PP_WHOLE) {
    pp_json_integer(json, access->storage);
    return;
  }
  pp_json_text(json, "[");
  pp_json_integer(json, access->storage);
  pp_json_text(json, ",");
  pp_json_integer(json, access->from);
  pp_json_text(json, ",");
  pp_json_integer(json, access->to);
  pp_json_text(json, "]");
}

static void write_accesses(pp_json *json, const pp_statement_info *info, const char *key,
                           unsigned flag) {
  bool any = false;
  for (size_t i = 0; i < info->accesses; i++) {
    if (!(info->access[i].flags & flag))
      continue;
    pp_json_text(json, any ? "," : key);
    any = true;
    write_access(json, info->access + i);
  }
  if (any)
    pp_json_text(json, "]");
}

/* A request of no bytes is none; one is a number, several are a list. */
static void write_work(pp_json *json, const pp_statement_info *info) {
  size_t requests = 0;
  for (size_t i = 0; i < info->requests; i++)
    requests += info->request[i] > 0;
  if (!requests)
    return;
  const char *separator = requests > 1 ? ",\"work\":[" : ",\"work\":";
  for (size_t i = 0; i < info->requests; i++)
    if (info->request[i]) {
      pp_json_text(json, separator);
      pp_json_integer(json, info->request[i]);
      separator = ",";
    }
  if (requests > 1)
    pp_json_text(json, "]");
}

static void write_optional(pp_json *json, const char *key, int64_t value) {
  if (value < 0)
    return;
  pp_json_text(json, key);
  pp_json_integer(json, value);
}

/* Every object begins with its name, "" too: then each further key begins with a comma. */
static void write_statement(pp_json *json, const pp_statement_info *info) {
  pp_json_text(json, "{\"name\":");
  pp_json_string(json, info->name);
  write_work(json, info);
  write_accesses(json, info, ",\"reads\":[", PP_READ);
  write_accesses(json, info, ",\"writes\":[", PP_WRITE);
  write_accesses(json, info, ",\"overwrites\":[", PP_OVERWRITE);
  write_optional(json, ",\"line\":", info->line);
  write_optional(json, ",\"macs\":", info->macs);
  if (info->pure)
    pp_json_text(json, ",\"pure\":true");
  pp_json_text(json, "}");
}

static void write_storage(pp_json *json, const pp_storage_info *info) {
  pp_json_text(json, "{\"name\":");
  pp_json_string(json, info->name);
  pp_json_text(json, ",\"bytes\":");
  pp_json_integer(json, info->bytes);
  if (info->flags & PP_LIVE_IN)
    pp_json_text(json, ",\"live_in\":true");
  if (info->flags & PP_LIVE_OUT)
    pp_json_text(json, ",\"live_out\":true");
  pp_json_text(json, "}");
}

static void write_orders(pp_json *json, const pp_program *program, const pp_index *place) {
  const pp_index *pair;
  size_t pairs = pp_program_orders(program, &pair);
  if (!pairs)
    return;
  pp_json_text(json, ",\n\"order\":[\n");
  for (size_t i = 0; i < pairs; i++) {
    pp_json_text(json, i ? ",\n[" : "[");
    pp_json_integer(json, place ? place[pair[2 * i]] : pair[2 * i]);
    pp_json_text(json, ",");
    pp_json_integer(json, place ? place[pair[2 * i + 1]] : pair[2 * i + 1]);
    pp_json_text(json, "]");
  }
  pp_json_text(json, "\n]");
}

/* Statement order[i] becomes statement i; place is the inverse. Both NULL: as it is. */
static pp_status write_ordered(const pp_program *program, const pp_index *order,
                               const pp_index *place, pp_write *write, void *data,
                               pp_error *error) {
  pp_json json;
  pp_index n = pp_program_statements(program), m = pp_program_storages(program);
  pp_json_begin(&json, write, data);
  pp_json_text(&json, "{\"peakproof\":1,\"name\":");
  pp_json_string(&json, pp_program_name(program));
  pp_json_text(&json, ",\n\"statements\":[\n");
  for (pp_index i = 0; i < n && !json.failed; i++) {
    pp_statement_info info = pp_program_statement(program, order ? order[i] : i);
    write_statement(&json, &info);
    pp_json_text(&json, i + 1 < n ? ",\n" : "\n");
  }
  pp_json_text(&json, "],\n\"storages\":[\n");
  for (pp_index s = 0; s < m && !json.failed; s++) {
    pp_storage_info info = pp_program_storage(program, s);
    write_storage(&json, &info);
    pp_json_text(&json, s + 1 < m ? ",\n" : "\n");
  }
  pp_json_text(&json, "]");
  write_orders(&json, program, place);
  pp_json_text(&json, "}\n");
  return pp_json_end(&json, error);
}

pp_status pp_program_json_write(const pp_program *program, pp_write *write, void *data,
                                pp_error *error) {
  return write_ordered(program, NULL, NULL, write, data, error);
}

/* ---- The model ---- */

/* Reading parses, to fail early; the first build takes that program, later ones parse again. */
struct program_json {
  pp_program *program;
};

static pp_status json_build(const pp_model *model, size_t index, const int64_t *peak,
                            pp_program **program, pp_error *error) {
  (void)index, (void)peak;
  struct program_json *json = model->data;
  if (json->program) {
    *program = json->program;
    json->program = NULL;
    return PP_OK;
  }
  return pp_program_parse(model->bytes, model->size, NULL, program, error);
}

static pp_status write_permuted(const pp_program *program, const pp_index *order, pp_write *write,
                                void *data, pp_error *error) {
  if (!order)
    return pp_program_json_write(program, write, data, error);
  int64_t peak;
  pp_status status = pp_simulate(program, order, &peak, NULL, NULL, error); /* is it legal? */
  if (status)
    return status;
  pp_index n = pp_program_statements(program);
  pp_index *place = pp_alloc((size_t)n, sizeof *place);
  if (!place)
    return pp_fail_memory(error);
  for (pp_index i = 0; i < n; i++)
    place[order[i]] = i;
  status = write_ordered(program, order, place, write, data, error);
  free(place);
  return status;
}

static pp_status json_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                            void *data, pp_error *error) {
  pp_program *program;
  pp_status status = pp_program_parse(model->bytes, model->size, NULL, &program, error);
  if (status)
    return status;
  status = write_permuted(program, order ? order[0] : NULL, write, data, error);
  pp_program_free(program);
  return status;
}

static void json_free(pp_model *model) {
  struct program_json *json = model->data;
  pp_program_free(json->program);
  free(json);
}

static const struct pp_model_operations json_operations = {json_build, json_write, json_free};

/* The program's name as a file name; the file's own, without its extension, if it has none. */
static char *file_name(const char *name, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *base = *name ? name : slash ? slash + 1 : path;
  size_t length = strlen(base);
  const char *dot = *name ? NULL : strrchr(base, '.');
  if (dot && dot > base)
    length = (size_t)(dot - base);
  if (length > 100)
    length = 100;
  if (!length) {
    base = "main";
    length = 4;
  }
  char *out = pp_alloc(length + 1, 1);
  if (!out)
    return NULL;
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (size_t i = 0; i < length; i++)
    out[i] = strchr(allowed, base[i]) ? base[i] : '_';
  if (*out == '.' || *out == '-')
    *out = '_';
  out[length] = 0;
  return out;
}

pp_status pp_program_json_read(pp_model *model, const pp_read_options *options, pp_error *error) {
  (void)options;
  struct program_json *json = pp_zalloc(1, sizeof *json);
  if (!json)
    return pp_fail_memory(error);
  model->data = json;
  model->operations = &json_operations;
  model->format = PP_FORMAT_PROGRAM;
  pp_status status =
      pp_program_parse(model->bytes, model->size, &model->notices, &json->program, error);
  if (status)
    return status;
  model->name = pp_zalloc(1, sizeof *model->name);
  model->sequence = pp_zalloc(1, sizeof *model->sequence);
  if (!model->name || !model->sequence ||
      !(model->name[0] = file_name(pp_program_name(json->program), model->path)))
    return pp_fail_memory(error);
  model->programs = 1;
  return PP_OK;
}
