/* Colour, progress and Ctrl-C. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

static bool is_terminal(FILE *file) {
  const char *kind = getenv("TERM");
  return isatty(fileno(file)) && (!kind || strcmp(kind, "dumb"));
}

bool pp_color(FILE *file) {
  const char *none = getenv("NO_COLOR"); /* no-color.org: set and not empty */
  return is_terminal(file) && !(none && *none);
}

int pp_terminal_width(FILE *file) {
  struct winsize size;
  if (!isatty(fileno(file)) || ioctl(fileno(file), TIOCGWINSZ, &size) || size.ws_col < 40)
    return 80;
  return size.ws_col < 160 ? size.ws_col : 160;
}

bool pp_unicode(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"}; /* POSIX: in this order */
  const char *value = NULL;
  for (size_t i = 0; i < 3 && !(value && *value); i++)
    value = getenv(names[i]);
  return value && (strstr(value, "UTF-8") || strstr(value, "utf8"));
}

/* A signal handler can reach only what is global. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

void pp_catch_interrupts(void) {
  /* SA_RESETHAND: the second Ctrl-C has its usual effect. */
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
}

bool pp_interrupted(void) {
  return interrupted;
}

static void show(pp_meter *meter, const pp_progress *progress) {
  char line[128];
  double gap = progress->peak > 0 ? 100.0 * (double)(progress->peak - progress->lower_bound) /
                                        (double)progress->peak
                                  : 0;
  snprintf(line, sizeof line,
           "%.24s: best %" PRId64 ", bound %" PRId64 ", gap %.2f%%, %.0f s (Ctrl-C: stop here)",
           meter->name, progress->peak, progress->lower_bound, gap, progress->seconds);
  fprintf(stderr, "\r%-100s", line);
  fflush(stderr);
  meter->shown = true;
}

static bool on_progress(const pp_progress *progress, void *data) {
  pp_meter *meter = data;
  if (meter->show && progress->seconds >= 1 && progress->seconds - meter->last >= 0.1) {
    meter->last = progress->seconds;
    show(meter, progress);
  }
  return interrupted;
}

static void on_begin(const char *name, void *data) {
  pp_meter *meter = data;
  meter->name = name;
  meter->last = 0;
}

void pp_meter_attach(pp_meter *meter, pp_common *common) {
  *meter = (pp_meter){.show = !common->quiet && is_terminal(stderr), .name = ""};
  common->plan.solve.progress = on_progress;
  common->plan.solve.data = meter;
  common->plan.begin = on_begin;
}

void pp_meter_clear(pp_meter *meter) {
  if (meter->shown)
    fprintf(stderr, "\r%100s\r", "");
}
