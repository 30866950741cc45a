/* libFuzzer: any bytes as program JSON. What is accepted is written, read again and written again:
 * the two texts are the same, and so are the peaks. */
#include <stdlib.h>
#include <string.h>

#include "format/program_reader.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct text {
  char *bytes;
  size_t size, capacity;
};

static bool collect(const void *bytes, size_t size, void *data) {
  struct text *text = data;
  if (!pp_reserve((void **)&text->bytes, &text->capacity, text->size + size + 1, 1))
    abort();
  memcpy(text->bytes + text->size, bytes, size);
  text->size += size;
  text->bytes[text->size] = 0;
  return true;
}

static pp_status parse(const char *bytes, size_t size, pp_program **program) {
  pp_notices notices = {0};
  pp_error error;
  pp_status status = pp_program_parse((const uint8_t *)bytes, size, &notices, program, &error);
  pp_notices_free(&notices);
  if (status && (error.line < 1 || error.column < 1 || !*error.message))
    abort(); /* every error of the text has a position */
  return status;
}

static int64_t write(const pp_program *program, struct text *text) {
  int64_t peak;
  if (pp_program_json_write(program, collect, text, NULL) ||
      pp_simulate(program, NULL, &peak, NULL, NULL, NULL))
    abort();
  return peak;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  pp_program *program, *again;
  struct text first = {0}, second = {0};
  char *copy = malloc(size + 1); /* of exactly this size, so that reading beyond it shows */
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
