/* peakproof arena: offsets in a static arena, proved minimal where they are. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "error.h"
#include "format/csv.h"
#include "format/tflite_arena.h"
#include "memory.h"
#include "report/arena.h"

static const char help[] =
    "Usage: peakproof arena [OPTION]... MODEL\n"
    "\n"
    "Places the tensors of MODEL, in the order that it has, in the smallest arena, and says "
    "whether "
    "it\n"
    "is known to be minimal (doc/arena.md). MODEL is .tflite, ONNX, program JSON, or minimalloc's "
    "CSV.\n"
    "\n"
    "      --runtime RUNTIME     tflm: TensorFlow Lite Micro's rules, one arena for all subgraphs\n"
    "                            litert: LiteRT's rules, one for each subgraph\n"
    "                            a number: offsets are multiples of it, tensors live from first "
    "to\n"
    "                            last use. Default: tflm for .tflite, the file's own for CSV\n"
    "  -o, --output FILE         tflm: write the model with the offsets in it; else: write a CSV\n"
    "      --scratch FILE        known scratch of operators, CSV: subgraph,operator,bytes\n"
    "      --c-header FILE       write the arena's size and a table of offsets for C\n"
    "      --svg FILE            draw the arena: bytes upwards, time to the right\n"
    "      --reorder             pack the order of lowest peak instead, or another one of the same "
    "peak\n"
    "                            whose arena is smaller; the outputs are in that order\n"
    "      --certificate DIR     with --reorder: write the proof of each program's peak "
    "(peakproof plan)\n"
    "      --ordered FILE        with --reorder: write the model in that order, without offsets, "
    "for\n"
    "                            peakproof verify\n"
    "      --program NAME        this program, where the model has several (not with tflm)\n"
    "      --budget SIZE         exit with 1 if the arena is larger than SIZE\n"
    "      --node-limit N        let the exact search visit at most N nodes\n"
    "      --json                report as JSON\n" PP_COMMON_HELP;

enum runtime { RUNTIME_DEFAULT, RUNTIME_TFLM, RUNTIME_LITERT, RUNTIME_PLAIN };

/* One arena in the making. */
struct job {
  char *name;
  size_t count;
  pp_buffer *buffer; /* sizes as the runtime counts them */
  char **label;
  int64_t *tensor;
  int64_t *offset;
  pp_lives lives; /* .tflite only */
  pp_arena *packed;
  int64_t greedy, promised, scratch;
};

struct arena {
  pp_common common;
  const char *path, *output, *header, *svg, *scratch_path, *certificate, *ordered;
  enum runtime runtime;
  int64_t alignment, node_limit;
  pp_budget budget;
  pp_model *model; /* or */
  pp_csv csv;
  bool is_csv;
  pp_scratch *scratch;
  size_t scratches;
  struct job *job;
  size_t jobs;
  bool reorder;
  pp_model *given;    /* with --reorder: the model as it was read, and its plans */
  pp_planned planned; /* or */
  pp_refinement refinement;
  pp_error error;
};

/* ---- Options ---- */

enum {
  OPTION_RUNTIME = PP_OPTION_OWN,
  OPTION_SCRATCH,
  OPTION_HEADER,
  OPTION_SVG,
  OPTION_REORDER,
  OPTION_CERTIFICATE,
  OPTION_ORDERED,
  OPTION_PROGRAM,
  OPTION_BUDGET,
  OPTION_NODES,
  OPTION_JSON
};

static const struct option options[] = {
    PP_COMMON_OPTIONS,
    {"runtime", required_argument, NULL, OPTION_RUNTIME},
    {"output", required_argument, NULL, 'o'},
    {"scratch", required_argument, NULL, OPTION_SCRATCH},
    {"c-header", required_argument, NULL, OPTION_HEADER},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"reorder", no_argument, NULL, OPTION_REORDER},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"ordered", required_argument, NULL, OPTION_ORDERED},
    {"program", required_argument, NULL, OPTION_PROGRAM},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"node-limit", required_argument, NULL, OPTION_NODES},
    {"json", no_argument, NULL, OPTION_JSON},
    {NULL, 0, NULL, 0}};

