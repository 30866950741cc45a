/* Maximum flows by augmenting paths and by preflows on random networks, against each other and
 * against what a flow has to keep. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "flow.h"

enum { NODES = 40, NETWORKS = 3000 };

static uint64_t state;

static int64_t pick(int64_t below) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (int64_t)((z ^ z >> 31) % (uint64_t)below);
}

/* Arcs lead a little way forward or back, some of them without a limit. */
static void make(struct pp_flow *flow, uint64_t seed) {
  state = seed;
  pp_index nodes = (pp_index)(3 + pick(NODES - 3));
  assert_true(pp_flow_reset(flow));
  for (pp_index i = 2; i < nodes; i++)
    assert_true(pp_flow_node(flow, i, NULL));
  for (int64_t arcs = pick(4 * nodes); arcs; arcs--) {
    pp_index from = (pp_index)pick(nodes), to = (pp_index)((from + 1 + pick(5)) % nodes);
    if (from != to && from != PP_FLOW_SINK && to != PP_FLOW_SOURCE) {
      bool inner = from > 1 && to > 1;
      int64_t capacity = inner && !pick(4) ? PP_FLOW_INFINITE : pick(100);
      assert_true(pp_flow_arc(flow, from, to, capacity, -1));
    }
  }
}

/* What arcs have lost their reverses have; nothing is left in a node. Returns what arrives. */
static int64_t check(const struct pp_flow *flow, const struct pp_flow *original) {
  int64_t balance[NODES] = {0};
  for (size_t a = 0; a < flow->arcs.count; a += 2) {
    const struct pp_arc *arc = flow->arcs.items + a, *before = original->arcs.items + a;
    int64_t carried = arc[1].residual;
    assert_true(carried >= 0 && arc->residual >= 0);
    assert_true(arc->residual == before->residual - carried);
    balance[arc->to] += carried;
    balance[arc[1].to] -= carried;
  }
  for (size_t i = 2; i < flow->nodes.count; i++)
    assert_true(balance[i] == 0);
  assert_true(balance[PP_FLOW_SOURCE] == -balance[PP_FLOW_SINK]);
  return balance[PP_FLOW_SINK];
}

static int64_t sum_of_paths(struct pp_flow *flow) {
  int64_t sum = 0, weight;
  pp_flow_paths(flow);
  do {
    assert_true(pp_flow_take_path(flow, &weight));
    sum += weight;
  } while (weight);
  return sum;
}

static void both_methods_agree(void **unused) {
  (void)unused;
  struct pp_flow original = {0}, paths = {0}, pushed = {0};
  for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
    int64_t value = 0, first = 0, rest = 0;
    make(&original, seed);
    make(&paths, seed);
    make(&pushed, seed);
    assert_true(pp_flow_run(&paths, INT64_MAX, &value));
    assert_true(pp_flow_run(&pushed, seed % 3, &first));
    assert_true(first <= (int64_t)(seed % 3));
    assert_true(pp_flow_push(&pushed, INT64_MAX, &rest));
    assert_int_equal(first + rest, value);
    assert_int_equal(check(&paths, &original), value);
    assert_int_equal(check(&pushed, &original), value);
    assert_int_equal(sum_of_paths(&paths), value);
    assert_int_equal(sum_of_paths(&pushed), value);
  }
  pp_flow_free(&original);
  pp_flow_free(&paths);
  pp_flow_free(&pushed);
}

/* With a limit, a preflow may stop early: what was not let through is back at the source. */
static void a_limit_is_reached(void **unused) {
  (void)unused;
  struct pp_flow original = {0}, flow = {0};
  for (uint64_t seed = 1; seed <= NETWORKS; seed++) {
    int64_t all = 0, value = 0, limit = (int64_t)(seed % 50);
    make(&original, seed);
    make(&flow, seed);
    assert_true(pp_flow_run(&flow, INT64_MAX, &all));
    make(&flow, seed);
    assert_true(pp_flow_run(&flow, 0, &value));
    assert_true(pp_flow_push(&flow, limit, &value));
    assert_true(value >= (all < limit ? all : limit));
    assert_int_equal(check(&flow, &original), value);
  }
  pp_flow_free(&original);
  pp_flow_free(&flow);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_methods_agree),
      cmocka_unit_test(a_limit_is_reached),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
