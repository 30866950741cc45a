/* peakproof verify: ties an original model, a planned one and their proof together. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/checker.h"
#include "cli/cli.h"
#include "error.h"
#include "format/collect.h"
#include "format/onnx.h"
#include "format/tflite.h"
#include "memory.h"

static const char help[] =
    "Usage: peakproof verify [OPTION]... ORIGINAL PLANNED DIR\n"
    "\n"
    "Checks that PLANNED is ORIGINAL in the order of the certificates in DIR, and nothing else: "
    "each\n"
    "DIR/NAME.json is the program of ORIGINAL, peakproof-check accepts DIR/NAME.cert for it, and\n"
    "PLANNED differs from ORIGINAL only in its order, which is the certificate's. Exits with 0 if "
    "so,\n"
    "with 1 and the reason if not.\n"
    "\n"
    "      --require-optimal     exit with 1 if a certificate's bound is below its peak\n"
    "      --checker PATH        the peakproof-check to run\n"
    "      --dim NAME=N          as it was given to plan\n"
    "  -q, --quiet               say nothing but errors\n"
    "  -h, --help                show this text\n";

enum { OPTION_CHECKER = PP_OPTION_OWN, OPTION_REQUIRE };

static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"checker", required_argument, NULL, OPTION_CHECKER},
                                        {"require-optimal", no_argument, NULL, OPTION_REQUIRE},
                                        {"dim", required_argument, NULL, PP_OPTION_DIM},
                                        {NULL, 0, NULL, 0}};

struct verify {
  const char *original_path, *planned_path, *directory;
  pp_common common;
  const char *given; /* --checker */
  char *checker;
  bool require_optimal;
  size_t open; /* programs whose certificate has a bound below its peak */
  pp_model *original, *planned;
  int64_t *peak;    /* of each program in the certificate's order */
  pp_index **order; /* the certificates' */
};

/* A step of the verification: PP_EXIT_DONE, PP_EXIT_NO or an error's exit code. */
__attribute__((format(printf, 2, 3))) static int no(const char *what, const char *format, ...) {
  va_list arguments;
  pp_print(stdout, "not verified: %s: ", what);
  va_start(arguments, format);
  pp_vprint(stdout, format, arguments);
  va_end(arguments);
  putchar('\n');
  return PP_EXIT_NO;
}

/* ---- The program file is this model's ---- */

struct comparison {
  FILE *file;
  bool same;
};

static bool compare(const void *bytes, size_t size, void *data) {
  struct comparison *comparison = data;
  const unsigned char *expected = bytes;
  for (size_t i = 0; i < size && comparison->same; i++)
    comparison->same = getc(comparison->file) == expected[i];
  return comparison->same; /* else no need to go on */
}

static int check_program_file(const pp_program *program, const char *path) {
  struct comparison comparison = {fopen(path, "rb"), true};
  pp_error error;
  if (!comparison.file) {
    pp_fail(&error, PP_ERROR_READ, "cannot open: %s", strerror(errno));
    return pp_say_error(path, &error);
  }
  pp_status status = pp_program_json_write(program, compare, &comparison, &error);
  bool same = comparison.same && getc(comparison.file) == EOF;
  fclose(comparison.file);
  if (status && comparison.same)
    return pp_say_error(path, &error);
  return same ? PP_EXIT_DONE : no(path, "is not the program of the original model");
}

/* ---- The certificate ---- */

static bool parse_order(const char *line, pp_index n, pp_index *order) {
  for (pp_index i = 0; i < n; i++) {
    char *end;
    if (line[0] != ' ' || !isdigit((unsigned char)line[1]))
      return false;
    errno = 0;
    long long id = strtoll(line + 1, &end, 10);
    if (errno || id >= n)
      return false;
    order[i] = (pp_index)id;
    line = end;
  }
  return *line == '\n';
}

