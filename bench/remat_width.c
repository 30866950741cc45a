/* remat_width: time and states of the exact methods of recomputation against the width of the
 * dependence graph. Programs are partial k-trees: every statement reads up to k values of one
 * clique. One line a program: statements, k; of the barrier at the last highest step its result,
 * width, labels and milliseconds; of the walk over the order its result, states, labels and
 * milliseconds. "limit": it stopped being exact, and says so. --quick: the small programs only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "remat_barrier.h"

static uint64_t state;

static int pick(int below) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (int)((z ^ z >> 31) % (uint64_t)below);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(bool done) {
  if (!done) {
    fputs("remat_width: failed\n", stderr);
    exit(70);
  }
}

/* Statement v writes storage v + 1; storage 0 is the input. */
static pp_program *make(int n, int k, bool chain) {
  pp_error error;
  pp_program *program = pp_program_new(&error);
  int(*clique)[8] = malloc((size_t)(n + 1) * sizeof *clique);
  must(program && clique);
  for (int s = 0; s <= n; s++)
    must(!pp_program_add_storage(program, NULL, 64 * (1 + pick(100)),
                                 s == 0   ? PP_LIVE_IN
                                 : s == n ? PP_LIVE_OUT
                                          : 0,
                                 NULL, &error));
  for (int v = 0; v < n; v++) {
    int *mine = clique[v + 1];
    if (!v || chain)
      for (int i = 0; i < k; i++)
        mine[i] = v;
    else { /* the clique of a recent value, with that value in it */
      int from = v - pick(v < 4 ? v : 4);
      for (int i = 0; i < k; i++)
        mine[i] = clique[from][i];
      mine[pick(k)] = from;
    }
    must(!pp_program_add_statement(program, NULL, &error) &&
         !pp_program_set_macs(program, 1 + pick(1000), &error) &&
         !pp_program_set_pure(program, true, &error));
    for (int i = 0; i < k; i++) {
      bool seen = false;
      for (int j = 0; j < i; j++)
        seen |= mine[j] == mine[i];
      must(seen || !pp_program_add_access(program, mine[i], PP_WHOLE, PP_WHOLE, PP_READ, &error));
    }
    must(!pp_program_add_access(program, v + 1, PP_WHOLE, PP_WHOLE, PP_WRITE | PP_OVERWRITE,
                                &error));
  }
  free(clique);
  must(!pp_program_finish(program, &error));
  return program;
}

static void measure(int n, int k, bool chain) {
  static const char *const names[] = {"exact", "limit", "memory"};
  pp_error error;
  pp_plan *plan;
  struct pp_remat_facts facts;
  struct pp_sequence base = {0};
  struct pp_remat_label label;
  struct pp_barrier barrier;
  struct pp_remat_front front = {0};
  struct pp_remat_statistics statistics = {0};
  pp_program *program = make(n, k, chain);
  int64_t *step = malloc((size_t)n * sizeof *step);
  must(step && !pp_solve(program, NULL, &plan, &error) &&
       pp_remat_facts_init(&facts, program, 2, NULL) &&
       pp_sequence_set(&base, pp_plan_order(plan), (size_t)n) &&
       pp_sequence_label(&facts, &base, &label, step));
  size_t place = (size_t)n - 1;
  while (place && step[place] < label.peak)
    place--;
  struct pp_barrier_limits limits = {
      .memory = INT64_MAX, .cost = {INT64_MAX, INT64_MAX}, .nodes = 1 << 22, .work = 1 << 28};
  double a = now();
  enum pp_remat_result by_width = pp_remat_barrier(&facts, &base, place, &limits, &barrier);
  double b = now();
  struct pp_remat_limits walk = {.states = 1 << 18, .cost = {INT64_MAX, INT64_MAX}};
  enum pp_remat_result by_walk =
      pp_remat_fixed(&facts, pp_plan_order(plan), &walk, &front, &statistics);
  double c = now();
  printf("%-6s %5d  %d  %-6s %5d %9" PRId64 " %9.1f  %-6s %9" PRId64 " %9" PRId64 " %9.1f\n",
         chain ? "chain" : "k-tree", n, k, names[by_width], barrier.width, barrier.nodes, b - a,
         names[by_walk], statistics.states, statistics.labels, c - b);
  pp_barrier_free(&barrier);
  pp_front_free(&front);
  pp_sequence_free(&base);
  pp_remat_facts_free(&facts);
  pp_plan_free(plan);
  pp_program_free(program);
  free(step);
}

int main(int argc, char **argv) {
  bool quick = argc == 2 && !strcmp(argv[1], "--quick");
  static const int sizes[] = {12, 25, 50, 100, 200}, widths[] = {2, 3, 4, 6};
  puts("family     n  k  step   width    labels        ms  walk      states    labels        ms");
  for (size_t i = 0; i < (quick ? 2 : sizeof sizes / sizeof *sizes); i++) {
    state = 1;
    measure(sizes[i], 1, true);
    for (size_t j = 0; j < sizeof widths / sizeof *widths; j++) {
      state = 1;
      measure(sizes[i], widths[j], false);
    }
  }
  return 0;
}
