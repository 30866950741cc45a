/* Spoils a model byte by byte, and does to each such file all that peakproof does: the part of
 * tests/tflite/torture.c and tests/onnx/torture.c that knows no format. Their options:
 *
 *   --from BYTE, --to BYTE   bytes from <= b < to only
 *   --flips one|few|all      so many other values of a byte: 1, 3, 9
 *   --sample N SEED          N of all cases instead, drawn with SEED */
#ifndef TORTURE_H
#define TORTURE_H

#include "format/model.h"

/* What a byte is: data takes no other value, what stands inside a text one. Bytes of records that
 * are like others are marked on top: they are spoiled only if `repeats`, and then they alone. */
enum { TORTURE_DATA, TORTURE_TEXT, TORTURE_STRUCTURE, TORTURE_REPEAT = 4 };

struct torture {
  uint8_t *bytes, *mark; /* of the model */
  size_t size, from, to;
  int flips;
  bool repeats;
  uint64_t sample, seed, tried, refused;
};

enum { TORTURE_FEW = 3 };
#define TORTURE_DEFAULTS                                                                           \
  { .to = SIZE_MAX, .flips = TORTURE_FEW }

/* Takes argument[*i] and what belongs to it if that is one of the options above; *i is then the
 * last of these words. */
bool torture_option(struct torture *torture, int count, char **argument, int *i);

/* Reads the model; all of it is structure so far. Returns an exit code. */
int torture_begin(struct torture *torture, const char *path, pp_model **model);

/* Cuts the model short at every length up to 4 KiB, flips its bytes, and prints how many files
 * there were and how many were refused; anything but a clean refusal or success aborts. */
void torture_run(struct torture *torture);

void torture_end(struct torture *torture);

#endif
