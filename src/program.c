/* Statements, storages and effects become a dependence graph (THEORY.md section 1). */
#include "program.h"

#include <string.h>

#include "dependence.h"
#include "error.h"

pp_program *pp_program_new(pp_error *error) {
  pp_program *program = pp_zalloc(1, sizeof *program);
  /* Room at once where pointers into the array are made of offsets: NULL + 0 is undefined. */
  if (program && PP_ROOM(&program->names) && PP_ROOM(&program->accesses) &&
      PP_ROOM(&program->requests)) {
    program->names.items[program->names.count++] = 0; /* offset 0 is "" */
    return program;
  }
  pp_program_free(program);
  pp_fail_memory(error);
  return NULL;
}

static void rows_free(struct pp_rows *rows) {
  free(rows->start);
  free(rows->item);
}

void pp_program_free(pp_program *program) {
  if (!program)
    return;
  free(program->names.items);
  free(program->statements.items);
  free(program->storages.items);
  free(program->accesses.items);
  free(program->requests.items);
  free(program->orders.items);
  free(program->work);
  free(program->bytes);
  rows_free(&program->predecessors);
  rows_free(&program->successors);
  rows_free(&program->accessed);
  rows_free(&program->accessors);
  free(program);
}

/* ---- Building ---- */

static pp_status check_open(const pp_program *program, bool statement, pp_error *error) {
  if (program->finished)
    return pp_fail(error, PP_ERROR_USAGE, "the program is finished");
  if (statement && !program->statements.count)
    return pp_fail(error, PP_ERROR_USAGE, "no statement to apply this to");
  return PP_OK;
}

static pp_status keep_name(pp_program *program, const char *name, size_t *offset, pp_error *error) {
  size_t length = name ? strlen(name) : 0;
  if (!length) {
    *offset = 0;
    return PP_OK;
  }
  if (!pp_reserve((void **)&program->names.items, &program->names.capacity,
                  program->names.count + length + 1, 1))
    return pp_fail_memory(error);
  *offset = program->names.count;
  memcpy(program->names.items + *offset, name, length + 1);
  program->names.count += length + 1;
  return PP_OK;
}

pp_status pp_program_set_name(pp_program *program, const char *name, pp_error *error) {
  pp_status status = check_open(program, false, error);
  return status ? status : keep_name(program, name, &program->name, error);
}

static pp_status check_bytes(int64_t bytes, const char *what, pp_error *error) {
  return bytes < 0 ? pp_fail(error, PP_ERROR_INPUT, "%s is negative", what) : PP_OK;
}

pp_status pp_program_add_storage(pp_program *program, const char *name, int64_t bytes,
                                 unsigned flags, pp_index *id, pp_error *error) {
  pp_status status = check_open(program, false, error);
  if (status || (status = check_bytes(bytes, "a storage's size", error)))
    return status;
  if (flags & ~(unsigned)(PP_LIVE_IN | PP_LIVE_OUT))
    return pp_fail(error, PP_ERROR_USAGE, "unknown storage flags %u", flags);
  if (program->storages.count >= INT32_MAX - 1)
    return pp_fail(error, PP_ERROR_OVERFLOW, "more than %d storages", INT32_MAX - 1);
  struct pp_storage storage = {.bytes = bytes, .flags = flags};
  if ((status = keep_name(program, name, &storage.name, error)))
    return status;
  if (!PP_ROOM(&program->storages))
    return pp_fail_memory(error);
  if (id)
    *id = (pp_index)program->storages.count;
  program->storages.items[program->storages.count++] = storage;
  return PP_OK;
}

pp_status pp_program_add_statement(pp_program *program, const char *name, pp_error *error) {
  pp_status status = check_open(program, false, error);
  if (status)
    return status;
  if (program->statements.count >= INT32_MAX - 1)
    return pp_fail(error, PP_ERROR_OVERFLOW, "more than %d statements", INT32_MAX - 1);
  struct pp_statement statement = {.access = program->accesses.count,
                                   .request = program->requests.count,
                                   .macs = PP_MACS_UNKNOWN,
                                   .line = -1};
  if ((status = keep_name(program, name, &statement.name, error)))
    return status;
  if (!PP_ROOM(&program->statements))
    return pp_fail_memory(error);
  program->statements.items[program->statements.count++] = statement;
  return PP_OK;
}

