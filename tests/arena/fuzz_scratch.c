/* libFuzzer: any bytes as a table of scratch. What is accepted has no negative number; every error
 * of the text has a position. */
#include <stdlib.h>
#include <string.h>

#include "format/csv.h"
#include "format/tflite_arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  pp_scratch *scratch;
  size_t count;
  pp_error error;
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy)
    return 0;
  if (size)
    memcpy(copy, bytes, size);
  pp_status status = pp_csv_read_scratch(copy, size, &scratch, &count, &error);
  free(copy);
  if (status) {
    if ((status == PP_ERROR_INPUT) != (error.line >= 1 && error.column >= 1))
      abort();
    return 0;
  }
  for (size_t i = 0; i < count; i++)
    if (scratch[i].bytes < 0 || scratch[i].subgraph > INT32_MAX || scratch[i].operator_ > INT32_MAX)
      abort();
  free(scratch);
  return 0;
}
