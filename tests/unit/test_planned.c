/* Models of several programs: callees first, and what is open about one is open about its callers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "memory.h"
#include "report/planned.h"

/* Program 0 is hard (tests/data); program 1 calls it in a statement that also writes 100 bytes. */
static pp_model *callee;

static pp_status build_caller(const int64_t *peak, pp_program **program, pp_error *error) {
  pp_index out;
  pp_program *p = pp_program_new(error);
  pp_status status = pp_program_add_storage(p, "out", 100, PP_LIVE_OUT, &out, error);
  if (!status)
    status = pp_program_add_statement(p, "call", error);
  if (!status)
    status = pp_program_add_work(p, peak[0], error);
  if (!status)
    status = pp_program_add_access(p, out, PP_WHOLE, PP_WHOLE, PP_WRITE, error);
  if (!status)
    status = pp_program_finish(p, error);
  *program = p;
  return status;
}

static pp_status build(const pp_model *model, size_t index, const int64_t *peak,
                       pp_program **program, pp_error *error) {
  (void)model;
  return index ? build_caller(peak, program, error)
               : pp_model_build(callee, 0, peak, program, error);
}

static const struct pp_model_operations operations = {.build = build};

static char *names[] = {"callee", "caller"};
static size_t sequence[] = {0, 1};
static const pp_model model = {
    .path = "model", .programs = 2, .name = names, .sequence = sequence, .operations = &operations};

static void expect(const pp_options *solve, bool optimal) {
  pp_planned_options options = {.solve = *solve};
  pp_planned planned;
  pp_error error;
  if (pp_planned_make(&model, &options, &planned, &error))
    fail_msg("%s", error.message);
  const pp_planned_program *it = planned.program;
  int64_t open = planned.peak[0] - it[0].lower_bound;
  assert_int_equal(open == 0, optimal);
  assert_int_equal(planned.optimal, optimal);
  /* The caller's certificate takes the planned peak as given; the model's bound may not. */
  assert_true(pp_plan_optimal(it[1].plan));
  assert_int_equal(planned.peak[1], planned.peak[0] + 100);
  assert_int_equal(it[1].lower_bound, planned.peak[1] - open);
  assert_int_equal(planned.lower_bound_all, it[0].lower_bound + 100);
  /* The original order of the caller runs the original order of the callee. */
  assert_int_equal(it[0].peak_before, 5635);
  assert_int_equal(it[1].peak_before, 5735);
  assert_int_equal(planned.peak_before_all, 5735);
  pp_planned_free(&planned);
}

static void what_is_open_stays_open(void **state) {
  (void)state;
  expect(&(pp_options){.state_limit = 1}, false);
}

static void only_what_is_asked_for_is_planned(void **state) {
  (void)state;
  pp_planned_options options = {.solve = {.state_limit = 1}, .only = "callee"};
  pp_planned planned;
  assert_int_equal(pp_planned_make(&model, &options, &planned, NULL), PP_OK);
  assert_non_null(planned.program[0].plan);
  assert_null(planned.program[1].plan);
  assert_int_equal(planned.peak_all, planned.peak[0]);
  pp_planned_free(&planned);
  assert_int_equal(pp_model_find(&model, "caller"), 1);
  assert_int_equal(pp_model_find(&model, "other"), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_open_stays_open),
      cmocka_unit_test(only_what_is_asked_for_is_planned),
  };
  pp_error error;
  if (pp_model_read(DATA "/programs/hard/layer8x100_2.json", NULL, &callee, &error))
    return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  pp_model_free(callee);
  return failed;
}
