/* peakproof remat: what recomputation can do once no order can, and the model that does it. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "error.h"
#include "format/rewriting.h"
#include "memory.h"
#include "report/remat.h"

static const char help[] =
    "Usage: peakproof remat [OPTION]... MODEL\n"
    "\n"
    "Plans MODEL; then, where its peak is above what single statements need, looks for values to "
    "drop\n"
    "and to make again before a late use. Shows the curve of peak against extra "
    "multiply-accumulates.\n"
    "The results of the written model are bitwise the same.\n"
    "\n"
    "      --curve               show all points of the curve, also where one is chosen\n"
    "      --target SIZE         choose the cheapest point of at most SIZE (doc/cli.md); exit with "
    "1\n"
    "                            if there is none\n"
    "      --max-extra-macs N    no point that costs more: a number, or a percentage (0.4%)\n"
    "      --cap N               let a statement run N times at most (2)\n"
    "      --caps FILE           lines \"STATEMENT N\", by name or number: caps of single "
    "statements\n"
    "      --program NAME        this program only, where the model has several\n"
    "  -o, --output FILE         write the model of the chosen point (with --target; else the one "
    "of\n"
    "                            lowest peak), in its best order\n"
    "      --certificate DIR     write NAME.json and NAME.cert of what was chosen, for\n"
    "                            peakproof-check\n"
    "      --svg FILE            draw the curve (of the program of highest peak)\n"
    "      --json                report as JSON (doc/remat.md)\n" PP_COMMON_HELP;

struct macs_limit {
  bool asked, relative;
  int64_t number; /* absolute; or of 1/scale percent */
  int64_t scale;
};

struct remat {
  pp_common common;
  const char *path, *output, *certificate, *svg, *caps;
  int32_t cap;
  struct macs_limit limit;
  bool curve, target_asked;
  int64_t target;
};

enum {
  OPTION_CERTIFICATE = PP_OPTION_OWN,
  OPTION_JSON,
  OPTION_CURVE,
  OPTION_TARGET,
  OPTION_MACS,
  OPTION_CAP,
  OPTION_CAPS,
  OPTION_PROGRAM,
  OPTION_SVG
};

static const struct option options[] = {
    PP_COMMON_OPTIONS,
    {"output", required_argument, NULL, 'o'},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"curve", no_argument, NULL, OPTION_CURVE},
    {"target", required_argument, NULL, OPTION_TARGET},
    {"max-extra-macs", required_argument, NULL, OPTION_MACS},
    {"cap", required_argument, NULL, OPTION_CAP},
    {"caps", required_argument, NULL, OPTION_CAPS},
    {"program", required_argument, NULL, OPTION_PROGRAM},
    {"svg", required_argument, NULL, OPTION_SVG},
    {NULL, 0, NULL, 0}};

/* ---- Options ---- */

enum { CAP_MAX = 1000000 };

/* Digits only; false above `limit`. */
static bool parse_number(const char *text, size_t length, int64_t limit, int64_t *number) {
  *number = 0;
  for (size_t i = 0; i < length; i++)
    if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, text[i] - '0', number) || *number > limit)
      return false;
  return length > 0;
}

/* "1080000", "0.4%": at most six digits behind the point. */
static bool parse_macs(const char *text, struct macs_limit *limit) {
  size_t length = strlen(text);
  char digits[32];
  size_t used = 0, point = 0;
  *limit = (struct macs_limit){.asked = true, .scale = 1};
  if (!length || text[length - 1] != '%')
    return parse_number(text, length, INT64_MAX, &limit->number);
  limit->relative = true;
  for (size_t i = 0; i + 1 < length; i++) {
    if (text[i] == '.' && !point && i)
      point = i;
    else if (used == 16 || (point && i - point > 6))
      return false;
    else
      digits[used++] = text[i];
    if (point && i > point)
      limit->scale *= 10;
  }
  return text[length - 2] != '.' && parse_number(digits, used, 10000000000, &limit->number);
}

