/* Reads and writes minimalloc's CSV (google/minimalloc, src/converter.cc): no quotes, no spaces. */
#include "format/csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "format/tflite_arena.h"
#include "memory.h"

enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, OFFSET, GAPS, OTHER };

/* minimalloc's older names too. An `end` is the last time, an `upper` the first one after it. */
static const struct {
  const char *name;
  enum column column;
  bool last;
} names[] = {{"id", ID, false},
             {"buffer", ID, false},
             {"buffer_id", ID, false},
             {"lower", LOWER, false},
             {"start", LOWER, false},
             {"begin", LOWER, false},
             {"upper", UPPER, false},
             {"end", UPPER, true},
             {"size", SIZE, false},
             {"offset", OFFSET, false},
             {"alignment", ALIGNMENT, false},
             {"gaps", GAPS, false}};

struct reader {
  pp_csv *csv;
  size_t columns;
  enum column *column;
  bool inclusive; /* the upper column holds last times */
  bool offsets, aligned;
  size_t capacity;
  int64_t number; /* of the line */
  pp_error *error;
};

static pp_status fail(const struct reader *reader, size_t column, const char *what,
                      const char *which) {
  pp_status status = pp_fail(reader->error, PP_ERROR_INPUT, "%s%s", what, which);
  if (reader->error) {
    reader->error->line = reader->number;
    reader->error->column = (int64_t)column + 1;
  }
  return status;
}

/* The length of the field that begins at `text`. */
static size_t field_length(const char *text) {
  return strcspn(text, ",");
}

static size_t find_name(const char *text, size_t length) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i].name) == length && !strncmp(text, names[i].name, length))
      return i;
  return SIZE_MAX;
}

/* ---- The header ---- */

static pp_status read_header(struct reader *reader, const char *line) {
  unsigned found = 0;
  for (const char *field = line;; field++) {
    size_t length = field_length(field), name = find_name(field, length);
    enum column column = name == SIZE_MAX ? OTHER : names[name].column;
    if (column != OTHER && found & 1u << column)
      return fail(reader, (size_t)(field - line), "a column appears twice", "");
    found |= 1u << column;
    if (column == UPPER)
      reader->inclusive = names[name].last;
    reader->offsets |= column == OFFSET;
    if (!pp_reserve((void **)&reader->column, &reader->capacity, reader->columns + 1,
                    sizeof *reader->column))
      return pp_fail_memory(reader->error);
    reader->column[reader->columns++] = column;
    field += length;
    if (!*field)
      break;
  }
  static const char *const wanted[] = {"id", "lower", "upper", "size"};
  for (int i = ID; i <= SIZE; i++)
    if (!(found & 1u << i))
      return fail(reader, 0, "a column is missing: ", wanted[i]);
  return PP_OK;
}

bool pp_csv_test(const uint8_t *bytes, size_t size) {
  unsigned found = 0;
  const uint8_t *end = memchr(bytes, '\n', size);
  size_t length = end ? (size_t)(end - bytes) : size;
  if (length > 0 && bytes[length - 1] == '\r')
    length--;
  for (size_t i = 0; i < length && length < 4096;) {
    const uint8_t *comma = memchr(bytes + i, ',', length - i);
    size_t field = comma ? (size_t)(comma - bytes) - i : length - i;
    size_t name = find_name((const char *)bytes + i, field);
    if (name != SIZE_MAX)
      found |= 1u << names[name].column;
    i += field + 1;
  }
  return (found & 15) == 15;
}

/* ---- Lines ---- */

static pp_status read_integer(const struct reader *reader, const char *line, const char *field,
                              size_t length, int64_t *value) {
  bool negative = *field == '-';
  size_t i = negative;
  *value = 0;
  for (; i < length; i++)
    if (field[i] < '0' || field[i] > '9' || __builtin_mul_overflow(*value, 10, value) ||
        __builtin_add_overflow(*value, field[i] - '0', value))
      break;
  if (i != length || length == negative)
    return fail(reader, (size_t)(field - line), "no integer between -2^63 and 2^63", "");
  if (negative)
    *value = -*value;
  return PP_OK;
}

struct record {
  int64_t value[OTHER];
  size_t id, id_length, offset, offset_length; /* where these fields stand in the line */
};

static pp_status read_field(const struct reader *reader, const char *line, const char *field,
                            size_t length, enum column column, struct record *record) {
  if (column == OTHER)
    return PP_OK;
  if (column == ID) {
    record->id = (size_t)(field - line);
    record->id_length = length;
    return PP_OK;
  }
  if (column == GAPS)
    return length ? fail(reader, (size_t)(field - line), "gaps in a life are not supported", "")
                  : PP_OK;
  if (column == OFFSET) {
    record->offset = (size_t)(field - line);
    record->offset_length = length;
  }
  return read_integer(reader, line, field, length, &record->value[column]);
}

