/* gadgets: programs that encode KNAPSACK and 3-PARTITION. The exact methods must return the optimum
 * of the encoded problem. Says "N passed, M failed".
 *
 * KNAPSACK, on a series-parallel graph (treewidth 2). Values v_1 .. v_k are made from nothing (from
 * constants): v_i writes b_i of s_i bytes and t_i of none, and costs m_i. A wide statement reads
 * all t_i, so it comes after all of them in every order, and needs W = s_1 + ... + s_k bytes of
 * work. A last one reads all b_i and what the wide one wrote. What is held over the wide statement
 * is the knapsack: a peak of W + B (and 1 for the wide one's value) costs at least the m_i that do
 * not fit into it.
 *
 * 3-PARTITION, as a fixed-order program whose graph is a forest (treewidth 1; wide statements touch
 * nothing). 3m values, each read after each of m wide statements; cap 2, that is one extra run. The
 * peaks fall by B, a third of each m-th of the sum, only if every value is dropped over one wide
 * statement, three values a statement of sum B. Over all orders the wide statements have to be
 * pinned; then the readers of all values are m hubs, and the treewidth is m. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"
#include "remat_barrier.h"

static int passed, failed;

static void must(bool done, const char *what) {
  if (!done) {
    fprintf(stderr, "gadgets: %s\n", what);
    exit(70);
  }
}

static void verdict(bool good, const char *what, uint64_t seed) {
  passed += good;
  failed += !good;
  if (!good)
    printf("not ok %s, seed %" PRIu64 "\n", what, seed);
}

static pp_index storage(pp_program *program, int64_t bytes, unsigned flags) {
  pp_error error;
  pp_index id;
  must(!pp_program_add_storage(program, NULL, bytes, flags, &id, &error), error.message);
  return id;
}

static void statement(pp_program *program, int64_t work, int64_t macs, bool pure) {
  pp_error error;
  must(!pp_program_add_statement(program, NULL, &error) &&
           !pp_program_add_work(program, work, &error) &&
           !pp_program_set_macs(program, macs, &error) &&
           !pp_program_set_pure(program, pure, &error),
       error.message);
}

static void access(pp_program *program, pp_index s, bool write) {
  pp_error error;
  must(!pp_program_add_access(program, s, PP_WHOLE, PP_WHOLE,
                              write ? PP_WRITE | PP_OVERWRITE : PP_READ, &error),
       error.message);
}

static pp_program *new_program(void) {
  pp_error error;
  pp_program *program = pp_program_new(&error);
  must(program, "out of memory");
  return program;
}

static void finish(pp_program *program) {
  pp_error error;
  must(!pp_program_finish(program, &error), error.message);
}

/* ---- KNAPSACK ---- */

enum { ITEMS = 60, SUM = 2000 };

struct knapsack {
  int items;
  int64_t size[ITEMS], cost[ITEMS], sizes, costs;
};

static struct knapsack random_knapsack(uint64_t seed, int items) {
  uint64_t state = seed;
  struct knapsack k = {.items = items};
  for (int i = 0; i < items; i++) {
    k.sizes += k.size[i] = 1 + random_below(&state, 30);
    k.costs += k.cost[i] = 1 + random_below(&state, 50);
  }
  return k;
}

static pp_program *knapsack_program(const struct knapsack *k) {
  pp_program *program = new_program();
  pp_index b[ITEMS], t[ITEMS], wide, out;
  for (int i = 0; i < k->items; i++) {
    b[i] = storage(program, k->size[i], 0);
    t[i] = storage(program, 0, 0);
    statement(program, 0, k->cost[i], true);
    access(program, b[i], true);
    access(program, t[i], true);
  }
  wide = storage(program, 1, 0);
  out = storage(program, 0, PP_LIVE_OUT);
  statement(program, k->sizes, 0, true);
  for (int i = 0; i < k->items; i++)
    access(program, t[i], false);
  access(program, wide, true);
  statement(program, 0, 0, true);
  for (int i = 0; i < k->items; i++)
    access(program, b[i], false);
  access(program, wide, false);
  access(program, out, true);
  finish(program);
  return program;
}

/* least[c]: the least cost of items left out when those kept weigh at most c. */
static void solve_knapsack(const struct knapsack *k, int64_t *least) {
  int64_t value[SUM + 1] = {0};
  for (int i = 0; i < k->items; i++)
    for (int64_t c = k->sizes; c >= k->size[i]; c--)
      if (value[c - k->size[i]] + k->cost[i] > value[c])
        value[c] = value[c - k->size[i]] + k->cost[i];
  for (int64_t c = 0; c <= k->sizes; c++)
    least[c] = k->costs - value[c];
}

