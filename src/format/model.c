/* A model file of any format: reads the bytes, tells the format, calls its reader. */
#include "format/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"
#include "format/csv.h"
#include "format/onnx.h"
#include "format/simulator.h"
#include "memory.h"

/* ---- Notices ---- */

void pp_notices_add(pp_notices *notices, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!pp_reserve((void **)&notices->text, &notices->capacity, notices->count + 1,
                  sizeof *notices->text))
    return;
  char *copy = strdup(text);
  if (copy)
    notices->text[notices->count++] = copy;
}

void pp_notices_free(pp_notices *notices) {
  for (size_t i = 0; i < notices->count; i++)
    free(notices->text[i]);
  free(notices->text);
  *notices = (pp_notices){0};
}

/* ---- Formats ---- */

static bool is_tflite(const uint8_t *bytes, size_t size) {
  return size >= 8 && !memcmp(bytes + 4, "TFL3", 4);
}

static bool is_program(const uint8_t *bytes, size_t size) {
  size_t i = 0;
  while (i < size && strchr(" \t\r\n", bytes[i]) && bytes[i])
    i++;
  return i < size && (bytes[i] == '{' || bytes[i] == '[');
}

/* The first whose test succeeds reads the file; tests look at the content only. */
static const struct {
  bool (*test)(const uint8_t *bytes, size_t size);
  pp_status (*read)(pp_model *model, const pp_read_options *options, pp_error *error);
} readers[] = {
    {is_tflite, pp_tflite_read},
    {pp_onnx_test, pp_onnx_read},
    {pp_simulator_test, pp_simulator_read},
    {is_program, pp_program_json_read},
};

static pp_status read_format(pp_model *model, const pp_read_options *options, pp_error *error) {
  if (!model->size) {
    pp_status status = pp_fail(error, PP_ERROR_INPUT, "the file is empty");
    if (error)
      error->offset = 0;
    return status;
  }
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
    if (readers[i].test(model->bytes, model->size))
      return readers[i].read(model, options, error);
  if (pp_csv_test(model->bytes, model->size))
    return pp_fail(error, PP_ERROR_INPUT,
                   "buffers with fixed lifetimes have no order to plan: see peakproof arena");
  pp_status status = pp_fail(error, PP_ERROR_INPUT,
                             "neither a .tflite file (no \"TFL3\" here) nor ONNX nor program JSON");
  if (error)
    error->offset = model->size < 4 ? (int64_t)model->size : 4;
  return status;
}

/* ---- Bytes ---- */

static pp_status fail_errno(pp_error *error, const char *what) {
  return errno == ENOMEM ? pp_fail_memory(error)
                         : pp_fail(error, PP_ERROR_READ, "%s: %s", what, strerror(errno));
}

/* The rest of a stream; *capacity bytes are there to begin with, at most `limit` may come. */
static pp_status read_stream(FILE *file, size_t capacity, size_t limit, uint8_t **bytes,
                             size_t *size, pp_error *error) {
  *bytes = NULL;
  *size = 0;
  size_t room = 0;
  do {
    size_t wanted = *size + 1 > capacity ? *size + 1 : capacity;
    if (!pp_reserve((void **)bytes, &room, wanted + 1, 1))
      return pp_fail_memory(error);
    *size += fread(*bytes + *size, 1, room - 1 - *size, file);
  } while (*size <= limit && !feof(file) && !ferror(file));
  if (ferror(file))
    return fail_errno(error, "cannot read");
  if (*size > limit)
    return pp_fail(error, PP_ERROR_INPUT,
                   "no end after %zu bytes; a pipe may bring no more, a file may", limit);
  (*bytes)[*size] = 0;
  return PP_OK;
}

static bool is_ours(const char *path, const struct stat *about) {
  struct stat standard;
  return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/self/fd/", 14) ||
         (!fstat(fileno(stdin), &standard) && standard.st_dev == about->st_dev &&
          standard.st_ino == about->st_ino);
}

pp_status pp_check_readable(const char *path, pp_error *error) {
  struct stat about;
  if (stat(path, &about))
    return fail_errno(error, "cannot open");
  if (S_ISDIR(about.st_mode))
    return pp_fail(error, PP_ERROR_READ, "is a directory");
  if (!S_ISREG(about.st_mode) && !is_ours(path, &about))
    return pp_fail(error, PP_ERROR_READ, "is not a regular file");
  return PP_OK;
}

