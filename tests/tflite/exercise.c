#include "exercise.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/collect.h"
#include "format/onnx.h"
#include "format/tflite.h"
#include "memory.h"

#define REQUIRE(condition, ...)                                                                    \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: broken promise: %s: ", __FILE__, __LINE__, #condition);              \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fprintf(stderr, "\n");                                                                       \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

pp_index *legal_order(const pp_program *program, uint64_t *state) {
  pp_index n = pp_program_statements(program), ready_count = 0;
  pp_index *order = pp_alloc((size_t)n, sizeof *order), *ready = pp_alloc((size_t)n, sizeof *ready);
  size_t *waiting = pp_alloc((size_t)n, sizeof *waiting);
  REQUIRE(order && ready && waiting, "memory");
  const pp_index *list;
  for (pp_index v = 0; v < n; v++)
    if (!(waiting[v] = pp_program_predecessors(program, v, &list)))
      ready[ready_count++] = v;
  for (pp_index k = 0; k < n; k++) {
    REQUIRE(ready_count, "the dependences have a cycle");
    pp_index pick =
        state ? (pp_index)(next_random(state) % (uint64_t)ready_count) : ready_count - 1;
    pp_index v = order[k] = ready[pick];
    ready[pick] = ready[--ready_count];
    size_t count = pp_program_successors(program, v, &list);
    for (size_t i = 0; i < count; i++)
      if (!--waiting[list[i]])
        ready[ready_count++] = list[i];
  }
  free(ready);
  free(waiting);
  return order;
}

/* What a clean refusal of bad input looks like. */
static void require_refusal(pp_status status, const pp_error *error, size_t size) {
  REQUIRE(status == PP_ERROR_INPUT || status == PP_ERROR_OVERFLOW, "status %s: %s",
          pp_status_name(status), error->message);
  REQUIRE(error->status == status && error->message[0], "%s", error->message);
  REQUIRE(error->offset >= -1 && error->offset <= (int64_t)size, "offset %" PRId64 ": %s",
          error->offset, error->message);
}

static pp_status read_copy(const uint8_t *bytes, size_t size, pp_model **model, pp_error *error) {
  uint8_t *copy = malloc(size + 1);
  REQUIRE(copy, "memory");
  if (size)
    memcpy(copy, bytes, size);
  copy[size] = 0;
  return pp_model_read_bytes("model.tflite", copy, size, NULL, model, error);
}

/* Builds all programs; order[i] receives a legal order of each. */
static pp_status build_all(const pp_model *model, pp_index **order, size_t *statements,
                           uint64_t *state, pp_error *error) {
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  REQUIRE(peak, "memory");
  pp_status status = PP_OK;
  for (size_t k = 0; k < model->programs && !status; k++) {
    size_t i = model->sequence[k];
    pp_program *program;
    if ((status = pp_model_build(model, i, peak, &program, error)))
      break;
    status = pp_simulate(program, NULL, peak + i, NULL, NULL, error);
    REQUIRE(!status, "the original order is not legal: %s", error->message);
    order[i] = legal_order(program, next_random(state) % 4 ? state : NULL);
    statements[i] = (size_t)pp_program_statements(program);
    int64_t other;
    status = pp_simulate(program, order[i], &other, NULL, NULL, error);
    REQUIRE(!status, "a legal order is not legal: %s", error->message);
    pp_program_free(program);
  }
  free(peak);
  return status;
}

static void check_written(const pp_model *model, pp_index *const *order, const size_t *statements,
                          const pp_collected *out) {
  pp_model *written;
  pp_error error;
  pp_index **found;
  pp_status status = read_copy(out->bytes, out->size, &written, &error);
  REQUIRE(!status, "the written file cannot be read: %s", error.message);
  status = (model->format == PP_FORMAT_ONNX ? pp_onnx_compare : pp_tflite_compare)(model, written,
                                                                                   &found, &error);
  REQUIRE(!status, "the written file is another model: %s", error.message);
  for (size_t i = 0; i < model->programs; i++)
    REQUIRE(!memcmp(found[i], order[i], statements[i] * sizeof(pp_index)),
            "program %zu: another order", i);
  pp_orders_free(found, model->programs);
  pp_model_free(written);
}

/* Without orders, the same bytes are written. */
static void check_unchanged(const pp_model *model, pp_index *const *order) {
  pp_error error;
  pp_collected out = {0};
  pp_status status =
      pp_model_write(model, (const pp_index *const *)order, pp_collect, &out, &error);
  REQUIRE(!status && out.size == model->size && !memcmp(out.bytes, model->bytes, out.size),
          "writing without an order changes the file");
  free(out.bytes);
}

static void exercise_model(const pp_model *model, uint64_t *state, bool thorough) {
  pp_error error;
  pp_collected out = {0};
  pp_index **order = pp_zalloc(model->programs, sizeof *order);
  size_t *statements = pp_zalloc(model->programs, sizeof *statements);
  REQUIRE(order && statements, "memory");
  /* The writer checks itself, so that the dearer of these checks may be rare. */
  if (thorough || next_random(state) % 8 == 0)
    check_unchanged(model, order);
  pp_status status = build_all(model, order, statements, state, &error);
  if (!status && (thorough || next_random(state) % 4 == 0)) {
    status = pp_model_write(model, (const pp_index *const *)order, pp_collect, &out, &error);
    if (!status && (thorough || next_random(state) % 4 == 0))
      check_written(model, order, statements, &out);
  }
  if (status) {
    require_refusal(status, &error, model->size);
    REQUIRE(!out.size, "refused, but written");
  }
  for (size_t i = 0; i < model->programs; i++)
    free(order[i]);
  free(order);
  free(statements);
  free(out.bytes);
}

pp_status exercise(const uint8_t *bytes, size_t size, uint64_t seed, bool thorough) {
  pp_model *model = NULL;
  pp_error error = {0};
  pp_status status = read_copy(bytes, size, &model, &error);
  if (status) {
    require_refusal(status, &error, size);
    return status;
  }
  if (model->format == PP_FORMAT_TFLITE || model->format == PP_FORMAT_ONNX)
    exercise_model(model, &seed, thorough);
  pp_model_free(model);
  return PP_OK;
}
