/* brute.h - all ways to run a small program, with repetitions, forward in time: states are
 * execution counts and live sets. Straight from THEORY.md section 4; shares nothing with the core
 * but the public reading of programs. */
#ifndef PEAKPROOF_TESTS_REMAT_BRUTE_H
#define PEAKPROOF_TESTS_REMAT_BRUTE_H

#include "peakproof.h"

enum { BRUTE_STATEMENTS = 8, BRUTE_STORAGES = 12 };

typedef struct brute_point {
  int64_t peak, macs, bytes; /* extra macs, extra bytes written */
} brute_point;

/* The Pareto curve of (peak, (macs, bytes)), peaks falling: at most `room` points; returns how many
 * there are. `cap` is how often a statement may run that may run again. `order`: first runs stand
 * in this order; NULL: in any. Ends the process when out of memory. */
size_t brute_curve(const pp_program *program, int cap, const pp_index *order, brute_point *point,
                   size_t room);

#endif
