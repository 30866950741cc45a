/* An ONNX model with nodes that run again. */
#include "format/onnx_model.h"
#include "format/rewriting.h"

pp_status pp_onnx_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                              pp_write *write, void *data, pp_error *error) {
  (void)model, (void)rewriting, (void)write, (void)data;
  return pp_onnx_fail(error, PP_ERROR_USAGE, PP_NOWHERE, "not yet");
}