static int parse_runtime(struct arena *arena, const char *text) {
  if (!strcmp(text, "tflm")) {
    arena->runtime = RUNTIME_TFLM;
    arena->alignment = PP_TFLM_ALIGNMENT;
  } else if (!strcmp(text, "litert")) {
    arena->runtime = RUNTIME_LITERT;
    arena->alignment = PP_LITERT_ALIGNMENT;
  } else if (pp_parse_bytes(text, &arena->alignment) && arena->alignment > 0) {
    arena->runtime = RUNTIME_PLAIN;
  } else {
    return pp_usage_error("arena", "--runtime wants tflm, litert or an alignment, not \"%s\"",
                          text);
  }
  return -1;
}

static int own_option(int option, void *data) {
  struct arena *arena = data;
  switch (option) {
  case OPTION_RUNTIME:
    return parse_runtime(arena, optarg);
  case 'o':
    arena->output = optarg;
    return -1;
  case OPTION_SCRATCH:
    arena->scratch_path = optarg;
    return -1;
  case OPTION_HEADER:
    arena->header = optarg;
    return -1;
  case OPTION_SVG:
    arena->svg = optarg;
    return -1;
  case OPTION_REORDER:
    arena->reorder = true;
    return -1;
  case OPTION_CERTIFICATE:
    arena->certificate = optarg;
    return -1;
  case OPTION_ORDERED:
    arena->ordered = optarg;
    return -1;
  case OPTION_PROGRAM:
    arena->common.plan.only = optarg;
    return -1;
  case OPTION_JSON:
    arena->common.json = true;
    return -1;
  case OPTION_NODES:
    if (pp_parse_bytes(optarg, &arena->node_limit) && arena->node_limit > 0)
      return -1;
    return pp_usage_error("arena", "--node-limit wants a number above 0, not \"%s\"", optarg);
  default: /* OPTION_BUDGET */
    arena->budget.asked = true;
    if (pp_parse_bytes(optarg, &arena->budget.bytes))
      return -1;
    return pp_usage_error("arena", "--budget wants bytes, not \"%s\"", optarg);
  }
}

static const pp_syntax syntax = {"arena", help, ":ho:q", options, own_option, 1, "one model"};

/* ---- Reading ---- */

static int read_scratch(struct arena *arena) {
  uint8_t *bytes;
  size_t size;
  if (!arena->scratch_path)
    return PP_EXIT_DONE;
  if (pp_read_file(arena->scratch_path, &bytes, &size, &arena->error))
    return pp_say_error(arena->scratch_path, &arena->error);
  pp_status status =
      pp_csv_read_scratch(bytes, size, &arena->scratch, &arena->scratches, &arena->error);
  free(bytes);
  return status ? pp_say_error(arena->scratch_path, &arena->error) : PP_EXIT_DONE;
}

static int read_model(struct arena *arena, uint8_t *bytes, size_t size) {
  const pp_read_options how = {arena->common.dimensions, arena->common.dimension};
  if (pp_model_read_bytes(arena->path, bytes, size, &how, &arena->model, &arena->error))
    return pp_say_error(arena->path, &arena->error);
  bool tflite = arena->model->format == PP_FORMAT_TFLITE;
  if (arena->runtime == RUNTIME_DEFAULT && tflite) {
    arena->runtime = RUNTIME_TFLM;
    arena->alignment = PP_TFLM_ALIGNMENT;
  }
  if (arena->runtime == RUNTIME_DEFAULT)
    return pp_usage_error("arena", "say with --runtime ALIGNMENT what offsets are multiples of");
  if (arena->runtime != RUNTIME_PLAIN && !tflite)
    return pp_usage_error("arena", "tflm and litert run .tflite files: give an alignment instead");
  const char *only = arena->common.plan.only;
  if (only && arena->runtime == RUNTIME_TFLM)
    return pp_usage_error("arena", "tflm has one arena for all programs: --program is for others");
  if (only && pp_model_find(arena->model, only) == arena->model->programs) {
    pp_say("%s: there is no program \"%s\"", arena->path, only);
    return EX_USAGE;
  }
  if (arena->scratch_path && !tflite)
    return pp_usage_error("arena", "--scratch is for .tflite files");
  if (!arena->common.quiet)
    pp_say_notices(arena->model);
  return PP_EXIT_DONE;
}