static pp_status check_record(struct reader *reader, struct record *record) {
  int64_t *value = record->value;
  pp_csv *csv = reader->csv;
  if (value[SIZE] < 0)
    return fail(reader, 0, "negative size", "");
  if (!reader->inclusive && value[UPPER]-- <= value[LOWER])
    return fail(reader, 0, "upper must be above lower", "");
  if (value[UPPER] < value[LOWER])
    return fail(reader, 0, "the end lies before the start", "");
  if (value[ALIGNMENT] < 1)
    return fail(reader, 0, "the alignment must be at least 1", "");
  if (reader->aligned && value[ALIGNMENT] != csv->alignment)
    return fail(reader, 0, "all buffers must have the same alignment", "");
  csv->alignment = value[ALIGNMENT];
  reader->aligned = true;
  return PP_OK;
}

static char *copy(const char *text, size_t length) {
  char *made = pp_alloc(length + 1, 1);
  if (made) {
    memcpy(made, text, length);
    made[length] = 0;
  }
  return made;
}

/* The line without the field at `from`, and one comma. */
static char *copy_without(const char *line, size_t from, size_t length) {
  char *made = copy(line, strlen(line));
  if (!made)
    return NULL;
  size_t begin = from ? from - 1 : 0, end = from + length + (from == 0 && line[length] == ',');
  memmove(made + begin, line + end, strlen(line) - end + 1);
  return made;
}

static pp_status add_record(struct reader *reader, const char *line, const struct record *record) {
  pp_csv *csv = reader->csv;
  size_t i = csv->count;
  csv->buffer[i] = (pp_buffer){record->value[SIZE], record->value[LOWER], record->value[UPPER]};
  if (reader->offsets)
    csv->offset[i] = record->value[OFFSET];
  csv->id[i] = copy(line + record->id, record->id_length);
  csv->line[i] = reader->offsets ? copy_without(line, record->offset, record->offset_length)
                                 : copy(line, strlen(line));
  csv->count++;
  return csv->id[i] && csv->line[i] ? PP_OK : pp_fail_memory(reader->error);
}

static pp_status read_line(struct reader *reader, const char *line) {
  struct record record = {.value = {[ALIGNMENT] = 1}};
  size_t column = 0;
  for (const char *field = line;; field++) {
    size_t length = field_length(field);
    if (column == reader->columns)
      return fail(reader, (size_t)(field - line), "more fields than the header has columns", "");
    pp_status status = read_field(reader, line, field, length, reader->column[column++], &record);
    if (status)
      return status;
    field += length;
    if (!*field)
      break;
  }
  if (column < reader->columns)
    return fail(reader, strlen(line), "fewer fields than the header has columns", "");
  pp_status status = check_record(reader, &record);
  return status ? status : add_record(reader, line, &record);
}

/* ---- The whole ---- */

static pp_status allocate(struct reader *reader, size_t lines) {
  pp_csv *csv = reader->csv;
  csv->buffer = pp_alloc(lines, sizeof *csv->buffer);
  csv->line = pp_zalloc(lines, sizeof *csv->line);
  csv->id = pp_zalloc(lines, sizeof *csv->id);
  csv->offset = reader->offsets ? pp_alloc(lines, sizeof *csv->offset) : NULL;
  return csv->buffer && csv->line && csv->id && (!reader->offsets || csv->offset)
             ? PP_OK
             : pp_fail_memory(reader->error);
}

/* The header without its `offset` column. */
static pp_status keep_header(struct reader *reader, const char *line) {
  size_t from = 0, length = 0;
  for (size_t i = 0; i < reader->columns; i++) {
    length = field_length(line + from);
    if (reader->column[i] == OFFSET)
      break;
    from += length + 1;
  }
  reader->csv->header =
      reader->offsets ? copy_without(line, from, length) : copy(line, strlen(line));
  return reader->csv->header ? PP_OK : pp_fail_memory(reader->error);
}

static pp_status read_first(struct reader *reader, const char *line, size_t lines) {
  pp_status status = read_header(reader, line);
  if (!status)
    status = keep_header(reader, line);
  return status ? status : allocate(reader, lines);
}

