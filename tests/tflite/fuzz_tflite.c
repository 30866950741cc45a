/* libFuzzer target: any bytes, said to be a .tflite file, or with FUZZ_ONNX an ONNX one. The orders
 * that a model is written in follow from them. */
#include <string.h>

#include "exercise.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  uint64_t seed = 0;
  uint8_t *copy = pp_alloc(size, 1);
  if (!copy)
    return 0;
  if (size)
    memcpy(copy, bytes, size);
#ifndef FUZZ_ONNX /* what has this mark is read as .tflite, and ONNX has none */
  if (size >= 8)
    memcpy(copy + 4, "TFL3", 4);
#endif
  for (size_t i = 0; i < size && i < 4096; i++) /* FNV-1a */
    seed = (seed ^ copy[i]) * 0x100000001b3;
  exercise(copy, size, seed, true);
  free(copy);
  return 0;
}
