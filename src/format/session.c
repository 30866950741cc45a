/* A directory in which an Inductor session was saved (python/peakproof/saved.py): index.json lists
 * the programs, NAME.json is the program of each that was understood. A model of all of these. */
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "error.h"
#include "format/model.h"
#include "format/program_reader.h"
#include "memory.h"

enum { VERSION = 1, DEPTH = 100 };

struct file {
  uint8_t *bytes;
  size_t size;
};

struct session {
  struct file *file; /* per program */
};

/* ---- The index ---- */

/* yajl frees trees by recursion: nothing deep may get there. */
static bool is_deep(const uint8_t *bytes, size_t size) {
  size_t depth = 0;
  bool text = false;
  for (size_t i = 0; i < size; i++) {
    if (text && bytes[i] == '\\')
      i++;
    else if (bytes[i] == '"')
      text = !text;
    else if (!text && (bytes[i] == '[' || bytes[i] == '{'))
      depth++;
    else if (!text && (bytes[i] == ']' || bytes[i] == '}') && depth)
      depth--;
    if (depth > DEPTH)
      return true;
  }
  return false;
}

static yajl_val get(yajl_val object, const char *key, yajl_type type) {
  const char *path[] = {key, NULL};
  return yajl_tree_get(object, path, type);
}

/* A name that is also one of a file here. */
static bool is_safe(const char *name) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  size_t length = strlen(name);
  return length && length < 200 && *name != '.' && *name != '-' && strspn(name, allowed) == length;
}

static pp_status add_program(pp_model *model, const char *name, pp_error *error) {
  struct session *session = model->data;
  for (size_t i = 0; i < model->programs; i++)
    if (!strcmp(model->name[i], name))
      return pp_fail(error, PP_ERROR_INPUT, "index.json: two programs are called \"%s\"", name);
  size_t length = strlen(model->path) + strlen(name) + sizeof "/.json";
  char *path = pp_alloc(length, 1);
  char *copy = strdup(name);
  if (!path || !copy) {
    free(path);
    free(copy);
    return pp_fail_memory(error);
  }
  snprintf(path, length, "%s/%s.json", model->path, name);
  struct file *file = session->file + model->programs;
  pp_status status = pp_read_file(path, &file->bytes, &file->size, error);
  free(path);
  if (status) {
    free(copy);
    if (error && status == PP_ERROR_READ) {
      pp_error inner = *error;
      pp_fail(error, status, "%s.json: %.100s", name, inner.message);
    }
    return status;
  }
  model->sequence[model->programs] = model->programs;
  model->name[model->programs++] = copy;
  return PP_OK;
}

static pp_status add_entry(pp_model *model, yajl_val entry, pp_error *error) {
  yajl_val name = entry && YAJL_IS_OBJECT(entry) ? get(entry, "name", yajl_t_string) : NULL;
  if (!name || !is_safe(YAJL_GET_STRING(name)))
    return pp_fail(error, PP_ERROR_INPUT,
                   "index.json: a program has no name, or one that cannot be "
                   "a file's");
  if (get(entry, "program", yajl_t_any))
    return add_program(model, YAJL_GET_STRING(name), error);
  pp_notices_add(&model->notices, "program \"%s\" was not understood: it is left out",
                 YAJL_GET_STRING(name));
  return PP_OK;
}

static pp_status read_index(pp_model *model, yajl_val root, pp_error *error) {
  struct session *session = model->data;
  yajl_val version = root ? get(root, "peakproof_session", yajl_t_number) : NULL;
  yajl_val programs = root ? get(root, "programs", yajl_t_array) : NULL;
  if (!version || !YAJL_IS_INTEGER(version) || YAJL_GET_INTEGER(version) != VERSION || !programs)
    return pp_fail(error, PP_ERROR_INPUT, "index.json is not that of a saved session, version %d",
                   VERSION);
  size_t count = YAJL_GET_ARRAY(programs)->len;
  session->file = pp_zalloc(count, sizeof *session->file);
  model->name = pp_zalloc(count, sizeof *model->name);
  model->sequence = pp_zalloc(count, sizeof *model->sequence);
  pp_status status =
      session->file && model->name && model->sequence ? PP_OK : pp_fail_memory(error);
  for (size_t i = 0; i < count && !status; i++)
    status = add_entry(model, YAJL_GET_ARRAY(programs)->values[i], error);
  if (!status && !model->programs)
    status = pp_fail(error, PP_ERROR_INPUT, "the session has no program that was understood");
  return status;
}

/* ---- The model ---- */

/* An error in a program's file says which file. */
static pp_status parse(const pp_model *model, size_t index, pp_notices *notices,
                       pp_program **program, pp_error *error) {
  const struct session *session = model->data;
  const struct file *file = session->file + index;
  pp_status status = pp_program_parse(file->bytes, file->size, notices, program, error);
  if (status && error) {
    pp_error inner = *error;
    pp_fail(error, status, "%s.json: %.150s", model->name[index], inner.message);
    error->line = inner.line;
    error->column = inner.column;
  }
  return status;
}

static pp_status build(const pp_model *model, size_t index, const int64_t *peak,
                       pp_program **program, pp_error *error) {
  (void)peak;
  return parse(model, index, NULL, program, error);
}

static void free_data(pp_model *model) {
  struct session *session = model->data;
  for (size_t i = 0; session->file && i < model->programs; i++)
    free(session->file[i].bytes);
  free(session->file);
  free(session);
}

static const struct pp_model_operations operations = {build, NULL, free_data};

pp_status pp_session_read(pp_model *model, const pp_read_options *options, pp_error *error) {
  struct session *session = pp_zalloc(1, sizeof *session);
  (void)options;
  if (!session)
    return pp_fail_memory(error);
  model->data = session;
  model->operations = &operations;
  model->format = PP_FORMAT_SESSION;
  if (is_deep(model->bytes, model->size) || memchr(model->bytes, 0, model->size))
    return pp_fail(error, PP_ERROR_INPUT, "index.json is not that of a saved session");
  char text[160] = "";
  yajl_val root = yajl_tree_parse((const char *)model->bytes, text, sizeof text);
  if (!root) {
    text[strcspn(text, "\n")] = 0;
    return pp_fail(error, PP_ERROR_INPUT, "index.json: %s", *text ? text : "no JSON");
  }
  pp_status status = read_index(model, root, error);
  yajl_tree_free(root);
  for (size_t i = 0; i < model->programs && !status; i++) { /* to fail early */
    pp_program *program = NULL;
    status = parse(model, i, &model->notices, &program, error);
    pp_program_free(program);
  }
  return status;
}
