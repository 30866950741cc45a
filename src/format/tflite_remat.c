/* A .tflite model with operators that run again. */
#include "format/rewriting.h"
#include "format/tflite_model.h"

pp_status pp_tflite_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                                pp_write *write, void *data, pp_error *error) {
  (void)model, (void)rewriting, (void)write, (void)data;
  return pp_tflite_fail(error, PP_ERROR_USAGE, PP_NOWHERE, "not yet");
}
