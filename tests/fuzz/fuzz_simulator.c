/* libFuzzer: any bytes as Inductor's simulator JSON. What is accepted is built and simulated; what
 * is refused is refused with a message. */
#include <stdlib.h>
#include <string.h>

#include "format/model.h"
#include "format/simulator.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  pp_model *model;
  pp_program *program;
  pp_error error = {0};
  int64_t peak = 0;
  if (!pp_simulator_test(bytes, size))
    return 0;
  uint8_t *copy = malloc(size + 1); /* of exactly this size, so that reading beyond it shows */
  if (!copy)
    return 0;
  memcpy(copy, bytes, size);
  copy[size] = 0;
  if (pp_model_read_bytes("graph.json", copy, size, NULL, &model, &error)) {
    if (!*error.message)
      abort();
    return 0;
  }
  pp_status status = pp_model_build(model, 0, &peak, &program, &error);
  if (!status && pp_simulate(program, NULL, &peak, NULL, NULL, &error))
    abort();
  if (status && status != PP_ERROR_OVERFLOW)
    abort();
  if (!status)
    pp_program_free(program);
  pp_model_free(model);
  return 0;
}
