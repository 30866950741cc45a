/* What peakproof arena writes: the model or a CSV with offsets, pictures, tables, the report. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/arena.h"
#include "error.h"
#include "memory.h"

static pp_status write_plan(const pp_arena_call *call, pp_output *output, pp_error *error) {
  const pp_arena_job *job = call->job;
  size_t tensors = pp_tflite_tensors(call->model);
  int64_t *offset = pp_alloc(tensors, sizeof *offset);
  bool *keep = pp_alloc(tensors, sizeof *keep);
  pp_status status = offset && keep ? PP_OK : pp_fail_memory(error);
  if (!status) {
    pp_tflite_unplannable(call->model, keep);
    for (size_t t = 0; t < tensors; t++)
      offset[t] = -1;
    for (size_t i = 0; i < job->count; i++)
      if (job->tensor[i] >= 0 && !keep[job->tensor[i]])
        offset[job->tensor[i]] = job->offset[i];
    status = pp_tflite_write_plan(call->model, offset, pp_output_write, output, error);
  }
  free(offset);
  free(keep);
  return status;
}

/* minimalloc's columns. */
static pp_status write_csv(const pp_arena_job *job, pp_output *output, pp_error *error) {
  char line[160];
  bool written = pp_output_write("id,lower,upper,size,offset\n", 27, output);
  for (size_t i = 0; i < job->count && written; i++) {
    int length = snprintf(
        line, sizeof line, "%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", i,
        job->buffer[i].first, job->buffer[i].last + 1, job->buffer[i].bytes, job->offset[i]);
    written = pp_output_write(line, (size_t)length, output);
  }
  return written ? PP_OK : pp_fail(error, PP_ERROR_IO, "the offsets could not be written");
}

enum kind { WRITE_OUTPUT, WRITE_HEADER, WRITE_SVG, WRITE_ORDERED };

static pp_status write_kind(const pp_arena_call *call, const pp_arena_report *report,
                            enum kind kind, pp_output *output, pp_error *error) {
  if (kind == WRITE_ORDERED)
    return pp_arena_write_ordered(call, pp_output_write, output, error);
  if (kind == WRITE_HEADER)
    return pp_report_arena_header(report, pp_output_write, output, error);
  if (kind == WRITE_SVG)
    return pp_report_arena_svg(report->arena, pp_output_write, output, error);
  if (call->is_csv)
    return pp_csv_write(&call->csv, call->job->offset, pp_output_write, output, error);
  if (call->runtime == PP_RUNTIME_TFLM)
    return write_plan(call, output, error);
  return write_csv(call->job, output, error);
}

static int write_file(const pp_arena_call *call, const pp_arena_report *report, enum kind kind,
                      const char *path) {
  pp_error error;
  pp_output *output;
  if (!path)
    return PP_EXIT_DONE;
  pp_status status = pp_output_open(path, &output, &error);
  if (!status)
    status = pp_output_close(output, write_kind(call, report, kind, output, &error), &error);
  return status ? pp_say_error(path, &error) : PP_EXIT_DONE;
}

static int report_all(const pp_arena_call *call, const pp_arena_report *report) {
  pp_error error;
  if (call->common.json) {
    if (pp_report_arena_json(report, pp_stream_write, stdout, &error))
      return pp_say_error("standard output", &error);
  } else if (!call->common.quiet) {
    pp_style style = {stdout, pp_color(stdout)};
    pp_report_arena(report, &style);
    if (call->output)
      pp_tell("  wrote        %s", call->output);
  }
  return pp_flush_output(PP_EXIT_DONE);
}

/* Whether one arena was asked for where only one can be written. */
static int check_outputs(const pp_arena_call *call, size_t arenas) {
  bool csv = call->output && call->runtime != PP_RUNTIME_TFLM;
  if (arenas > 1 && (csv || call->svg))
    return pp_usage_error("arena", "%s has %zu arenas: choose one with --program (\"%s\")",
                          call->path, arenas, call->job->name);
  return PP_EXIT_DONE;
}

int pp_arena_finish(const pp_arena_call *call) {
  size_t arenas = call->common.plan.only ? 1 : call->jobs;
  pp_arena_view *view = pp_alloc(arenas, sizeof *view);
  int code = view ? check_outputs(call, arenas) : pp_say_memory();
  static const char *const names[] = {"csv", "tflm", "litert", "plain"};
  pp_arena_report report = {call->path,      names[call->is_csv ? 0 : call->runtime],
                            call->alignment, call->scratch_path != NULL,
                            arenas,          view,
                            &call->budget,   call->reorder ? &call->planned : NULL,
                            call->refinement};
  bool fits = true;
  for (size_t i = 0; i < arenas && view; i++) {
    const pp_arena_job *job = &call->job[i];
    view[i] = (pp_arena_view){job->name,     job->count,   job->buffer,          job->offset,
                              job->label,    job->tensor,  job->packed,          job->greedy,
                              job->promised, job->scratch, job->lives.persistent};
    fits = fits && job->promised <= call->budget.bytes;
  }
  if (!code)
    code = write_file(call, &report, WRITE_OUTPUT, call->output);
  if (!code)
    code = write_file(call, &report, WRITE_ORDERED, call->ordered);
  if (!code)
    code = write_file(call, &report, WRITE_HEADER, call->header);
  if (!code)
    code = write_file(call, &report, WRITE_SVG, call->svg);
  if (!code && call->certificate)
    code = pp_write_proofs(&call->planned, call->certificate, call->path, call->output);
  if (!code)
    code = report_all(call, &report);
  free(view);
  if (code)
    return code;
  if (pp_interrupted()) /* nobody knows what was still to be found */
    return PP_EXIT_INTERRUPTED;
  return call->budget.asked && !fits ? PP_EXIT_NO : PP_EXIT_DONE;
}
