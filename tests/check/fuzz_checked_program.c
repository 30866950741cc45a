/* libFuzzer: any bytes as the checker's program, with the certificate that its floor and its
 * original order would have if it were accepted. */
#define PEAKPROOF_CHECK_NO_MAIN
#include "../../check/peakproof-check.c"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Whether all direct predecessors (successors) of v are among the first (last) half. */
static bool is_exit(const struct program *p, bool reverse, id v) {
  bool inside = true;
  id u;
  for (struct near w = near(p, reverse, v); (u = next(&w)) != NONE;)
    inside &= reverse ? u >= p->n - p->n / 2 : u < p->n / 2;
  return inside && (reverse ? v < p->n - p->n / 2 : v >= p->n / 2);
}

/* The original order, its peak, and the trap of its first (last) half with one base, which proves
 * 0. */
static void write_certificate(FILE *out, const struct program *p, const char *hash, bool reverse) {
  static struct context x;
  x = (struct context){.status = VERIFIED};
  id *order = take(&x, (size_t)p->n, sizeof *order);
  fprintf(out, "p peakproof 1\nh %s\nn %d %d\no", hash, p->n, p->m);
  for (id v = 0; v < p->n; v++)
    fprintf(out, " %d", order[v] = v);
  fprintf(out, "\nu %" PRId64 "\nl 0\nt %c %d\nb\n", simulate(&x, p, order), reverse ? 'r' : 'f',
          p->n / 2);
  for (id s = 0; s < p->m && s < 3; s++)
    fprintf(out, "c 1 %d\n", s);
  for (id v = 0; v < p->n; v++)
    if (is_exit(p, reverse, v))
      fprintf(out, "e %d\n", v);
  fputs("q\n", out);
  free_blocks(&x);
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