/* The curve that the knapsack says: macs by peak. */
static bool is_knapsack(const struct knapsack *k, const int64_t *peak, const int64_t *macs,
                        size_t count) {
  int64_t least[SUM + 1];
  solve_knapsack(k, least);
  for (int64_t c = 0; c <= k->sizes; c++) {
    size_t i = 0;
    while (i < count && peak[i] > k->sizes + 1 + c)
      i++;
    if (i == count || macs[i] != least[c])
      return false;
  }
  return true;
}

static bool front_is_knapsack(const struct knapsack *k, const struct pp_remat_front *front) {
  int64_t peak[SUM + 1], macs[SUM + 1];
  for (size_t i = 0; i < front->entry.count; i++) {
    peak[i] = front->entry.items[i].label.peak;
    macs[i] = front->entry.items[i].label.cost.macs;
  }
  return is_knapsack(k, peak, macs, front->entry.count);
}

static void knapsack_by_elimination(uint64_t seed, int items) {
  struct knapsack k = random_knapsack(seed, items);
  pp_program *program = knapsack_program(&k);
  struct pp_remat_facts facts;
  struct pp_sequence base = {0};
  struct pp_barrier barrier;
  struct pp_barrier_limits limits = {
      .memory = INT64_MAX, .cost = {INT64_MAX, INT64_MAX}, .nodes = 1 << 22, .work = 1 << 28};
  pp_index order[ITEMS + 2];
  int64_t peak[SUM + 1], macs[SUM + 1];
  for (pp_index v = 0; v < items + 2; v++)
    order[v] = v;
  must(pp_remat_facts_init(&facts, program, 2, NULL) &&
           pp_sequence_set(&base, order, (size_t)items + 2),
       "out of memory");
  bool good = pp_remat_barrier(&facts, &base, (size_t)items, &limits, &barrier) == PP_REMAT_DONE &&
              !barrier.thinned;
  for (size_t i = 0; good && i < barrier.points.count; i++) {
    peak[i] = barrier.points.items[i].memory;
    macs[i] = barrier.points.items[i].cost.macs;
  }
  verdict(good && is_knapsack(&k, peak, macs, barrier.points.count), "knapsack by elimination",
          seed);
  pp_barrier_free(&barrier);
  pp_sequence_free(&base);
  pp_remat_facts_free(&facts);
  pp_program_free(program);
}

static void knapsack_by_walks(uint64_t seed, int items) {
  static const struct pp_remat_limits limits = {.states = 1 << 22, .cost = {INT64_MAX, INT64_MAX}};
  struct knapsack k = random_knapsack(seed, items);
  pp_program *program = knapsack_program(&k);
  struct pp_remat_facts facts;
  struct pp_remat_front fixed = {0}, joint = {0};
  struct pp_remat_statistics statistics = {0};
  must(pp_remat_facts_init(&facts, program, 2, NULL), "out of memory");
  verdict(pp_remat_fixed(&facts, NULL, &limits, &fixed, &statistics) == PP_REMAT_DONE &&
              front_is_knapsack(&k, &fixed),
          "knapsack in its order", seed);
  if (items <= 6)
    verdict(pp_remat_joint(&facts, &limits, &joint, &statistics) == PP_REMAT_DONE &&
                front_is_knapsack(&k, &joint),
            "knapsack over all orders", seed);
  pp_front_free(&fixed);
  pp_front_free(&joint);
  pp_remat_facts_free(&facts);
  pp_program_free(program);
}

/* The whole, at a size where only elimination is exact. */
static void knapsack_solved(uint64_t seed, int items) {
  struct knapsack k = random_knapsack(seed, items);
  pp_program *program = knapsack_program(&k);
  pp_error error;
  pp_plan *plan;
  pp_remat *remat;
  must(!pp_solve(program, NULL, &plan, &error) &&
           !pp_remat_solve(program, plan, NULL, &remat, &error),
       error.message);
  /* What is proved must be right; a proved point at capacity c is the knapsack's optimum there. */
  int64_t least[SUM + 1];
  bool good = true;
  size_t proved = 0;
  solve_knapsack(&k, least);
  for (size_t i = 0; i < pp_remat_points(remat); i++) {
    pp_remat_point point = pp_remat_point_of(remat, i);
    int64_t c = point.peak - k.sizes - 1;
    good &= c >= 0 && c <= k.sizes && point.extra_macs >= least[c];
    if (point.status != PP_REMAT_HEURISTIC) {
      good &= point.extra_macs == least[c];
      proved++;
    }
  }
  printf("note: knapsack of %d items: %zu of %zu points proved\n", items, proved,
         pp_remat_points(remat));
  verdict(good && proved, "knapsack solved", seed);
  pp_remat_free(remat);
  pp_plan_free(plan);
  pp_program_free(program);
}

/* ---- 3-PARTITION ---- */

enum { GROUPS = 3, VALUES = 3 * GROUPS };