pp_status pp_read_file(const char *path, uint8_t **bytes, size_t *size, pp_error *error) {
  bool standard = !strcmp(path, "-");
  struct stat about;
  *bytes = NULL;
  pp_status status = standard ? PP_OK : pp_check_readable(path, error);
  if (status)
    return status;
  FILE *file = standard ? stdin : fopen(path, "rb");
  if (!file)
    return fail_errno(error, "cannot open");
  if (fstat(fileno(file), &about))
    status = fail_errno(error, "cannot read");
  else if (S_ISDIR(about.st_mode))
    status = pp_fail(error, PP_ERROR_READ, "is a directory");
  else {
    size_t known = S_ISREG(about.st_mode) ? (size_t)about.st_size : 0;
    status = read_stream(file, known ? known + 1 : 1 << 16,
                         known > PP_STREAM_LIMIT ? known : PP_STREAM_LIMIT, bytes, size, error);
  }
  if (!standard)
    fclose(file);
  if (status) {
    free(*bytes);
    *bytes = NULL;
  }
  return status;
}

/* ---- Models ---- */

typedef pp_status reader(pp_model *model, const pp_read_options *options, pp_error *error);

/* Takes the bytes. */
static pp_status make_model(const char *path, uint8_t *bytes, size_t size, reader *read,
                            const pp_read_options *options, pp_model **model, pp_error *error) {
  static const pp_read_options none = {0};
  pp_model *made = pp_zalloc(1, sizeof *made);
  if (!made || !(made->path = strdup(path))) {
    free(made);
    free(bytes);
    return pp_fail_memory(error);
  }
  made->bytes = bytes;
  made->size = size;
  pp_status status = read(made, options ? options : &none, error);
  if (!status && options && options->dimensions && made->format != PP_FORMAT_ONNX)
    pp_notices_add(&made->notices, "this format names no dimensions: --dim does nothing");
  if (status)
    pp_model_free(made);
  else
    *model = made;
  return status;
}

pp_status pp_model_read_bytes(const char *path, uint8_t *bytes, size_t size,
                              const pp_read_options *options, pp_model **model, pp_error *error) {
  return make_model(path, bytes, size, read_format, options, model, error);
}

/* A directory that holds a saved session. */
static pp_status read_session(const char *path, const pp_read_options *options, pp_model **model,
                              pp_error *error) {
  uint8_t *bytes = NULL;
  size_t size = 0, length = strlen(path) + sizeof "/index.json";
  char *index = pp_alloc(length, 1);
  if (!index)
    return pp_fail_memory(error);
  snprintf(index, length, "%s/index.json", path);
  struct stat about;
  pp_status status =
      stat(index, &about)
          ? pp_fail(error, PP_ERROR_READ, "is a directory, and no saved session (no index.json)")
          : pp_read_file(index, &bytes, &size, error);
  free(index);
  return status ? status : make_model(path, bytes, size, pp_session_read, options, model, error);
}

pp_status pp_model_read(const char *path, const pp_read_options *options, pp_model **model,
                        pp_error *error) {
  uint8_t *bytes = NULL;
  size_t size = 0;
  struct stat about;
  if (strcmp(path, "-") && !stat(path, &about) && S_ISDIR(about.st_mode))
    return read_session(path, options, model, error);
  pp_status status = pp_read_file(path, &bytes, &size, error);
  return status ? status : pp_model_read_bytes(path, bytes, size, options, model, error);
}

void pp_model_free(pp_model *model) {
  if (!model)
    return;
  if (model->operations && model->data)
    model->operations->free(model);
  for (size_t i = 0; model->name && i < model->programs; i++)
    free(model->name[i]);
  free(model->name);
  free(model->sequence);
  for (size_t i = 0; i < model->companions; i++)
    free(model->companion[i]);
  free(model->companion);
  pp_notices_free(&model->notices);
  free(model->path);
  free(model->bytes);
  free(model);
}

pp_status pp_model_build(const pp_model *model, size_t index, const int64_t *peak,
                         pp_program **program, pp_error *error) {
  return model->operations->build(model, index, peak, program, error);
}

pp_status pp_model_write(const pp_model *model, const pp_index *const *order, pp_write *write,
                         void *data, pp_error *error) {
  if (!model->operations->write)
    return pp_fail(error, PP_ERROR_USAGE, "this format cannot be written back");
  return model->operations->write(model, order, write, data, error);
}
