/* Arenas against exhaustive search, and cases at the edges.
 *
 * The exhaustive search and the validator share nothing with the packer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exhaustive.h"

static int passed, failed;

static void report(bool good, const char *format, long number) {
  if (good) {
    passed++;
    return;
  }
  failed++;
  printf("FAILED ");
  printf(format, number);
  printf("\n");
}

/* ---- Random instances ---- */

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static int64_t below(int64_t n) {
  return (int64_t)(next() % (uint64_t)n);
}

/* Every time as full as can be. */
static size_t make_tight(pp_buffer *buffer) {
  int64_t times = 3 + below(5), most = 3 + below(6), load[16] = {0};
  size_t n = 0;
  for (int64_t t = 0; t < times; t++)
    for (int tries = 0; load[t] < most && n < ARENA_MAX && tries < 8; tries++) {
      int64_t last = t + below(times - t < 4 ? times - t : 4), bytes = 1 + below(most / 2 + 1);
      bool fits = true;
      for (int64_t u = t; u <= last; u++)
        fits = fits && load[u] + bytes <= most;
      if (!fits)
        continue;
      for (int64_t u = t; u <= last; u++)
        load[u] += bytes;
      buffer[n++] = (pp_buffer){bytes, t, last};
    }
  return n;
}

/* Sets whose smallest arena is above their load, which is rare; found by random search. */
static const pp_buffer gaps[][ARENA_MAX] = {
    {{4, 0, 2}, {3, 0, 3}, {3, 3, 5}, {1, 3, 4}, {2, 4, 5}, {1, 4, 4}, {2, 5, 6}, {4, 6, 6}},
    {{3, 0, 0},
     {1, 0, 2},
     {1, 1, 4},
     {2, 1, 1},
     {1, 2, 5},
     {1, 2, 2},
     {2, 3, 3},
     {2, 4, 4},
     {3, 5, 5}},
    {{4, 0, 0},
     {3, 0, 1},
     {1, 0, 3},
     {2, 1, 3},
     {1, 1, 2},
     {4, 2, 4},
     {1, 3, 5},
     {3, 4, 4},
     {2, 5, 6},
     {5, 5, 5}},
    {{2, 0, 1}, {2, 0, 0}, {1, 1, 2}, {1, 1, 3}, {1, 2, 2}, {1, 2, 3}, {2, 3, 5}, {2, 4, 5}},
    {{3, 0, 1},
     {2, 0, 0},
     {1, 1, 4},
     {1, 1, 3},
     {2, 2, 5},
     {1, 2, 4},
     {1, 4, 5},
     {2, 5, 6},
     {3, 6, 6}},
    {{4, 0, 0},
     {2, 0, 2},
     {3, 1, 3},
     {1, 2, 4},
     {1, 3, 3},
     {1, 3, 4},
     {2, 4, 5},
     {2, 4, 4},
     {4, 5, 5}},
};

/* One of these, a little changed. */
static size_t make_gap(pp_buffer *buffer) {
  size_t n = 0;
  memcpy(buffer, gaps[below(sizeof gaps / sizeof *gaps)], sizeof *gaps);
  while (n < ARENA_MAX && buffer[n].bytes > 0)
    n++;
  if (below(2))
    for (size_t i = 0; i < n; i++)
      buffer[i] = (pp_buffer){buffer[i].bytes, -buffer[i].last, -buffer[i].first};
  int64_t scale = 1 + below(20) * below(2);
  for (size_t i = 0; i < n; i++)
    buffer[i].bytes *= scale;
  for (int64_t changes = below(3); changes > 0; changes--) {
    pp_buffer *some = &buffer[below((int64_t)n)];
    if (below(2))
      some->bytes += below(3) - (some->bytes > 1);
    else if (some->last > some->first && below(2))
      some->last--;
    else
      some->last++;
  }
  while (n < ARENA_MAX && below(2)) {
    int64_t first = below(8);
    buffer[n++] = (pp_buffer){1 + below(3), first, first + below(3)};
  }
  return n;
}

