/* peakproof why: the step that sets the peak, what is held there, and what can still help. */

#include "cli/cli.h"

static const char help[] =
    "Usage: peakproof why [OPTION]... MODEL\n"
    "\n"
    "Says which step sets the peak of each program of MODEL, in the order that plan finds, every\n"
    "storage held there, since when and until when, and what can still lower the peak.\n"
    "\n"
    "      --original            explain the order that the file has\n"
    "      --program NAME        this program only\n" PP_PICTURE_HELP
    "      --json                report as JSON, one object a program "
    "(doc/cli.md)\n" PP_COMMON_HELP;

struct why {
  pp_common common;
  const char *path;
  bool original;
  pp_pictures pictures;
};

enum { OPTION_ORIGINAL = PP_OPTION_OWN, OPTION_PROGRAM, OPTION_JSON };

static const struct option options[] = {PP_COMMON_OPTIONS,
                                        PP_PICTURE_OPTIONS,
                                        {"original", no_argument, NULL, OPTION_ORIGINAL},
                                        {"program", required_argument, NULL, OPTION_PROGRAM},
                                        {"json", no_argument, NULL, OPTION_JSON},
                                        {NULL, 0, NULL, 0}};

static int own_option(int option, void *data) {
  struct why *why = data;
  if (pp_picture_option(option, &why->pictures))
    return -1;
  if (option == OPTION_ORIGINAL)
    why->original = true;
  else if (option == OPTION_JSON)
    why->common.json = true;
  else
    why->common.plan.only = optarg;
  return -1;
}

static const pp_syntax syntax = {"why", help, ":hq", options, own_option, 1, "one model"};

static int explain(const struct why *why, const pp_planned *planned, size_t i, bool first) {
  const pp_planned_program *it = planned->program + i;
  pp_error error;
  pp_why about = {.path = why->path,
                  .name = planned->model->name[i],
                  .program = it->program,
                  .plan = it->plan,
                  .order = why->original ? NULL : pp_plan_order(it->plan),
                  .bar = pp_terminal_width(stdout),
                  .unicode = pp_unicode()};
  pp_style style = {stdout, pp_color(stdout)};
  if (!first && !why->common.json)
    putchar('\n');
  pp_status status = why->common.json ? pp_report_why_json(&about, pp_stream_write, stdout, &error)
                                      : pp_report_why(&about, &style, &error);
  return status ? pp_say_error(why->path, &error) : PP_EXIT_DONE;
}

int pp_verb_why(int argc, char **argv) {
  struct why why = {0};
  pp_model *model;
  pp_planned planned;
  int code = pp_parse(&syntax, argc, argv, &why.common, &why);
  if (code != -1)
    return code;
  why.path = argv[optind];
  const pp_place place[] = {{"MODEL", why.path, PP_PLACE_MODEL},
                            {"--svg", why.pictures.svg, PP_PLACE_OUTPUT},
                            {"--trace", why.pictures.trace, PP_PLACE_OUTPUT},
                            {"--html", why.pictures.html, PP_PLACE_OUTPUT}};
  code = pp_check_places("why", place, sizeof place / sizeof *place);
  if (!code)
    code = pp_read_and_plan(why.path, &why.common, &model, &planned);
  if (code)
    return code;
  bool first = true;
  code = pp_check_companions(model, true, place, sizeof place / sizeof *place);
  if (!code)
    code = pp_write_pictures(&why.pictures, &planned, why.common.plan.only, why.original);
  for (size_t i = 0; !code && i < model->programs; i++) {
    if (!planned.program[i].plan ||
        (why.common.plan.only && i != pp_model_find(model, why.common.plan.only)))
      continue;
    code = explain(&why, &planned, i, first);
    first = false;
  }
  pp_planned_free(&planned);
  pp_model_free(model);
  if (!code && pp_interrupted())
    code = PP_EXIT_INTERRUPTED;
  return code ? code : pp_flush_output(code);
}
