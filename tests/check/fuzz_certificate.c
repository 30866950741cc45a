/* libFuzzer: any bytes as a certificate for tests/fail/program.json. Its hash line is set right, so
 * that certificates for other programs get further. No bound above the program's optimum is
 * accepted. */
#define PEAKPROOF_CHECK_NO_MAIN
#include "../../check/peakproof-check.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { OPTIMUM = 43 }; /* oracle.py optimum tests/fail/program.json */

static void read_fixed_program(struct context *x, struct program *p, char hash[65]) {
  FILE *file = fopen(PROGRAM, "rb");
  if (!file || setjmp(x->end))
    abort();
  struct input *in = open_input(x, "program, ", file);
  read_program(in, p);
  memcpy(hash, in->hash, 65);
  fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static struct context x, y;
  static struct program p;
  static char hash[65];
  static const char head[] = "p peakproof 1\nh ";
  size_t start = sizeof head - 1;
  if (!*hash)
    read_fixed_program(&x, &p, hash);
  char *copy = malloc(size + 1);
  if (!copy)
    abort();
  memcpy(copy, bytes, size);
  if (size > start + 64 && !memcmp(copy, head, start))
    memcpy(copy + start, hash, 64);
  FILE *file = fmemopen(copy, size, "rb");
  if (!file)
    abort();
  y = (struct context){.status = VERIFIED};
  if (!setjmp(y.end))
    check_certificate(open_input(&y, "", file), &p, hash);
  free_blocks(&y);
  fclose(file);
  free(copy);
  const char *bound = strstr(y.verdict, " bound ");
  if (y.status == VERIFIED && (!bound || strtoll(bound + 7, NULL, 10) > OPTIMUM))
    abort();
  if (y.status != VERIFIED && y.status != REFUTED && y.status != MALFORMED)
    abort();
  return 0;
}
