/* Buffers as minimalloc's CSV: a header with the columns id, lower, upper (exclusive) and size, in
 * any order, and a line for each buffer. Columns that this program does not know are kept;
 * `alignment` must be the same in all lines. */
#ifndef PP_FORMAT_CSV_H
#define PP_FORMAT_CSV_H

#include "peakproof.h"

typedef struct pp_csv {
  size_t count;
  pp_buffer *buffer;
  char **line; /* of each buffer, as it stands in the file, without an `offset` column */
  char **id;
  char *header;      /* likewise */
  int64_t *offset;   /* of the file's `offset` column; NULL if it has none */
  int64_t alignment; /* of the file's `alignment` column, or 1 */
} pp_csv;

/* Whether bytes look like such a file: their first line names the four columns. */
bool pp_csv_test(const uint8_t *bytes, size_t size);
/* Errors have line and column. Frees nothing of the caller's; free *csv with pp_csv_free. */
pp_status pp_csv_read(const uint8_t *bytes, size_t size, pp_csv *csv, pp_error *error);
/* Writes the file with an `offset` column behind all others. */
pp_status pp_csv_write(const pp_csv *csv, const int64_t *offset, pp_write *write, void *data,
                       pp_error *error);
void pp_csv_free(pp_csv *csv);

struct pp_scratch;
/* Reads the scratch of operators: a header "subgraph,operator,bytes" (subgraph may be left out) and
 * such lines; empty lines and those that begin with # count for nothing. *scratch is malloc'ed. */
pp_status pp_csv_read_scratch(const uint8_t *bytes, size_t size, struct pp_scratch **scratch,
                              size_t *count, pp_error *error);

#endif
