/* libFuzzer: any bytes as the checker's program, with the certificate that its floor and its
 * original order would have if it were accepted. */
#define PEAKPROOF_CHECK_NO_MAIN
#include "../../check/peakproof-check.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A forward and a reverse trap of the first and last statement, in the original order. */
static void write_certificate(FILE *out, const struct program *p, const char *hash, bool reverse) {
  fprintf(out, "p peakproof 1\nh %s\nn %d %d\no", hash, p->n, p->m);
  for (id v = 0; v < p->n; v++)
    fprintf(out, " %d", v);
  fprintf(out, "\nu %" PRId64 "\nl 0\nt %c %d\nb\n", (int64_t)0, reverse ? 'r' : 'f', p->n / 2);
  for (id v = 0; v < p->n; v++)
    fprintf(out, "e %d\n", v);
  fputs("q\n", out);
}

static void judge(struct context *x, const struct program *p, const char *hash, bool reverse) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    abort();
  write_certificate(out, p, hash, reverse);
  fclose(out);
  FILE *file = fmemopen(text, size, "rb");
  if (!file)
    abort();
  *x = (struct context){.status = VERIFIED};
  if (!setjmp(x->end))
    check_certificate(open_input(x, "", file), p, hash);
  if (x->status != VERIFIED && x->status != REFUTED)
    abort();
  free_blocks(x);
  fclose(file);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static struct context x, y;
  FILE *file = fmemopen((void *)(uintptr_t)bytes, size, "rb");
  if (!file)
    abort();
  x = (struct context){.status = VERIFIED};
  struct input *in = open_input(&x, "program, ", file);
  struct program *p = take(&x, 1, sizeof *p);
  if (!setjmp(x.end)) {
    read_program(in, p);
    judge(&y, p, in->hash, false);
    judge(&y, p, in->hash, true);
  } else if (x.status != MALFORMED) {
    abort();
  }
  free_blocks(&x);
  fclose(file);
  return 0;
}