static size_t make_any(pp_buffer *buffer, int64_t *alignment) {
  static const int64_t alignments[] = {1, 1, 1, 2, 3, 16, 64, 1000, (int64_t)1 << 40};
  size_t n = (size_t)below(ARENA_MAX + 1);
  int64_t times = 1 + below(10), sizes = 1 + below(below(2) ? 4 : 100), shape = below(6);
  int64_t scale = below(8) == 0 ? (int64_t)1 << below(62) : 1;
  *alignment = alignments[below(9)];
  for (size_t i = 0; i < n; i++) {
    int64_t first = below(times), last = first + below(times - first);
    if (shape == 0)
      last = first;
    if (shape == 1 && i > 0 && below(2))
      first = buffer[i - 1].first, last = buffer[i - 1].last;
    int64_t bytes = 1 + below(sizes);
    if (shape == 2 && below(4) == 0)
      bytes = 0;
    if (bytes > INT64_MAX / scale)
      bytes = INT64_MAX / scale;
    buffer[i] = (pp_buffer){bytes * scale, first, last};
    if (shape == 1 && i > 0 && below(2))
      buffer[i].bytes = buffer[i - 1].bytes;
    if (shape == 3) /* times far apart */
      buffer[i].first = buffer[i].first * 1000003 - 5000000,
      buffer[i].last = buffer[i].last * 1000003 - 5000000;
  }
  return n;
}

static size_t make(pp_buffer *buffer, int64_t *alignment) {
  int64_t kind = below(3);
  if (kind == 0)
    return make_any(buffer, alignment);
  *alignment = 1 + below(3) / 2 * below(4);
  return kind == 1 ? make_tight(buffer) : make_gap(buffer);
}

static int above_load; /* sets of which only a search can tell the optimum */

static bool agree(const pp_buffer *buffer, size_t n, int64_t alignment, bool verbose) {
  pp_arena_options options = {.alignment = alignment};
  pp_arena *arena;
  pp_error error;
  unsigned __int128 best = arena_optimum(buffer, n, alignment);
  pp_status status = pp_arena_solve(buffer, n, &options, &arena, &error);
  if (best > (unsigned __int128)INT64_MAX)
    return status == PP_ERROR_OVERFLOW;
  if (status != PP_OK) {
    if (verbose)
      printf("%s: %s\n", pp_status_name(status), error.message);
    return false;
  }
  bool good = (unsigned __int128)pp_arena_bytes(arena) == best && pp_arena_optimal(arena) &&
              !pp_arena_limited(arena) && pp_arena_lower_bound(arena) == pp_arena_bytes(arena) &&
              pp_arena_load(arena) <= pp_arena_bytes(arena) &&
              arena_valid(buffer, n, alignment, pp_arena_offsets(arena), pp_arena_bytes(arena));
  above_load += pp_arena_proved_by(arena) == PP_ARENA_SEARCH;
  if (!good && verbose)
    printf("arena %" PRId64 ", bound %" PRId64 ", optimum %" PRId64 "\n", pp_arena_bytes(arena),
           pp_arena_lower_bound(arena), (int64_t)best);
  pp_arena_free(arena);
  return good;
}

static void print(const pp_buffer *buffer, size_t n, int64_t alignment) {
  printf("alignment %" PRId64 "\nid,lower,upper,size\n", alignment);
  for (size_t i = 0; i < n; i++)
    printf("%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", i, buffer[i].first, buffer[i].last + 1,
           buffer[i].bytes);
}

/* Also: what the planners give is valid and not below the optimum; the checker says the same as the
 * validator, before and after one offset is moved. */
