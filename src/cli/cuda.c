/* peakproof cuda: what the CUDA caching allocator makes of an order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "error.h"
#include "format/snapshot.h"
#include "memory.h"
#include "report/caching.h"

static const char help[] =
    "Usage: peakproof cuda [OPTION]... MODEL\n"
    "       peakproof cuda --replay [OPTION]... SNAPSHOT\n"
    "\n"
    "Runs the original and the planned order of every program of MODEL through a model of "
    "PyTorch's\n"
    "CUDA caching allocator, and says why more is reserved than requested (doc/caching.md). No "
    "device is\n"
    "needed.\n"
    "\n"
    "      --preset NAME         the allocator of this release: torch-2.13 (default), torch-2.5\n"
    "      --config SETTINGS     as PYTORCH_CUDA_ALLOC_CONF has them\n"
    "      --capacity SIZE       the bytes of the device; exit with 1 if an order does not fit\n"
    "      --history SNAPSHOT    start from this state (JSON; python -m peakproof cuda-snapshot)\n"
    "      --warm N              and then from N runs of the original order\n"
    "      --robust              look for an order of the same peak that reserves less\n"
    "      --robust-runs N       among at most N orders (default 2000)\n"
    "      --steps               the figures at every step\n"
    "      --program NAME        this program only\n"
    "      --device N            the snapshot's device (default 0)\n"
    "      --replay              replay the trace of SNAPSHOT, from --history or an empty cache; "
    "exit\n"
    "                            with 1 unless every address, segment and block is reproduced\n"
    "      --json                report as JSON\n" PP_COMMON_HELP;

struct cuda {
  pp_common common;
  const char *path, *history, *preset, *settings;
  int64_t capacity, warm, runs, device;
  bool robust, steps, replay;
  pp_caching_config config;
  pp_caching *start;    /* NULL: an empty cache */
  pp_snapshot snapshot; /* of --history */
  char *settings_read;  /* from a snapshot */
  pp_error error;
};

/* ---- Options ---- */

enum {
  OPTION_PRESET = PP_OPTION_OWN,
  OPTION_CONFIG,
  OPTION_CAPACITY,
  OPTION_HISTORY,
  OPTION_WARM,
  OPTION_ROBUST,
  OPTION_RUNS,
  OPTION_STEPS,
  OPTION_PROGRAM,
  OPTION_DEVICE,
  OPTION_REPLAY,
  OPTION_JSON
};

static const struct option options[] = {PP_COMMON_OPTIONS,
                                        {"preset", required_argument, NULL, OPTION_PRESET},
                                        {"config", required_argument, NULL, OPTION_CONFIG},
                                        {"capacity", required_argument, NULL, OPTION_CAPACITY},
                                        {"history", required_argument, NULL, OPTION_HISTORY},
                                        {"warm", required_argument, NULL, OPTION_WARM},
                                        {"robust", no_argument, NULL, OPTION_ROBUST},
                                        {"robust-runs", required_argument, NULL, OPTION_RUNS},
                                        {"steps", no_argument, NULL, OPTION_STEPS},
                                        {"program", required_argument, NULL, OPTION_PROGRAM},
                                        {"device", required_argument, NULL, OPTION_DEVICE},
                                        {"replay", no_argument, NULL, OPTION_REPLAY},
                                        {"json", no_argument, NULL, OPTION_JSON},
                                        {NULL, 0, NULL, 0}};

static int take_number(const char *option, int64_t least, int64_t most, int64_t *number) {
  if (pp_parse_bytes(optarg, number) && *number >= least && *number <= most)
    return -1;
  return pp_usage_error("cuda", "%s wants a number from %" PRId64 " to %" PRId64 ", not \"%s\"",
                        option, least, most, optarg);
}

static int own_option(int option, void *data) {
  struct cuda *cuda = data;
  switch (option) {
  case OPTION_PRESET:
    cuda->preset = optarg;
    return -1;
  case OPTION_CONFIG:
    cuda->settings = optarg;
    return -1;
  case OPTION_HISTORY:
    cuda->history = optarg;
    return -1;
  case OPTION_PROGRAM:
    cuda->common.plan.only = optarg;
    return -1;
  case OPTION_ROBUST:
    cuda->robust = true;
    return -1;
  case OPTION_STEPS:
    cuda->steps = true;
    return -1;
  case OPTION_REPLAY:
    cuda->replay = true;
    return -1;
  case OPTION_JSON:
    cuda->common.json = true;
    return -1;
  case OPTION_CAPACITY:
    return take_number("--capacity", 1, (int64_t)1 << 60, &cuda->capacity);
  case OPTION_WARM:
    return take_number("--warm", 1, 1000, &cuda->warm);
  case OPTION_RUNS:
    cuda->robust = true;
    return take_number("--robust-runs", 1, INT32_MAX, &cuda->runs);
  default: /* OPTION_DEVICE */
    return take_number("--device", 0, INT32_MAX, &cuda->device);
  }
}

