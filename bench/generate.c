/* generate FAMILY STATEMENTS [SEED]: writes a program of about that many statements as program
 * JSON.
 *
 * Families, after the networks that they resemble; sizes are random, each value is one storage:
 *
 *   chain      each statement reads the value before it
 *   residual   blocks of two statements and an addition of the block's input
 *   inception  blocks of four branches of 1 to 4 statements, then a concatenation
 *   unet       U-Nets of five levels, one behind the other: every value of the contracting path is
 *              projected and joined to the expanding path
 *   layered    layers of four statements, each reading one to three values of the layer before
 *   hub        one value read by all branches; each leaves a small value for one last statement
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t next(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static long pick(long below) {
  return (long)(next() % (uint64_t)below);
}

static long made; /* statements so far; statement i writes storage i + 1, storage 0 is the input */
static long *size;
static bool *read_by_some;

static long some_size(void) {
  return 64 * (1 + pick(1000));
}

/* Writes a statement that reads `count` storages; returns the storage that it writes. */
static long statement(long bytes, long count, const long *reads) {
  printf("%s\n{\"name\":\"v%ld\",\"reads\":[", made ? "," : "", made);
  for (long i = 0; i < count; i++) {
    printf(i ? ",%ld" : "%ld", reads[i]);
    read_by_some[reads[i]] = true;
  }
  made++;
  size[made] = bytes;
  printf("],\"writes\":[%ld],\"overwrites\":[%ld]}", made, made);
  return made;
}

static long unary(long bytes, long read) {
  return statement(bytes, 1, &read);
}

static void chain(long n) {
  for (long x = 0; made < n;)
    x = unary(some_size(), x);
}

static void residual(long n) {
  for (long x = 0; made < n;) {
    long y = unary(some_size(), x);
    long joined[] = {x, unary(size[x], y)};
    x = statement(size[x], 2, joined);
  }
}

static void inception(long n) {
  for (long x = 0; made < n;) {
    long ends[4], bytes = 0;
    for (int branch = 0; branch < 4; branch++) {
      long y = unary(some_size(), x);
      for (long more = pick(4); more; more--)
        y = unary(some_size(), y);
      ends[branch] = y;
      bytes += size[y];
    }
    x = statement(bytes, 4, ends);
  }
}

static void unet(long n) {
  enum { LEVELS = 5 };
  for (long x = 0, skip[LEVELS]; made < n;) {
    for (int i = 0; i < LEVELS; i++)
      skip[i] = x = unary(some_size(), x);
    for (int i = LEVELS; i--;) {
      long projected = unary(some_size(), skip[i]);
      long joined[] = {unary(some_size(), x), projected};
      x = statement(some_size(), 2, joined);
    }
  }
}

static void layered(long n) {
  long before[4] = {0, 0, 0, 0}, layer[4];
  int width = 1;
  while (made < n) {
    for (int i = 0; i < 4; i++) {
      long reads[3], count = 1 + pick(3 < width ? 3 : width);
      long first = i < width ? i : pick(width); /* every value is read */
      for (long k = 0; k < count; k++)
        reads[k] = before[(first + k) % width];
      layer[i] = statement(some_size(), count, reads);
    }
    memcpy(before, layer, sizeof before);
    width = 4;
  }
}

static void hub(long n) {
  long branches = n / 3, x = unary(some_size(), 0);
  long *ends = calloc((size_t)branches + 1, sizeof *ends);
  for (long i = 0; i < branches; i++) {
    long y = unary(some_size(), x);
    y = unary(some_size(), y);
    ends[i] = unary(64 * (1 + pick(4)), y);
  }
  statement(64, branches, ends);
  free(ends);
}

static const struct {
  const char *name;
  void (*make)(long n);
} families[] = {{"chain", chain}, {"residual", residual}, {"inception", inception},
                {"unet", unet},   {"layered", layered},   {"hub", hub}};

static void write_program(const char *name, void (*make)(long n), long n) {
  size = calloc((size_t)n + 64, sizeof *size);
  read_by_some = calloc((size_t)n + 64, sizeof *read_by_some);
  size[0] = some_size();
  printf("{\"peakproof\":1,\"name\":\"%s_%ld\",\n\"statements\":[", name, n);
  make(n);
  printf("\n],\n\"storages\":[\n{\"name\":\"input\",\"bytes\":%ld,\"live_in\":true}", size[0]);
  for (long s = 1; s <= made; s++)
    printf(",\n{\"name\":\"s%ld\",\"bytes\":%ld%s}", s, size[s],
           read_by_some[s] ? "" : ",\"live_out\":true");
  printf("\n]}\n");
  free(size);
  free(read_by_some);
}

int main(int argc, char **argv) {
  long n = argc > 2 ? atol(argv[2]) : 0;
  state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  for (size_t i = 0; n > 0 && i < sizeof families / sizeof *families; i++)
    if (!strcmp(argv[1], families[i].name)) {
      write_program(argv[1], families[i].make, n);
      return fflush(stdout) || ferror(stdout);
    }
  fprintf(stderr, "usage: generate chain|residual|inception|unet|layered|hub STATEMENTS [SEED]\n");
  return 64;
}
