/* Checks offsets without the packer's means.
 *
 * From low to high offsets, each buffer must begin at or above the highest end of those before it
 * that live at the same time: a segment tree over time holds these ends. */
#include "arena.h"

#include "error.h"
#include "memory.h"

struct item {
  int64_t offset;
  size_t index;
};

struct checker {
  const pp_buffer *buffer;
  const int64_t *offset;
  int64_t *time; /* births, sorted, each once */
  size_t times, leaves;
  /* Of a node: the buffer with the highest end in all of it, and in any part of it; -1: none. */
  int64_t *all, *any;
};

static int compare_items(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_times(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* How many births are at `time` or earlier. */
static size_t births_until(const struct checker *checker, int64_t time) {
  size_t low = 0, high = checker->times;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (checker->time[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int64_t higher(const struct checker *checker, int64_t a, int64_t b) {
  if (a < 0 || b < 0)
    return a < 0 ? b : a;
  return checker->offset[b] + checker->buffer[b].bytes >
                 checker->offset[a] + checker->buffer[a].bytes
             ? b
             : a;
}

/* The buffer with the highest end among those that live during births a..b-1. */
static int64_t highest(const struct checker *checker, size_t a, size_t b) {
  int64_t found = -1;
  a += checker->leaves;
  b += checker->leaves;
  for (size_t i = a; i > 1; i /= 2)
    found = higher(checker, found, checker->all[i / 2]);
  for (size_t i = b - 1; i > 1; i /= 2)
    found = higher(checker, found, checker->all[i / 2]);
  for (; a < b; a /= 2, b /= 2) {
    if (a & 1)
      found = higher(checker, found, checker->any[a++]);
    if (b & 1)
      found = higher(checker, found, checker->any[--b]);
  }
  return found;
}

static void enter(struct checker *checker, size_t a, size_t b, int64_t index) {
  a += checker->leaves;
  b += checker->leaves;
  for (size_t i = a; i >= 1; i /= 2)
    checker->any[i] = higher(checker, checker->any[i], index);
  for (size_t i = b - 1; i >= 1; i /= 2)
    checker->any[i] = higher(checker, checker->any[i], index);
  for (; a < b; a /= 2, b /= 2) {
    if (a & 1) {
      checker->all[a] = higher(checker, checker->all[a], index);
      checker->any[a] = higher(checker, checker->any[a], index);
      a++;
    }
    if (b & 1) {
      b--;
      checker->all[b] = higher(checker, checker->all[b], index);
      checker->any[b] = higher(checker, checker->any[b], index);
    }
  }
}

static pp_status check_alone(const pp_buffer *buffer, int64_t alignment, int64_t offset, size_t i,
                             int64_t *end, pp_error *error) {
  if (buffer->bytes < 0 || buffer->first > buffer->last)
    return pp_fail(error, PP_ERROR_INPUT, "buffer %zu: negative size or life", i);
  if (offset < 0 || offset % alignment != 0)
    return pp_fail(error, PP_ERROR_INPUT, "buffer %zu: offset %lld is not a multiple of %lld", i,
                   (long long)offset, (long long)alignment);
  if (__builtin_add_overflow(offset, buffer->bytes, end))
    return pp_fail(error, PP_ERROR_OVERFLOW, "buffer %zu ends beyond 2^63-1", i);
  return PP_OK;
}

static pp_status check_together(struct checker *checker, const struct item *item, size_t count,
                                pp_error *error) {
  for (size_t i = 0; i < count; i++) {
    const pp_buffer *buffer = &checker->buffer[item[i].index];
    size_t a = births_until(checker, buffer->first) - 1, b = births_until(checker, buffer->last);
    int64_t below = highest(checker, a, b);
    if (below >= 0 && checker->offset[below] + checker->buffer[below].bytes > item[i].offset)
      return pp_fail(error, PP_ERROR_INPUT, "buffers %lld and %zu share a byte", (long long)below,
                     item[i].index);
    enter(checker, a, b, (int64_t)item[i].index);
  }
  return PP_OK;
}

static pp_status check_all(struct checker *checker, struct item *item, size_t buffers,
                           int64_t alignment, int64_t *bytes, pp_error *error) {
  size_t count = 0;
  *bytes = 0;
  for (size_t i = 0; i < buffers; i++) {
    int64_t end = 0;
    pp_status status =
        check_alone(&checker->buffer[i], alignment, checker->offset[i], i, &end, error);
    if (status != PP_OK)
      return status;
    if (checker->buffer[i].bytes == 0)
      continue;
    *bytes = end > *bytes ? end : *bytes;
    checker->time[count] = checker->buffer[i].first;
    item[count++] = (struct item){checker->offset[i], i};
  }
  qsort(item, count, sizeof *item, compare_items);
  qsort(checker->time, count, sizeof *checker->time, compare_times);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || checker->time[i] != checker->time[i - 1])
      checker->time[checker->times++] = checker->time[i];
  return check_together(checker, item, count, error);
}

pp_status pp_arena_check(const pp_buffer *buffer, size_t buffers, int64_t alignment,
                         const int64_t *offset, int64_t *bytes, pp_error *error) {
  if (alignment < 1)
    return pp_fail(error, PP_ERROR_USAGE, "the alignment must be at least 1");
  struct checker checker = {.buffer = buffer, .offset = offset, .leaves = 1};
  while (checker.leaves < buffers)
    checker.leaves *= 2;
  struct item *item = pp_alloc(buffers, sizeof *item);
  checker.time = pp_alloc(buffers, sizeof *checker.time);
  checker.all = pp_alloc(2 * checker.leaves, sizeof *checker.all);
  checker.any = pp_alloc(2 * checker.leaves, sizeof *checker.any);
  int64_t used;
  pp_status status = PP_OK;
  if (!item || !checker.time || !checker.all || !checker.any) {
    status = pp_fail_memory(error);
  } else {
    for (size_t i = 0; i < 2 * checker.leaves; i++)
      checker.all[i] = checker.any[i] = -1;
    status = check_all(&checker, item, buffers, alignment, bytes ? bytes : &used, error);
  }
  free(item);
  free(checker.time);
  free(checker.all);
  free(checker.any);
  return status;
}
