/* permute MODEL SEED OUTPUT - writes a .tflite file with a legal order of its operators, drawn with
 * SEED ("last": always the last ready one). Prints one JSON line: the orders, and the modelled
 * peaks before and after. For the tests; users have `peakproof plan`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exercise.h"
#include "memory.h"

static int fail(const char *what, const pp_error *error) {
  fprintf(stderr, "%s: %s (byte %" PRId64 ")\n", what, error->message, error->offset);
  return error->status == PP_ERROR_INPUT || error->status == PP_ERROR_OVERFLOW ? 65 : 70;
}

static bool to_file(const void *bytes, size_t size, void *data) {
  return fwrite(bytes, 1, size, data) == size;
}

static void print_order(const pp_program *program, const pp_index *order) {
  for (pp_index k = 0; k < pp_program_statements(program); k++)
    printf("%s%" PRId32, k ? ", " : "", order[k]);
}

/* Draws the order of program i, and prints what comes of it. */
static pp_status draw(const pp_model *model, size_t i, pp_index **order, int64_t *peak,
                      uint64_t *seed, pp_error *error) {
  pp_program *program;
  int64_t before = 0;
  pp_status status = pp_model_build(model, i, peak, &program, error);
  if (status)
    return status;
  order[i] = legal_order(program, seed);
  status = pp_simulate(program, NULL, &before, NULL, NULL, error);
  if (!status)
    status = pp_simulate(program, order[i], peak + i, NULL, NULL, error);
  printf("{\"subgraph\": %zu, \"before\": %" PRId64 ", \"after\": %" PRId64 ", \"order\": [", i,
         before, peak[i]);
  print_order(program, order[i]);
  printf("]}");
  pp_program_free(program);
  return status;
}

static pp_status permute(const pp_model *model, pp_index **order, uint64_t *seed, FILE *file,
                         pp_error *error) {
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  pp_status status = PP_OK;
  if (!peak)
    abort();
  printf("[");
  for (size_t k = 0; k < model->programs && !status; k++) {
    printf("%s", k ? ", " : "");
    status = draw(model, model->sequence[k], order, peak, seed, error);
  }
  printf("]\n");
  free(peak);
  return status ? status
                : pp_model_write(model, (const pp_index *const *)order, to_file, file, error);
}

int main(int count, char **argument) {
  pp_model *model;
  pp_error error;
  if (count != 4)
    return 64;
  if (pp_model_read(argument[1], NULL, &model, &error))
    return fail(argument[1], &error);
  uint64_t seed = strtoull(argument[2], NULL, 10);
  pp_index **order = pp_zalloc(model->programs, sizeof *order);
  FILE *file = fopen(argument[3], "wb");
  int code = 0;
  if (!order || !file)
    return 73;
  if (permute(model, order, strcmp(argument[2], "last") ? &seed : NULL, file, &error))
    code = fail(argument[1], &error);
  if (fclose(file) && !code)
    code = 74;
  for (size_t i = 0; i < model->programs; i++)
    free(order[i]);
  free(order);
  pp_model_free(model);
  return code;
}
