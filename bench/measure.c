/* measure [-r REPEATS] [-t SECONDS] [-c CERTIFICATE] [-j] MODEL...: what reading, planning and
 * certifying cost.
 *
 * One line a model, fields separated by tabs: path, programs, statements, seconds of reading (the
 * file into finished programs), of planning, of writing the certificates (to nowhere); 1 if all is
 * certified optimal; peak memory of this process so far in KiB. With -j the same and more as one
 * JSON object a line. -c also writes the certificate of the last program, for peakproof-check.
 *
 * Everything runs in one thread. Seconds are those of the processor (user and system), the mean
 * over the repeats: a busy machine does not change them much. That clock ticks slowly on some
 * systems: what takes less than 0.03 s of it in all goes by the wall clock, the shortest of the
 * repeats, which end after 1 s of the processor. */
#include <inttypes.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "format/model.h"
#include "memory.h"

enum phase { READ, PLAN, CERTIFY, PHASES };

struct moment {
  double wall, processor;
};

struct times {
  struct moment of[PHASES];
};

struct about {
  size_t programs, certificate; /* certificate: bytes of all of them */
  long statements, storages;
  int64_t before, peak, bound, floor, states; /* maxima over the programs, but for the states */
  bool optimal, limited;
  const char *proof; /* of the program with the highest peak */
};

struct settings {
  int repeats;
  double limit; /* seconds of the processor for one plan; 0: none */
  const char *certificate;
  bool json;
};

static double on(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct moment now(void) {
  return (struct moment){on(CLOCK_MONOTONIC), on(CLOCK_PROCESS_CPUTIME_ID)};
}

static void add_since(struct moment begin, struct moment *sum) {
  struct moment end = now();
  sum->wall += end.wall - begin.wall;
  sum->processor += end.processor - begin.processor;
}

/* The peak in KiB. (What getrusage says may be of the process that started this one.) */
static long memory(void) {
  struct rusage usage;
  char line[128];
  long kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && !kib && fgets(line, sizeof line, file))
    sscanf(line, "VmHWM: %ld", &kib);
  if (file)
    fclose(file);
  getrusage(RUSAGE_SELF, &usage);
  return kib ? kib : usage.ru_maxrss;
}

/* The solver's own limit goes by the wall clock, which other processes move. */
static bool over_limit(const pp_progress *progress, void *data) {
  (void)progress;
  return on(CLOCK_PROCESS_CPUTIME_ID) > *(const double *)data;
}

struct sink {
  FILE *file; /* or NULL */
  size_t bytes;
};

static bool write_sink(const void *bytes, size_t size, void *data) {
  struct sink *sink = data;
  sink->bytes += size;
  return !sink->file || fwrite(bytes, 1, size, sink->file) == size;
}

static pp_status certify(const pp_plan *plan, struct moment *sum, struct about *about,
                         pp_error *error) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  struct sink sink = {0};
  struct moment begin = now();
  pp_status status = pp_certificate_write(plan, zeros, write_sink, &sink, error);
  add_since(begin, sum);
  about->certificate += sink.bytes;
  return status;
}

static pp_status keep_certificate(const pp_plan *plan, const char *program, const char *path,
                                  pp_error *error) {
  char sha256[SHA256_DIGEST_STRING_LENGTH];
  struct sink sink = {.file = fopen(path, "w")};
  if (!sink.file || !SHA256File(program, sha256)) {
    snprintf(error->message, sizeof error->message, "cannot write %s", path);
    if (sink.file)
      fclose(sink.file);
    return PP_ERROR_CREATE;
  }
  pp_status status = pp_certificate_write(plan, sha256, write_sink, &sink, error);
  if (fclose(sink.file) && !status) {
    snprintf(error->message, sizeof error->message, "cannot write %s", path);
    status = PP_ERROR_IO;
  }
  return status;
}

static void note(struct about *about, const pp_program *program, const pp_plan *plan) {
  int64_t floor = pp_floor(program, NULL);
  about->statements += pp_program_statements(program);
  about->storages += pp_program_storages(program);
  about->states += pp_plan_states(plan);
  about->optimal &= pp_plan_optimal(plan);
  about->limited |= pp_plan_limited(plan);
  if (!about->proof || pp_plan_peak(plan) > about->peak)
    about->proof = pp_proof_name(pp_plan_proof(plan));
#define LARGER(field, value) about->field = about->field > (value) ? about->field : (value)
  LARGER(before, pp_plan_peak_before(plan));
  LARGER(peak, pp_plan_peak(plan));
  LARGER(bound, pp_plan_lower_bound(plan));
  LARGER(floor, floor);
#undef LARGER
}

