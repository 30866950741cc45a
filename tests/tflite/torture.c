/* torture MODEL [OPTION]... - hostile .tflite files.
 *
 * Every byte of MODEL's structure (all but the data of constants) takes other values, and MODEL is
 * cut short at every length up to 4 KiB; each such file goes through all that peakproof does
 * (exercise.c). Options: ../fuzz/torture.h. Build it with sanitizers. Prints how many files there
 * were, how many were refused, and exits with 0; anything else aborts. */
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_schema.h"
#include "torture.h"

static void mark_constants(const pp_tflite *tflite, struct torture *torture) {
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t tensor = pp_tflite_at(tflite, tflite->subgraph[s].tensors, i);
      uint32_t index = pp_flat_get32(&tflite->flat, tensor, TENSOR_BUFFER, 0);
      size_t buffer = pp_tflite_at(tflite, tflite->buffers, index);
      pp_flat_vector data = pp_flat_elements(&tflite->flat, buffer, BUFFER_DATA);
      memset(torture->mark + data.at, TORTURE_DATA, data.count);
    }
}

int main(int count, char **argument) {
  struct torture torture = TORTURE_DEFAULTS;
  pp_model *model;
  for (int i = 2; i < count; i++)
    if (!torture_option(&torture, count, argument, &i))
      return 64;
  int code = count < 2 ? 64 : torture_begin(&torture, argument[1], &model);
  if (code)
    return code;
  mark_constants(model->data, &torture);
  pp_model_free(model);
  torture_run(&torture);
  torture_end(&torture);
  return 0;
}