static pp_status read_lines(struct reader *reader, char *text, size_t size) {
  size_t lines = 0;
  if (memchr(text, 0, size))
    return fail(reader, 0, "the file has a zero byte", "");
  for (size_t i = 0; i < size; i++)
    lines += text[i] == '\n';
  pp_status status = PP_OK;
  for (char *line = text; !status && (line < text + size || line == text);) {
    char *end = line + strcspn(line, "\n"), *next = end + 1;
    *end = 0;
    if (end > line && end[-1] == '\r')
      end[-1] = 0;
    if (line == text)
      status = read_first(reader, line, lines + 1);
    else if (*line)
      status = read_line(reader, line);
    reader->number++;
    line = next;
  }
  return status;
}

pp_status pp_csv_read(const uint8_t *bytes, size_t size, pp_csv *csv, pp_error *error) {
  struct reader reader = {.csv = csv, .number = 1, .error = error};
  *csv = (pp_csv){.alignment = 1};
  char *text = copy((const char *)bytes, size);
  pp_status status = text ? read_lines(&reader, text, size) : pp_fail_memory(error);
  free(text);
  free(reader.column);
  if (status)
    pp_csv_free(csv);
  return status;
}

pp_status pp_csv_write(const pp_csv *csv, const int64_t *offset, pp_write *write, void *data,
                       pp_error *error) {
  char number[32];
  bool written = write(csv->header, strlen(csv->header), data) && write(",offset\n", 8, data);
  for (size_t i = 0; written && i < csv->count; i++) {
    int length = snprintf(number, sizeof number, ",%" PRId64 "\n", offset[i]);
    written =
        write(csv->line[i], strlen(csv->line[i]), data) && write(number, (size_t)length, data);
  }
  return written ? PP_OK : pp_fail(error, PP_ERROR_IO, "the offsets could not be written");
}

void pp_csv_free(pp_csv *csv) {
  for (size_t i = 0; i < csv->count; i++) {
    free(csv->line[i]);
    free(csv->id[i]);
  }
  free(csv->buffer);
  free(csv->line);
  free(csv->id);
  free(csv->header);
  free(csv->offset);
  *csv = (pp_csv){0};
}

/* ---- Scratch ---- */

static pp_status read_scratch_line(const struct reader *reader, const char *line, bool subgraphs,
                                   pp_scratch *scratch) {
  int64_t value[3] = {0};
  int i = subgraphs ? 0 : 1;
  for (const char *field = line;; field++) {
    size_t length = field_length(field);
    if (i == 3)
      return fail(reader, (size_t)(field - line), "more fields than the header has columns", "");
    pp_status status = read_integer(reader, line, field, length, &value[i]);
    if (status)
      return status;
    if (value[i] < 0 || (i < 2 && value[i] > INT32_MAX))
      return fail(reader, (size_t)(field - line), "a number below 0, or no index", "");
    i++;
    field += length;
    if (!*field)
      break;
  }
  if (i < 3)
    return fail(reader, strlen(line), "fewer fields than the header has columns", "");
  *scratch = (pp_scratch){(uint32_t)value[0], (uint32_t)value[1], value[2]};
  return PP_OK;
}

static pp_status read_scratch(struct reader *reader, char *text, size_t size, pp_scratch **scratch,
                              size_t *count) {
  size_t capacity = 0;
  bool header = false, subgraphs = false;
  pp_status status = PP_OK;
  for (char *line = text; !status && line < text + size; reader->number++) {
    char *next = line + strcspn(line, "\n") + 1;
    next[-1] = 0;
    line[strcspn(line, "\r")] = 0;
    if (!*line || *line == '#') {
      line = next;
      continue;
    }
    if (!header) {
      subgraphs = !strcmp(line, "subgraph,operator,bytes");
      if (!subgraphs && strcmp(line, "operator,bytes") != 0)
        return fail(reader, 0, "the header must be \"subgraph,operator,bytes\"", "");
      header = true;
    } else if (!pp_reserve((void **)scratch, &capacity, *count + 1, sizeof **scratch)) {
      status = pp_fail_memory(reader->error);
    } else {
      status = read_scratch_line(reader, line, subgraphs, &(*scratch)[*count]);
      *count += !status;
    }
    line = next;
  }
  return status;
}

pp_status pp_csv_read_scratch(const uint8_t *bytes, size_t size, pp_scratch **scratch,
                              size_t *count, pp_error *error) {
  struct reader reader = {.number = 1, .error = error};
  char *text = copy((const char *)bytes, size);
  *scratch = NULL;
  *count = 0;
  pp_status status = text ? PP_OK : pp_fail_memory(error);
  if (!status)
    status = read_scratch(&reader, text, strlen(text), scratch, count);
  free(text);
  if (status) {
    free(*scratch);
    *scratch = NULL;
  }
  return status;
}
