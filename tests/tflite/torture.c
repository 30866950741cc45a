/* torture MODEL [--from BYTE] [--to BYTE] [--flips all] [--sample N SEED] - hostile .tflite files.
 *
 * Every byte of MODEL's structure (all but the data of constants) takes other values, and MODEL is
 * cut short at every length up to 4 KiB; each such file goes through all that peakproof does
 * (exercise.c). Bytes from <= b < to only, if given; with --sample, N of all cases drawn with SEED.
 * Build it with sanitizers. Prints how many files there were, how many were refused, and exits
 * with 0; anything else aborts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exercise.h"
#include "format/tflite_model.h"
#include "format/tflite_schema.h"

enum { CUTS = 4096 };
/* What a byte is changed by (exclusive or): the lowest and the highest bit, all of them, then the
 * other single ones. */
static const uint8_t flips[] = {0x01, 0x80, 0xff, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40};
enum { FLIPS = sizeof flips, FEW = 3 };

static uint64_t tried, refused;

static void try(const uint8_t *bytes, size_t size, uint64_t seed) {
  tried++;
  refused += exercise(bytes, size, seed, false) != PP_OK;
}

/* Marks the bytes that are data of constants: with 0 in `structure`. */
static void mark_constants(const pp_tflite *tflite, uint8_t *structure) {
  for (uint32_t s = 0; s < tflite->subgraphs; s++)
    for (uint32_t i = 0; i < tflite->subgraph[s].tensors.count; i++) {
      size_t tensor = pp_tflite_at(tflite, tflite->subgraph[s].tensors, i);
      uint32_t index = pp_flat_get32(&tflite->flat, tensor, TENSOR_BUFFER, 0);
      size_t buffer = pp_tflite_at(tflite, tflite->buffers, index);
      pp_flat_vector data = pp_flat_elements(&tflite->flat, buffer, BUFFER_DATA);
      memset(structure + data.at, 0, data.count);
    }
}

static void flip(uint8_t *bytes, size_t size, size_t at, int which) {
  bytes[at] ^= flips[which];
  try(bytes, size, at * FLIPS + (size_t)which);
  bytes[at] ^= flips[which];
}

int main(int count, char **argument) {
  pp_model *model;
  pp_error error;
  size_t from = 0, to = SIZE_MAX;
  uint64_t sample = 0, seed = 0;
  int some = FEW;
  for (int i = 2; i + 1 < count; i += 2) {
    if (!strcmp(argument[i], "--from"))
      from = strtoull(argument[i + 1], NULL, 10);
    else if (!strcmp(argument[i], "--to"))
      to = strtoull(argument[i + 1], NULL, 10);
    else if (!strcmp(argument[i], "--flips"))
      some = !strcmp(argument[i + 1], "all") ? FLIPS : !strcmp(argument[i + 1], "one") ? 1 : FEW;
    else if (!strcmp(argument[i], "--sample") && i + 2 < count) {
      sample = strtoull(argument[i + 1], NULL, 10);
      seed = strtoull(argument[++i + 1], NULL, 10);
    } else
      return 64;
  }
  if (count < 2)
    return 64;
  if (pp_model_read(argument[1], NULL, &model, &error)) {
    fprintf(stderr, "%s: %s\n", argument[1], error.message);
    return 65;
  }
  size_t size = model->size;
  uint8_t *bytes = malloc(size + 1), *structure = malloc(size + 1);
  if (!bytes || !structure)
    return 70;
  memcpy(bytes, model->bytes, size);
  memset(structure, 1, size);
  mark_constants(model->data, structure);
  pp_model_free(model);
  to = to < size ? to : size;
  if (sample) {
    for (uint64_t i = 0; i < sample; i++) {
      size_t at = next_random(&seed) % size;
      if (i % 8 == 0)
        try(bytes, at % CUTS < size ? at % CUTS : at, i);
      else if (structure[at])
        flip(bytes, size, at, (int)(next_random(&seed) % FLIPS));
    }
  } else {
    for (size_t at = from; at < to; at++) {
      if (at < CUTS)
        try(bytes, at, at);
      for (int which = 0; which < some && structure[at]; which++)
        flip(bytes, size, at, which);
    }
  }
  printf("%" PRIu64 " files, %" PRIu64 " refused\n", tried, refused);
  free(bytes);
  free(structure);
  return 0;
}
