/* cuts [-t SECONDS] PROGRAM.json...: minimum cuts counted against the statements.
 *
 * One JSON object a line for each program:
 *   plain   what the plain greedy of THEORY.md section 2 computes: every exit at every step
 *   climb   what pp_trap_climb computes to find the best trap (null: stopped after SECONDS)
 *   solve   what pp_solve computes in all, for traps, commits and probing
 *   exits   exits that the certificate lists (0: it needs none, or is not a trap)
 *   needed  exits of which it gives chains of their own: only these need a minimum cut
 *   base    chains that it gives once for several exits
 * plain and climb are [forward, reverse]. Calls of pp_cut_value are counted by the linker's --wrap:
 * the core knows nothing of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/model.h"
#include "memory.h"
#include "trap.h"

bool __real_pp_cut_value(struct pp_cut *cut, pp_index v, int64_t target, bool exact,
                         int64_t *value);
bool __wrap_pp_cut_value(struct pp_cut *cut, pp_index v, int64_t target, bool exact,
                         int64_t *value);

static int64_t cuts;

bool __wrap_pp_cut_value(struct pp_cut *cut, pp_index v, int64_t target, bool exact,
                         int64_t *value) {
  cuts++;
  return __real_pp_cut_value(cut, v, target, exact, value);
}

static double limit = 10; /* seconds of the processor, for each of climb and solve */

static bool over(void *data) {
  return (double)(clock() - *(const clock_t *)data) > limit * CLOCKS_PER_SEC;
}

static bool over_progress(const pp_progress *progress, void *data) {
  (void)progress;
  return over(data);
}

/* The sum, over the steps in which T grows to everything, of the exits that T has. */
static int64_t plain_cuts(const struct pp_trap *trap) {
  struct pp_view view = trap->run.view;
  int32_t *left = pp_zalloc((size_t)view.n, sizeof *left);
  int64_t exits = 0, sum = 0;
  for (pp_index v = 0; v < view.n; v++)
    exits += !(left[v] = (int32_t)pp_row_size(view.predecessors, v));
  for (pp_index i = 0; i < view.n; i++) {
    sum += exits--;
    PP_FOR_ROW (next, view.successors, trap->members.items[i])
      exits += !--left[*next];
  }
  free(left);
  return sum;
}

/* -1: out of time. */
static int climb(const pp_program *program, bool reverse, int64_t *plain, int64_t *climbed) {
  struct pp_trap trap;
  int64_t bound;
  size_t count;
  clock_t begin = clock();
  cuts = 0;
  if (!pp_trap_init(&trap, pp_view_of(program, reverse)))
    return PP_ERROR_MEMORY;
  pp_status status = pp_trap_climb(&trap, 0, &bound, &count, over, &begin);
  *climbed = status ? -1 : cuts;
  *plain = status || !pp_trap_whole(&trap) ? -1 : plain_cuts(&trap);
  pp_trap_free(&trap);
  return status == PP_ERROR_USAGE ? PP_OK : status;
}

/* Counts the lines of a certificate as they pass: exits, and exits with chains. */
struct counter {
  int64_t exits, needed, base;
  char first; /* of the line that passes, or 0 at its start */
  char under; /* the last line that was not a chain; 'E': an exit that has a chain */
};

static bool count_lines(const void *bytes, size_t size, void *data) {
  struct counter *counter = data;
  for (const char *p = bytes; size--; p++) {
    if (*p == '\n') {
      counter->first = 0;
    } else if (!counter->first) {
      counter->first = *p;
      counter->exits += *p == 'e';
      counter->needed += *p == 'c' && counter->under == 'e';
      counter->base += *p == 'c' && counter->under == 'b';
      if (*p != 'c')
        counter->under = *p;
      else if (counter->under == 'e')
        counter->under = 'E';
    }
  }
  return true;
}

static void print_pair(const char *name, const int64_t *pair) {
  printf(", \"%s\": [", name);
  for (int i = 0; i < 2; i++)
    if (pair[i] < 0)
      printf(i ? ", null]" : "null");
    else
      printf(i ? ", %" PRId64 "]" : "%" PRId64, pair[i]);
}

static pp_status count(const char *path, const pp_program *program, pp_error *error) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  int64_t plain[2], climbed[2];
  struct counter counter = {0};
  pp_plan *plan;
  for (int reverse = 0; reverse < 2; reverse++)
    if (climb(program, reverse, plain + reverse, climbed + reverse))
      return PP_ERROR_MEMORY;
  clock_t begin = clock();
  pp_options options = {.progress = over_progress, .data = &begin};
  cuts = 0;
  pp_status status = pp_solve(program, &options, &plan, error);
  if (status)
    return status;
  int64_t solved = cuts;
  pp_proof_kind kind = pp_plan_proof(plan);
  bool trap = kind == PP_PROOF_FORWARD_TRAP || kind == PP_PROOF_REVERSE_TRAP;
  status = pp_certificate_write(plan, zeros, count_lines, &counter, error);
  printf("{\"path\": \"%s\", \"statements\": %" PRId32 ", \"proof\": \"%s\", \"optimal\": %s", path,
         pp_program_statements(program), pp_proof_name(kind),
         pp_plan_optimal(plan) ? "true" : "false");
  print_pair("plain", plain);
  print_pair("climb", climbed);
  printf(", \"solve\": %" PRId64 ", \"exits\": %" PRId64 ", \"needed\": %" PRId64
         ", \"base\": %" PRId64 "}\n",
         solved, trap ? counter.exits : 0, trap ? counter.needed : 0, trap ? counter.base : 0);
  fflush(stdout);
  pp_plan_free(plan);
  return status;
}

static pp_status count_file(const char *path, pp_error *error) {
  pp_model *model;
  pp_program *program;
  int64_t peak = 0;
  pp_status status = pp_model_read(path, NULL, &model, error);
  if (status)
    return status;
  if (model->programs != 1) {
    snprintf(error->message, sizeof error->message, "not one program");
    status = PP_ERROR_INPUT;
  } else if (!(status = pp_model_build(model, 0, &peak, &program, error))) {
    status = count(path, program, error);
    pp_program_free(program);
  }
  pp_model_free(model);
  return status;
}

int main(int argc, char **argv) {
  int i = 1, failed = 0;
  pp_error error = {0};
  if (argc > 2 && !strcmp(argv[1], "-t")) {
    limit = atof(argv[2]);
    i = 3;
  }
  if (i >= argc) {
    fprintf(stderr, "usage: cuts [-t SECONDS] PROGRAM.json...\n");
    return 64;
  }
  for (; i < argc; i++)
    if (count_file(argv[i], &error)) {
      fprintf(stderr, "%s: %s\n", argv[i], error.message);
      failed = 1;
    }
  return failed;
}
