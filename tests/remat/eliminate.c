/* eliminate FIRST COUNT: elimination against trying all choices, on random graphs of up to 8
 * variables. Says "N passed, M failed". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "remat_eliminate.h"

enum { VARIABLES = 8 };

static void must(bool done) {
  if (!done) {
    fputs("eliminate: out of memory\n", stderr);
    exit(70);
  }
}

static void make(uint64_t seed, struct pp_elimination *e) {
  uint64_t state = seed * 7919 + 3;
  int n = 1 + random_below(&state, VARIABLES);
  for (int v = 0; v < n; v++) {
    uint32_t choices = 1 + (1u << (random_below(&state, 4) ? 1 : 2));
    must(PP_ROOM(&e->variables));
    e->variables.items[e->variables.count++] = (struct pp_variable){choices, e->options.count};
    for (uint32_t c = 0; c < choices; c++) {
      must(PP_ROOM(&e->options));
      e->options.items[e->options.count++] =
          (struct pp_option){random_below(&state, 8) ? random_below(&state, 6) : -1,
                             {random_below(&state, 5), random_below(&state, 3)}};
    }
  }
  for (int i = random_below(&state, 2 * n); i > 0; i--) {
    int u = random_below(&state, n), v = random_below(&state, n);
    uint32_t bits = e->variables.items[v].choices == 3 ? 1 : 2;
    if (u == v)
      continue;
    must(PP_ROOM(&e->edges));
    e->edges.items[e->edges.count++] =
        (struct pp_demand_edge){u, v, (uint32_t)random_below(&state, (int)bits)};
  }
  e->memory = random_below(&state, 3) ? INT64_MAX : 5 + random_below(&state, 20);
  e->cost = (struct pp_remat_cost){random_below(&state, 3) ? INT64_MAX : 12, INT64_MAX};
  e->limit = e->work_limit = 1 << 24;
}

/* The label of given choices; false if they are not allowed. */
static bool label_of(const struct pp_elimination *e, const uint32_t *choice,
                     struct pp_remat_label *label) {
  *label = (struct pp_remat_label){0};
  for (size_t v = 0; v < e->variables.count; v++) {
    struct pp_option option = e->options.items[e->variables.items[v].option + choice[v]];
    if (option.memory < 0)
      return false;
    label->peak += option.memory;
    label->cost = pp_cost_add(label->cost, option.cost);
  }
  for (size_t i = 0; i < e->edges.count; i++) {
    struct pp_demand_edge edge = e->edges.items[i];
    uint32_t maker = choice[edge.maker];
    if (!choice[edge.user] && maker && !((maker - 1) >> edge.bit & 1))
      return false;
  }
  return label->peak <= e->memory && pp_cost_compare(label->cost, e->cost) <= 0;
}

static size_t brute(const struct pp_elimination *e, struct pp_remat_label *front) {
  uint32_t choice[VARIABLES] = {0};
  size_t count = 0, v = 0;
  while (v < e->variables.count) {
    struct pp_remat_label label;
    bool covered = !label_of(e, choice, &label);
    for (size_t i = 0; !covered && i < count; i++)
      covered = pp_label_covers(front[i], label);
    if (!covered) {
      size_t kept = 0;
      for (size_t i = 0; i < count; i++)
        if (!pp_label_covers(label, front[i]))
          front[kept++] = front[i];
      front[kept++] = label;
      count = kept;
    }
    for (v = 0; v < e->variables.count && ++choice[v] == e->variables.items[v].choices; v++)
      choice[v] = 0;
  }
  return count;
}

static bool one(uint64_t seed) {
  static struct pp_remat_label front[100000];
  struct pp_elimination e = {0};
  make(seed, &e);
  bool good = pp_eliminate(&e) == PP_REMAT_DONE;
  size_t count = brute(&e, front);
  good &= e.curve.count == count;
  for (size_t i = 0; good && i < count; i++) {
    uint32_t choice[VARIABLES];
    struct pp_remat_label label;
    struct pp_elimination_label found = e.curve.items[i];
    must(pp_elimination_choices(&e, i, choice));
    good = label_of(&e, choice, &label) && label.peak == found.memory &&
           !pp_cost_compare(label.cost, found.cost);
    bool there = false;
    for (size_t k = 0; k < count; k++)
      there |= front[k].peak == found.memory && !pp_cost_compare(front[k].cost, found.cost);
    good &= there && (!i || e.curve.items[i - 1].memory > found.memory);
  }
  if (!good)
    printf("not ok seed %" PRIu64 ": %zu points, not %zu\n", seed, e.curve.count, count);
  pp_elimination_free(&e);
  return good;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return 64;
  uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  int passed = 0, failed = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    bool good = one(seed);
    passed += good;
    failed += !good;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
