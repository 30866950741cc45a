/* events [PRESET [SETTINGS [CAPACITY]]] < EVENTS: runs events through the model of the caching
 * allocator, for the tests. One event a line, one answer a line:
 *
 *   a NAME BYTES [STREAM]   requests; NAME is a number below 2^20, free to be used
 *   f NAME                  frees
 *   e                       empties the cache
 *   l                       goes on with an allocator that was given the list of blocks
 *   n COUNT                 the driver refuses the next requests to it
 *   s SETTINGS              other settings from here on (what is reserved stays)
 *   c                       prints settings: large_buffer, max_split_size,
 *                           max_non_split_rounding, the divisions
 *   d                       prints the blocks: one line, one word a block
 *
 * The answer to all but c and d: requested allocated reserved segments retries failures, and for
 * `a` the address (-1: nothing was asked for, -2: the device is full). A block is ADDRESS+BYTES,
 * and a letter for each of: a allocated, s small, x expandable, | first of its segment; then
 * @REQUESTED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caching.h"
#include "peakproof.h"

enum { NAMES = 1 << 20 };
static pp_index held[NAMES];
static pp_caching *caching;
static pp_error error;

static void need(pp_status status) {
  if (!status)
    return;
  fprintf(stderr, "events: %s: %s\n", pp_status_name(status), error.message);
  exit(status == PP_ERROR_USAGE ? 64 : 70);
}

static bool same_block(const pp_caching_block *a, const pp_caching_block *b) {
  return a->address == b->address && a->bytes == b->bytes && a->requested == b->requested &&
         a->stream == b->stream && a->allocated == b->allocated && a->small == b->small &&
         a->expandable == b->expandable && a->first == b->first;
}

/* The allocator that has what is listed, in the place of the one that listed it. */
static void load(void) {
  pp_caching_block *block;
  pp_caching *copy;
  size_t count;
  need(pp_caching_blocks(caching, &block, &count, &error));
  need(pp_caching_load(&caching->config, block, count, &copy, &error));
  copy->next_address = caching->next_address;
  copy->figures.retries = caching->figures.retries;
  copy->figures.failures = caching->figures.failures;
  copy->refusals = caching->refusals;
  for (int name = 0; name < NAMES; name++)
    if (held[name] >= 0) {
      int64_t address = pp_caching_address(caching, held[name]);
      size_t low = 0;
      for (size_t high = count; low + 1 < high;) {
        size_t middle = (low + high) / 2;
        if (block[middle].address <= address)
          low = middle;
        else
          high = middle;
      }
      held[name] = (pp_index)low;
    }
  free(block);
  pp_caching_free(caching);
  caching = copy;
}

static void print_blocks(void) {
  pp_caching_block *block;
  size_t count;
  need(pp_caching_blocks(caching, &block, &count, &error));
  for (size_t i = 0; i < count; i++)
    printf("%s%" PRId64 "+%" PRId64 "%s%s%s%s@%" PRId64, i ? " " : "", block[i].address,
           block[i].bytes, block[i].allocated ? "a" : "", block[i].small ? "s" : "",
           block[i].expandable ? "x" : "", block[i].first ? "|" : "", block[i].requested);
  putchar('\n');
  /* What is listed can be loaded, and is then listed again as it was. */
  pp_caching *copy;
  pp_caching_block *again;
  size_t same;
  need(pp_caching_load(&caching->config, block, count, &copy, &error));
  need(pp_caching_blocks(copy, &again, &same, &error));
  bool equal = same == count;
  for (size_t i = 0; i < count && equal; i++)
    equal = same_block(&block[i], &again[i]);
  if (!equal) {
    fputs("events: a loaded state differs\n", stderr);
    exit(70);
  }
  pp_caching_free(copy);
  free(block);
  free(again);
}

static void print_config(void) {
  const pp_caching_config *config = &caching->config;
  printf("%" PRId64 " %" PRId64 " %" PRId64, config->large_buffer, config->max_split_size,
         config->max_non_split_rounding);
  for (int i = 0; i < PP_CACHING_DIVISIONS; i++)
    printf(" %" PRId64, config->divisions[i]);
  putchar('\n');
}

static void print_figures(const int64_t *address) {
  pp_caching_figures f = pp_caching_now(caching);
  printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, f.requested,
         f.allocated, f.reserved, f.segments, f.retries, f.failures);
  if (address)
    printf(" %" PRId64, *address);
  putchar('\n');
}

static void request(const char *line) {
  int name;
  int64_t bytes, stream = 0;
  if (sscanf(line, "a %d %" SCNd64 " %" SCNd64, &name, &bytes, &stream) < 2 || name < 0 ||
      name >= NAMES)
    exit(64);
  need(pp_caching_allocate(caching, bytes, stream, &held[name], &error));
  int64_t address = held[name] < 0 ? held[name] : pp_caching_address(caching, held[name]);
  print_figures(&address);
}

static void run(const char *line) {
  int name;
  switch (line[0]) {
  case 'a':
    request(line);
    return;
  case 'f':
    if (sscanf(line, "f %d", &name) != 1 || name < 0 || name >= NAMES)
      exit(64);
    pp_caching_release(caching, held[name]);
    held[name] = PP_CACHING_NOTHING;
    break;
  case 'e':
    need(pp_caching_empty(caching, &error));
    break;
  case 'l':
    load();
    break;
  case 'n':
    pp_caching_refuse_next(caching, atoll(line + 1));
    break;
  case 's': {
    pp_caching_config config;
    pp_caching_preset(NULL, &config);
    need(pp_caching_configure(&config, line + 1, &error));
    config.capacity = caching->config.capacity;
    if (config.memory_fraction == 0)
      config.memory_fraction = caching->config.memory_fraction;
    caching->config = config;
    break;
  }
  case 'c':
    print_config();
    return;
  case 'd':
    print_blocks();
    return;
  default:
    exit(64);
  }
  print_figures(NULL);
}

int main(int argc, char **argv) {
  pp_caching_config config;
  char line[4096];
  if (!pp_caching_preset(argc > 1 && *argv[1] ? argv[1] : NULL, &config))
    return 64;
  if (argc > 2)
    need(pp_caching_configure(&config, argv[2], &error));
  if (argc > 3)
    config.capacity = atoll(argv[3]);
  memset(held, 0xff, sizeof held); /* PP_CACHING_NOTHING */
  need(pp_caching_new(&config, &caching, &error));
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    run(line);
  }
  pp_caching_free(caching);
  return 0;
}