static const pp_syntax syntax = {
    "cuda", help, ":hq", options, own_option, 1, "one model or snapshot"};

/* ---- The allocator ---- */

static int bad_settings(const struct cuda *cuda, const char *where) {
  pp_say("%s: %s", where, cuda->error.message);
  return !strcmp(where, "--config") ? EX_USAGE : EX_DATAERR;
}

/* The settings of --config, or else those that the snapshot was taken with. */
static int configure(struct cuda *cuda, const char *path) {
  if (!pp_caching_preset(cuda->preset, &cuda->config))
    return pp_usage_error("cuda", "there is no preset \"%s\"", cuda->preset);
  if (!cuda->preset)
    cuda->preset = pp_caching_preset_name(0);
  const char *settings = cuda->settings ? cuda->settings : cuda->settings_read;
  const char *where = cuda->settings ? "--config" : path;
  if (settings && pp_caching_configure(&cuda->config, settings, &cuda->error))
    return bad_settings(cuda, where);
  cuda->settings = settings && *settings ? settings : NULL;
  cuda->config.capacity = cuda->capacity;
  if (cuda->config.memory_fraction > 0 && !cuda->capacity)
    return pp_usage_error("cuda", "per_process_memory_fraction needs --capacity");
  if (cuda->config.garbage_collection_threshold > 0 && cuda->config.memory_fraction == 0 &&
      !cuda->common.quiet)
    pp_say("note: garbage_collection_threshold does nothing without per_process_memory_fraction");
  return PP_EXIT_DONE;
}

static int read_snapshot(struct cuda *cuda, const char *path, pp_snapshot *snapshot) {
  uint8_t *bytes;
  size_t size;
  pp_notices notices = {0};
  if (pp_read_file(path, &bytes, &size, &cuda->error))
    return pp_say_error(path, &cuda->error);
  pp_status status = pp_snapshot_read(bytes, size, cuda->device, snapshot, &notices, &cuda->error);
  free(bytes);
  for (size_t i = 0; i < notices.count && !cuda->common.quiet; i++)
    pp_say("note: %s: %s", path, notices.text[i]);
  pp_notices_free(&notices);
  if (status)
    return pp_say_error(path, &cuda->error);
  if (!cuda->settings_read && snapshot->settings &&
      !(cuda->settings_read = strdup(snapshot->settings)))
    return pp_say_memory();
  return PP_EXIT_DONE;
}

/* After a history, or where there is none. */
static int make_start(struct cuda *cuda) {
  if (!cuda->history)
    return PP_EXIT_DONE;
  if (pp_caching_load(&cuda->config, cuda->snapshot.block, cuda->snapshot.blocks, &cuda->start,
                      &cuda->error))
    return pp_say_error(cuda->history, &cuda->error);
  return PP_EXIT_DONE;
}

/* ---- Orders ---- */

struct job {
  pp_caching_program out;
  pp_caching *start; /* with the warm runs */
  pp_index *robust;
};

static pp_status warm_up(const struct cuda *cuda, struct job *job, pp_error *error) {
  if (!cuda->start && !cuda->warm)
    return PP_OK;
  pp_status status = cuda->start ? pp_caching_copy(cuda->start, &job->start, error)
                                 : pp_caching_new(&cuda->config, &job->start, error);
  pp_index full;
  for (int64_t i = 0; i < cuda->warm && !status; i++)
    status = pp_caching_run(job->start, job->out.program, NULL, NULL, &full, error);
  return status;
}

static bool stop(void *data) {
  (void)data;
  return pp_interrupted();
}

static pp_status make_robust(const struct cuda *cuda, struct job *job, pp_error *error) {
  size_t n = (size_t)pp_program_statements(job->out.program);
  pp_caching_robust_options how = {.runs = cuda->runs, .stop = stop};
  job->robust = pp_alloc(n, sizeof *job->robust);
  if (!job->robust)
    return pp_fail_memory(error);
  memcpy(job->robust, pp_plan_order(job->out.plan), n * sizeof *job->robust);
  return pp_caching_robust(&cuda->config, job->start, job->out.program, job->robust, &how,
                           &job->out.tried, error);
}

