/* Packs each arena, and says what the runtime will make of the offsets. */
#include <stdlib.h>
#include <string.h>

#include "cli/arena.h"
#include "error.h"
#include "memory.h"

static bool watch(const pp_arena_progress *progress, void *data) {
  (void)progress;
  (void)data;
  return pp_interrupted();
}

pp_arena_options pp_arena_how(const pp_arena_call *call) {
  return (pp_arena_options){.alignment = call->alignment,
                            .node_limit = call->node_limit,
                            .time_limit = call->common.plan.solve.time_limit,
                            .progress = watch};
}

/* What TFLM will need: it places what the plan leaves to it, and scratch, by its own planner. */
static pp_status promise_tflm(pp_arena_call *call, pp_arena_job *job) {
  bool *keep = pp_alloc(pp_tflite_tensors(call->model), sizeof *keep);
  size_t count = job->count + call->scratches, used = 0;
  pp_buffer *buffer = pp_alloc(count, sizeof *buffer);
  int64_t *offset = pp_alloc(count, sizeof *offset);
  pp_status status = keep && buffer && offset ? PP_OK : pp_fail_memory(&call->error);
  if (!status) {
    pp_tflite_unplannable(call->model, keep);
    for (size_t i = 0; i < job->count; i++) {
      if (job->tensor[i] < 0)
        continue;
      buffer[used] = job->buffer[i];
      offset[used++] = keep[job->tensor[i]] ? -1 : job->offset[i];
    }
    for (size_t k = 0; k < call->scratches; k++) /* in the order of requests */
      for (size_t i = 0; i < job->count; i++)
        if (job->tensor[i] < 0 && job->lives.life[i].subgraph == call->scratch[k].subgraph &&
            job->lives.life[i].index == call->scratch[k].operator_) {
          buffer[used] = job->buffer[i];
          buffer[used].bytes = call->scratch[k].bytes;
          offset[used++] = -1;
        }
    status = pp_arena_greedy(buffer, used, call->alignment, PP_PLANNER_TFLM, offset, &job->promised,
                             &call->error);
    for (size_t i = 0; i < used; i++)
      offset[i] = -1;
    if (!status)
      status = pp_arena_greedy(buffer, used, call->alignment, PP_PLANNER_TFLM, offset, &job->greedy,
                               &call->error);
  }
  free(keep);
  free(buffer);
  free(offset);
  return status;
}

static pp_status greedy_litert(pp_arena_call *call, pp_arena_job *job) {
  int64_t *offset = pp_alloc(job->count, sizeof *offset);
  if (!offset)
    return pp_fail_memory(&call->error);
  for (size_t i = 0; i < job->count; i++)
    offset[i] = -1;
  pp_status status = pp_arena_greedy(job->buffer, job->count, call->alignment, PP_PLANNER_LITERT,
                                     offset, &job->greedy, &call->error);
  free(offset);
  return status;
}

/* For a CSV an arena within the budget is enough. If there is none, or none was found, the smallest
 * one is wanted, in the time that is left. */
static pp_status solve(pp_arena_call *call, pp_arena_job *job) {
  pp_arena_options how = pp_arena_how(call);
  how.capacity = call->is_csv ? call->budget.bytes : 0;
  pp_status status = pp_arena_solve(job->buffer, job->count, &how, &job->packed, &call->error);
  if (status || !how.capacity || pp_arena_bytes(job->packed) <= how.capacity || pp_interrupted())
    return status;
  how.capacity = 0;
  if (how.time_limit > 0 && (how.time_limit -= pp_arena_seconds(job->packed)) <= 0)
    return PP_OK;
  pp_arena *smallest;
  status = pp_arena_solve(job->buffer, job->count, &how, &smallest, &call->error);
  if (status)
    return status;
  bool better = pp_arena_bytes(smallest) <= pp_arena_bytes(job->packed);
  pp_arena_free(better ? job->packed : smallest);
  if (better)
    job->packed = smallest;
  return PP_OK;
}

