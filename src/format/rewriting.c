/* Writing a model with statements that run again: by format; program JSON is done here. */
#include "format/rewriting.h"

#include <string.h>

#include "error.h"
#include "format/collect.h"
#include "memory.h"
#include "remat.h"

/* ---- The check ---- */

static pp_status copy_statement(pp_program *to, const pp_program *from, pp_index v,
                                const pp_index *match, pp_error *error) {
  pp_statement_info info = pp_program_statement(from, v);
  pp_status status = pp_program_add_statement(to, info.name, error);
  for (size_t i = 0; !status && i < info.accesses; i++)
    status = pp_program_add_access(to, match[info.access[i].storage], info.access[i].from,
                                   info.access[i].to, info.access[i].flags, error);
  for (size_t i = 0; !status && i < info.requests; i++)
    status = pp_program_add_work(to, info.request[i], error);
  return status ? status : pp_program_set_pure(to, info.pure, error);
}

/* The written program with the rewriting's numbers of storages. */
static pp_status renumber(const pp_program *written, const pp_index *match, pp_program *to,
                          pp_error *error) {
  pp_index m = pp_program_storages(written), *inverse = pp_alloc((size_t)m, sizeof *inverse);
  pp_status status = inverse ? PP_OK : pp_fail_memory(error);
  for (pp_index s = 0; !status && s < m; s++)
    inverse[match[s]] = s;
  for (pp_index s = 0; !status && s < m; s++) {
    pp_storage_info info = pp_program_storage(written, inverse[s]);
    status = pp_program_add_storage(to, info.name, info.bytes, info.flags, NULL, error);
  }
  free(inverse);
  for (pp_index v = 0; !status && v < pp_program_statements(written); v++)
    status = copy_statement(to, written, v, match, error);
  const pp_index *pair;
  size_t pairs = pp_program_orders(written, &pair);
  for (size_t i = 0; !status && i < pairs; i++)
    status = pp_program_add_order(to, pair[2 * i], pair[2 * i + 1], error);
  return status ? status : pp_program_finish(to, error);
}

static pp_status check_numbered(const pp_model_rewriting *rewriting, const pp_program *written,
                                pp_error *error) {
  pp_index n = pp_program_statements(rewriting->program);
  pp_index *statement = pp_alloc((size_t)n, sizeof *statement);
  if (!statement)
    return pp_fail_memory(error);
  for (pp_index i = 0; i < n; i++)
    statement[i] = rewriting->statement[rewriting->order ? rewriting->order[i] : i];
  pp_status status =
      pp_remat_check(rewriting->original, written, statement, rewriting->storage, error);
  free(statement);
  return status;
}

pp_status pp_remat_check_written(const pp_model_rewriting *rewriting, const pp_program *written,
                                 const pp_index *match, pp_error *error) {
  pp_index n = pp_program_statements(rewriting->program),
           m = pp_program_storages(rewriting->program);
  if (pp_program_statements(written) != n || pp_program_storages(written) != m)
    return pp_fail(error, PP_ERROR_INTERNAL,
                   "the written model has %d statements and %d storages, not %d and %d",
                   pp_program_statements(written), pp_program_storages(written), n, m);
  if (!match)
    return check_numbered(rewriting, written, error);
  pp_program *numbered = pp_program_new(error);
  pp_status status = numbered ? renumber(written, match, numbered, error) : PP_ERROR_MEMORY;
  if (!status)
    status = check_numbered(rewriting, numbered, error);
  pp_program_free(numbered);
  return status;
}

/* ---- Program JSON ---- */

/* The model's own writer, on the rewritten program as a model of its own. */
static pp_status write_program(const pp_model *model, const pp_model_rewriting *rewriting,
                               pp_write *write, void *data, pp_error *error) {
  pp_collected text = {0};
  pp_model *rewritten;
  pp_status status = pp_program_json_write(rewriting->program, pp_collect, &text, error);
  if (status) {
    free(text.bytes);
    return status;
  }
  status = pp_model_read_bytes(model->path, text.bytes, text.size, NULL, &rewritten, error);
  if (status)
    return status;
  status = pp_model_write(rewritten, &rewriting->order, write, data, error);
  pp_model_free(rewritten);
  return status;
}

/* ---- Formats ---- */

bool pp_model_can_repeat(const pp_model *model, size_t index) {
  switch (model->format) {
  case PP_FORMAT_PROGRAM:
  case PP_FORMAT_TFLITE:
    return true;
  case PP_FORMAT_ONNX:
    return index == 0; /* the others are bodies of control flow */
  default:
    return false;
  }
}

static pp_status write_orders(const pp_model *model, const pp_model_rewriting *rewriting,
                              pp_write *write, void *data, pp_error *error) {
  const pp_index **order = pp_alloc(model->programs, sizeof *order);
  if (!order)
    return pp_fail_memory(error);
  for (size_t i = 0; i < model->programs; i++)
    order[i] = rewriting[i].order;
  pp_status status = pp_model_write(model, order, write, data, error);
  free(order);
  return status;
}

pp_status pp_model_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                               pp_write *write, void *data, pp_error *error) {
  bool any = false;
  for (size_t i = 0; i < model->programs; i++)
    any |= rewriting[i].program != NULL;
  if (!any)
    return write_orders(model, rewriting, write, data, error);
  switch (model->format) {
  case PP_FORMAT_PROGRAM:
    return write_program(model, rewriting, write, data, error);
  case PP_FORMAT_TFLITE:
    return pp_tflite_write_remat(model, rewriting, write, data, error);
  case PP_FORMAT_ONNX:
    return pp_onnx_write_remat(model, rewriting, write, data, error);
  default:
    return pp_fail(error, PP_ERROR_USAGE,
                   "models of this format cannot be written with statements that run again");
  }
}