static int read_csv(struct arena *arena, const uint8_t *bytes, size_t size) {
  if (arena->runtime == RUNTIME_TFLM || arena->runtime == RUNTIME_LITERT || arena->scratch_path)
    return pp_usage_error("arena", "a CSV is of no runtime: give an alignment");
  if (arena->reorder)
    return pp_usage_error("arena", "a CSV has no order: --reorder is for models");
  if (pp_csv_read(bytes, size, &arena->csv, &arena->error))
    return pp_say_error(arena->path, &arena->error);
  arena->is_csv = true;
  if (arena->common.dimensions && !arena->common.quiet)
    pp_say("note: %s: this format names no dimensions: --dim does nothing", arena->path);
  if (arena->runtime == RUNTIME_DEFAULT)
    arena->alignment = arena->csv.alignment;
  arena->runtime = RUNTIME_PLAIN;
  return PP_EXIT_DONE;
}

static int read_input(struct arena *arena) {
  uint8_t *bytes;
  size_t size;
  int code = read_scratch(arena);
  if (code)
    return code;
  if (pp_read_file(arena->path, &bytes, &size, &arena->error))
    return pp_say_error(arena->path, &arena->error);
  if (!pp_csv_test(bytes, size))
    return read_model(arena, bytes, size);
  code = read_csv(arena, bytes, size);
  free(bytes);
  return code;
}

/* ---- Jobs: from a runtime's lives ---- */

static pp_status allocate_job(struct job *job, size_t count, const char *name, pp_error *error) {
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

static pp_status take_lives(struct arena *arena, struct job *job, const char *name) {
  pp_status status = allocate_job(job, job->lives.count, name, &arena->error);
  for (size_t i = 0; i < job->count && !status; i++) {
    const pp_life *life = &job->lives.life[i];
    char label[200];
    pp_tflite_life_name(arena->model, life, label, sizeof label);
    job->buffer[i] = life->buffer;
    job->tensor[i] = life->tensor;
    if (life->tensor < 0)
      job->scratch += life->buffer.bytes;
    int64_t *bytes = &job->buffer[i].bytes, rest = *bytes % arena->alignment;
    if (arena->runtime == RUNTIME_TFLM && rest &&
        __builtin_add_overflow(*bytes, arena->alignment - rest, bytes))
      status = pp_fail(&arena->error, PP_ERROR_OVERFLOW, "%s is too large", label);
    if (!(job->label[i] = strdup(label)))
      status = pp_fail_memory(&arena->error);
  }
  return status;
}

static pp_status make_runtime_jobs(struct arena *arena) {
  size_t subgraphs = pp_tflite_subgraphs(arena->model);
  const char *only = arena->common.plan.only;
  pp_status status = PP_OK;
  if (arena->runtime == RUNTIME_TFLM) {
    arena->jobs = 1;
    status = pp_lives_tflm(arena->model, arena->scratch, arena->scratches, &arena->job->lives,
                           &arena->error);
    return status ? status : take_lives(arena, arena->job, "");
  }
  for (size_t s = 0; s < subgraphs && !status; s++) {
    if (only && strcmp(only, arena->model->name[s]) != 0)
      continue;
    struct job *job = &arena->job[arena->jobs++];
    status = pp_lives_litert(arena->model, (uint32_t)s, arena->scratch, arena->scratches,
                             &job->lives, &arena->error);
    if (!status)
      status = take_lives(arena, job, arena->model->name[s]);
  }
  return status;
}

/* ---- Jobs: from programs and CSV ---- */

/* Work is a buffer that lives during its statement. */
static pp_status take_program(struct arena *arena, struct job *job, const pp_program *program,
                              const pp_index *order, const char *name) {
  pp_index n = pp_program_statements(program), m = pp_program_storages(program);
  pp_buffer *buffer = pp_alloc((size_t)m + (size_t)n, sizeof *buffer);
  pp_status status = allocate_job(job, (size_t)m + (size_t)n, name, &arena->error);
  if (!status)
    status = buffer ? pp_arena_buffers(program, order, buffer, &arena->error)
                    : pp_fail_memory(&arena->error);
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
      status = pp_fail_memory(&arena->error);
  }
  free(buffer);
  return status;
}

static pp_status make_csv_job(struct arena *arena) {
  arena->jobs = 1;
  struct job *job = arena->job;
  pp_status status = allocate_job(job, arena->csv.count, "", &arena->error);
  for (size_t i = 0; i < arena->csv.count && !status; i++) {
    job->buffer[i] = arena->csv.buffer[i];
    job->tensor[i] = -1;
    if (!(job->label[i] = strdup(arena->csv.id[i])))
      status = pp_fail_memory(&arena->error);
  }
  return status;
}

