/* The runtimes' planners: largest first into a gap between what overlaps in time.
 *
 * TFLM: GreedyMemoryPlanner::CalculateOffsetsIfNeeded (sizes are rounded up before, equal sizes in
 * reverse order of their numbers, the lowest gap that is large enough). LiteRT: ArenaPlanner::
 * CreateTensorAllocationVector and SimpleMemoryArena::Allocate (what lives always first, then by
 * size and birth, the smallest gap). Both described from their sources in doc/arena.md. */
#include "arena.h"

#include <string.h>

#include "error.h"
#include "memory.h"

struct item {
  const pp_buffer *buffer;
  size_t index;
  bool whole, fixed;
};

struct placed { /* sorted by offset */
  int64_t offset, end, first, last;
};

struct greedy {
  int64_t alignment;
  bool smallest_gap;
  struct placed *placed;
  size_t count;
};

static bool round_up(int64_t value, int64_t alignment, int64_t *rounded) {
  int64_t rest = value % alignment;
  *rounded = value;
  return rest == 0 || !__builtin_add_overflow(value, alignment - rest, rounded);
}

/* The offset for a buffer of `bytes`: false if it leaves int64_t. */
static bool find_gap(const struct greedy *greedy, const pp_buffer *buffer, int64_t *offset) {
  int64_t end = 0, best_fit = INT64_MAX, aligned;
  *offset = -1;
  for (size_t i = 0; i < greedy->count; i++) {
    const struct placed *placed = &greedy->placed[i];
    if (placed->last < buffer->first || placed->first > buffer->last)
      continue;
    if (!round_up(end, greedy->alignment, &aligned))
      return false;
    if (placed->offset >= aligned && placed->offset - aligned >= buffer->bytes &&
        placed->offset - aligned < best_fit) {
      *offset = aligned;
      best_fit = placed->offset - end;
      if (!greedy->smallest_gap || best_fit == 0)
        return true;
    }
    if (placed->end > end)
      end = placed->end;
  }
  if (*offset >= 0)
    return true;
  return round_up(end, greedy->alignment, offset);
}

static bool insert(struct greedy *greedy, const pp_buffer *buffer, int64_t offset) {
  int64_t end;
  if (__builtin_add_overflow(offset, buffer->bytes, &end))
    return false;
  size_t low = 0, high = greedy->count;
  while (low < high) { /* behind all of the same offset */
    size_t middle = (low + high) / 2;
    if (greedy->placed[middle].offset > offset)
      high = middle;
    else
      low = middle + 1;
  }
  memmove(&greedy->placed[low + 1], &greedy->placed[low],
          (greedy->count - low) * sizeof *greedy->placed);
  greedy->placed[low] = (struct placed){offset, end, buffer->first, buffer->last};
  greedy->count++;
  return true;
}

static int compare_tflm(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->fixed != y->fixed)
    return x->fixed ? -1 : 1;
  if (x->fixed)
    return x->index < y->index ? -1 : 1;
  if (x->buffer->bytes != y->buffer->bytes)
    return x->buffer->bytes > y->buffer->bytes ? -1 : 1;
  return x->index > y->index ? -1 : 1;
}

static int compare_litert(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->fixed != y->fixed)
    return x->fixed ? -1 : 1;
  if (x->whole != y->whole)
    return x->whole ? -1 : 1;
  if (!x->whole && x->buffer->bytes != y->buffer->bytes)
    return x->buffer->bytes > y->buffer->bytes ? -1 : 1;
  if (!x->whole && x->buffer->first != y->buffer->first)
    return x->buffer->first < y->buffer->first ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

static pp_status place_items(struct greedy *greedy, const struct item *item, size_t buffers,
                             int64_t *offset, int64_t *bytes, pp_error *error) {
  *bytes = 0;
  for (size_t i = 0; i < buffers; i++) {
    const pp_buffer *buffer = item[i].buffer;
    int64_t *at = &offset[item[i].index];
    if (buffer->bytes == 0) {
      if (*at < 0)
        *at = 0;
      continue;
    }
    if ((!item[i].fixed && !find_gap(greedy, buffer, at)) || !insert(greedy, buffer, *at))
      return pp_fail(error, PP_ERROR_OVERFLOW, "the greedy planner needs more than 2^63-1 bytes");
    if (*at + buffer->bytes > *bytes)
      *bytes = *at + buffer->bytes;
  }
  return PP_OK;
}

static pp_status fill_items(const pp_buffer *buffer, size_t buffers, pp_planner planner,
                            int64_t alignment, const int64_t *offset, pp_buffer *copy,
                            struct item *item, pp_error *error) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t i = 0; i < buffers; i++) {
    if (buffer[i].bytes < 0 || buffer[i].first > buffer[i].last)
      return pp_fail(error, PP_ERROR_INPUT, "buffer %zu: negative size or life", i);
    first = buffer[i].first < first ? buffer[i].first : first;
    last = buffer[i].last > last ? buffer[i].last : last;
  }
  for (size_t i = 0; i < buffers; i++) {
    copy[i] = buffer[i];
    if (planner == PP_PLANNER_TFLM && !round_up(copy[i].bytes, alignment, &copy[i].bytes))
      return pp_fail(error, PP_ERROR_OVERFLOW, "buffer %zu is too large to be aligned", i);
    item[i] = (struct item){&copy[i], i, buffer[i].first == first && buffer[i].last == last,
                            offset[i] >= 0};
  }
  return PP_OK;
}

pp_status pp_arena_greedy(const pp_buffer *buffer, size_t buffers, int64_t alignment,
                          pp_planner planner, int64_t *offset, int64_t *bytes, pp_error *error) {
  if (alignment < 1 || (planner != PP_PLANNER_TFLM && planner != PP_PLANNER_LITERT))
    return pp_fail(error, PP_ERROR_USAGE, "unknown planner, or an alignment below 1");
  struct greedy greedy = {.alignment = alignment, .smallest_gap = planner == PP_PLANNER_LITERT};
  struct item *item = pp_alloc(buffers, sizeof *item);
  pp_buffer *copy = pp_alloc(buffers, sizeof *copy);
  greedy.placed = pp_alloc(buffers + 1, sizeof *greedy.placed);
  pp_status status = item && copy && greedy.placed ? PP_OK : pp_fail_memory(error);
  if (status == PP_OK)
    status = fill_items(buffer, buffers, planner, alignment, offset, copy, item, error);
  if (status == PP_OK) {
    qsort(item, buffers, sizeof *item, planner == PP_PLANNER_TFLM ? compare_tflm : compare_litert);
    status = place_items(&greedy, item, buffers, offset, bytes, error);
  }
  free(item);
  free(copy);
  free(greedy.placed);
  return status;
}
