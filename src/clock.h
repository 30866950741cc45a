/* The clock, and when work ends early: a time limit is over, or the caller who watches says so. */
#ifndef PP_CLOCK_H
#define PP_CLOCK_H

#include "peakproof.h"

struct pp_limits {
  const pp_options *options;
  double start, next_look;
  bool stopped;
};

/* Seconds on a clock that only goes forward. */
double pp_now(void);

void pp_limits_start(struct pp_limits *limits, const pp_options *options);
double pp_limits_seconds(const struct pp_limits *limits);

/* Asked often: true at most every 10 ms, and never if there is nothing to look at. The caller then
 * fills a pp_progress and looks. */
bool pp_limits_due(struct pp_limits *limits);
/* Fills in progress->seconds, shows it to the caller of the work, and sets limits->stopped. */
void pp_limits_look(struct pp_limits *limits, pp_progress *progress);

#endif