static int own_option(int option, void *data) {
  struct remat *remat = data;
  int64_t number;
  switch (option) {
  case 'o':
    remat->output = optarg;
    return -1;
  case OPTION_CERTIFICATE:
    remat->certificate = optarg;
    return -1;
  case OPTION_JSON:
    remat->common.json = true;
    return -1;
  case OPTION_CURVE:
    remat->curve = true;
    return -1;
  case OPTION_SVG:
    remat->svg = optarg;
    return -1;
  case OPTION_CAPS:
    remat->caps = optarg;
    return -1;
  case OPTION_PROGRAM:
    remat->common.plan.only = optarg;
    return -1;
  case OPTION_TARGET:
    remat->target_asked = true;
    if (pp_parse_bytes(optarg, &remat->target))
      return -1;
    return pp_usage_error("remat",
                          "--target wants bytes, or a number and B, kB, MB, GB, KiB, MiB or GiB, "
                          "not \"%s\"",
                          optarg);
  case OPTION_MACS:
    if (parse_macs(optarg, &remat->limit))
      return -1;
    return pp_usage_error("remat", "--max-extra-macs wants a number, or one and %%, not \"%s\"",
                          optarg);
  default: /* OPTION_CAP */
    if (parse_number(optarg, strlen(optarg), CAP_MAX, &number) && number) {
      remat->cap = (int32_t)number;
      return -1;
    }
    return pp_usage_error("remat", "--cap wants a number from 1 to %d, not \"%s\"", CAP_MAX,
                          optarg);
  }
}

static const pp_syntax syntax = {"remat", help, ":ho:q", options, own_option, 1, "one model"};

/* ---- Caps of single statements ---- */

/* The statement of that name or, if none has it, of that number; -1 if there is none. */
static pp_index find_statement(const pp_program *program, const char *name, size_t length) {
  int64_t number;
  for (pp_index v = 0; v < pp_program_statements(program); v++) {
    const char *known = pp_program_statement(program, v).name;
    if (strlen(known) == length && !memcmp(known, name, length))
      return v;
  }
  if (parse_number(name, length, INT32_MAX, &number) && number < pp_program_statements(program))
    return (pp_index)number;
  return -1;
}

/* One line: STATEMENT N, where the name may have spaces; # begins a comment. */
static pp_status read_cap(const pp_program *program, char *line, int64_t number, bool several,
                          int32_t *cap, pp_error *error) {
  size_t length = strcspn(line, "#\r\n");
  while (length && strchr(" \t", line[length - 1]))
    length--;
  size_t start = strspn(line, " \t"), last = length;
  if (start >= length)
    return PP_OK;
  while (last > start && !strchr(" \t", line[last - 1]))
    last--;
  size_t end = last;
  while (end > start && strchr(" \t", line[end - 1]))
    end--;
  int64_t value;
  pp_status status = PP_OK;
  pp_index v = find_statement(program, line + start, end - start);
  if (end == start || !parse_number(line + last, length - last, CAP_MAX, &value) || !value)
    status = pp_fail(error, PP_ERROR_INPUT, "a line is STATEMENT N, with N from 1 to %d", CAP_MAX);
  else if (v >= 0)
    cap[v] = (int32_t)value;
  else if (!several) /* of several programs another one may have it */
    status = pp_fail(error, PP_ERROR_INPUT, "there is no statement \"%.*s\"", (int)(end - start),
                     line + start);
  if (status) {
    error->line = number;
    error->column = 1;
  }
  return status;
}

/* They would hide the rest of their line. */
static pp_status refuse_zeros(const void *bytes, size_t size, pp_error *error) {
  const char *zero = size ? memchr(bytes, '\0', size) : NULL;
  if (!zero)
    return PP_OK;
  pp_fail(error, PP_ERROR_INPUT, "a zero byte");
  error->offset = zero - (const char *)bytes;
  return PP_ERROR_INPUT;
}