/* The order of a certificate: the "o" line. What else it says is peakproof-check's to judge. */
static int read_order(const char *path, pp_index n, pp_index **order) {
  pp_error error;
  FILE *file = fopen(path, "rb");
  if (!file) {
    pp_fail(&error, PP_ERROR_READ, "cannot open: %s", strerror(errno));
    return pp_say_error(path, &error);
  }
  char *line = NULL;
  size_t capacity = 0;
  bool found = false;
  *order = pp_alloc((size_t)n, sizeof **order);
  while (*order && !found && getline(&line, &capacity, file) > 0)
    if (line[0] == 'o' && (line[1] == ' ' || line[1] == '\n')) {
      found = true;
      if (!parse_order(line + 1, n, *order))
        found = false;
      break;
    }
  free(line);
  fclose(file);
  if (*order)
    return found ? PP_EXIT_DONE : no(path, "has no order of %d statements", n);
  return pp_say_memory();
}

static int run_checker(struct verify *verify, size_t i, const char *json, const char *certificate) {
  char verdict[PP_VERDICT_SIZE];
  bool verified;
  pp_error error;
  if (pp_checker_run(verify->checker, json, certificate, verdict, &verified, &error))
    return pp_say_error(verify->checker, &error);
  if (!verified)
    return no(certificate, "%s", verdict);
  const char *name = verify->original->name[i];
  size_t length = strlen(verdict);
  bool optimal = length > 8 && !strcmp(verdict + length - 8, " optimal");
  verify->open += !optimal;
  if (!verify->common.quiet)
    pp_tell("%s: %s", name, verdict);
  if (!optimal && (verify->require_optimal || !verify->common.quiet))
    pp_tell("%s: not proved optimal: the bound is below the peak", name);
  return PP_EXIT_DONE;
}

/* Said here: else it would be the checker that cannot read. */
static int check_there(const char *path) {
  pp_error error;
  return pp_check_readable(path, &error) ? pp_say_error(path, &error) : PP_EXIT_DONE;
}

static int check_files(struct verify *verify, size_t i, const pp_program *program, const char *json,
                       const char *certificate) {
  pp_error error;
  int code = check_there(json);
  if (!code)
    code = check_there(certificate);
  if (!code)
    code = check_program_file(program, json);
  if (!code)
    code = run_checker(verify, i, json, certificate);
  if (!code)
    code = read_order(certificate, pp_program_statements(program), &verify->order[i]);
  if (!code && pp_simulate(program, verify->order[i], &verify->peak[i], NULL, NULL, &error))
    return no(certificate, "%s", error.message);
  return code;
}

static int check_proof(struct verify *verify, size_t i) {
  const char *name = verify->original->name[i];
  pp_program *program;
  pp_error error;
  if (pp_model_build(verify->original, i, verify->peak, &program, &error))
    return pp_say_error(verify->original_path, &error);
  char *json = pp_path_in(verify->directory, name, "json"),
       *certificate = pp_path_in(verify->directory, name, "cert");
  int code =
      json && certificate ? check_files(verify, i, program, json, certificate) : pp_say_memory();
  free(json);
  free(certificate);
  pp_program_free(program);
  return code;
}

/* ---- The planned model ---- */

typedef pp_status comparison_of_models(const pp_model *original, const pp_model *permuted,
                                       pp_index ***order, pp_error *error);

static int check_order(const struct verify *verify, comparison_of_models *compare_models) {
  pp_error error;
  pp_index **order;
  pp_status status = compare_models(verify->original, verify->planned, &order, &error);
  if (status == PP_ERROR_INPUT)
    return error.offset >= 0
               ? no(verify->planned_path, "byte %" PRId64 ": %s", error.offset, error.message)
               : no(verify->planned_path, "%s", error.message);
  if (status)
    return pp_say_error(verify->planned_path, &error);
  int code = PP_EXIT_DONE;
  for (size_t i = 0; !code && i < verify->original->programs; i++) {
    pp_program *program;
    if (pp_model_build(verify->original, i, verify->peak, &program, &error)) {
      code = pp_say_error(verify->original_path, &error);
      break;
    }
    for (pp_index k = 0; !code && k < pp_program_statements(program); k++)
      if (order[i][k] != verify->order[i][k])
        code = no(verify->planned_path,
                  "program %s: step %d executes statement %d, the certificate %d",
                  verify->original->name[i], k, order[i][k], verify->order[i][k]);
    pp_program_free(program);
  }
  pp_orders_free(order, verify->original->programs);
  return code;
}

