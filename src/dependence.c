/* Dependences follow from effects (THEORY.md section 1). Each storage is looked at alone: its bytes
 * are cut into segments that have the same last writer and the same readers since. An access
 * depends on the last writer, a write also on the readers since; what follows from these is left
 * out. */
#include "dependence.h"

#include "error.h"

#include <string.h>

struct edge {
  pp_index from, to;
};

struct reader { /* an immutable list: segments that were one share their tails */
  pp_index statement;
  int32_t next; /* or -1 */
};

struct segment {
  int64_t from, to;
  pp_index writer; /* or -1 */
  int32_t readers; /* or -1 */
};

struct touch { /* one access, with the statement that makes it */
  pp_index statement;
  bool write;
  int64_t from, to;
};

struct dependences {
  PP_VECTOR(struct edge) edges;
  PP_VECTOR(struct reader) readers;
  PP_VECTOR(struct segment) segments;
};

/* More than this is no program but an attack on our memory. */
static const size_t edges_max = (size_t)1 << 29;

static pp_status add_edge(struct dependences *d, pp_index from, pp_index to, pp_error *error) {
  if (from < 0 || from == to)
    return PP_OK;
  if (d->edges.count &&
      !memcmp(&d->edges.items[d->edges.count - 1], &(struct edge){from, to}, sizeof(struct edge)))
    return PP_OK;
  if (d->edges.count >= edges_max)
    return pp_fail(error, PP_ERROR_INPUT, "more than %zu dependences", edges_max);
  if (!PP_ROOM(&d->edges))
    return pp_fail_memory(error);
  d->edges.items[d->edges.count++] = (struct edge){from, to};
  return PP_OK;
}

/* Makes `at` a border between segments; returns the index of the first segment at or behind it. */
static bool split(struct dependences *d, int64_t at, size_t *index) {
  size_t low = 0, high = d->segments.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (d->segments.items[middle].from < at)
      low = middle + 1;
    else
      high = middle;
  }
  *index = low;
  if (!low || d->segments.items[low - 1].to <= at)
    return true;
  if (!PP_ROOM(&d->segments))
    return false;
  struct segment *s = d->segments.items;
  memmove(s + low + 1, s + low, (d->segments.count++ - low) * sizeof *s);
  s[low] = s[low - 1];
  s[low - 1].to = s[low].from = at;
  return true;
}

static pp_status apply_read(struct dependences *d, const struct touch *t, size_t first, size_t last,
                            pp_error *error) {
  for (size_t i = first; i < last; i++) {
    struct segment *segment = d->segments.items + i;
    pp_status status = add_edge(d, segment->writer, t->statement, error);
    if (status)
      return status;
    if (segment->readers >= 0 && d->readers.items[segment->readers].statement == t->statement)
      continue;
    if (d->readers.count >= INT32_MAX || !PP_ROOM(&d->readers))
      return pp_fail_memory(error);
    d->readers.items[d->readers.count] = (struct reader){t->statement, segment->readers};
    segment->readers = (int32_t)d->readers.count++;
  }
  return PP_OK;
}

static pp_status apply_write(struct dependences *d, const struct touch *t, size_t first,
                             size_t last, pp_error *error) {
  pp_status status;
  for (size_t i = first; i < last; i++) {
    struct segment *segment = d->segments.items + i;
    int32_t r = segment->readers;
    if (r < 0 && (status = add_edge(d, segment->writer, t->statement, error)))
      return status;
    for (; r >= 0; r = d->readers.items[r].next)
      if ((status = add_edge(d, d->readers.items[r].statement, t->statement, error)))
        return status;
  }
  struct segment *s = d->segments.items;
  s[first] = (struct segment){t->from, t->to, t->statement, -1};
  memmove(s + first + 1, s + last, (d->segments.count - last) * sizeof *s);
  d->segments.count -= last - first - 1;
  return PP_OK;
}

static pp_status apply(struct dependences *d, const struct touch *t, pp_error *error) {
  size_t first, last;
  if (!split(d, t->from, &first) || !split(d, t->to, &last))
    return pp_fail_memory(error);
  return t->write ? apply_write(d, t, first, last, error) : apply_read(d, t, first, last, error);
}

