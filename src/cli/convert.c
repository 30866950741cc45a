/* peakproof convert: a model's programs as program JSON. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "error.h"

static const char help[] =
    "Usage: peakproof convert [OPTION]... MODEL\n"
    "\n"
    "Writes a program of MODEL as program JSON (doc/program-json.md), in its original order: "
    "exactly\n"
    "the NAME.json of plan --certificate. Where a program calls others these are planned first, "
    "since\n"
    "their peak is part of it.\n"
    "\n"
    "  -o, --output FILE         write there instead of to standard output; a directory (an "
    "existing\n"
    "                            one, or a name with / at the end) gets NAME.json of every "
    "program\n"
    "      --program NAME        this program, where the model has several\n" PP_COMMON_HELP;

struct convert {
  pp_common common;
  const char *path, *output;
};

enum { OPTION_PROGRAM = PP_OPTION_OWN };

static const struct option options[] = {PP_COMMON_OPTIONS,
                                        {"output", required_argument, NULL, 'o'},
                                        {"program", required_argument, NULL, OPTION_PROGRAM},
                                        {NULL, 0, NULL, 0}};

static int own_option(int option, void *data) {
  struct convert *convert = data;
  if (option == 'o')
    convert->output = optarg;
  else
    convert->common.plan.only = optarg;
  return -1;
}

static const pp_syntax syntax = {"convert", help, ":ho:q", options, own_option, 1, "one model"};

static bool is_directory(const char *path) {
  struct stat about;
  return (*path && path[strlen(path) - 1] == '/') ||
         (!stat(path, &about) && S_ISDIR(about.st_mode));
}

static pp_status write_file(const pp_program *program, const char *path, pp_error *error) {
  pp_output *output;
  pp_status status = pp_output_open(path, &output, error);
  if (status)
    return status;
  status = pp_program_json_write(program, pp_output_write, output, error);
  return pp_output_close(output, status, error);
}

static int write_one(const struct convert *convert, const pp_program *program) {
  pp_error error;
  pp_status status = convert->output
                         ? write_file(program, convert->output, &error)
                         : pp_program_json_write(program, pp_stream_write, stdout, &error);
  if (status)
    return pp_say_error(convert->output ? convert->output : "standard output", &error);
  return pp_flush_output(PP_EXIT_DONE);
}

static int write_into(const struct convert *convert, const pp_planned *planned, size_t i) {
  pp_error error;
  char *path = pp_path_in(convert->output, planned->model->name[i], "json");
  pp_status status = path ? PP_OK : pp_fail_memory(&error);
  if (!status && pp_same_file(path, convert->path))
    status = pp_fail(&error, PP_ERROR_CREATE, "would overwrite the model");
  if (!status)
    status = write_file(planned->program[i].program, path, &error);
  int code = status ? pp_say_error(path ? path : convert->output, &error) : PP_EXIT_DONE;
  free(path);
  return code;
}

static int write_all(const struct convert *convert, const pp_planned *planned) {
  pp_error error;
  const char *only = convert->common.plan.only;
  if (pp_make_directory(convert->output, &error))
    return pp_say_error(convert->output, &error);
  int code = PP_EXIT_DONE;
  for (size_t i = 0; !code && i < planned->model->programs; i++)
    if (!only || !strcmp(only, planned->model->name[i]))
      code = write_into(convert, planned, i);
  return code;
}

/* A model of one program needs no plan to be written. */
static int convert_single(const struct convert *convert, const pp_model *model) {
  pp_program *program;
  pp_error error;
  int64_t peak = 0;
  if (pp_model_build(model, 0, &peak, &program, &error))
    return pp_say_error(convert->path, &error);
  int code = write_one(convert, program);
  pp_program_free(program);
  return code;
}

static int convert_planned(struct convert *convert, const pp_model *model) {
  const char *only = convert->common.plan.only;
  pp_planned planned;
  bool directory = convert->output && is_directory(convert->output);
  if (!directory && !only && model->programs > 1)
    return pp_usage_error("convert",
                          "%s has %zu programs: choose one with --program (\"%s\"), or "
                          "name a directory with -o",
                          convert->path, model->programs, model->name[0]);
  int code = pp_plan_model(model, &convert->common, &planned);
  if (code)
    return code;
  code = directory
             ? write_all(convert, &planned)
             : write_one(convert, planned.program[only ? pp_model_find(model, only) : 0].program);
  pp_planned_free(&planned);
  return code;
}

int pp_verb_convert(int argc, char **argv) {
  struct convert convert = {0};
  pp_model *model;
  int code = pp_parse(&syntax, argc, argv, &convert.common, &convert);
  if (code != -1)
    return code;
  convert.path = argv[optind];
  bool directory = convert.output && is_directory(convert.output);
  /* -o FILE may replace the model; files in a directory, whose names nobody wrote, may not */
  const pp_place place[] = {{"MODEL", convert.path, PP_PLACE_MODEL},
                            {directory ? "-o (a directory)" : "-o", convert.output,
                             directory ? PP_PLACE_DIRECTORY : PP_PLACE_OUTPUT}};
  code = pp_check_places("convert", place, 2);
  if (!code)
    code = pp_read_model(convert.path, &convert.common, &model);
  if (code)
    return code;
  code = directory ? pp_check_names(model, place + 1, "json", place, 2)
                   : pp_check_companions(model, true, place, 2);
  if (code) {
    pp_model_free(model);
    return code;
  }
  bool single = model->programs == 1 && !directory;
  code = single ? convert_single(&convert, model) : convert_planned(&convert, model);
  pp_model_free(model);
  return code ? code : pp_interrupted() ? PP_EXIT_INTERRUPTED : PP_EXIT_DONE;
}
