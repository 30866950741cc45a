/* Reading and planning a model, for every verb that does. */
#include <sysexits.h>

#include "cli/cli.h"

int pp_read_model(const char *path, const pp_common *common, pp_model **model) {
  pp_error error;
  pp_catch_interrupts();
  const pp_read_options options = {common->dimensions, common->dimension};
  if (pp_model_read(path, &options, model, &error))
    return pp_say_error(path, &error);
  if (!common->quiet)
    pp_say_notices(*model);
  const char *only = common->plan.only;
  if (only && pp_model_find(*model, only) == (*model)->programs) {
    pp_say("%s: there is no program \"%s\"", path, only);
    pp_model_free(*model);
    return EX_USAGE;
  }
  return PP_EXIT_DONE;
}

int pp_plan_model(const pp_model *model, pp_common *common, pp_planned *planned) {
  pp_error error;
  pp_meter meter;
  pp_meter_attach(&meter, common);
  pp_status status = pp_planned_make(model, &common->plan, planned, &error);
  pp_meter_clear(&meter);
  if (!status)
    return PP_EXIT_DONE;
  pp_planned_free(planned);
  return pp_say_error(model->path, &error);
}

int pp_read_and_plan(const char *path, pp_common *common, pp_model **model, pp_planned *planned) {
  int code = pp_read_model(path, common, model);
  if (code)
    return code;
  code = pp_plan_model(*model, common, planned);
  if (code)
    pp_model_free(*model);
  return code;
}