static bool watch(const pp_arena_progress *progress, void *data) {
  (void)progress;
  (void)data;
  return pp_interrupted();
}

/* ---- Another order ---- */

/* Scratch is given by the numbers that operators have in the file; in another order they have
 * others. */
static void renumber_scratch(struct arena *arena, size_t subgraph, const pp_index *order,
                             pp_index n) {
  for (size_t k = 0; k < arena->scratches; k++) {
    pp_scratch *scratch = &arena->scratch[k];
    if (scratch->subgraph != subgraph)
      continue;
    for (pp_index i = 0; i < n; i++)
      if (order[i] == (pp_index)scratch->operator_) {
        scratch->operator_ = (uint32_t)i;
        break;
      }
  }
}

struct text {
  uint8_t *bytes;
  size_t size, capacity;
};

static bool collect(const void *bytes, size_t size, void *data) {
  struct text *text = data;
  if (!pp_reserve((void **)&text->bytes, &text->capacity, text->size + size + 1, 1))
    return false;
  memcpy(text->bytes + text->size, bytes, size);
  text->size += size;
  text->bytes[text->size] = 0;
  return true;
}

/* The model as it was given, in the chosen orders. */
static pp_status write_ordered(const struct arena *arena, pp_write *write, void *data,
                               pp_error *error) {
  const pp_model *given = arena->given;
  const pp_index **order = pp_zalloc(given->programs, sizeof *order);
  if (!order)
    return pp_fail_memory(error);
  for (size_t i = 0; i < given->programs; i++)
    if (arena->planned.program[i].plan)
      order[i] = pp_plan_order(arena->planned.program[i].plan);
  pp_status status = pp_model_write(given, order, write, data, error);
  free(order);
  return status;
}

/* Makes that the model, as if it had been read so. */
static pp_status permute_model(struct arena *arena) {
  const pp_read_options how = {arena->common.dimensions, arena->common.dimension};
  struct text text = {0};
  for (size_t i = 0; i < arena->given->programs; i++) {
    const pp_planned_program *it = &arena->planned.program[i];
    if (it->plan)
      renumber_scratch(arena, i, pp_plan_order(it->plan), pp_program_statements(it->program));
  }
  pp_status status = write_ordered(arena, collect, &text, &arena->error);
  if (status) {
    free(text.bytes);
    return status;
  }
  return pp_model_read_bytes(arena->path, text.bytes, text.size, &how, &arena->model,
                             &arena->error);
}

static pp_status refine_all(struct arena *arena) {
  const pp_arena_options how = {.alignment = arena->alignment,
                                .node_limit = arena->node_limit,
                                .time_limit = arena->common.plan.solve.time_limit,
                                .progress = watch};
  arena->refinement.all = true;
  pp_status status = PP_OK;
  for (size_t i = 0; i < arena->given->programs && !status; i++) {
    pp_refinement refinement;
    pp_arena *packed;
    if (!arena->planned.program[i].plan)
      continue;
    status = pp_arena_refine(arena->planned.program[i].plan, &how, 0, &refinement, &packed,
                             &arena->error);
    if (status)
      break;
    pp_arena_free(packed);
    arena->refinement.orders += refinement.orders;
    arena->refinement.all &= refinement.all;
    arena->refinement.changed |= refinement.changed;
  }
  return status;
}

/* Plans the model, and goes on with it in an order of lowest peak. */
static int reorder(struct arena *arena) {
  arena->given = arena->model;
  if (arena->ordered && !arena->model->operations->write)
    return pp_usage_error("arena", "models of this format cannot be written: leave out --ordered");
  int code = pp_plan_model(arena->model, &arena->common, &arena->planned);
  if (code)
    return code;
  pp_status status = refine_all(arena);
  if (!status && arena->runtime != RUNTIME_PLAIN) {
    arena->model = NULL;
    status = permute_model(arena);
  }
  return status ? pp_say_error(arena->path, &arena->error) : PP_EXIT_DONE;
}

/* ---- Packing ---- */