pp_status pp_program_add_access(pp_program *program, pp_index storage, int64_t from, int64_t to,
                                unsigned flags, pp_error *error) {
  pp_status status = check_open(program, true, error);
  if (status)
    return status;
  if (flags & ~(unsigned)(PP_READ | PP_WRITE | PP_OVERWRITE) || !(flags & (PP_READ | PP_WRITE)) ||
      (flags & PP_OVERWRITE && !(flags & PP_WRITE)))
    return pp_fail(error, PP_ERROR_USAGE, "access flags %u make no sense", flags);
  if (storage < 0)
    return pp_fail(error, PP_ERROR_INPUT, "storage %d does not exist", storage);
  bool whole = from == PP_WHOLE && to == PP_WHOLE;
  if (!whole && (from < 0 || to <= from))
    return pp_fail(error, PP_ERROR_INPUT, "bytes %lld to %lld of storage %d are no range",
                   (long long)from, (long long)to, storage);
  if (!PP_ROOM(&program->accesses))
    return pp_fail_memory(error);
  program->accesses.items[program->accesses.count++] =
      (pp_access){.storage = storage, .flags = flags, .from = from, .to = to};
  return PP_OK;
}

static struct pp_statement *current(pp_program *program) {
  return program->statements.items + program->statements.count - 1;
}

pp_status pp_program_add_work(pp_program *program, int64_t bytes, pp_error *error) {
  pp_status status = check_open(program, true, error);
  if (status || (status = check_bytes(bytes, "work", error)))
    return status;
  if (!PP_ROOM(&program->requests))
    return pp_fail_memory(error);
  if (__builtin_add_overflow(current(program)->work, bytes, &current(program)->work))
    return pp_fail(error, PP_ERROR_OVERFLOW, "the work of statement %zu exceeds 2^63-1 bytes",
                   program->statements.count - 1);
  program->requests.items[program->requests.count++] = bytes;
  return PP_OK;
}

pp_status pp_program_set_macs(pp_program *program, int64_t macs, pp_error *error) {
  pp_status status = check_open(program, true, error);
  if (status || (status = check_bytes(macs, "macs", error)))
    return status;
  current(program)->macs = macs;
  return PP_OK;
}

pp_status pp_program_set_pure(pp_program *program, bool pure, pp_error *error) {
  pp_status status = check_open(program, true, error);
  if (!status)
    current(program)->pure = pure;
  return status;
}

pp_status pp_program_set_line(pp_program *program, int64_t line, pp_error *error) {
  pp_status status = check_open(program, true, error);
  if (status || (status = check_bytes(line, "a line", error)))
    return status;
  current(program)->line = line;
  return PP_OK;
}

pp_status pp_program_add_order(pp_program *program, pp_index before, pp_index after,
                               pp_error *error) {
  pp_status status = check_open(program, false, error);
  if (status)
    return status;
  if (before < 0 || before >= after)
    return pp_fail(error, PP_ERROR_INPUT, "order [%d, %d] does not go forward", before, after);
  if (!pp_reserve((void **)&program->orders.items, &program->orders.capacity,
                  program->orders.count + 2, sizeof(pp_index)))
    return pp_fail_memory(error);
  program->orders.items[program->orders.count++] = before;
  program->orders.items[program->orders.count++] = after;
  return PP_OK;
}

/* ---- Finishing ---- */

static size_t access_end(const pp_program *program, pp_index v) {
  return v + 1 < program->n ? program->statements.items[v + 1].access : program->accesses.count;
}

