#include "exhaustive.h"

/* ---- Validator: every pair ---- */

bool arena_valid(const pp_buffer *buffer, size_t n, int64_t alignment, const int64_t *offset,
                 int64_t bytes) {
  int64_t used = 0;
  for (size_t i = 0; i < n; i++) {
    if (offset[i] < 0 || offset[i] % alignment || offset[i] > INT64_MAX - buffer[i].bytes)
      return false;
    if (buffer[i].bytes > 0 && offset[i] + buffer[i].bytes > used)
      used = offset[i] + buffer[i].bytes;
    for (size_t j = 0; j < i; j++) {
      bool together = buffer[i].first <= buffer[j].last && buffer[j].first <= buffer[i].last;
      bool share =
          offset[i] < offset[j] + buffer[j].bytes && offset[j] < offset[i] + buffer[i].bytes;
      if (together && share && buffer[i].bytes > 0 && buffer[j].bytes > 0)
        return false;
    }
  }
  return used == bytes;
}

/* ---- Exhaustive search ----
 *
 * Take a smallest arena and let everything fall as far as it goes; in the order of offsets, each
 * buffer then lies on the highest of those before it that live with it. So the best of all orders
 * with offsets that do not fall is the optimum. Of equal offsets the order does not matter. It
 * stops early at the bytes that live at one time. */

struct brute {
  const pp_buffer *buffer;
  size_t n;
  unsigned __int128 alignment, best, load, end[ARENA_MAX];
  bool used[ARENA_MAX];
};

static unsigned __int128 round_up(unsigned __int128 bytes, unsigned __int128 alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

static void extend(struct brute *brute, size_t depth, unsigned __int128 lowest, size_t first,
                   unsigned __int128 height) {
  if (height >= brute->best || brute->best == brute->load)
    return;
  if (depth == brute->n) {
    brute->best = height;
    return;
  }
  unsigned __int128 offset[ARENA_MAX] = {0};
  for (size_t i = 0; i < brute->n; i++) {
    for (size_t j = 0; j < brute->n; j++)
      if (!brute->used[i] && brute->used[j] && brute->buffer[i].first <= brute->buffer[j].last &&
          brute->buffer[j].first <= brute->buffer[i].last && brute->end[j] > offset[i])
        offset[i] = brute->end[j];
    offset[i] = round_up(offset[i], brute->alignment);
    if (!brute->used[i] && offset[i] + (unsigned __int128)brute->buffer[i].bytes >= brute->best)
      return;
  }
  for (size_t i = 0; i < brute->n; i++) {
    if (brute->used[i] || offset[i] < lowest || (offset[i] == lowest && i < first))
      continue;
    unsigned __int128 end = offset[i] + (unsigned __int128)brute->buffer[i].bytes;
    brute->used[i] = true;
    brute->end[i] = end;
    extend(brute, depth + 1, offset[i], i + 1, end > height ? end : height);
    brute->used[i] = false;
  }
}

static unsigned __int128 load(const struct brute *brute) {
  unsigned __int128 most = 0;
  for (size_t i = 0; i < brute->n; i++) {
    unsigned __int128 sum = 0, padding = 0;
    for (size_t j = 0; j < brute->n; j++) {
      unsigned __int128 bytes = (unsigned __int128)brute->buffer[j].bytes;
      if (brute->buffer[j].first > brute->buffer[i].first ||
          brute->buffer[j].last < brute->buffer[i].first)
        continue;
      sum += round_up(bytes, brute->alignment);
      if (round_up(bytes, brute->alignment) - bytes > padding)
        padding = round_up(bytes, brute->alignment) - bytes;
    }
    if (sum - padding > most)
      most = sum - padding;
  }
  return most;
}

unsigned __int128 arena_optimum(const pp_buffer *buffer, size_t n, int64_t alignment) {
  pp_buffer some[ARENA_MAX];
  struct brute brute = {.buffer = some, .alignment = (unsigned __int128)alignment};
  for (size_t i = 0; i < n; i++)
    if (buffer[i].bytes > 0)
      some[brute.n++] = buffer[i];
  brute.best = ~(unsigned __int128)0;
  brute.load = load(&brute);
  extend(&brute, 0, 0, 0, 0);
  return brute.n ? brute.best : 0;
}