/* What TFLM will need: it places what the plan leaves to it, and scratch, by its own planner. */
static pp_status promise_tflm(struct arena *arena, struct job *job) {
  bool *keep = pp_alloc(pp_tflite_tensors(arena->model), sizeof *keep);
  size_t count = job->count + arena->scratches, used = 0;
  pp_buffer *buffer = pp_alloc(count, sizeof *buffer);
  int64_t *offset = pp_alloc(count, sizeof *offset);
  pp_status status = keep && buffer && offset ? PP_OK : pp_fail_memory(&arena->error);
  if (!status) {
    pp_tflite_unplannable(arena->model, keep);
    for (size_t i = 0; i < job->count; i++) {
      if (job->tensor[i] < 0)
        continue;
      buffer[used] = job->buffer[i];
      offset[used++] = keep[job->tensor[i]] ? -1 : job->offset[i];
    }
    for (size_t k = 0; k < arena->scratches; k++) /* in the order of requests */
      for (size_t i = 0; i < job->count; i++)
        if (job->tensor[i] < 0 && job->lives.life[i].subgraph == arena->scratch[k].subgraph &&
            job->lives.life[i].index == arena->scratch[k].operator_) {
          buffer[used] = job->buffer[i];
          buffer[used].bytes = arena->scratch[k].bytes;
          offset[used++] = -1;
        }
    status = pp_arena_greedy(buffer, used, arena->alignment, PP_PLANNER_TFLM, offset,
                             &job->promised, &arena->error);
    for (size_t i = 0; i < used; i++)
      offset[i] = -1;
    if (!status)
      status = pp_arena_greedy(buffer, used, arena->alignment, PP_PLANNER_TFLM, offset,
                               &job->greedy, &arena->error);
  }
  free(keep);
  free(buffer);
  free(offset);
  return status;
}

static pp_status greedy_litert(struct arena *arena, struct job *job) {
  int64_t *offset = pp_alloc(job->count, sizeof *offset);
  if (!offset)
    return pp_fail_memory(&arena->error);
  for (size_t i = 0; i < job->count; i++)
    offset[i] = -1;
  pp_status status = pp_arena_greedy(job->buffer, job->count, arena->alignment, PP_PLANNER_LITERT,
                                     offset, &job->greedy, &arena->error);
  free(offset);
  return status;
}

static pp_status pack(struct arena *arena, struct job *job) {
  pp_arena_options how = {.alignment = arena->alignment,
                          .capacity = arena->is_csv ? arena->budget.bytes : 0,
                          .node_limit = arena->node_limit,
                          .time_limit = arena->common.plan.solve.time_limit,
                          .progress = watch};
  pp_status status = pp_arena_solve(job->buffer, job->count, &how, &job->packed, &arena->error);
  if (status)
    return status;
  memcpy(job->offset, pp_arena_offsets(job->packed), job->count * sizeof *job->offset);
  job->promised = pp_arena_bytes(job->packed);
  job->greedy = -1;
  if (arena->runtime == RUNTIME_TFLM)
    return promise_tflm(arena, job);
  return arena->runtime == RUNTIME_LITERT ? greedy_litert(arena, job) : PP_OK;
}

/* A plan that the file brings along must be a good one: tensors that live together share no byte.
 */
static pp_status check_old_plan(struct arena *arena, struct job *job) {
  int64_t *plan;
  pp_status status = pp_tflite_read_plan(arena->model, &plan, &arena->error);
  if (status || !plan)
    return status;
  pp_buffer *buffer = pp_alloc(job->count, sizeof *buffer);
  int64_t *offset = pp_alloc(job->count, sizeof *offset);
  size_t used = 0;
  if (!buffer || !offset)
    status = pp_fail_memory(&arena->error);
  for (size_t i = 0; i < job->count && !status; i++)
    if (job->tensor[i] >= 0 && plan[job->tensor[i]] >= 0) {
      buffer[used] = job->buffer[i];
      offset[used++] = plan[job->tensor[i]];
    }
  pp_error inner;
  if (!status && pp_arena_check(buffer, used, arena->alignment, offset, NULL, &inner))
    status = pp_fail(&arena->error, PP_ERROR_INPUT,
                     "the offline memory plan in the file is wrong: planned %.200s", inner.message);
  free(buffer);
  free(offset);
  free(plan);
  return status;
}