static pp_status check_accesses(const pp_program *program, pp_error *error) {
  for (pp_index v = 0; v < program->n; v++)
    for (size_t i = program->statements.items[v].access; i < access_end(program, v); i++) {
      const pp_access *access = program->accesses.items + i;
      if (access->storage >= program->m)
        return pp_fail(error, PP_ERROR_INPUT, "statement %d accesses storage %d of %d", v,
                       access->storage, program->m);
      if (access->to > program->bytes[access->storage])
        return pp_fail(error, PP_ERROR_INPUT,
                       "statement %d accesses byte %lld of storage %d, which has %lld", v,
                       (long long)access->to - 1, access->storage,
                       (long long)program->bytes[access->storage]);
    }
  for (size_t i = 1; i < program->orders.count; i += 2)
    if (program->orders.items[i] >= program->n)
      return pp_fail(error, PP_ERROR_INPUT, "order [%d, %d] names a statement of %d",
                     program->orders.items[i - 1], program->orders.items[i], program->n);
  return PP_OK;
}

/* Every sum that a cost can be is at most this one. */
static pp_status check_sums(const pp_program *program, pp_error *error) {
  int64_t sum = 0, work = 0;
  for (pp_index s = 0; s < program->m; s++)
    if (__builtin_add_overflow(sum, program->bytes[s], &sum))
      return pp_fail(error, PP_ERROR_OVERFLOW, "the storages up to %d exceed 2^63-1 bytes", s);
  for (pp_index v = 0; v < program->n; v++)
    if (program->work[v] > work)
      work = program->work[v];
  if (__builtin_add_overflow(sum, work, &sum))
    return pp_fail(error, PP_ERROR_OVERFLOW, "storages and work exceed 2^63-1 bytes");
  return PP_OK;
}

static bool copy_hot(pp_program *program) {
  program->work = pp_alloc((size_t)program->n, sizeof *program->work);
  program->bytes = pp_alloc((size_t)program->m, sizeof *program->bytes);
  if (!program->work || !program->bytes)
    return false;
  for (pp_index v = 0; v < program->n; v++)
    program->work[v] = program->statements.items[v].work;
  for (pp_index s = 0; s < program->m; s++)
    program->bytes[s] = program->storages.items[s].bytes;
  return true;
}

static int compare_index(const void *a, const void *b) {
  pp_index x = *(const pp_index *)a, y = *(const pp_index *)b;
  return (x > y) - (x < y);
}

/* Statement v's row of distinct storages, sorted. Short rows are the rule: insertion sort. */
static size_t distinct(pp_index *row, size_t count) {
  if (count > 32)
    qsort(row, count, sizeof *row, compare_index);
  else
    for (size_t i = 1; i < count; i++)
      for (size_t j = i; j && row[j - 1] > row[j]; j--) {
        pp_index other = row[j];
        row[j] = row[j - 1];
        row[j - 1] = other;
      }
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!kept || row[kept - 1] != row[i])
      row[kept++] = row[i];
  return kept;
}

static bool make_accessed(pp_program *program) {
  struct pp_rows *rows = &program->accessed;
  rows->start = pp_alloc((size_t)program->n + 1, sizeof *rows->start);
  rows->item = pp_alloc(program->accesses.count, sizeof *rows->item);
  if (!rows->start || !rows->item)
    return false;
  size_t used = 0;
  for (pp_index v = 0; v < program->n; v++) {
    rows->start[v] = used;
    size_t begin = program->statements.items[v].access, end = access_end(program, v);
    for (size_t i = begin; i < end; i++)
      rows->item[used + i - begin] = program->accesses.items[i].storage;
    used += distinct(rows->item + used, end - begin);
  }
  rows->start[program->n] = used;
  return true;
}

bool pp_rows_transpose(const struct pp_rows *rows, pp_index count, pp_index columns,
                       struct pp_rows *out) {
  size_t items = rows->start[count];
  out->start = pp_zalloc((size_t)columns + 2, sizeof *out->start);
  out->item = pp_alloc(items, sizeof *out->item);
  if (!out->start || !out->item)
    return false;
  for (size_t i = 0; i < items; i++)
    out->start[rows->item[i] + 2]++;
  for (pp_index c = 0; c < columns; c++)
    out->start[c + 2] += out->start[c + 1];
  for (pp_index r = 0; r < count; r++)
    PP_FOR_ROW (x, rows, r)
      out->item[out->start[*x + 1]++] = r;
  return true;
}

