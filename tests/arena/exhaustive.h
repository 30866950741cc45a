/* The smallest arena by exhaustive search, and a validator: both share nothing with the packer. */
#ifndef PEAKPROOF_TESTS_EXHAUSTIVE_H
#define PEAKPROOF_TESTS_EXHAUSTIVE_H

#include <peakproof.h>

enum { ARENA_MAX = 12 }; /* buffers of more than 0 bytes, for the exhaustive search */

/* Whether the offsets are good ones and need exactly `bytes`: looks at every pair. */
bool arena_valid(const pp_buffer *buffer, size_t n, int64_t alignment, const int64_t *offset,
                 int64_t bytes);

/* The bytes of the smallest arena. */
unsigned __int128 arena_optimum(const pp_buffer *buffer, size_t n, int64_t alignment);

#endif