/* Either made from a partition, or random numbers of the right sum; all between B/4 and B/2. */
static int64_t random_partition(uint64_t seed, int groups, int64_t *a) {
  uint64_t state = seed;
  int64_t b = 40;
  for (int g = 0; g < groups; g++) {
    a[3 * g] = 11 + random_below(&state, 8);
    do
      a[3 * g + 1] = 11 + random_below(&state, 9);
    while (b - a[3 * g] - a[3 * g + 1] <= 10 || b - a[3 * g] - a[3 * g + 1] >= 20);
    a[3 * g + 2] = b - a[3 * g] - a[3 * g + 1];
  }
  for (int i = 0; seed % 2 && i < 3 * groups; i++) { /* moves bytes between values */
    int j = random_below(&state, 3 * groups);
    if (a[i] < 19 && a[j] > 11) {
      a[i]++;
      a[j]--;
    }
  }
  return b;
}

static bool can_partition(const int64_t *a, int values, int used, int64_t b) {
  int first = 0;
  while (first < values && used >> first & 1)
    first++;
  if (first == values)
    return true;
  for (int i = first + 1; i < values; i++)
    for (int j = i + 1; j < values; j++)
      if (!(used >> i & 1) && !(used >> j & 1) && a[first] + a[i] + a[j] == b &&
          can_partition(a, values, used | 1 << first | 1 << i | 1 << j, b))
        return true;
  return false;
}

/* `pinned`: the wide statements read nothing but are pinned between readers of all values, so that
 * every order is this one; else each reading is a statement of its own. */
static pp_program *partition_program(const int64_t *a, int groups, int64_t b, bool pinned) {
  pp_program *program = new_program();
  pp_index value[VALUES], zero[VALUES], last = -1;
  pp_error error;
  int values = 3 * groups, made = values;
  for (int i = 0; i < values; i++) {
    value[i] = storage(program, a[i], 0);
    zero[i] = storage(program, 0, 0);
    statement(program, 0, a[i], true);
    access(program, value[i], true);
    access(program, zero[i], true);
  }
  for (int g = 0; g < groups; g++) {
    statement(program, b * groups, 0, false); /* wide */
    for (int i = 0; pinned && !g && i < values; i++)
      access(program, zero[i], false);
    if (pinned && last >= 0)
      must(!pp_program_add_order(program, last, made, &error), error.message);
    last = made++;
    if (!pinned)
      for (int i = 0; i < values; i++, made++) {
        statement(program, 0, 0, false);
        access(program, value[i], false);
      }
    else {
      statement(program, 0, 0, false);
      for (int i = 0; i < values; i++)
        access(program, value[i], false);
      must(!pp_program_add_order(program, last, made, &error), error.message);
      last = made++;
    }
  }
  finish(program);
  return program;
}

/* The least macs at which the peak falls by B: the sum of all values, or impossible. */
static bool check_partition(const struct pp_remat_front *front, int64_t b, int groups, bool can) {
  int64_t level = b * groups + b * (groups - 1);
  for (size_t i = 0; i < front->entry.count; i++)
    if (front->entry.items[i].label.peak <= level)
      return can && front->entry.items[i].label.cost.macs == b * groups;
  return !can;
}

static void partition(uint64_t seed, int groups, bool joint) {
  static const struct pp_remat_limits limits = {.states = 1 << 23, .cost = {INT64_MAX, INT64_MAX}};
  int64_t a[VALUES], b = random_partition(seed, groups, a);
  pp_program *program = partition_program(a, groups, b, joint);
  struct pp_remat_facts facts;
  struct pp_remat_front front = {0};
  struct pp_remat_statistics statistics = {0};
  bool can = can_partition(a, 3 * groups, 0, b);
  must(pp_remat_facts_init(&facts, program, 2, NULL), "out of memory");
  enum pp_remat_result result = joint ? pp_remat_joint(&facts, &limits, &front, &statistics)
                                      : pp_remat_fixed(&facts, NULL, &limits, &front, &statistics);
  verdict(result == PP_REMAT_DONE && check_partition(&front, b, groups, can),
          joint ? "3-partition over all orders" : "3-partition in its order", seed);
  if (groups > 2)
    printf("note: 3-partition, %d groups, %s: %s, %" PRId64 " states\n", groups,
           joint ? "all orders" : "its order", can ? "yes" : "no", statistics.states);
  pp_front_free(&front);
  pp_remat_facts_free(&facts);
  pp_program_free(program);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (uint64_t seed = 1; seed <= 20; seed++) {
    knapsack_by_elimination(seed, 20 + (int)seed * 2);
    knapsack_by_walks(seed, 2 + (int)seed % 7);
  }
  for (uint64_t seed = 1; seed <= 3; seed++)
    knapsack_solved(seed, 20);
  for (uint64_t seed = 1; seed <= 10; seed++) {
    partition(seed, 2, false);
    partition(seed, 2, true);
  }
  for (uint64_t seed = 1; seed <= 2; seed++)
    partition(seed, 3, false);
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
