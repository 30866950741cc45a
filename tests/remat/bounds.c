/* bounds FIRST COUNT: what is said of larger programs, on small ones. For random programs and caps
 * 2 and 3: the bounds of single steps against brute force in the same order; every point that they
 * prove; and pp_remat_solve as a whole, whose curve must be that of brute force over all orders.
 * Says "N passed, M failed". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "brute.h"
#include "random.h"
#include "remat_search.h"

enum { POINTS = 1000 };

static void must(bool done, const char *what) {
  if (!done) {
    fprintf(stderr, "bounds: %s\n", what);
    exit(70);
  }
}

static struct pp_remat_cost cost_of(brute_point point) {
  return (struct pp_remat_cost){point.macs, point.bytes};
}

static bool check_bound(const struct pp_remat_bound *bound, const brute_point *point,
                        size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct pp_remat_cost cost;
    if (!pp_remat_bound_at(bound, point[i].peak, &cost) ||
        pp_cost_compare(cost, cost_of(point[i])) > 0) {
      printf("the bound at %" PRId64 " is above what is possible\n", point[i].peak);
      return false;
    }
  }
  return true;
}

/* What a proved point says, said of all that brute force found. */
static bool check_proved(const struct pp_remat_front *front, size_t i, const brute_point *point,
                         size_t count) {
  struct pp_remat_label label = front->entry.items[i].label;
  for (size_t k = 0; k < count; k++) {
    int order = pp_cost_compare(cost_of(point[k]), label.cost);
    if ((order <= 0 && point[k].peak < label.peak) ||
        (i && order < 0 && point[k].peak < front->entry.items[i - 1].label.peak)) {
      printf("point %zu is not what it is proved to be\n", i);
      return false;
    }
  }
  return true;
}

static bool check_order(const pp_program *program, int cap, int *proved, int *points) {
  static const struct pp_remat_limits limits = {.states = 1 << 20, .cost = {INT64_MAX, INT64_MAX}};
  pp_index order[BRUTE_STATEMENTS], n = pp_program_statements(program);
  brute_point point[POINTS];
  pp_error error;
  struct pp_remat_facts facts;
  struct pp_remat_front front = {0};
  struct pp_sequence base = {0};
  struct pp_remat_bound bound;
  for (pp_index v = 0; v < n; v++)
    order[v] = v;
  must(pp_remat_facts_init(&facts, program, cap, NULL) && pp_sequence_set(&base, order, (size_t)n),
       "out of memory");
  struct pp_remat_search search = {
      .facts = &facts, .limits = &limits, .front = &front, .base = &base};
  must(!pp_remat_search(&search, &error), error.message);
  must(pp_remat_bound_init(&bound, &facts, &base, -1, &limits, 100), "out of memory");
  size_t count = brute_curve(program, cap, order, point, POINTS);
  bool good = check_bound(&bound, point, count);
  for (size_t i = 0; good && i < front.entry.count; i++) {
    (*points)++;
    if (pp_remat_proves(&bound, &front, i)) {
      (*proved)++;
      good = check_proved(&front, i, point, count);
    }
  }
  pp_remat_bound_free(&bound);
  pp_front_free(&front);
  pp_sequence_free(&base);
  pp_remat_facts_free(&facts);
  return good;
}

static bool same_points(const pp_remat *remat, const brute_point *point, size_t count) {
  if (pp_remat_points(remat) != count)
    return false;
  for (size_t i = 0; i < count; i++) {
    pp_remat_point p = pp_remat_point_of(remat, i);
    if (p.peak != point[i].peak || p.extra_macs != point[i].macs ||
        p.extra_bytes != point[i].bytes || p.status != PP_REMAT_EXACT)
      return false;
  }
  return true;
}

/* At the floor nothing is tried; zero-byte work may still be saved there, so peaks count. */
static bool check_whole(const pp_program *program, int cap) {
  brute_point point[POINTS];
  pp_error error;
  pp_plan *plan;
  pp_remat *remat;
  pp_remat_options options = {.cap = cap, .max_extra_macs = -1};
  must(!pp_solve(program, NULL, &plan, &error), error.message);
  must(!pp_remat_solve(program, plan, &options, &remat, &error), error.message);
  size_t count = brute_curve(program, cap, NULL, point, POINTS);
  bool good = same_points(remat, point, count);
  if (!good)
    puts("the curve is not that of brute force");
  for (size_t i = 0; good && i < pp_remat_points(remat); i++) {
    pp_rewriting *rewriting;
    int64_t peak;
    good = !pp_remat_rewrite(remat, i, &rewriting, &error);
    if (!good) {
      puts(error.message);
      break;
    }
    good = !pp_simulate(pp_rewriting_program(rewriting), NULL, &peak, NULL, NULL, &error) &&
           peak == point[i].peak;
    pp_rewriting_free(rewriting);
  }
  pp_remat_free(remat);
  pp_plan_free(plan);
  return good;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 64;
  uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  int passed = 0, failed = 0, proved = 0, points = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    pp_program *program = random_program(seed, 7, BRUTE_STORAGES - 4);
    bool good = true;
    for (int cap = 2; cap <= 3; cap++)
      good &= check_order(program, cap, &proved, &points) && check_whole(program, cap);
    if (!good)
      printf("not ok seed %" PRIu64 "\n", seed);
    passed += good;
    failed += !good;
    pp_program_free(program);
  }
  printf("note: %d of %d points are proved by single steps\n", proved, points);
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