static pp_status pack(pp_arena_call *call, pp_arena_job *job) {
  pp_status status = solve(call, job);
  if (status)
    return status;
  memcpy(job->offset, pp_arena_offsets(job->packed), job->count * sizeof *job->offset);
  job->promised = pp_arena_bytes(job->packed);
  job->greedy = -1;
  if (call->runtime == PP_RUNTIME_TFLM)
    return promise_tflm(call, job);
  return call->runtime == PP_RUNTIME_LITERT ? greedy_litert(call, job) : PP_OK;
}

/* A plan that the file brings along must be a good one: tensors that live together share no byte.
 */
static pp_status check_old_plan(pp_arena_call *call, pp_arena_job *job) {
  int64_t *plan;
  pp_status status = pp_tflite_read_plan(call->model, &plan, &call->error);
  if (status || !plan)
    return status;
  pp_buffer *buffer = pp_alloc(job->count, sizeof *buffer);
  int64_t *offset = pp_alloc(job->count, sizeof *offset);
  size_t used = 0;
  if (!buffer || !offset)
    status = pp_fail_memory(&call->error);
  for (size_t i = 0; i < job->count && !status; i++)
    if (job->tensor[i] >= 0 && plan[job->tensor[i]] >= 0) {
      buffer[used] = job->buffer[i];
      offset[used++] = plan[job->tensor[i]];
    }
  pp_error inner;
  if (!status && pp_arena_check(buffer, used, call->alignment, offset, NULL, &inner))
    status = pp_fail(&call->error, PP_ERROR_INPUT,
                     "the offline memory plan in the file is wrong: planned %.200s", inner.message);
  free(buffer);
  free(offset);
  free(plan);
  return status;
}

/* The programs, callees first: a callee's arena is work of the statement that calls it. */
static pp_status pack_programs(pp_arena_call *call) {
  pp_model *model = call->model;
  const char *only = call->common.plan.only;
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  pp_status status = peak ? PP_OK : pp_fail_memory(&call->error);
  for (size_t k = 0; k < model->programs && !status; k++) {
    size_t i = model->sequence[k];
    pp_arena_job *job = &call->job[call->jobs++];
    pp_program *program;
    if ((status = pp_model_build(model, i, peak, &program, &call->error)))
      break;
    const pp_plan *plan = call->reorder ? call->planned.program[i].plan : NULL;
    status = pp_arena_job_of_program(job, program, plan ? pp_plan_order(plan) : NULL,
                                     model->name[i], &call->error);
    pp_program_free(program);
    if (!status && !(status = pack(call, job)))
      peak[i] = job->promised;
    if (only && !strcmp(only, model->name[i])) { /* what stood before it was for its sake */
      pp_arena_job mine = *job;
      *job = *call->job;
      *call->job = mine;
      break;
    }
  }
  free(peak);
  return status;
}

int pp_arena_pack(pp_arena_call *call) {
  size_t jobs = call->is_csv ? 1 : call->model->programs;
  call->job = pp_zalloc(jobs, sizeof *call->job);
  pp_status status = call->job ? PP_OK : pp_fail_memory(&call->error);
  if (status)
    return pp_say_error(call->path, &call->error);
  pp_catch_interrupts();
  if (call->is_csv)
    status = pp_arena_job_of_csv(call);
  else if (call->runtime != PP_RUNTIME_PLAIN)
    status = pp_arena_jobs_of_runtime(call);
  else
    status = pack_programs(call);
  if (!status && call->runtime == PP_RUNTIME_TFLM)
    status = check_old_plan(call, call->job);
  bool packed = !call->is_csv && call->runtime == PP_RUNTIME_PLAIN;
  for (size_t i = 0; i < call->jobs && !status && !packed; i++)
    status = pack(call, &call->job[i]);
  return status ? pp_say_error(call->path, &call->error) : PP_EXIT_DONE;
}