/* The programs, callees first: a callee's arena is work of the statement that calls it. */
static pp_status pack_programs(struct arena *arena) {
  pp_model *model = arena->model;
  const char *only = arena->common.plan.only;
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  pp_status status = peak ? PP_OK : pp_fail_memory(&arena->error);
  for (size_t k = 0; k < model->programs && !status; k++) {
    size_t i = model->sequence[k];
    struct job *job = &arena->job[arena->jobs++];
    pp_program *program;
    if ((status = pp_model_build(model, i, peak, &program, &arena->error)))
      break;
    const pp_plan *plan = arena->reorder ? arena->planned.program[i].plan : NULL;
    status = take_program(arena, job, program, plan ? pp_plan_order(plan) : NULL, model->name[i]);
    pp_program_free(program);
    if (!status && !(status = pack(arena, job)))
      peak[i] = job->promised;
    if (only && !strcmp(only, model->name[i])) { /* what stood before it was for its sake */
      struct job mine = *job;
      *job = *arena->job;
      *arena->job = mine;
      break;
    }
  }
  free(peak);
  return status;
}

static int pack_all(struct arena *arena) {
  size_t jobs = arena->is_csv ? 1 : arena->model->programs;
  arena->job = pp_zalloc(jobs, sizeof *arena->job);
  pp_status status = arena->job ? PP_OK : pp_fail_memory(&arena->error);
  if (status)
    return pp_say_error(arena->path, &arena->error);
  pp_catch_interrupts();
  if (arena->is_csv)
    status = make_csv_job(arena);
  else if (arena->runtime != RUNTIME_PLAIN)
    status = make_runtime_jobs(arena);
  else
    status = pack_programs(arena);
  if (!status && arena->runtime == RUNTIME_TFLM)
    status = check_old_plan(arena, arena->job);
  bool packed = !arena->is_csv && arena->runtime == RUNTIME_PLAIN;
  for (size_t i = 0; i < arena->jobs && !status && !packed; i++)
    status = pack(arena, &arena->job[i]);
  return status ? pp_say_error(arena->path, &arena->error) : PP_EXIT_DONE;
}

/* ---- Writing ---- */

static pp_status write_plan(const struct arena *arena, pp_output *output, pp_error *error) {
  const struct job *job = arena->job;
  size_t tensors = pp_tflite_tensors(arena->model);
  int64_t *offset = pp_alloc(tensors, sizeof *offset);
  bool *keep = pp_alloc(tensors, sizeof *keep);
  pp_status status = offset && keep ? PP_OK : pp_fail_memory(error);
  if (!status) {
    pp_tflite_unplannable(arena->model, keep);
    for (size_t t = 0; t < tensors; t++)
      offset[t] = -1;
    for (size_t i = 0; i < job->count; i++)
      if (job->tensor[i] >= 0 && !keep[job->tensor[i]])
        offset[job->tensor[i]] = job->offset[i];
    status = pp_tflite_write_plan(arena->model, offset, pp_output_write, output, error);
  }
  free(offset);
  free(keep);
  return status;
}