static bool planners_agree(const pp_buffer *buffer, size_t n, int64_t alignment) {
  unsigned __int128 best = arena_optimum(buffer, n, alignment);
  for (int p = PP_PLANNER_TFLM; p <= PP_PLANNER_LITERT; p++) {
    int64_t offset[ARENA_MAX], bytes, used = 0;
    pp_buffer rounded[ARENA_MAX];
    memset(offset, -1, sizeof offset);
    pp_status status = pp_arena_greedy(buffer, n, alignment, (pp_planner)p, offset, &bytes, NULL);
    if (status == PP_ERROR_OVERFLOW)
      continue;
    for (size_t i = 0; i < n; i++) {
      rounded[i] = buffer[i];
      if (p == PP_PLANNER_TFLM)
        rounded[i].bytes = (buffer[i].bytes + alignment - 1) / alignment * alignment;
    }
    if (status != PP_OK || (unsigned __int128)bytes < best ||
        !arena_valid(rounded, n, alignment, offset, bytes) ||
        pp_arena_check(rounded, n, alignment, offset, &used, NULL) != PP_OK || used != bytes)
      return false;
    if (n == 0)
      continue;
    size_t moved = (size_t)below((int64_t)n);
    offset[moved] = below(4) ? offset[(size_t)below((int64_t)n)] : offset[moved] + 1;
    for (size_t i = 0; i < n; i++)
      if (offset[i] > INT64_MAX - rounded[i].bytes)
        return true;
    used = 0;
    for (size_t i = 0; i < n; i++)
      if (rounded[i].bytes > 0 && offset[i] + rounded[i].bytes > used)
        used = offset[i] + rounded[i].bytes;
    if (arena_valid(rounded, n, alignment, offset, used) !=
        (pp_arena_check(rounded, n, alignment, offset, NULL, NULL) == PP_OK))
      return false;
  }
  return true;
}

static void test_random(long count) {
  pp_buffer buffer[ARENA_MAX];
  for (long i = 0; i < count && failed < 5; i++) {
    int64_t alignment;
    size_t n = make(buffer, &alignment);
    bool good = agree(buffer, n, alignment, true);
    report(good, "random %ld against exhaustive search", i);
    if (!good)
      print(buffer, n, alignment);
    report(planners_agree(buffer, n, alignment), "random %ld: planners and checker", i);
  }
}

/* ---- Edges ---- */

static pp_status solve(const pp_buffer *buffer, size_t n, int64_t alignment, int64_t *bytes,
                       bool *optimal) {
  pp_arena_options options = {.alignment = alignment};
  pp_arena *arena;
  pp_status status = pp_arena_solve(buffer, n, &options, &arena, NULL);
  if (status != PP_OK)
    return status;
  *bytes = pp_arena_bytes(arena);
  *optimal = pp_arena_optimal(arena);
  if (!arena_valid(buffer, n, alignment, pp_arena_offsets(arena), *bytes))
    status = PP_ERROR_INTERNAL;
  pp_arena_free(arena);
  return status;
}

struct edge {
  const char *name;
  size_t n;
  int64_t alignment;
  pp_status status;
  int64_t bytes;
  pp_buffer buffer[6];
};