static pp_status take_steps(const struct cuda *cuda, struct job *job, pp_caching_ordered *ordered,
                            pp_error *error) {
  size_t n = (size_t)pp_program_statements(job->out.program);
  pp_caching *caching;
  pp_index full;
  ordered->step = pp_zalloc(n, sizeof *ordered->step);
  if (!ordered->step)
    return pp_fail_memory(error);
  pp_status status = job->start ? pp_caching_copy(job->start, &caching, error)
                                : pp_caching_new(&cuda->config, &caching, error);
  if (status)
    return status;
  status = pp_caching_run(caching, job->out.program, ordered->order, ordered->step, &full, error);
  pp_caching_free(caching);
  return status;
}

static pp_status make_job(const struct cuda *cuda, const pp_planned *planned, size_t i,
                          struct job *job, pp_error *error) {
  const pp_planned_program *it = &planned->program[i];
  job->out = (pp_caching_program){
      .name = planned->model->name[i], .program = it->program, .plan = it->plan};
  pp_status status = warm_up(cuda, job, error);
  if (!status && cuda->robust)
    status = make_robust(cuda, job, error);
  if (status)
    return status;
  job->out.bound = pp_caching_bound(&cuda->config, job->start, pp_plan_lower_bound(it->plan));
  pp_caching_ordered *ordered = job->out.ordered;
  ordered[job->out.orders++] = (pp_caching_ordered){.name = "original"};
  ordered[job->out.orders++] =
      (pp_caching_ordered){.name = "planned", .order = pp_plan_order(it->plan)};
  if (cuda->robust)
    ordered[job->out.orders++] = (pp_caching_ordered){.name = "robust", .order = job->robust};
  for (size_t k = 0; k < job->out.orders && !status; k++) {
    status = pp_caching_explain(&cuda->config, job->start, it->program, ordered[k].order,
                                &ordered[k].causes, error);
    if (!status && cuda->steps)
      status = take_steps(cuda, job, &ordered[k], error);
  }
  return status;
}

static void free_job(struct job *job) {
  for (size_t k = 0; k < job->out.orders; k++)
    free(job->out.ordered[k].step);
  pp_caching_free(job->start);
  free(job->robust);
}

/* ---- Reports ---- */

static int report(const struct cuda *cuda, const struct job *job, size_t jobs) {
  pp_caching_program *program = pp_alloc(jobs, sizeof *program);
  pp_style style = {stdout, pp_color(stdout)};
  pp_error error;
  bool full = false;
  if (!program)
    return pp_say_memory();
  for (size_t i = 0; i < jobs; i++) {
    program[i] = job[i].out;
    /* The order that one would take is the last. */
    full = full || program[i].ordered[program[i].orders - 1].causes.full <
                       pp_program_statements(program[i].program);
  }
  const pp_caching_report what = {.path = cuda->path,
                                  .preset = cuda->preset,
                                  .settings = cuda->settings,
                                  .history = cuda->history,
                                  .capacity = cuda->capacity,
                                  .warm = cuda->warm,
                                  .start = jobs && job->start ? pp_caching_now(job->start)
                                                              : (pp_caching_figures){0},
                                  .private_bytes = cuda->snapshot.private_bytes,
                                  .programs = jobs,
                                  .program = program};
  int code = full ? PP_EXIT_NO : PP_EXIT_DONE;
  if (cuda->common.json) {
    if (pp_report_caching_json(&what, pp_stream_write, stdout, &error))
      code = pp_say_error("standard output", &error);
  } else if (!cuda->common.quiet) {
    pp_report_caching(&what, &style);
  }
  free(program);
  return pp_flush_output(code);
}

static int run_orders(struct cuda *cuda, const pp_planned *planned) {
  const pp_model *model = planned->model;
  struct job *job = pp_zalloc(model->programs, sizeof *job);
  size_t jobs = 0;
  pp_status status = job ? PP_OK : pp_fail_memory(&cuda->error);
  for (size_t i = 0; i < model->programs && !status; i++) {
    if (!planned->program[i].plan ||
        (cuda->common.plan.only && i != pp_model_find(model, cuda->common.plan.only)))
      continue;
    status = make_job(cuda, planned, i, &job[jobs++], &cuda->error);
  }
  int code = status ? pp_say_error(cuda->path, &cuda->error) : report(cuda, job, jobs);
  for (size_t i = 0; i < jobs; i++)
    free_job(&job[i]);
  free(job);
  return !status && pp_interrupted() ? PP_EXIT_INTERRUPTED : code;
}

static int run_model(struct cuda *cuda) {
  pp_model *model;
  pp_planned planned;
  int code = cuda->history ? read_snapshot(cuda, cuda->history, &cuda->snapshot) : PP_EXIT_DONE;
  if (!code)
    code = configure(cuda, cuda->history);
  if (!code)
    code = make_start(cuda);
  if (!code)
    code = pp_read_and_plan(cuda->path, &cuda->common, &model, &planned);
  if (code)
    return code;
  code = run_orders(cuda, &planned);
  pp_planned_free(&planned);
  pp_model_free(model);
  return code;
}