/* A limit that the file does not name is the general one. */
static int read_caps(const struct remat *remat, const pp_program *program, bool several,
                     int32_t **caps) {
  pp_error error;
  pp_index n = pp_program_statements(program);
  uint8_t *bytes = NULL;
  size_t size, room = 0;
  char *line = NULL;
  FILE *file = NULL;
  int32_t *cap = *caps = pp_alloc((size_t)n, sizeof **caps);
  pp_status status =
      cap ? pp_read_file(remat->caps, &bytes, &size, &error) : pp_fail_memory(&error);
  if (!status)
    status = refuse_zeros(bytes, size, &error);
  if (!status && size && !(file = fmemopen(bytes, size, "r")))
    status = pp_fail_memory(&error);
  for (pp_index v = 0; !status && v < n; v++)
    cap[v] = remat->cap ? remat->cap : 2;
  for (int64_t number = 1; file && !status && getline(&line, &room, file) > 0; number++)
    status = read_cap(program, line, number, several, cap, &error);
  free(line);
  if (file)
    fclose(file);
  free(bytes);
  return status ? pp_say_error(remat->caps, &error) : PP_EXIT_DONE;
}

/* ---- Work ---- */

/* The limit in macs, without a product that overflows. */
static int64_t macs_allowed(const struct macs_limit *limit, const pp_program *program) {
  if (!limit->asked)
    return -1;
  if (!limit->relative)
    return limit->number;
  int64_t total = 0, whole, part, divisor = 100 * limit->scale;
  for (pp_index v = 0; v < pp_program_statements(program); v++) {
    int64_t macs = pp_program_statement(program, v).macs;
    if (macs > 0 && __builtin_add_overflow(total, macs, &total))
      return INT64_MAX;
  }
  if (__builtin_mul_overflow(total / divisor, limit->number, &whole))
    return INT64_MAX;
  part = total % divisor * limit->number / divisor;
  return __builtin_add_overflow(whole, part, &whole) ? INT64_MAX : whole;
}

/* The cheapest point within the target, or the last one, which is the lowest. */
static size_t choose(const struct remat *remat, const pp_remat *found, bool writable) {
  size_t points = writable ? pp_remat_points(found) : 1;
  if (remat->target_asked)
    for (size_t i = 0; i < points; i++)
      if (pp_remat_point_of(found, i).peak <= remat->target)
        return i;
  if (remat->target_asked || remat->limit.asked || remat->output || remat->certificate)
    return points - 1;
  return PP_NO_POINT;
}

static pp_status rewrite_program(struct remat *remat, pp_remat_program *it, bool writable,
                                 pp_error *error) {
  it->chosen = choose(remat, it->remat, writable);
  if (it->chosen == PP_NO_POINT || !pp_remat_point_of(it->remat, it->chosen).extra_runs)
    return PP_OK;
  pp_status status = pp_remat_rewrite(it->remat, it->chosen, &it->rewriting, error);
  if (!status)
    status = pp_solve(pp_rewriting_program(it->rewriting), &remat->common.plan.solve,
                      &it->rewritten, error);
  return status;
}

/* Callees have been chosen: their peaks are known. */
static int work_on(struct remat *remat, const pp_model *model, size_t i, int64_t *peak,
                   pp_remat_program *it) {
  pp_error error;
  int32_t *caps = NULL;
  int code = PP_EXIT_DONE;
  pp_status status = pp_model_build(model, i, peak, &it->program, &error);
  if (!status && remat->caps)
    code = read_caps(remat, it->program, model->programs > 1, &caps);
  if (!status && !code)
    status = pp_solve(it->program, &remat->common.plan.solve, &it->plan, &error);
  if (!status && !code) {
    pp_remat_options wanted = {.solve = remat->common.plan.solve,
                               .cap = remat->cap,
                               .caps = caps,
                               .max_extra_macs = macs_allowed(&remat->limit, it->program)};
    status = pp_remat_solve(it->program, it->plan, &wanted, &it->remat, &error);
  }
  if (!status && !code &&
      !(status = rewrite_program(remat, it, pp_model_can_repeat(model, i), &error)))
    peak[i] = pp_remat_chosen_peak(it);
  free(caps);
  return status ? pp_say_error(model->path, &error) : code;
}

