#include "torture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exercise.h"

enum { CUTS = 4096 };
/* What a byte is changed by (exclusive or): the lowest and the highest bit, all of them, then the
 * other single ones. */
static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40};
enum { FLIPS = sizeof flips };

static int flips_called(const char *name) {
  return !strcmp(name, "one") ? 1 : !strcmp(name, "all") ? FLIPS : TORTURE_FEW;
}

bool torture_option(struct torture *torture, int count, char **argument, int *i) {
  const char *name = argument[*i];
  int left = count - *i - 1;
  if (!strcmp(name, "--from") && left)
    torture->from = strtoull(argument[++*i], NULL, 10);
  else if (!strcmp(name, "--to") && left)
    torture->to = strtoull(argument[++*i], NULL, 10);
  else if (!strcmp(name, "--flips") && left)
    torture->flips = flips_called(argument[++*i]);
  else if (!strcmp(name, "--sample") && left > 1) {
    torture->sample = strtoull(argument[++*i], NULL, 10);
    torture->seed = strtoull(argument[++*i], NULL, 10);
  } else
    return false;
  return true;
}

int torture_begin(struct torture *torture, const char *path, pp_model **model) {
  pp_error error;
  if (pp_model_read(path, NULL, model, &error)) {
    fprintf(stderr, "%s: %s\n", path, error.message);
    return 65;
  }
  torture->size = (*model)->size;
  torture->bytes = malloc(torture->size + 1);
  torture->mark = malloc(torture->size + 1);
  if (!torture->bytes || !torture->mark)
    return 70;
  memcpy(torture->bytes, (*model)->bytes, torture->size + 1);
  memset(torture->mark, TORTURE_STRUCTURE, torture->size + 1);
  return 0;
}

static void try(struct torture *torture, size_t size, uint64_t seed) {
  torture->tried++;
  torture->refused += exercise(torture->bytes, size, seed, false) != PP_OK;
}

static void flip(struct torture *torture, size_t at, int which) {
  torture->bytes[at] ^= flips[which];
  try(torture, torture->size, at * FLIPS + (size_t)which);
  torture->bytes[at] ^= flips[which];
}

static int flips_of(const struct torture *torture, size_t at) {
  uint8_t mark = torture->mark[at];
  if (!(mark & TORTURE_REPEAT) == torture->repeats)
    return 0;
  mark &= (uint8_t)~TORTURE_REPEAT;
  return mark == TORTURE_STRUCTURE ? torture->flips : mark == TORTURE_TEXT;
}

static void try_sample(struct torture *torture) {
  for (uint64_t i = 0; i < torture->sample;) {
    size_t at = next_random(&torture->seed) % torture->size;
    if (i % 8 == 0)
      try(torture, at % CUTS < torture->size ? at % CUTS : at, i);
    else if (torture->mark[at] & ~TORTURE_REPEAT)
      flip(torture, at, (int)(next_random(&torture->seed) % FLIPS));
    else
      continue;
    i++;
  }
}

static void try_all(struct torture *torture) {
  for (size_t at = torture->from; at < torture->to && at < torture->size; at++) {
    if (at < CUTS && !torture->repeats)
      try(torture, at, at);
    int values = flips_of(torture, at);
    for (int which = 0; which < values; which++)
      flip(torture, at, values == 1 ? (int)(at % TORTURE_FEW) : which);
  }
}

void torture_run(struct torture *torture) {
  if (torture->sample)
    try_sample(torture);
  else
    try_all(torture);
  printf("%" PRIu64 " files, %" PRIu64 " refused\n", torture->tried, torture->refused);
}

void torture_end(struct torture *torture) {
  free(torture->bytes);
  free(torture->mark);
}
