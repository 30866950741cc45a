/* The smallest use of the library: cc smallest.c $(pkg-config --cflags --libs peakproof) */
#include <inttypes.h>
#include <peakproof.h>
#include <stdio.h>

/* "big" and "small" are made of the input, "sum" of both; the order of the first two matters. */
static pp_program *diamond(pp_error *error) {
  pp_index input, big, tiny, small, sum;
  pp_program *p = pp_program_new(error);
  if (!p || pp_program_add_storage(p, "input", 100, PP_LIVE_IN, &input, error) ||
      pp_program_add_storage(p, "big", 5000, 0, &big, error) ||
      pp_program_add_storage(p, "tiny", 10, 0, &tiny, error) ||
      pp_program_add_storage(p, "small", 4000, 0, &small, error) ||
      pp_program_add_storage(p, "sum", 10, PP_LIVE_OUT, &sum, error))
    return NULL;
  const struct {
    const char *name;
    pp_index reads, writes;
  } steps[] = {{"make small", input, small}, {"make big", input, big}, {"shrink", big, tiny}};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (pp_program_add_statement(p, steps[i].name, error) ||
        pp_program_add_access(p, steps[i].reads, PP_WHOLE, PP_WHOLE, PP_READ, error) ||
        pp_program_add_access(p, steps[i].writes, PP_WHOLE, PP_WHOLE, PP_WRITE, error))
      return NULL;
  if (pp_program_add_statement(p, "add", error) ||
      pp_program_add_access(p, small, PP_WHOLE, PP_WHOLE, PP_READ, error) ||
      pp_program_add_access(p, tiny, PP_WHOLE, PP_WHOLE, PP_READ, error) ||
      pp_program_add_access(p, sum, PP_WHOLE, PP_WHOLE, PP_WRITE, error) ||
      pp_program_finish(p, error))
    return NULL;
  return p;
}

int main(void) {
  pp_error error;
  pp_plan *plan;
  pp_program *program = diamond(&error);
  if (!program || pp_solve(program, NULL, &plan, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("%" PRId64 " bytes before, %" PRId64 " after, none below %" PRId64 "\n",
         pp_plan_peak_before(plan), pp_plan_peak(plan), pp_plan_lower_bound(plan));
  for (pp_index i = 0; i < pp_program_statements(program); i++)
    printf("%s\n", pp_program_statement(program, pp_plan_order(plan)[i]).name);
  pp_plan_free(plan);
  pp_program_free(program);
  return 0;
}
