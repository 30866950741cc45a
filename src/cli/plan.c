/* peakproof plan: the order of lowest peak, its proof, the permuted model. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "error.h"
#include "memory.h"

static const char help[] =
    "Usage: peakproof plan [OPTION]... MODEL\n"
    "\n"
    "Finds the order of lowest peak memory of every program of MODEL (.tflite, ONNX or program "
    "JSON),\n"
    "and proves a lower bound. The results of the reordered model are bitwise the same.\n"
    "\n"
    "  -o, --output FILE         write the model in that order\n"
    "      --certificate DIR     write NAME.json and NAME.cert for every program, for "
    "peakproof-check\n" PP_PICTURE_HELP "      --json                report as JSON (doc/cli.md)\n"
    "      --budget SIZE         exit with 1 if the peak is above SIZE: bytes, or with a unit of "
    "B, kB,\n"
    "                            MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024)\n"
    "      --require-optimal     exit with 1 unless every order is proved optimal\n" PP_COMMON_HELP;

struct plan {
  pp_common common;
  const char *path, *output, *certificate;
  pp_budget budget;
  bool require_optimal;
  pp_pictures pictures;
};

enum { OPTION_CERTIFICATE = PP_OPTION_OWN, OPTION_JSON, OPTION_BUDGET, OPTION_REQUIRE };

static const struct option options[] = {
    PP_COMMON_OPTIONS,
    PP_PICTURE_OPTIONS,
    {"output", required_argument, NULL, 'o'},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"require-optimal", no_argument, NULL, OPTION_REQUIRE},
    {NULL, 0, NULL, 0}};

static int own_option(int option, void *data) {
  struct plan *plan = data;
  if (pp_picture_option(option, &plan->pictures))
    return -1;
  switch (option) {
  case 'o':
    plan->output = optarg;
    return -1;
  case OPTION_CERTIFICATE:
    plan->certificate = optarg;
    return -1;
  case OPTION_JSON:
    plan->common.json = true;
    return -1;
  case OPTION_REQUIRE:
    plan->require_optimal = true;
    return -1;
  default: /* OPTION_BUDGET */
    plan->budget.asked = true;
    if (pp_parse_bytes(optarg, &plan->budget.bytes))
      return -1;
    return pp_usage_error("plan",
                          "--budget wants bytes, or a number and B, kB, MB, GB, KiB, MiB or "
                          "GiB, not \"%s\"",
                          optarg);
  }
}

static const pp_syntax syntax = {"plan", help, ":ho:q", options, own_option, 1, "one model"};

static int write_model(const struct plan *plan, const pp_planned *planned) {
  const pp_index **order = pp_alloc(planned->model->programs, sizeof *order);
  pp_output *output;
  pp_error error;
  pp_status status = order ? pp_output_open(plan->output, &output, &error) : pp_fail_memory(&error);
  if (!status) {
    for (size_t i = 0; i < planned->model->programs; i++)
      order[i] = pp_plan_order(planned->program[i].plan);
    status = pp_model_write(planned->model, order, pp_output_write, output, &error);
    status = pp_output_close(output, status, &error);
  }
  free(order);
  return status ? pp_say_error(plan->output, &error) : PP_EXIT_DONE;
}

static void list_files(const struct plan *plan, const pp_planned *planned) {
  const char *picture[] = {plan->pictures.svg, plan->pictures.trace, plan->pictures.html};
  if (plan->output)
    pp_tell("  wrote        %s", plan->output);
  for (size_t i = 0; i < sizeof picture / sizeof *picture; i++)
    if (picture[i])
      pp_tell("  wrote        %s", picture[i]);
  for (size_t i = 0; plan->certificate && i < planned->model->programs; i++) {
    const char *name = planned->model->name[i];
    pp_tell("  wrote        %s/%s.json, %s/%s.cert", plan->certificate, name, plan->certificate,
            name);
  }
}

static void say_budget(const pp_planned *planned, int64_t budget) {
  char text[PP_BYTES_TEXT];
  printf("  budget       %s: ", pp_bytes_text(text, budget));
  if (planned->peak_all <= budget)
    puts("the peak fits (the arena, with its fragmentation and scratch, is not checked yet)");
  else if (planned->lower_bound_all > budget)
    printf("no order can fit: each needs at least %s\n",
           pp_bytes_text(text, planned->lower_bound_all));
  else
    printf("no order was found that fits, and none below %s is possible\n",
           pp_bytes_text(text, planned->lower_bound_all));
}

static int report(const struct plan *plan, const pp_planned *planned) {
  pp_error error;
  if (plan->common.json) {
    if (pp_report_json(planned, &plan->budget, pp_stream_write, stdout, &error))
      return pp_say_error("standard output", &error);
  } else if (!plan->common.quiet) {
    pp_style style = {stdout, pp_color(stdout)};
    pp_report_text(planned, &style);
    list_files(plan, planned);
    if (plan->budget.asked)
      say_budget(planned, plan->budget.bytes);
  }
  return pp_flush_output(PP_EXIT_DONE);
}

/* The files first: a report says that they are there. */
static int finish(const struct plan *plan, const pp_planned *planned) {
  int code = PP_EXIT_DONE;
  if (plan->output)
    code = write_model(plan, planned);
  if (!code && plan->certificate)
    code = pp_write_proofs(planned, plan->certificate, plan->path, plan->output);
  if (!code)
    code = pp_write_pictures(&plan->pictures, planned, NULL, false);
  if (!code)
    code = report(plan, planned);
  if (code)
    return code;
  if (pp_interrupted())
    return PP_EXIT_INTERRUPTED;
  bool no = (plan->require_optimal && !planned->optimal) ||
            (plan->budget.asked && planned->peak_all > plan->budget.bytes);
  return no ? PP_EXIT_NO : PP_EXIT_DONE;
}

/* Not every format can be written: better said before the work than after it. */
static int read_model(const struct plan *plan, pp_model **model) {
  const pp_place place[] = {{"MODEL", plan->path, PP_PLACE_MODEL},
                            {"-o", plan->output, PP_PLACE_OUTPUT},
                            {"--svg", plan->pictures.svg, PP_PLACE_OUTPUT},
                            {"--trace", plan->pictures.trace, PP_PLACE_OUTPUT},
                            {"--html", plan->pictures.html, PP_PLACE_OUTPUT},
                            {"--certificate", plan->certificate, PP_PLACE_DIRECTORY}};
  const size_t places = sizeof place / sizeof *place;
  int code = pp_check_places("plan", place, places);
  if (!code)
    code = pp_read_model(plan->path, &plan->common, model);
  if (code)
    return code;
  code = pp_check_companions(*model, plan->common.quiet, place, places);
  if (!code)
    code = pp_check_proofs(*model, place, places);
  if (code) {
    pp_model_free(*model);
    return code;
  }
  if (!plan->output || (*model)->operations->write)
    return code;
  pp_say("%s: models of this format cannot be written: leave out -o", plan->path);
  pp_model_free(*model);
  return EX_USAGE;
}

int pp_verb_plan(int argc, char **argv) {
  struct plan plan = {0};
  pp_model *model;
  pp_planned planned;
  int code = pp_parse(&syntax, argc, argv, &plan.common, &plan);
  if (code != -1)
    return code;
  plan.path = argv[optind];
  code = read_model(&plan, &model);
  if (code)
    return code;
  code = pp_plan_model(model, &plan.common, &planned);
  if (code) {
    pp_model_free(model);
    return code;
  }
  code = finish(&plan, &planned);
  pp_planned_free(&planned);
  pp_model_free(model);
  return code;
}
