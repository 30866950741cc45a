/* libFuzzer: any bytes as minimalloc's CSV. What is accepted is packed and written; read again it
 * has the same buffers and these offsets, and written again it is the same. Every error of the text
 * has a position. */
#include <stdlib.h>
#include <string.h>

#include "format/collect.h"
#include "format/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool same(const pp_csv *a, const pp_csv *b) {
  if (a->count != b->count || a->alignment != b->alignment || strcmp(a->header, b->header))
    return false;
  for (size_t i = 0; i < a->count; i++)
    if (memcmp(&a->buffer[i], &b->buffer[i], sizeof *a->buffer) || strcmp(a->id[i], b->id[i]) ||
        strcmp(a->line[i], b->line[i]))
      return false;
  return true;
}

static void write_and_read(const pp_csv *csv, const int64_t *offset) {
  pp_collected first = {0}, second = {0};
  pp_csv again;
  if (pp_csv_write(csv, offset, pp_collect, &first, NULL))
    abort();
  if (!pp_csv_test(first.bytes, first.size) || pp_csv_read(first.bytes, first.size, &again, NULL))
    abort();
  if (!same(csv, &again) || !again.offset ||
      (csv->count && memcmp(again.offset, offset, csv->count * sizeof *offset)))
    abort();
  if (pp_csv_write(&again, again.offset, pp_collect, &second, NULL) || first.size != second.size ||
      memcmp(first.bytes, second.bytes, first.size))
    abort();
  pp_csv_free(&again);
  free(first.bytes);
  free(second.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  pp_csv csv;
  pp_error error;
  uint8_t *copy = malloc(size ? size : 1); /* of exactly this size: reading beyond it shows */
  if (!copy)
    return 0;
  if (size)
    memcpy(copy, bytes, size);
  pp_csv_test(copy, size);
  pp_status status = pp_csv_read(copy, size, &csv, &error);
  if (status && (status == PP_ERROR_INPUT) != (error.line >= 1 && error.column >= 1))
    abort();
  free(copy);
  if (status)
    return 0;
  pp_arena *arena;
  pp_arena_options options = {.alignment = csv.alignment, .node_limit = 1000};
  status = pp_arena_solve(csv.buffer, csv.count, &options, &arena, &error);
  if (status && status != PP_ERROR_OVERFLOW && status != PP_ERROR_MEMORY)
    abort();
  if (!status) {
    write_and_read(&csv, pp_arena_offsets(arena));
    pp_arena_free(arena);
  }
  pp_csv_free(&csv);
  return 0;
}
