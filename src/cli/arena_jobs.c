/* What is to be packed: buffers with lives, from a runtime's rules, a program, or a CSV. */
#include <stdlib.h>
#include <string.h>

#include "cli/arena.h"
#include "error.h"
#include "memory.h"

static pp_status allocate_job(pp_arena_job *job, size_t count, const char *name, pp_error *error) {
  job->count = count;
  job->name = strdup(name);
  job->buffer = pp_alloc(count, sizeof *job->buffer);
  job->label = pp_zalloc(count, sizeof *job->label);
  job->tensor = pp_alloc(count, sizeof *job->tensor);
  job->offset = pp_alloc(count, sizeof *job->offset);
  return job->name && job->buffer && job->label && job->tensor && job->offset
             ? PP_OK
             : pp_fail_memory(error);
}

/* ---- From a runtime's lives ---- */

static pp_status take_lives(pp_arena_call *call, pp_arena_job *job, const char *name) {
  pp_status status = allocate_job(job, job->lives.count, name, &call->error);
  for (size_t i = 0; i < job->count && !status; i++) {
    const pp_life *life = &job->lives.life[i];
    char label[200];
    pp_tflite_life_name(call->model, life, label, sizeof label);
    job->buffer[i] = life->buffer;
    job->tensor[i] = life->tensor;
    if (life->tensor < 0)
      job->scratch += life->buffer.bytes;
    int64_t *bytes = &job->buffer[i].bytes, rest = *bytes % call->alignment;
    if (call->runtime == PP_RUNTIME_TFLM && rest &&
        __builtin_add_overflow(*bytes, call->alignment - rest, bytes))
      status = pp_fail(&call->error, PP_ERROR_OVERFLOW, "%s is too large", label);
    if (!(job->label[i] = strdup(label)))
      status = pp_fail_memory(&call->error);
  }
  return status;
}

pp_status pp_arena_jobs_of_runtime(pp_arena_call *call) {
  size_t subgraphs = pp_tflite_subgraphs(call->model);
  const char *only = call->common.plan.only;
  pp_status status = PP_OK;
  if (call->runtime == PP_RUNTIME_TFLM) {
    call->jobs = 1;
    status =
        pp_lives_tflm(call->model, call->scratch, call->scratches, &call->job->lives, &call->error);
    return status ? status : take_lives(call, call->job, "");
  }
  for (size_t s = 0; s < subgraphs && !status; s++) {
    if (only && strcmp(only, call->model->name[s]) != 0)
      continue;
    pp_arena_job *job = &call->job[call->jobs++];
    status = pp_lives_litert(call->model, (uint32_t)s, call->scratch, call->scratches, &job->lives,
                             &call->error);
    if (!status)
      status = take_lives(call, job, call->model->name[s]);
  }
  return status;
}

/* ---- From programs and CSV ---- */

/* Work is a buffer that lives during its statement. */
pp_status pp_arena_job_of_program(pp_arena_job *job, const pp_program *program,
                                  const pp_index *order, const char *name, pp_error *error) {
  pp_index n = pp_program_statements(program), m = pp_program_storages(program);
  pp_buffer *buffer = pp_alloc((size_t)m + (size_t)n, sizeof *buffer);
  pp_status status = allocate_job(job, (size_t)m + (size_t)n, name, error);
  if (!status)
    status = buffer ? pp_arena_buffers(program, order, buffer, error) : pp_fail_memory(error);
  job->count = 0;
  for (pp_index i = 0; i < m + n && !status; i++) {
    bool work = i >= m;
    const pp_index *accessor;
    if (work ? buffer[i].bytes == 0
             : !pp_program_accessors(program, i, &accessor) &&
                   pp_program_storage(program, i).flags != (PP_LIVE_IN | PP_LIVE_OUT))
      continue;
    job->buffer[job->count] = buffer[i];
    job->tensor[job->count] = work ? -1 : i;
    job->scratch += work ? buffer[i].bytes : 0;
    const char *label =
        work ? pp_program_statement(program, i - m).name : pp_program_storage(program, i).name;
    if (!(job->label[job->count++] = strdup(label)))
      status = pp_fail_memory(error);
  }
  free(buffer);
  return status;
}

pp_status pp_arena_job_of_csv(pp_arena_call *call) {
  call->jobs = 1;
  pp_arena_job *job = call->job;
  pp_status status = allocate_job(job, call->csv.count, "", &call->error);
  for (size_t i = 0; i < call->csv.count && !status; i++) {
    job->buffer[i] = call->csv.buffer[i];
    job->tensor[i] = -1;
    if (!(job->label[i] = strdup(call->csv.id[i])))
      status = pp_fail_memory(&call->error);
  }
  return status;
}

void pp_arena_job_free(pp_arena_job *job) {
  for (size_t i = 0; job->label && i < job->count; i++)
    free(job->label[i]);
  free(job->name);
  free(job->buffer);
  free(job->label);
  free(job->tensor);
  free(job->offset);
  pp_lives_free(&job->lives);
  pp_arena_free(job->packed);
}