static int work_on_all(struct remat *remat, const pp_model *model, pp_remat_program *programs) {
  pp_meter meter;
  const char *only = remat->common.plan.only;
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  int code = peak ? PP_EXIT_DONE : pp_say_memory();
  pp_meter_attach(&meter, &remat->common);
  for (size_t k = 0; !code && k < model->programs; k++) {
    size_t i = model->sequence[k];
    remat->common.plan.begin(model->name[i], &meter);
    code = work_on(remat, model, i, peak, programs + i);
    if (only && !strcmp(only, model->name[i]))
      break;
  }
  pp_meter_clear(&meter);
  free(peak);
  return code;
}

/* ---- Output ---- */

static pp_model_rewriting rewriting_of(const pp_remat_program *it) {
  if (it->rewriting)
    return (pp_model_rewriting){.original = it->program,
                                .program = pp_rewriting_program(it->rewriting),
                                .statement = pp_rewriting_statements(it->rewriting),
                                .storage = pp_rewriting_storages(it->rewriting),
                                .order = pp_plan_order(it->rewritten)};
  return (pp_model_rewriting){.original = it->program,
                              .order = it->plan ? pp_plan_order(it->plan) : NULL};
}

static int write_model(const struct remat *remat, const pp_remat_report *report) {
  const pp_model *model = report->model;
  pp_model_rewriting *rewriting = pp_alloc(model->programs, sizeof *rewriting);
  pp_output *output;
  pp_error error;
  pp_status status =
      rewriting ? pp_output_open(remat->output, &output, &error) : pp_fail_memory(&error);
  if (!status) {
    for (size_t i = 0; i < model->programs; i++)
      rewriting[i] = rewriting_of(report->program + i);
    status = pp_model_write_remat(model, rewriting, pp_output_write, output, &error);
    status = pp_output_close(output, status, &error);
  }
  free(rewriting);
  return status ? pp_say_error(remat->output, &error) : PP_EXIT_DONE;
}

/* The programs as chosen, as the writer of proofs wants them. It only reads them. */
static int write_proofs(const struct remat *remat, const pp_remat_report *report) {
  const pp_model *model = report->model;
  pp_planned planned = {.model = model,
                        .program = pp_zalloc(model->programs, sizeof *planned.program)};
  if (!planned.program)
    return pp_say_memory();
  for (size_t i = 0; i < model->programs; i++) {
    const pp_remat_program *it = report->program + i;
    planned.program[i].plan = it->rewritten ? it->rewritten : it->plan;
    planned.program[i].program =
        it->rewriting ? (pp_program *)pp_rewriting_program(it->rewriting) : it->program;
  }
  int code = pp_write_proofs(&planned, remat->certificate, remat->path, remat->output);
  free(planned.program);
  return code;
}

static int write_svg(const struct remat *remat, const pp_remat_report *report) {
  size_t best = 0;
  pp_output *output;
  pp_error error;
  for (size_t i = 0; i < report->model->programs; i++) {
    const pp_remat_program *it = report->program + i, *other = report->program + best;
    if (it->remat && (!other->remat || pp_plan_peak(it->plan) > pp_plan_peak(other->plan)))
      best = i;
  }
  pp_status status = pp_output_open(remat->svg, &output, &error);
  if (!status) {
    status = pp_report_remat_svg(report->program + best, report->model->name[best], pp_output_write,
                                 output, &error);
    status = pp_output_close(output, status, &error);
  }
  return status ? pp_say_error(remat->svg, &error) : PP_EXIT_DONE;
}

