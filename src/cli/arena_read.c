/* What peakproof arena reads: a model or minimalloc's CSV, and known scratch. */
#include <stdlib.h>
#include <sysexits.h>

#include "cli/arena.h"

static int read_scratch(pp_arena_call *call) {
  uint8_t *bytes;
  size_t size;
  if (!call->scratch_path)
    return PP_EXIT_DONE;
  if (pp_read_file(call->scratch_path, &bytes, &size, &call->error))
    return pp_say_error(call->scratch_path, &call->error);
  pp_status status =
      pp_csv_read_scratch(bytes, size, &call->scratch, &call->scratches, &call->error);
  free(bytes);
  return status ? pp_say_error(call->scratch_path, &call->error) : PP_EXIT_DONE;
}

static int read_model(pp_arena_call *call, uint8_t *bytes, size_t size) {
  const pp_read_options how = {call->common.dimensions, call->common.dimension};
  if (pp_model_read_bytes(call->path, bytes, size, &how, &call->model, &call->error))
    return pp_say_error(call->path, &call->error);
  bool tflite = call->model->format == PP_FORMAT_TFLITE;
  if (call->runtime == PP_RUNTIME_DEFAULT && tflite) {
    call->runtime = PP_RUNTIME_TFLM;
    call->alignment = PP_TFLM_ALIGNMENT;
  }
  if (call->runtime == PP_RUNTIME_DEFAULT)
    return pp_usage_error("arena", "say with --runtime ALIGNMENT what offsets are multiples of");
  if (call->runtime != PP_RUNTIME_PLAIN && !tflite)
    return pp_usage_error("arena", "tflm and litert run .tflite files: give an alignment instead");
  const char *only = call->common.plan.only;
  if (only && call->runtime == PP_RUNTIME_TFLM)
    return pp_usage_error("arena", "tflm has one arena for all programs: --program is for others");
  if (only && pp_model_find(call->model, only) == call->model->programs) {
    pp_say("%s: there is no program \"%s\"", call->path, only);
    return EX_USAGE;
  }
  if (call->scratch_path && !tflite)
    return pp_usage_error("arena", "--scratch is for .tflite files");
  if (!call->common.quiet)
    pp_say_notices(call->model);
  return PP_EXIT_DONE;
}

static int read_csv(pp_arena_call *call, const uint8_t *bytes, size_t size) {
  if (call->runtime == PP_RUNTIME_TFLM || call->runtime == PP_RUNTIME_LITERT || call->scratch_path)
    return pp_usage_error("arena", "a CSV is of no runtime: give an alignment");
  if (call->reorder)
    return pp_usage_error("arena", "a CSV has no order: --reorder is for models");
  if (pp_csv_read(bytes, size, &call->csv, &call->error))
    return pp_say_error(call->path, &call->error);
  call->is_csv = true;
  if (call->common.dimensions && !call->common.quiet)
    pp_say("note: %s: this format names no dimensions: --dim does nothing", call->path);
  if (call->runtime == PP_RUNTIME_DEFAULT)
    call->alignment = call->csv.alignment;
  call->runtime = PP_RUNTIME_PLAIN;
  return PP_EXIT_DONE;
}

int pp_arena_read(pp_arena_call *call) {
  uint8_t *bytes;
  size_t size;
  int code = read_scratch(call);
  if (code)
    return code;
  if (pp_read_file(call->path, &bytes, &size, &call->error))
    return pp_say_error(call->path, &call->error);
  if (!pp_csv_test(bytes, size))
    return read_model(call, bytes, size);
  code = read_csv(call, bytes, size);
  free(bytes);
  return code;
}
