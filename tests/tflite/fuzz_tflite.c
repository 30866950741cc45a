/* libFuzzer target: any bytes. The orders that a model is written in follow from them. */
#include <string.h>

#include "exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  uint64_t seed = 0;
  for (size_t i = 0; i < size && i < 4096; i++) /* FNV-1a */
    seed = (seed ^ bytes[i]) * 0x100000001b3;
  exercise(bytes, size, seed);
  return 0;
}