/* ---- Replaying ---- */

static bool same_block(const pp_caching_block *a, const pp_caching_block *b) {
  return a->address == b->address && a->bytes == b->bytes && a->stream == b->stream &&
         a->allocated == b->allocated && a->requested == b->requested && a->small == b->small &&
         a->expandable == b->expandable && a->first == b->first;
}

static pp_status compare_blocks(struct cuda *cuda, const pp_caching *caching,
                                const pp_snapshot *snapshot, pp_caching_replayed *out, char *why) {
  pp_caching_block *block;
  size_t count, i = 0;
  pp_status status = pp_caching_blocks(caching, &block, &count, &cuda->error);
  if (status)
    return status;
  while (i < count && i < snapshot->blocks && same_block(&block[i], &snapshot->block[i]))
    i++;
  out->same_blocks = i == count && i == snapshot->blocks;
  if (!out->same_blocks && i < snapshot->blocks)
    snprintf(why, 200, "the snapshot's block at %#" PRIx64 " is another one in the model",
             snapshot->block[i].address);
  else if (!out->same_blocks)
    snprintf(why, 200, "the model has a block at %#" PRIx64 " more", block[i].address);
  free(block);
  return PP_OK;
}

static int report_replayed(const struct cuda *cuda, const pp_caching_replayed *out) {
  pp_style style = {stdout, pp_color(stdout)};
  pp_error error;
  int code = out->same_trace && out->same_blocks ? PP_EXIT_DONE : PP_EXIT_NO;
  if (cuda->common.json) {
    if (pp_report_replayed_json(out, pp_stream_write, stdout, &error))
      return pp_say_error("standard output", &error);
  } else if (!cuda->common.quiet) {
    pp_report_replayed(out, &style);
  }
  return pp_flush_output(code);
}

static int replay(struct cuda *cuda, const pp_snapshot *snapshot) {
  char why[200] = "";
  pp_caching *caching = NULL;
  pp_caching_replayed out = {.path = cuda->path,
                             .preset = cuda->preset,
                             .settings = cuda->settings,
                             .history = cuda->history,
                             .entries = snapshot->events,
                             .blocks = snapshot->blocks};
  for (size_t i = 0; i < snapshot->blocks; i++)
    out.segments += snapshot->block[i].first;
  pp_status status = cuda->start ? pp_caching_copy(cuda->start, &caching, &cuda->error)
                                 : pp_caching_new(&cuda->config, &caching, &cuda->error);
  if (!status)
    status = pp_caching_replay(&caching, snapshot->event, snapshot->events, &out.same_trace,
                               &out.at, why, &cuda->error);
  if (!status && out.same_trace)
    status = compare_blocks(cuda, caching, snapshot, &out, why);
  if (!status)
    out.figures = pp_caching_now(caching);
  pp_caching_free(caching);
  out.why = out.same_trace && out.same_blocks ? NULL : why;
  return status ? pp_say_error(cuda->path, &cuda->error) : report_replayed(cuda, &out);
}

static int run_replay(struct cuda *cuda) {
  pp_snapshot snapshot = {0};
  if (cuda->robust || cuda->warm || cuda->steps || cuda->common.plan.only)
    return pp_usage_error("cuda", "--replay takes a snapshot and plans nothing");
  int code = read_snapshot(cuda, cuda->path, &snapshot);
  if (!code && cuda->history)
    code = read_snapshot(cuda, cuda->history, &cuda->snapshot);
  if (!code)
    code = configure(cuda, cuda->path);
  if (!code)
    code = make_start(cuda);
  if (!code && !snapshot.events) {
    pp_say("%s: there is no trace of device %" PRId64 " (torch.cuda.memory._record_memory_history)",
           cuda->path, cuda->device);
    code = EX_DATAERR;
  }
  if (!code)
    code = replay(cuda, &snapshot);
  pp_snapshot_free(&snapshot);
  return code;
}

int pp_verb_cuda(int argc, char **argv) {
  struct cuda cuda = {0};
  int code = pp_parse(&syntax, argc, argv, &cuda.common, &cuda);
  if (code != -1)
    return code;
  cuda.path = argv[optind];
  code = cuda.replay ? run_replay(&cuda) : run_model(&cuda);
  pp_caching_free(cuda.start);
  pp_snapshot_free(&cuda.snapshot);
  free(cuda.settings_read);
  return code;
}