/* All touches of one storage, by statement; of one statement, reads first: it does not depend on
 * itself. The whole storage is every byte, even of one that has none. */
static pp_status storage_dependences(struct dependences *d, const struct touch *touch, size_t count,
                                     pp_error *error) {
  d->readers.count = 0;
  d->segments.count = 0;
  if (!PP_ROOM(&d->segments))
    return pp_fail_memory(error);
  d->segments.items[d->segments.count++] = (struct segment){0, INT64_MAX, -1, -1};
  for (size_t i = 0, end; i < count; i = end) {
    for (end = i; end < count && touch[end].statement == touch[i].statement; end++)
      ;
    for (int write = 0; write < 2; write++)
      for (size_t j = i; j < end; j++)
        if (touch[j].write == write) {
          pp_status status = apply(d, touch + j, error);
          if (status)
            return status;
        }
  }
  return PP_OK;
}

/* The touches of all storages, storage by storage, statements ascending. */
static struct touch *sort_touches(const pp_program *program, size_t **start) {
  size_t count = program->accesses.count, m = (size_t)program->m;
  struct touch *touch = pp_alloc(count, sizeof *touch);
  *start = pp_zalloc(m + 2, sizeof **start);
  if (!touch || !*start) {
    free(touch);
    return NULL;
  }
  for (size_t i = 0; i < count; i++)
    (*start)[program->accesses.items[i].storage + 2]++;
  for (size_t s = 0; s < m; s++)
    (*start)[s + 2] += (*start)[s + 1];
  pp_index v = 0;
  for (size_t i = 0; i < count; i++) {
    while (v + 1 < program->n && program->statements.items[v + 1].access <= i)
      v++;
    const pp_access *a = program->accesses.items + i;
    bool whole = a->from == PP_WHOLE;
    touch[(*start)[a->storage + 1]++] = (struct touch){.statement = v,
                                                       .write = a->flags & PP_WRITE,
                                                       .from = whole ? 0 : a->from,
                                                       .to = whole ? INT64_MAX : a->to};
  }
  return touch;
}

/* Edges become rows of predecessors: sorted by both ends (two counting sorts), without repetition.
 */
static bool make_rows(pp_program *program, const struct edge *edge, size_t count) {
  struct pp_rows by_source = {NULL, NULL}, *out = &program->predecessors;
  size_t n = (size_t)program->n;
  by_source.start = pp_zalloc(n + 2, sizeof *by_source.start);
  by_source.item = pp_alloc(count, sizeof *by_source.item);
  bool done = by_source.start && by_source.item;
  if (done) {
    for (size_t i = 0; i < count; i++)
      by_source.start[edge[i].from + 2]++;
    for (size_t v = 0; v < n; v++)
      by_source.start[v + 2] += by_source.start[v + 1];
    for (size_t i = 0; i < count; i++)
      by_source.item[by_source.start[edge[i].from + 1]++] = edge[i].to;
    done = pp_rows_transpose(&by_source, program->n, program->n, out);
  }
  free(by_source.start);
  free(by_source.item);
  if (!done)
    return false;
  size_t used = 0;
  for (size_t v = 0, begin = 0; v < n; v++) {
    size_t end = out->start[v + 1];
    out->start[v] = used;
    for (size_t i = begin; i < end; i++)
      if (i == begin || out->item[i] != out->item[i - 1])
        out->item[used++] = out->item[i];
    begin = end;
  }
  out->start[n] = used;
  return true;
}

pp_status pp_dependences(pp_program *program, pp_error *error) {
  struct dependences d = {0};
  size_t *start = NULL;
  pp_status status = PP_OK;
  struct touch *touch = sort_touches(program, &start);
  if (!touch)
    status = pp_fail_memory(error);
  for (pp_index s = 0; !status && s < program->m; s++)
    if (start[s + 1] > start[s])
      status = storage_dependences(&d, touch + start[s], start[s + 1] - start[s], error);
  for (size_t i = 0; !status && i < program->orders.count; i += 2)
    status = add_edge(&d, program->orders.items[i], program->orders.items[i + 1], error);
  if (!status && !make_rows(program, d.edges.items, d.edges.count))
    status = pp_fail_memory(error);
  free(touch);
  free(start);
  free(d.edges.items);
  free(d.readers.items);
  free(d.segments.items);
  return status;
}
