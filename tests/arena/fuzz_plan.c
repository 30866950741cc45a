/* libFuzzer: any bytes as a .tflite file that is planned for TFLM. What is accepted gets a plan;
 * read again it has this plan, the same lives, and with the plan of before it is the file of
 * before. The last two bytes choose scratch. */
#include <stdlib.h>
#include <string.h>

#include "format/collect.h"
#include "format/tflite_arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Reads a model; NULL if it is refused. The bytes are taken. */
static pp_model *read_model(uint8_t *bytes, size_t size) {
  pp_model *model;
  pp_error error;
  if (pp_model_read_bytes("fuzz.tflite", bytes, size, NULL, &model, &error))
    return NULL;
  if (model->format == PP_FORMAT_TFLITE)
    return model;
  pp_model_free(model);
  return NULL;
}

static bool same_lives(const pp_lives *a, const pp_lives *b) {
  if (a->count != b->count || a->persistent != b->persistent)
    return false;
  for (size_t i = 0; i < a->count; i++)
    if (memcmp(&a->life[i].buffer, &b->life[i].buffer, sizeof a->life[i].buffer) ||
        a->life[i].tensor != b->life[i].tensor)
      return false;
  return true;
}

static void write_and_read(const pp_model *model, const pp_lives *lives) {
  size_t tensors = pp_tflite_tensors(model);
  int64_t *offset = malloc((tensors + 1) * sizeof *offset), *back;
  pp_collected first = {0}, second = {0};
  pp_error error;
  if (!offset)
    abort();
  for (size_t t = 0; t < tensors; t++)
    offset[t] = -1;
  for (size_t i = 0; i < lives->count; i++)
    offset[lives->life[i].tensor] = (int64_t)(i % 1000) * PP_TFLM_ALIGNMENT;
  if (pp_tflite_write_plan(model, offset, pp_collect, &first, &error)) {
    free(first.bytes);
    free(offset);
    return;
  }
  size_t size = first.size;
  pp_model *again = read_model(first.bytes, size);
  pp_lives lives_again;
  if (!again || pp_tflite_read_plan(again, &back, &error) || !back ||
      pp_tflite_tensors(again) != tensors || memcmp(back, offset, tensors * sizeof *offset))
    abort();
  if (pp_lives_tflm(again, NULL, 0, &lives_again, &error) || !same_lives(lives, &lives_again))
    abort();
  if (pp_tflite_write_plan(again, back, pp_collect, &second, &error))
    abort();
  pp_lives_free(&lives_again);
  pp_model_free(again);
  free(second.bytes);
  free(back);
  free(offset);
}

static void try_scratch(const pp_model *model, const uint8_t *bytes) {
  pp_scratch scratch[] = {{0, bytes[0] % 8u, bytes[1]}, {bytes[1] % 2u, bytes[1] % 4u, 1 << 20}};
  pp_lives lives;
  if (!pp_lives_tflm(model, scratch, 2, &lives, NULL))
    pp_lives_free(&lives);
  for (uint32_t s = 0; s < pp_tflite_subgraphs(model) && s < 4; s++)
    if (!pp_lives_litert(model, s, scratch, 2, &lives, NULL))
      pp_lives_free(&lives);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < 8)
    return 0;
  uint8_t *copy = malloc(size + 1);
  if (!copy)
    return 0;
  memcpy(copy, bytes, size);
  copy[size] = 0;
  memcpy(copy + 4, "TFL3", 4);
  pp_model *model = read_model(copy, size);
  if (!model)
    return 0;
  pp_lives lives;
  int64_t *plan;
  if (!pp_tflite_read_plan(model, &plan, NULL))
    free(plan);
  if (!pp_lives_tflm(model, NULL, 0, &lives, NULL)) {
    write_and_read(model, &lives);
    pp_lives_free(&lives);
  }
  try_scratch(model, bytes + size - 2);
  pp_model_free(model);
  return 0;
}
