/* exact FIRST COUNT STATEMENTS: the exact methods against brute force, on random programs, for caps
 * 1 to 3. Every curve must be the same, and every sequence on it must cost what its label says and
 * make a program that passes the check. Says "N passed, M failed". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "brute.h"
#include "random.h"
#include "remat.h"

static void must(bool done) {
  if (!done) {
    fputs("exact: out of memory\n", stderr);
    exit(70);
  }
}

static bool same_curve(const struct pp_remat_front *front, const brute_point *point, size_t count) {
  if (front->entry.count != count)
    return false;
  for (size_t i = 0; i < count; i++) {
    struct pp_remat_label label = front->entry.items[i].label;
    if (label.peak != point[i].peak || label.cost.macs != point[i].macs ||
        label.cost.bytes != point[i].bytes)
      return false;
  }
  return true;
}

static bool check_entry(const struct pp_remat_facts *facts, const struct pp_remat_entry *entry) {
  struct pp_remat_label label;
  struct pp_rewritten rewritten;
  pp_error error;
  int64_t peak;
  must(pp_sequence_label(facts, &entry->sequence, &label, NULL));
  if (label.peak != entry->label.peak || pp_cost_compare(label.cost, entry->label.cost)) {
    puts("a sequence does not cost what its label says");
    return false;
  }
  if (pp_rewrite(facts->program, &entry->sequence, facts, &rewritten, &error)) {
    printf("%s\n", error.message);
    return false;
  }
  bool good =
      !pp_simulate(rewritten.program, NULL, &peak, NULL, NULL, &error) && peak == entry->label.peak;
  if (!good)
    puts("the rewritten program has another peak");
  pp_rewritten_free(&rewritten);
  return good;
}

static void show(const char *name, const struct pp_remat_front *front, const brute_point *point,
                 size_t count) {
  printf("  %s:", name);
  for (size_t i = 0; i < front->entry.count; i++)
    printf(" (%" PRId64 ", %" PRId64 ", %" PRId64 ")", front->entry.items[i].label.peak,
           front->entry.items[i].label.cost.macs, front->entry.items[i].label.cost.bytes);
  printf("\n  brute force:");
  for (size_t i = 0; i < count; i++)
    printf(" (%" PRId64 ", %" PRId64 ", %" PRId64 ")", point[i].peak, point[i].macs,
           point[i].bytes);
  puts("");
}

static bool one(uint64_t seed, int statements, int cap, bool fixed, bool *curved) {
  static const struct pp_remat_limits limits = {.states = 1 << 22, .cost = {INT64_MAX, INT64_MAX}};
  pp_program *program = random_program(seed, statements, BRUTE_STORAGES - 4);
  pp_index order[BRUTE_STATEMENTS];
  brute_point point[1000];
  for (pp_index v = 0; v < pp_program_statements(program); v++)
    order[v] = v;
  struct pp_remat_facts facts;
  struct pp_remat_front front = {0};
  struct pp_remat_statistics statistics = {0};
  must(pp_remat_facts_init(&facts, program, cap, NULL));
  enum pp_remat_result result = fixed ? pp_remat_fixed(&facts, NULL, &limits, &front, &statistics)
                                      : pp_remat_joint(&facts, &limits, &front, &statistics);
  size_t count = brute_curve(program, cap, fixed ? order : NULL, point, 1000);
  bool good = result == PP_REMAT_DONE && same_curve(&front, point, count);
  if (!good) {
    printf("not ok seed %" PRIu64 " cap %d %s\n", seed, cap, fixed ? "fixed" : "joint");
    show("core", &front, point, count);
  }
  for (size_t i = 0; good && i < front.entry.count; i++)
    good = check_entry(&facts, front.entry.items + i);
  *curved |= count > 1;
  pp_front_free(&front);
  pp_remat_facts_free(&facts);
  pp_program_free(program);
  return good;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 64;
  uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  int statements = atoi(argv[3]), passed = 0, failed = 0, curves = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    bool good = true, curved = false;
    for (int cap = 1; cap <= 3; cap++)
      for (int fixed = 0; fixed < 2; fixed++)
        good &= one(seed, statements, cap, fixed, &curved);
    passed += good;
    failed += !good;
    curves += curved;
  }
  printf("note: %d of %" PRIu64 " programs have a curve of more than one point\n", curves, count);
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