static pp_status one_program(const pp_model *model, size_t i, int64_t *peak, bool last,
                             const struct settings *settings, struct times *times,
                             struct about *about, pp_error *error) {
  pp_program *program;
  pp_plan *plan;
  struct moment begin = now();
  pp_status status = pp_model_build(model, i, peak, &program, error);
  add_since(begin, times->of + READ);
  if (status)
    return status;
  begin = now();
  double end = begin.processor + settings->limit;
  pp_options options = {.progress = settings->limit > 0 ? over_limit : NULL, .data = &end};
  status = pp_solve(program, &options, &plan, error);
  add_since(begin, times->of + PLAN);
  if (!status) {
    status = certify(plan, times->of + CERTIFY, about, error);
    if (!status && last && settings->certificate)
      status = keep_certificate(plan, model->path, settings->certificate, error);
    peak[i] = pp_plan_peak(plan);
    note(about, program, plan);
    pp_plan_free(plan);
  }
  pp_program_free(program);
  return status;
}

static pp_status once(const char *path, const struct settings *settings, struct times *times,
                      struct about *about, pp_error *error) {
  pp_model *model;
  struct moment begin = now();
  pp_status status = pp_model_read(path, NULL, &model, error);
  if (status)
    return status;
  add_since(begin, times->of + READ);
  *about = (struct about){.programs = model->programs, .optimal = true};
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  for (size_t k = 0; !status && k < model->programs; k++)
    status = one_program(model, model->sequence[k], peak, k + 1 == model->programs, settings, times,
                         about, error);
  free(peak);
  pp_model_free(model);
  return status;
}

/* Seconds of one phase, once. */
static double seconds(const struct times *times, int count, enum phase phase) {
  double least = times[0].of[phase].wall, processor = 0;
  for (int i = 0; i < count; i++) {
    if (times[i].of[phase].wall < least)
      least = times[i].of[phase].wall;
    processor += times[i].of[phase].processor;
  }
  return processor >= 0.03 ? processor / count : least;
}

static void print(const char *path, bool json, const struct times *times, int repeats,
                  const struct about *about, long before) {
  double read = seconds(times, repeats, READ), plan = seconds(times, repeats, PLAN),
         certifying = seconds(times, repeats, CERTIFY);
  if (!json) {
    printf("%s\t%zu\t%ld\t%.9f\t%.9f\t%.9f\t%d\t%ld\n", path, about->programs, about->statements,
           read, plan, certifying, about->optimal, memory());
    return;
  }
  printf("{\"path\": \"%s\", \"programs\": %zu, \"statements\": %ld, \"storages\": %ld", path,
         about->programs, about->statements, about->storages);
  printf(", \"read\": %.9f, \"plan\": %.9f, \"certify\": %.9f, \"repeats\": %d", read, plan,
         certifying, repeats);
  printf(", \"peak_before\": %" PRId64 ", \"peak_after\": %" PRId64 ", \"lower_bound\": %" PRId64
         ", \"floor\": %" PRId64,
         about->before, about->peak, about->bound, about->floor);
  printf(", \"optimal\": %s, \"limited\": %s, \"proof\": \"%s\", \"states\": %" PRId64,
         about->optimal ? "true" : "false", about->limited ? "true" : "false",
         about->proof ? about->proof : "none", about->states);
  printf(", \"certificate_bytes\": %zu, \"rss_kib\": %ld, \"rss_before_kib\": %ld}\n",
         about->certificate, memory(), before);
}

static int measure(const char *path, const struct settings *settings) {
  struct times *times = calloc((size_t)settings->repeats, sizeof *times);
  struct about about = {0};
  pp_error error = {0};
  long before = memory();
  int made = 0;
  double begin = now().processor;
  for (; made < settings->repeats && now().processor - begin < 1; made++)
    if (once(path, settings, times + made, &about, &error)) {
      fprintf(stderr, "%s: %s\n", path, error.message);
      free(times);
      return 1;
    }
  print(path, settings->json, times, made, &about, before);
  fflush(stdout);
  free(times);
  return 0;
}

int main(int argc, char **argv) {
  struct settings settings = {.repeats = 1};
  int failed = 0, i = 1;
  for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
    if (!strcmp(argv[i], "-j"))
      settings.json = true, i--;
    else if (!strcmp(argv[i], "-r"))
      settings.repeats = atoi(argv[i + 1]);
    else if (!strcmp(argv[i], "-c"))
      settings.certificate = argv[i + 1];
    else if (!strcmp(argv[i], "-t"))
      settings.limit = atof(argv[i + 1]);
    else
      break;
  }
  if (i >= argc || argv[i][0] == '-' || settings.repeats < 1) {
    fprintf(stderr, "usage: measure [-r REPEATS] [-t SECONDS] [-c CERTIFICATE] [-j] MODEL...\n");
    return 64;
  }
  for (; i < argc; i++)
    failed |= measure(argv[i], &settings);
  return failed;
}