static void list_files(const struct remat *remat, const pp_remat_report *report) {
  if (remat->output)
    pp_tell("  wrote        %s", remat->output);
  for (size_t i = 0; remat->certificate && i < report->model->programs; i++)
    pp_tell("  wrote        %s/%s.json, %s/%s.cert", remat->certificate, report->model->name[i],
            remat->certificate, report->model->name[i]);
  if (remat->svg)
    pp_tell("  wrote        %s", remat->svg);
}

static int say(const struct remat *remat, const pp_remat_report *report) {
  pp_error error;
  if (remat->common.json) {
    if (pp_report_remat_json(report, pp_stream_write, stdout, &error))
      return pp_say_error("standard output", &error);
  } else if (!remat->common.quiet) {
    pp_style style = {stdout, pp_color(stdout)};
    pp_report_remat(report, &style);
    list_files(remat, report);
  }
  return pp_flush_output(PP_EXIT_DONE);
}

static bool missed_target(const pp_remat_report *report) {
  for (size_t i = 0; report->target_asked && i < report->model->programs; i++)
    if (report->program[i].remat && pp_remat_chosen_peak(report->program + i) > report->target)
      return true;
  return false;
}

/* The files first: a report says that they are there. */
static int finish(const struct remat *remat, const pp_remat_report *report) {
  int code = PP_EXIT_DONE;
  if (remat->output)
    code = write_model(remat, report);
  if (!code && remat->certificate)
    code = write_proofs(remat, report);
  if (!code && remat->svg)
    code = write_svg(remat, report);
  if (!code)
    code = say(remat, report);
  if (code)
    return code;
  if (pp_interrupted())
    return PP_EXIT_INTERRUPTED;
  return missed_target(report) ? PP_EXIT_NO : PP_EXIT_DONE;
}

static void free_programs(pp_remat_program *programs, size_t count) {
  for (size_t i = 0; programs && i < count; i++) {
    pp_plan_free(programs[i].rewritten);
    pp_rewriting_free(programs[i].rewriting);
    pp_remat_free(programs[i].remat);
    pp_plan_free(programs[i].plan);
    pp_program_free(programs[i].program);
  }
  free(programs);
}

static int read_model(const struct remat *remat, pp_model **model) {
  const pp_place place[] = {{"MODEL", remat->path, PP_PLACE_MODEL},
                            {"--caps", remat->caps, PP_PLACE_INPUT},
                            {"-o", remat->output, PP_PLACE_OUTPUT},
                            {"--svg", remat->svg, PP_PLACE_OUTPUT},
                            {"--certificate", remat->certificate, PP_PLACE_DIRECTORY}};
  const size_t places = sizeof place / sizeof *place;
  int code = pp_check_places("remat", place, places);
  if (!code)
    code = pp_read_model(remat->path, &remat->common, model);
  if (code)
    return code;
  code = pp_check_companions(*model, remat->common.quiet, place, places);
  if (!code)
    code = pp_check_proofs(*model, place, places);
  if (code)
    pp_model_free(*model);
  return code;
}

int pp_verb_remat(int argc, char **argv) {
  struct remat remat = {0};
  pp_model *model;
  int code = pp_parse(&syntax, argc, argv, &remat.common, &remat);
  if (code != -1)
    return code;
  remat.path = argv[optind];
  if (remat.common.plan.only && (remat.output || remat.certificate))
    return pp_usage_error("remat", "--program shows; a model is written with all its programs");
  if ((code = read_model(&remat, &model)))
    return code;
  pp_remat_program *programs = pp_zalloc(model->programs, sizeof *programs);
  pp_remat_report report = {.model = model,
                            .program = programs,
                            .curve = remat.curve,
                            .target_asked = remat.target_asked,
                            .target = remat.target};
  code = programs ? work_on_all(&remat, model, programs) : pp_say_memory();
  if (!code)
    code = finish(&remat, &report);
  free_programs(programs, model->programs);
  pp_model_free(model);
  return code;
}