static const struct edge edges[] = {
    {"nothing", 0, 1, PP_OK, 0, {{0, 0, 0}}},
    {"one of no bytes", 1, 16, PP_OK, 0, {{0, 0, 5}}},
    {"one of all bytes", 1, 1, PP_OK, INT64_MAX, {{INT64_MAX, 0, 5}}},
    {"one of all bytes, aligned", 1, 64, PP_OK, INT64_MAX, {{INT64_MAX, 0, 5}}},
    {"all bytes twice, at different times",
     2,
     1,
     PP_OK,
     INT64_MAX,
     {{INT64_MAX, 0, 5}, {INT64_MAX, 6, 7}}},
    {"all bytes twice", 2, 1, PP_ERROR_OVERFLOW, 0, {{INT64_MAX, 0, 5}, {INT64_MAX, 5, 7}}},
    {"halves", 2, 1, PP_OK, INT64_MAX, {{INT64_MAX / 2, 0, 5}, {INT64_MAX / 2 + 1, 0, 5}}},
    {"a byte too many",
     2,
     1,
     PP_ERROR_OVERFLOW,
     0,
     {{INT64_MAX / 2 + 1, 0, 5}, {INT64_MAX / 2 + 1, 0, 5}}},
    {"too many only when aligned",
     2,
     64,
     PP_ERROR_OVERFLOW,
     0,
     {{INT64_MAX - 64, 0, 5}, {65, 0, 5}}},
    {"just fits, aligned", 2, 64, PP_OK, INT64_MAX, {{INT64_MAX - 64, 0, 5}, {64, 0, 5}}},
    {"huge alignment", 2, (int64_t)1 << 62, PP_OK, ((int64_t)1 << 62) + 1, {{1, 0, 0}, {1, 0, 0}}},
    {"alignment beyond reach",
     3,
     (int64_t)1 << 62,
     PP_ERROR_OVERFLOW,
     0,
     {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}},
    {"the smaller remainder on top", 2, 16, PP_OK, 33, {{17, 0, 0}, {1, 0, 0}}},
    {"all times", 2, 1, PP_OK, 3, {{1, INT64_MIN, INT64_MAX}, {2, INT64_MAX, INT64_MAX}}},
    {"one step each", 3, 1, PP_OK, 7, {{7, 0, 0}, {7, 1, 1}, {7, 2, 2}}},
    {"touching ends", 2, 1, PP_OK, 3, {{1, 0, 1}, {2, 1, 2}}},
    {"identical",
     6,
     8,
     PP_OK,
     43,
     {{3, 2, 9}, {3, 2, 9}, {3, 2, 9}, {3, 2, 9}, {3, 2, 9}, {3, 2, 9}}},
    {"negative size", 1, 1, PP_ERROR_INPUT, 0, {{-1, 0, 0}}},
    {"ends before it begins", 1, 1, PP_ERROR_INPUT, 0, {{1, 1, 0}}},
    {"no alignment", 1, -1, PP_ERROR_USAGE, 0, {{1, 0, 0}}},
};

static void test_edges(void) {
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    const struct edge *edge = &edges[i];
    int64_t bytes = 0;
    bool optimal = true;
    pp_status status = solve(edge->buffer, edge->n, edge->alignment, &bytes, &optimal);
    bool good = status == edge->status && bytes == edge->bytes && optimal;
    if (!good)
      printf("%s: %s, %" PRId64 " bytes\n", edge->name, pp_status_name(status), bytes);
    report(good, "edge %ld", (long)i);
  }
}

/* Limits: heuristics only, and a capacity that is enough. */
static void test_options(void) {
  pp_buffer buffer[200];
  for (size_t i = 0; i < 200; i++) {
    int64_t first = below(100);
    buffer[i] = (pp_buffer){1 + below(1000), first, first + below(20)};
  }
  pp_arena *arena;
  pp_arena_options options = {.node_limit = -1};
  report(pp_arena_solve(buffer, 200, &options, &arena, NULL) == PP_OK, "heuristics only", 0);
  int64_t bytes = pp_arena_bytes(arena);
  report(pp_arena_nodes(arena) == 0 &&
             arena_valid(buffer, 200, 1, pp_arena_offsets(arena), pp_arena_bytes(arena)),
         "heuristics only: no nodes, valid", 0);
  pp_arena_free(arena);
  options = (pp_arena_options){.capacity = bytes};
  report(pp_arena_solve(buffer, 200, &options, &arena, NULL) == PP_OK &&
             pp_arena_bytes(arena) <= bytes && pp_arena_nodes(arena) == 0,
         "a capacity that the heuristics meet", 0);
  pp_arena_free(arena);
  pp_arena *again = NULL;
  options = (pp_arena_options){.node_limit = 20000};
  report(pp_arena_solve(buffer, 200, &options, &arena, NULL) == PP_OK &&
             pp_arena_solve(buffer, 200, &options, &again, NULL) == PP_OK &&
             memcmp(pp_arena_offsets(arena), pp_arena_offsets(again), sizeof(int64_t[200])) == 0 &&
             pp_arena_nodes(arena) == pp_arena_nodes(again),
         "twice the same", 0);
  pp_arena_free(arena);
  pp_arena_free(again);
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 10000;
  test_edges();
  test_random(count);
  report(above_load * 20 > count, "only %ld arenas above their load", above_load);
  test_options();
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
