/* caching-speed [EVENTS]: how long the model of the caching allocator takes, against reading its
 * input. For each kind of trace a line, fields separated by tabs: kind, events, blocks cached at
 * the end, user CPU seconds of reading the trace (JSON, as torch has it), of running it, and of
 * replaying it with all addresses compared. The trace is made by the model itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "format/snapshot.h"
#include "memory.h"
#include "random.h"

static uint64_t state;

static uint64_t next(void) {
  return pp_random(&state);
}

static int64_t pick(int64_t below) {
  return (int64_t)(next() % (uint64_t)below);
}

/* From 512 bytes to 64 MiB, all magnitudes equally often. */
static int64_t some_size(void) {
  int64_t floor = (int64_t)512 << pick(17);
  return floor + pick(floor);
}

static double seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6;
}

static void need(pp_status status, const pp_error *error) {
  if (!status)
    return;
  fprintf(stderr, "caching-speed: %s\n", error->message);
  exit(70);
}

/* ---- Kinds of traces: the next event frees one of `count` held blocks, or -1: it requests ---- */

/* A step of training again and again: everything is requested, then freed in reverse. */
static int64_t step(int64_t event, int64_t count, int64_t *bytes) {
  static int64_t sizes[500];
  if (event == 0)
    for (int i = 0; i < 500; i++)
      sizes[i] = some_size();
  if (event % 1000 >= 500)
    return count - 1;
  *bytes = sizes[event % 1000];
  return -1;
}

/* About 10,000 blocks live, of random sizes and lives. */
static int64_t random_lives(int64_t event, int64_t count, int64_t *bytes) {
  (void)event;
  *bytes = some_size();
  return count && pick(20000) < count ? pick(count) : -1;
}

/* The same of small requests only, with very many free blocks. */
static int64_t many_small(int64_t event, int64_t count, int64_t *bytes) {
  *bytes = 512 + pick(1 << 16);
  if (event < 200000)
    return -1;
  return count && pick(2) ? pick(count) : -1;
}

static const struct kind {
  const char *name, *settings;
  int64_t (*next)(int64_t event, int64_t count, int64_t *bytes);
} kinds[] = {{"steps", "", step},
             {"random", "", random_lives},
             {"small", "", many_small},
             {"random, expandable", "expandable_segments:True", random_lives},
             {"random, split", "max_split_size_mb:32,roundup_power2_divisions:8", random_lives}};

/* ---- A trace, as torch writes it ---- */

struct text {
  char *bytes;
  size_t size, room;
  int64_t entries;
};

static void add(struct text *text, const char *action, int64_t address, int64_t bytes) {
  if (!pp_reserve((void **)&text->bytes, &text->room, text->size + 200, 1))
    exit(71);
  text->size += (size_t)sprintf(text->bytes + text->size,
                                "%s{\"action\": \"%s\", \"addr\": %" PRId64 ", \"size\": %" PRId64
                                ", \"stream\": 0}",
                                text->entries++ ? ",\n" : "", action, address, bytes);
}

static void watch(pp_caching_action action, int64_t address, int64_t bytes, int64_t stream,
                  void *data) {
  static const char *const names[] = {"segment_alloc", "segment_free", "segment_map",
                                      "segment_unmap"};
  (void)stream;
  add(data, names[action], address, bytes);
}

static void make(const struct kind *kind, const pp_caching_config *config, int64_t events,
                 struct text *text) {
  pp_caching *caching;
  pp_error error;
  pp_index *held = malloc((size_t)events * sizeof *held);
  int64_t count = 0, bytes = 0;
  state = 1;
  need(pp_caching_new(config, &caching, &error), &error);
  pp_caching_set_watch(caching, watch, text);
  for (int64_t i = 0; i < events; i++) {
    int64_t gone = kind->next(i, count, &bytes);
    if (gone >= 0) {
      add(text, "free_completed", pp_caching_address(caching, held[gone]), 0);
      pp_caching_release(caching, held[gone]);
      held[gone] = held[--count];
    } else {
      need(pp_caching_allocate(caching, bytes, 0, &held[count], &error), &error);
      add(text, "alloc", pp_caching_address(caching, held[count++]), bytes);
    }
  }
  free(held);
  pp_caching_free(caching);
}

/* ---- Measuring ---- */

/* Only requests and frees, by number: what a caller of the library does. */
static double run(const struct kind *kind, const pp_caching_config *config, int64_t events,
                  size_t *cached) {
  pp_caching *caching;
  pp_caching_block *block;
  pp_error error;
  pp_index *held = malloc((size_t)events * sizeof *held);
  int64_t *what = malloc((size_t)events * sizeof *what);
  int64_t *size = malloc((size_t)events * sizeof *size);
  int64_t count = 0;
  state = 1;
  for (int64_t i = 0; i < events; i++) {
    what[i] = kind->next(i, count, &size[i]);
    count += what[i] < 0 ? 1 : -1;
  }
  double begin = seconds();
  count = 0;
  need(pp_caching_new(config, &caching, &error), &error);
  for (int64_t i = 0; i < events; i++)
    if (what[i] >= 0) {
      pp_caching_release(caching, held[what[i]]);
      held[what[i]] = held[--count];
    } else {
      need(pp_caching_allocate(caching, size[i], 0, &held[count++], &error), &error);
    }
  double took = seconds() - begin;
  size_t blocks;
  need(pp_caching_blocks(caching, &block, &blocks, &error), &error);
  *cached = 0;
  for (size_t i = 0; i < blocks; i++)
    *cached += !block[i].allocated;
  free(block);
  free(held);
  free(what);
  free(size);
  pp_caching_free(caching);
  return took;
}

static void measure(const struct kind *kind, int64_t events) {
  pp_caching_config config;
  pp_error error;
  struct text text = {0};
  pp_snapshot snapshot;
  pp_caching *caching;
  size_t cached, at;
  bool same;
  char why[200];
  pp_caching_preset(NULL, &config);
  need(pp_caching_configure(&config, kind->settings, &error), &error);
  make(kind, &config, events, &text);
  char *json = malloc(text.size + 100);
  size_t size = (size_t)sprintf(json, "{\"segments\": [], \"device_traces\": [[%s]]}", text.bytes);
  free(text.bytes);
  double begin = seconds();
  need(pp_snapshot_read((const uint8_t *)json, size, 0, &snapshot, NULL, &error), &error);
  double read = seconds() - begin, ran = run(kind, &config, events, &cached);
  begin = seconds();
  need(pp_caching_new(&config, &caching, &error), &error);
  need(pp_caching_replay(&caching, snapshot.event, snapshot.events, &same, &at, why, &error),
       &error);
  double replayed = seconds() - begin;
  if (!same) {
    fprintf(stderr, "caching-speed: entry %zu: %s\n", at, why);
    exit(70);
  }
  printf("%s\t%" PRId64 "\t%zu\t%.3f\t%.3f\t%.3f\n", kind->name, events, cached, read, ran,
         replayed);
  fflush(stdout);
  pp_caching_free(caching);
  pp_snapshot_free(&snapshot);
  free(json);
}

int main(int argc, char **argv) {
  int64_t events = argc > 1 ? atoll(argv[1]) : 1000000;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    measure(&kinds[i], events > 0 ? events : 1);
  return 0;
}
