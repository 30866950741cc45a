/* peakproof batch: many models, one line each. Every model is planned in a process of its own, so
 * one that fails, or crashes, does not stop the rest; a line is written and synced when its model
 * is done, so what was done stays done. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "cli/batch.h"
#include "clock.h"
#include "format/json.h"
#include "memory.h"

static const char help[] =
    "Usage: peakproof batch [OPTION]... DIR|LIST\n"
    "\n"
    "Plans every model below DIR (.tflite, .onnx and .json files, saved sessions), or every file "
    "that\n"
    "LIST names, one a line. Prints a line a model; one that fails does not stop the rest.\n"
    "\n"
    "      --jobs N              plan N models at a time\n"
    "      --jsonl OUT           add a line of JSON a model to OUT. A model that has one there, "
    "with the\n"
    "                            same size and time of change, is not planned again\n"
    "                            (doc/reports.md)\n" PP_COMMON_HELP;

/* What a child says of its model through a pipe. */
struct outcome {
  int code; /* an exit code; 0: planned */
  bool optimal, limited;
  int64_t programs, statements, before, after, bound;
  double seconds;
  char message[256];
};

struct job {
  const pp_batch_model *model;
  pid_t process; /* 0: free */
  int pipe;
  size_t received;
  struct outcome outcome;
};

struct batch {
  pp_common common;
  const char *jsonl;
  int64_t jobs;
  pp_batch_models models;
  int out; /* the file of --jsonl, or -1 */
  size_t begun, done, failed, optimal, before, failed_before;
  double start;
  bool progress;
};

enum { OPTION_JOBS = PP_OPTION_OWN, OPTION_JSONL, MOST_JOBS = 256 };

static const struct option options[] = {PP_COMMON_OPTIONS,
                                        {"jobs", required_argument, NULL, OPTION_JOBS},
                                        {"jsonl", required_argument, NULL, OPTION_JSONL},
                                        {NULL, 0, NULL, 0}};

static int own_option(int option, void *data) {
  struct batch *batch = data;
  if (option == OPTION_JSONL) {
    batch->jsonl = optarg;
    return -1;
  }
  if (pp_parse_bytes(optarg, &batch->jobs) && batch->jobs > 0 && batch->jobs <= MOST_JOBS)
    return -1;
  return pp_usage_error("batch", "--jobs wants a number from 1 to %d, not \"%s\"", MOST_JOBS,
                        optarg);
}

static const pp_syntax syntax = {
    "batch", help, ":hq", options, own_option, 1, "one directory or list"};

/* ---- The child ---- */

static void fill(struct outcome *outcome, const pp_planned *planned) {
  outcome->programs = (int64_t)planned->model->programs;
  for (size_t i = 0; i < planned->model->programs; i++)
    outcome->statements += pp_program_statements(planned->program[i].program);
  outcome->before = planned->peak_before_all;
  outcome->after = planned->peak_all;
  outcome->bound = planned->lower_bound_all;
  outcome->optimal = planned->optimal;
  outcome->limited = planned->limited;
}

static void plan_model(struct batch *batch, const char *path, struct outcome *outcome) {
  pp_error error;
  pp_model *model;
  pp_planned planned;
  const pp_read_options read = {batch->common.dimensions, batch->common.dimension};
  double begin = pp_now();
  pp_status status = pp_model_read(path, &read, &model, &error);
  if (!status) {
    status = pp_planned_make(model, &batch->common.plan, &planned, &error);
    if (!status)
      fill(outcome, &planned);
    pp_planned_free(&planned);
    pp_model_free(model);
  }
  outcome->seconds = pp_now() - begin;
  if (status) {
    outcome->code = pp_exit_code(status);
    snprintf(outcome->message, sizeof outcome->message, "%s", error.message);
  }
}

static void child(struct batch *batch, const pp_batch_model *model, int to, pid_t parent) {
  struct outcome outcome;
  memset(&outcome, 0, sizeof outcome); /* padding goes through the pipe, too */
  signal(SIGINT, SIG_DFL);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read the answer */
#endif
  if (getppid() != parent)
    _exit(EX_SOFTWARE);
  plan_model(batch, model->path, &outcome);
  const char *bytes = (const char *)&outcome;
  for (size_t sent = 0; sent < sizeof outcome;) {
    ssize_t part = write(to, bytes + sent, sizeof outcome - sent);
    if (part < 0 && errno != EINTR)
      _exit(EX_IOERR);
    sent += part > 0 ? (size_t)part : 0;
  }
  _exit(0);
}

static bool start_job(struct batch *batch, struct job *job, const pp_batch_model *model) {
  int ends[2];
  if (pipe(ends))
    return false;
  fflush(NULL); /* or the child has a copy of what is buffered */
  pid_t parent = getpid(), process = fork();
  if (process < 0) {
    close(ends[0]);
    close(ends[1]);
    return false;
  }
  if (!process) {
    close(ends[0]);
    child(batch, model, ends[1], parent);
  }
  close(ends[1]);
  memset(job, 0, sizeof *job);
  job->model = model;
  job->process = process;
  job->pipe = ends[0];
  return true;
}

