/* The clock, and when work ends early. */
#include "clock.h"

#include <time.h>

static const double look_interval = 0.01;

double pp_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void pp_limits_start(struct pp_limits *limits, const pp_options *options) {
  *limits = (struct pp_limits){.options = options, .start = pp_now()};
}

double pp_limits_seconds(const struct pp_limits *limits) {
  return pp_now() - limits->start;
}

bool pp_limits_due(struct pp_limits *limits) {
  const pp_options *options = limits->options;
  if (limits->stopped || (!options->progress && options->time_limit <= 0))
    return false;
  double time = pp_now();
  if (time < limits->next_look)
    return false;
  limits->next_look = time + look_interval;
  return true;
}

void pp_limits_look(struct pp_limits *limits, pp_progress *progress) {
  const pp_options *options = limits->options;
  progress->seconds = pp_limits_seconds(limits);
  if (options->time_limit > 0 && progress->seconds > options->time_limit)
    limits->stopped = true;
  if (options->progress && options->progress(progress, options->data))
    limits->stopped = true;
}
