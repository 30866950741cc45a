/* Files that show a program's memory. */
#include <sysexits.h>

#include "cli/cli.h"
#include "report/timeline.h"

typedef pp_status picture(const pp_why *why, pp_write *write, void *data, pp_error *error);

bool pp_picture_option(int option, pp_pictures *pictures) {
  if (option == PP_OPTION_SVG)
    pictures->svg = optarg;
  else if (option == PP_OPTION_TRACE)
    pictures->trace = optarg;
  else if (option == PP_OPTION_HTML)
    pictures->html = optarg;
  else
    return false;
  return true;
}

static int write_picture(const char *path, picture *draw, const pp_why *why) {
  pp_output *output;
  pp_error error;
  if (!path)
    return PP_EXIT_DONE;
  if (pp_same_file(path, why->path)) {
    pp_say("%s: would overwrite the model", path);
    return EX_CANTCREAT;
  }
  pp_status status = pp_output_open(path, &output, &error);
  if (!status)
    status = pp_output_close(output, draw(why, pp_output_write, output, &error), &error);
  return status ? pp_say_error(path, &error) : PP_EXIT_DONE;
}

int pp_write_pictures(const pp_pictures *pictures, const pp_planned *planned, const char *only,
                      bool original) {
  const pp_model *model = planned->model;
  size_t chosen = model->programs;
  for (size_t i = 0; i < model->programs; i++)
    if (planned->program[i].plan &&
        (chosen == model->programs || planned->peak[i] > planned->peak[chosen]))
      chosen = i;
  if (only)
    chosen = pp_model_find(model, only);
  if (chosen == model->programs)
    return PP_EXIT_DONE;
  const pp_planned_program *it = planned->program + chosen;
  pp_why why = {.path = model->path,
                .name = model->name[chosen],
                .program = it->program,
                .plan = it->plan,
                .order = pp_plan_order(it->plan)};
  int code = write_picture(pictures->svg, pp_report_svg, &why);
  if (!code)
    code = write_picture(pictures->html, pp_report_html, &why);
  why.order = original ? NULL : why.order;
  return code ? code : write_picture(pictures->trace, pp_report_trace, &why);
}