/* ---- Lines ---- */

bool pp_batch_key(const pp_batch_model *model, pp_collected *line) {
  pp_json json;
  line->size = 0;
  pp_json_begin(&json, pp_collect, line);
  pp_json_key_string(&json, "{\"model\": ", model->path);
  pp_json_key_integer(&json, ", \"size\": ", model->size);
  pp_json_key_integer(&json, ", \"mtime_ns\": ", model->changed);
  pp_json_text(&json, ", ");
  return !pp_json_end(&json, NULL);
}

static bool outcome_line(const pp_batch_model *model, const struct outcome *it,
                         pp_collected *line) {
  pp_json json;
  char seconds[48];
  if (!pp_batch_key(model, line))
    return false;
  pp_json_begin(&json, pp_collect, line);
  pp_json_key_integer(&json, "\"code\": ", it->code);
  if (it->code) {
    pp_json_key_string(&json, ", \"error\": ", it->message);
  } else {
    pp_json_key_integer(&json, ", \"programs\": ", it->programs);
    pp_json_key_integer(&json, ", \"statements\": ", it->statements);
    pp_json_key_integer(&json, ", \"peak_before\": ", it->before);
    pp_json_key_integer(&json, ", \"peak_after\": ", it->after);
    pp_json_key_integer(&json, ", \"lower_bound\": ", it->bound);
    pp_json_key_bool(&json, ", \"optimal\": ", it->optimal);
    pp_json_key_bool(&json, ", \"limited\": ", it->limited);
  }
  snprintf(seconds, sizeof seconds, ", \"seconds\": %.6f}\n", it->seconds);
  pp_json_text(&json, seconds);
  return !pp_json_end(&json, NULL);
}

/* One write: a kill leaves at most the beginning of a line, which the next run cuts off. */
static int add_line(struct batch *batch, const struct job *job) {
  pp_collected line = {0};
  bool good = outcome_line(job->model, &job->outcome, &line) &&
              write(batch->out, line.bytes, line.size) == (ssize_t)line.size && !fsync(batch->out);
  free(line.bytes);
  if (good)
    return PP_EXIT_DONE;
  pp_say("%s: cannot write: %s", batch->jsonl, strerror(errno));
  return EX_IOERR;
}

static void clear_progress(const struct batch *batch) {
  if (batch->progress)
    fprintf(stderr, "\r%60s\r", "");
}

static void show_progress(const struct batch *batch) {
  size_t left = batch->models.count - batch->before - batch->done;
  if (!batch->progress || !left)
    return;
  fprintf(stderr, "\r%zu of %zu", batch->before + batch->done, batch->models.count);
  if (batch->failed)
    fprintf(stderr, ", %zu failed", batch->failed);
  if (batch->done) {
    int64_t seconds =
        (int64_t)((pp_now() - batch->start) / (double)batch->done * (double)left + 0.5);
    fprintf(stderr, ", about %" PRId64 ":%02d left", seconds / 60, (int)(seconds % 60));
  }
  fflush(stderr);
}

static void print_line(struct batch *batch, const struct job *job) {
  const struct outcome *it = &job->outcome;
  if (batch->common.quiet)
    return;
  clear_progress(batch);
  if (it->code)
    pp_tell("%12s  %12s  %12s  failed    %s: %s", "-", "-", "-", job->model->path, it->message);
  else
    pp_tell("%12" PRId64 "  %12" PRId64 "  %12" PRId64 "  %-8s  %s", it->before, it->after,
            it->bound,
            it->optimal   ? "optimal"
            : it->limited ? "limited"
                          : "open",
            job->model->path);
  fflush(stdout);
}

/* ---- The parent ---- */