pp_status pp_program_finish(pp_program *program, pp_error *error) {
  pp_status status = check_open(program, false, error);
  if (status)
    return status;
  program->n = (pp_index)program->statements.count;
  program->m = (pp_index)program->storages.count;
  program->finished = true; /* also after a failure: a program is finished once */
  if (!copy_hot(program))
    return pp_fail_memory(error);
  if ((status = check_accesses(program, error)) || (status = check_sums(program, error)))
    return status;
  if (!make_accessed(program) ||
      !pp_rows_transpose(&program->accessed, program->n, program->m, &program->accessors))
    return pp_fail_memory(error);
  if ((status = pp_dependences(program, error)))
    return status;
  if (!pp_rows_transpose(&program->predecessors, program->n, program->n, &program->successors))
    return pp_fail_memory(error);
  return PP_OK;
}

/* ---- Reading back ---- */

pp_index pp_program_statements(const pp_program *program) {
  return (pp_index)program->statements.count;
}

pp_index pp_program_storages(const pp_program *program) {
  return (pp_index)program->storages.count;
}

const char *pp_program_name(const pp_program *program) {
  return program->names.items + program->name;
}

pp_storage_info pp_program_storage(const pp_program *program, pp_index storage) {
  const struct pp_storage *s = program->storages.items + storage;
  return (pp_storage_info){
      .name = program->names.items + s->name, .bytes = s->bytes, .flags = s->flags};
}

pp_statement_info pp_program_statement(const pp_program *program, pp_index statement) {
  const struct pp_statement *v = program->statements.items + statement;
  bool last = (size_t)statement + 1 == program->statements.count;
  size_t accesses = last ? program->accesses.count : v[1].access,
         requests = last ? program->requests.count : v[1].request;
  return (pp_statement_info){.name = program->names.items + v->name,
                             .work = v->work,
                             .macs = v->macs,
                             .line = v->line,
                             .pure = v->pure,
                             .accesses = accesses - v->access,
                             .access = program->accesses.items + v->access,
                             .requests = requests - v->request,
                             .request = program->requests.items + v->request};
}

size_t pp_program_orders(const pp_program *program, const pp_index **pair) {
  *pair = program->orders.items;
  return program->orders.count / 2;
}

static size_t row_of(const struct pp_rows *rows, pp_index row, const pp_index **out) {
  *out = rows->item + rows->start[row];
  return pp_row_size(rows, row);
}

size_t pp_program_predecessors(const pp_program *program, pp_index statement,
                               const pp_index **out) {
  return row_of(&program->predecessors, statement, out);
}

size_t pp_program_successors(const pp_program *program, pp_index statement, const pp_index **out) {
  return row_of(&program->successors, statement, out);
}

size_t pp_program_accessed(const pp_program *program, pp_index statement, const pp_index **out) {
  return row_of(&program->accessed, statement, out);
}

size_t pp_program_accessors(const pp_program *program, pp_index storage, const pp_index **out) {
  return row_of(&program->accessors, storage, out);
}

struct pp_view pp_view_of(const struct pp_program *program, bool reverse) {
  return (struct pp_view){
      .program = program,
      .n = program->n,
      .m = program->m,
      .predecessors = reverse ? &program->successors : &program->predecessors,
      .successors = reverse ? &program->predecessors : &program->successors,
      .accessed = &program->accessed,
      .accessors = &program->accessors,
      .work = program->work,
      .bytes = program->bytes,
      .begin = reverse ? PP_LIVE_OUT : PP_LIVE_IN,
      .end = reverse ? PP_LIVE_IN : PP_LIVE_OUT,
      .reverse = reverse,
  };
}
