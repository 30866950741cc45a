/* libFuzzer: any bytes as program JSON. What is accepted is written, read again and written again:
 * the two texts are the same, and so are the peaks. */
#include <stdlib.h>
#include <string.h>

#include "format/collect.h"
#include "format/program_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static pp_status parse(const uint8_t *bytes, size_t size, pp_program **program) {
  pp_notices notices = {0};
  pp_error error;
  pp_status status = pp_program_parse(bytes, size, &notices, program, &error);
  pp_notices_free(&notices);
  if (status && (error.line < 1 || error.column < 1 || !*error.message))
    abort(); /* every error of the text has a position */
  return status;
}

static int64_t write(const pp_program *program, pp_collected *text) {
  int64_t peak;
  if (pp_program_json_write(program, pp_collect, text, NULL) ||
      pp_simulate(program, NULL, &peak, NULL, NULL, NULL))
    abort();
  return peak;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  pp_program *program, *again;
  pp_collected first = {0}, second = {0};
  uint8_t *copy = malloc(size + 1); /* of exactly this size, so that reading beyond it shows */
  memcpy(copy, bytes, size);
  copy[size] = 0;
  if (!parse(copy, size, &program)) {
    int64_t peak = write(program, &first);
    if (parse(first.bytes, first.size, &again) || write(again, &second) != peak ||
        first.size != second.size || memcmp(first.bytes, second.bytes, first.size))
      abort();
    pp_program_free(program);
    pp_program_free(again);
  }
  free(first.bytes);
  free(second.bytes);
  free(copy);
  return 0;
}