/* minimalloc's columns. */
static pp_status write_csv(const struct job *job, pp_output *output, pp_error *error) {
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

static pp_status write_kind(const struct arena *arena, const pp_arena_report *report,
                            enum kind kind, pp_output *output, pp_error *error) {
  if (kind == WRITE_ORDERED)
    return write_ordered(arena, pp_output_write, output, error);
  if (kind == WRITE_HEADER)
    return pp_report_arena_header(report, pp_output_write, output, error);
  if (kind == WRITE_SVG)
    return pp_report_arena_svg(report->arena, pp_output_write, output, error);
  if (arena->is_csv)
    return pp_csv_write(&arena->csv, arena->job->offset, pp_output_write, output, error);
  if (arena->runtime == RUNTIME_TFLM)
    return write_plan(arena, output, error);
  return write_csv(arena->job, output, error);
}

static int write_file(const struct arena *arena, const pp_arena_report *report, enum kind kind,
                      const char *path) {
  pp_error error;
  pp_output *output;
  if (!path)
    return PP_EXIT_DONE;
  pp_status status = pp_output_open(path, &output, &error);
  if (status)
    return pp_say_error(path, &error);
  status = write_kind(arena, report, kind, output, &error);
  if (status)
    pp_output_abort(output);
  else
    status = pp_output_commit(output, &error);
  return status ? pp_say_error(path, &error) : PP_EXIT_DONE;
}

static int report_all(const struct arena *arena, const pp_arena_report *report) {
  pp_error error;
  if (arena->common.json) {
    if (pp_report_arena_json(report, pp_stream_write, stdout, &error))
      return pp_say_error("standard output", &error);
  } else if (!arena->common.quiet) {
    pp_style style = {stdout, pp_color(stdout)};
    pp_report_arena(report, &style);
    if (arena->output)
      pp_tell("  wrote        %s", arena->output);
  }
  return pp_flush_output(PP_EXIT_DONE);
}

/* Whether one arena was asked for where only one can be written. */
static int check_outputs(const struct arena *arena, size_t arenas) {
  bool csv = arena->output && arena->runtime != RUNTIME_TFLM;
  if (arenas > 1 && (csv || arena->svg))
    return pp_usage_error("arena", "%s has %zu arenas: choose one with --program (\"%s\")",
                          arena->path, arenas, arena->job->name);
  return PP_EXIT_DONE;
}

static int finish(const struct arena *arena) {
  size_t arenas = arena->common.plan.only ? 1 : arena->jobs;
  pp_arena_view *view = pp_alloc(arenas, sizeof *view);
  int code = view ? check_outputs(arena, arenas) : EX_OSERR;
  static const char *const names[] = {"csv", "tflm", "litert", "plain"};
  pp_arena_report report = {arena->path,      names[arena->is_csv ? 0 : arena->runtime],
                            arena->alignment, arena->scratch_path != NULL,
                            arenas,           view,
                            &arena->budget,   arena->reorder ? &arena->planned : NULL,
                            arena->refinement};
  bool fits = true;
  for (size_t i = 0; i < arenas && view; i++) {
    const struct job *job = &arena->job[i];
    view[i] = (pp_arena_view){job->name,     job->count,   job->buffer,          job->offset,
                              job->label,    job->tensor,  job->packed,          job->greedy,
                              job->promised, job->scratch, job->lives.persistent};
    fits = fits && job->promised <= arena->budget.bytes;
  }
  if (!code)
    code = write_file(arena, &report, WRITE_OUTPUT, arena->output);
  if (!code)
    code = write_file(arena, &report, WRITE_ORDERED, arena->ordered);
  if (!code)
    code = write_file(arena, &report, WRITE_HEADER, arena->header);
  if (!code)
    code = write_file(arena, &report, WRITE_SVG, arena->svg);
  if (!code && arena->certificate)
    code = pp_write_proofs(&arena->planned, arena->certificate, arena->path, arena->output);
  if (!code)
    code = report_all(arena, &report);
  free(view);
  if (code || !arena->budget.asked || fits)
    return code ? code : pp_interrupted() ? PP_EXIT_INTERRUPTED : PP_EXIT_DONE;
  return PP_EXIT_NO;
}

static void free_job(struct job *job) {
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

int pp_verb_arena(int argc, char **argv) {
  struct arena arena = {.alignment = 1};
  int code = pp_parse(&syntax, argc, argv, &arena.common, &arena);
  if (code != -1)
    return code;
  arena.path = argv[optind];
  if ((arena.certificate || arena.ordered) && !arena.reorder)
    return pp_usage_error("arena", "--%s is of the order that --reorder chooses",
                          arena.certificate ? "certificate" : "ordered");
  const pp_place place[] = {{"MODEL", arena.path, PP_PLACE_MODEL},
                            {"--scratch", arena.scratch_path, PP_PLACE_INPUT},
                            {"-o", arena.output, PP_PLACE_OUTPUT},
                            {"--ordered", arena.ordered, PP_PLACE_OUTPUT},
                            {"--c-header", arena.header, PP_PLACE_OUTPUT},
                            {"--svg", arena.svg, PP_PLACE_OUTPUT},
                            {"--certificate", arena.certificate, PP_PLACE_DIRECTORY}};
  code = pp_check_places("arena", place, sizeof place / sizeof *place);
  if (!code)
    code = read_input(&arena);
  if (!code && arena.model)
    code = pp_check_companions(arena.model, true, place, sizeof place / sizeof *place);
  if (!code && arena.reorder)
    code = reorder(&arena);
  if (!code)
    code = pack_all(&arena);
  if (!code)
    code = finish(&arena);
  for (size_t i = 0; i < arena.jobs; i++)
    free_job(&arena.job[i]);
  free(arena.job);
  free(arena.scratch);
  pp_csv_free(&arena.csv);
  pp_planned_free(&arena.planned);
  if (arena.given && arena.given != arena.model)
    pp_model_free(arena.given);
  if (arena.model)
    pp_model_free(arena.model);
  return code;
}
