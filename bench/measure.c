/* measure [-r REPEATS] [-t SECONDS] MODEL...: how long reading, planning and certifying take.
 *
 * One line a model, fields separated by tabs: path, programs, statements, seconds of reading (the
 * file into finished programs), of planning, of writing the certificates (to nowhere), each the
 * median over the repeats; 1 if all is certified optimal; peak memory of this process so far in
 * KiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "format/model.h"
#include "memory.h"

struct times {
  double read, plan, certify;
};

struct about {
  size_t programs;
  long statements;
  bool optimal;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool nowhere(const void *bytes, size_t size, void *data) {
  (void)bytes, (void)size, (void)data;
  return true;
}

static pp_status one_program(const pp_model *model, size_t i, int64_t *peak,
                             const pp_options *options, struct times *times, struct about *about,
                             pp_error *error) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  pp_program *program;
  pp_plan *plan;
  double begin = now();
  pp_status status = pp_model_build(model, i, peak, &program, error);
  if (status)
    return status;
  double built = now();
  status = pp_solve(program, options, &plan, error);
  double planned = now();
  if (!status) {
    status = pp_certificate_write(plan, zeros, nowhere, NULL, error);
    times->read += built - begin;
    times->plan += planned - built;
    times->certify += now() - planned;
    peak[i] = pp_plan_peak(plan);
    about->statements += pp_program_statements(program);
    about->optimal &= pp_plan_optimal(plan);
    pp_plan_free(plan);
  }
  pp_program_free(program);
  return status;
}

static pp_status once(const char *path, const pp_options *options, struct times *times,
                      struct about *about, pp_error *error) {
  pp_model *model;
  double begin = now();
  pp_status status = pp_model_read(path, NULL, &model, error);
  if (status)
    return status;
  *times = (struct times){.read = now() - begin};
  *about = (struct about){.programs = model->programs, .optimal = true};
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  for (size_t k = 0; !status && k < model->programs; k++)
    status = one_program(model, model->sequence[k], peak, options, times, about, error);
  free(peak);
  pp_model_free(model);
  return status;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const struct times *times, int count, size_t field) {
  double *values = malloc((size_t)count * sizeof *values);
  for (int i = 0; i < count; i++)
    memcpy(values + i, (const char *)(times + i) + field, sizeof *values);
  qsort(values, (size_t)count, sizeof *values, compare);
  double middle = values[count / 2];
  free(values);
  return middle;
}

static int measure(const char *path, int repeats, const pp_options *options) {
  struct times *times = calloc((size_t)repeats, sizeof *times);
  struct about about = {0};
  struct rusage usage;
  pp_error error;
  int made = 0;
  for (double begin = now(); made < repeats && now() - begin < 2; made++)
    if (once(path, options, times + made, &about, &error)) {
      fprintf(stderr, "%s: %s\n", path, error.message);
      free(times);
      return 1;
    }
  repeats = made;
  getrusage(RUSAGE_SELF, &usage);
  printf("%s\t%zu\t%ld\t%.9f\t%.9f\t%.9f\t%d\t%ld\n", path, about.programs, about.statements,
         median(times, repeats, offsetof(struct times, read)),
         median(times, repeats, offsetof(struct times, plan)),
         median(times, repeats, offsetof(struct times, certify)), about.optimal, usage.ru_maxrss);
  free(times);
  return 0;
}

int main(int argc, char **argv) {
  int repeats = 1, failed = 0, i = 1;
  pp_options options = {0};
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    if (!strcmp(argv[i], "-r"))
      repeats = atoi(argv[i + 1]);
    else
      options.time_limit = atof(argv[i + 1]);
  }
  if (i >= argc || repeats < 1) {
    fprintf(stderr, "usage: measure [-r REPEATS] [-t SECONDS] MODEL...\n");
    return 64;
  }
  for (; i < argc; i++)
    failed |= measure(argv[i], repeats, &options);
  return failed;
}