/* Program JSON: the planned program is the permuted one, whatever white space its file has. */
static int check_json(const struct verify *verify) {
  pp_collected expected = {0}, found = {0};
  pp_program *program = NULL;
  pp_error error;
  const pp_index *order[1] = {verify->order[0]};
  int64_t peak = 0;
  pp_status status = pp_model_write(verify->original, order, pp_collect, &expected, &error);
  if (!status && !(status = pp_model_build(verify->planned, 0, &peak, &program, &error)))
    status = pp_program_json_write(program, pp_collect, &found, &error);
  pp_program_free(program);
  int code = PP_EXIT_DONE;
  if (status)
    code = pp_say_error(verify->planned_path, &error);
  else if (expected.size != found.size || memcmp(expected.bytes, found.bytes, found.size))
    code = no(verify->planned_path, "is not the original program in the certificate's order");
  free(expected.bytes);
  free(found.bytes);
  return code;
}

/* ---- The whole ---- */

static int check_all(struct verify *verify) {
  const pp_model *original = verify->original;
  int code = PP_EXIT_DONE;
  if (original->format != verify->planned->format)
    return no(verify->planned_path, "is a file of another format");
  for (size_t k = 0; !code && k < original->programs; k++)
    code = check_proof(verify, original->sequence[k]);
  if (code)
    return code;
  switch (original->format) {
  case PP_FORMAT_TFLITE:
    code = check_order(verify, pp_tflite_compare);
    break;
  case PP_FORMAT_ONNX:
    code = check_order(verify, pp_onnx_compare);
    break;
  case PP_FORMAT_PROGRAM:
    code = check_json(verify);
    break;
  default:
    pp_say("%s: files of this format cannot be compared", verify->original_path);
    return EX_USAGE;
  }
  if (!code && !verify->common.quiet)
    pp_tell("verified: %s is %s in the certified order%s", verify->planned_path,
            verify->original_path, verify->open ? ", not proved optimal" : "");
  return !code && verify->open && verify->require_optimal ? PP_EXIT_NO : code;
}

static int read_both(struct verify *verify) {
  pp_error error;
  const pp_read_options dims = {verify->common.dimensions, verify->common.dimension};
  if (pp_model_read(verify->original_path, &dims, &verify->original, &error))
    return pp_say_error(verify->original_path, &error);
  if (pp_model_read(verify->planned_path, &dims, &verify->planned, &error))
    return pp_say_error(verify->planned_path, &error);
  size_t programs = verify->original->programs;
  verify->peak = pp_zalloc(programs, sizeof *verify->peak);
  verify->order = pp_zalloc(programs, sizeof *verify->order);
  return verify->peak && verify->order ? PP_EXIT_DONE : pp_say_memory();
}

static int own_option(int option, void *data) {
  struct verify *verify = data;
  if (option == OPTION_REQUIRE)
    verify->require_optimal = true;
  else
    verify->given = optarg;
  return -1;
}

static const pp_syntax syntax = {
    "verify", help, ":hq", options, own_option, 3, "two models and a directory"};

int pp_verb_verify(int argc, char **argv) {
  struct verify verify = {0};
  pp_error error;
  int code = pp_parse(&syntax, argc, argv, &verify.common, &verify);
  if (code != -1)
    return code;
  verify.original_path = argv[optind];
  verify.planned_path = argv[optind + 1];
  verify.directory = argv[optind + 2];
  verify.checker = pp_checker_find(verify.given, &error);
  if (verify.checker)
    code = read_both(&verify);
  else
    code = pp_say_error(verify.given ? verify.given : "verify", &error);
  if (!code)
    code = check_all(&verify);
  for (size_t i = 0; verify.order && i < verify.original->programs; i++)
    free(verify.order[i]);
  free(verify.order);
  free(verify.peak);
  free(verify.checker);
  pp_model_free(verify.original);
  pp_model_free(verify.planned);
  return pp_flush_output(code);
}