/* The child has closed its end: its answer is complete, or it died. */
static int finish_job(struct batch *batch, struct job *job) {
  int state = 0;
  close(job->pipe);
  while (waitpid(job->process, &state, 0) < 0 && errno == EINTR)
    continue;
  job->process = 0;
  if (job->received < sizeof job->outcome) {
    if (pp_interrupted())
      return PP_EXIT_DONE;
    memset(&job->outcome, 0, sizeof job->outcome);
    job->outcome.code = EX_SOFTWARE;
    snprintf(job->outcome.message, sizeof job->outcome.message,
             WIFSIGNALED(state) ? "ended by signal %d" : "ended with exit code %d",
             WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
  }
  job->outcome.message[sizeof job->outcome.message - 1] = 0;
  batch->done++;
  batch->failed += job->outcome.code != 0;
  batch->optimal += job->outcome.code == 0 && job->outcome.optimal;
  print_line(batch, job);
  return batch->out < 0 ? PP_EXIT_DONE : add_line(batch, job);
}

static int receive(struct batch *batch, struct job *job) {
  char rest;
  bool full = job->received == sizeof job->outcome;
  ssize_t part = full ? read(job->pipe, &rest, 1)
                      : read(job->pipe, (char *)&job->outcome + job->received,
                             sizeof job->outcome - job->received);
  if (part > 0 && !full)
    job->received += (size_t)part;
  if (part > 0 || (part < 0 && errno == EINTR))
    return PP_EXIT_DONE;
  return finish_job(batch, job);
}

static int start_jobs(struct batch *batch, struct job *job) {
  for (int64_t i = 0; i < batch->jobs; i++) {
    while (batch->begun < batch->models.count && batch->models.items[batch->begun].done)
      batch->begun++;
    if (job[i].process || batch->begun == batch->models.count)
      continue;
    if (!start_job(batch, job + i, batch->models.items + batch->begun)) {
      pp_say("cannot start a process: %s", strerror(errno));
      return EX_OSERR;
    }
    batch->begun++;
  }
  return PP_EXIT_DONE;
}

static int wait_for_jobs(struct batch *batch, struct job *job) {
  struct pollfd wait[MOST_JOBS];
  for (int64_t i = 0; i < batch->jobs; i++)
    wait[i] = (struct pollfd){.fd = job[i].process ? job[i].pipe : -1, .events = POLLIN};
  int code = PP_EXIT_DONE;
  if (poll(wait, (nfds_t)batch->jobs, 1000) > 0)
    for (int64_t i = 0; !code && i < batch->jobs; i++)
      if (wait[i].fd >= 0 && wait[i].revents)
        code = receive(batch, job + i);
  show_progress(batch);
  return code;
}

static bool any_running(const struct batch *batch, const struct job *job) {
  for (int64_t i = 0; i < batch->jobs; i++)
    if (job[i].process)
      return true;
  return false;
}

static int run_jobs(struct batch *batch) {
  struct job *job = pp_zalloc((size_t)batch->jobs, sizeof *job);
  if (!job)
    return pp_say_memory();
  int code = PP_EXIT_DONE;
  do {
    code = start_jobs(batch, job);
    if (!code && any_running(batch, job))
      code = wait_for_jobs(batch, job);
  } while (!code && !pp_interrupted() &&
           (any_running(batch, job) || batch->begun < batch->models.count));
  for (int64_t i = 0; i < batch->jobs; i++)
    if (job[i].process) {
      kill(job[i].process, SIGKILL);
      while (waitpid(job[i].process, NULL, 0) < 0 && errno == EINTR)
        continue;
      close(job[i].pipe);
    }
  clear_progress(batch);
  free(job);
  return code;
}

static int finish(struct batch *batch, int code) {
  if (!code && !batch->common.quiet) {
    printf("%zu models: %zu planned now, %zu proved optimal, %zu failed", batch->models.count,
           batch->done - batch->failed, batch->optimal, batch->failed);
    if (batch->before)
      printf("; %zu done before, %zu of them failed", batch->before, batch->failed_before);
    putchar('\n');
  }
  if (!code && pp_interrupted())
    code = PP_EXIT_INTERRUPTED;
  if (!code && batch->failed + batch->failed_before)
    code = EX_DATAERR;
  return code ? code : pp_flush_output(code);
}

/* Lines of JSON go neither into the list nor into one of its models. */
static int check_jsonl(const struct batch *batch, const char *option, const char *input) {
  const pp_place place[] = {{option, input, PP_PLACE_INPUT},
                            {"--jsonl", batch->jsonl, PP_PLACE_OUTPUT}};
  return pp_check_places("batch", place, 2);
}

int pp_verb_batch(int argc, char **argv) {
  struct batch batch = {.jobs = 1, .out = -1, .start = pp_now()};
  int code = pp_parse(&syntax, argc, argv, &batch.common, &batch);
  if (code != -1)
    return code;
  struct stat about;
  bool list = stat(argv[optind], &about) || !S_ISDIR(about.st_mode);
  code = check_jsonl(&batch, list ? "LIST" : "", list ? argv[optind] : NULL);
  if (!code)
    code = pp_batch_find(argv[optind], &batch.models);
  for (size_t i = 0; !code && batch.jsonl && i < batch.models.count; i++)
    code = check_jsonl(&batch, "a model of the batch", batch.models.items[i].path);
  if (!code && batch.jsonl)
    code = pp_batch_resume(batch.jsonl, &batch.models, &batch.out);
  for (size_t i = 0; i < batch.models.count; i++) {
    batch.before += batch.models.items[i].done;
    batch.failed_before += batch.models.items[i].failed;
  }
  if (!code) {
    pp_catch_interrupts();
    batch.progress = !batch.common.quiet && isatty(fileno(stderr));
    if (!batch.common.quiet)
      printf("%12s  %12s  %12s  %-8s  model\n", "peak before", "peak after", "lower bound",
             "proof");
    code = finish(&batch, run_jobs(&batch));
  }
  if (batch.out >= 0)
    close(batch.out);
  pp_batch_free(&batch.models);
  return code;
}
