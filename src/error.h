/* One way to fail: fill the caller's pp_error, return its status. */
#ifndef PP_ERROR_H
#define PP_ERROR_H

#include "peakproof.h"

/* Fills *error (if not NULL) with a printf-style message and no position; returns status. */
pp_status pp_fail(pp_error *error, pp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same at byte `offset` of the file. */
pp_status pp_fail_at(pp_error *error, pp_status status, size_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "out of memory" */
pp_status pp_fail_memory(pp_error *error);

#endif
