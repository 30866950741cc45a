/* memtrace.h - counts the bytes of aligned blocks, to the byte as requested.
 *
 * A preloaded library (LD_PRELOAD) that wraps posix_memalign, aligned_alloc, memalign, realloc and
 * free. libtorch's CPU allocator and oneDNN's scratchpads ask for aligned blocks, so every tensor
 * and every scratch buffer is seen with its requested size, and none of the small blocks of the
 * interpreter (malloc) is. Plain malloc is not counted.
 *
 * All functions are thread-safe. Bytes are as requested, without the rounding of the C library.
 * A block that is allocated counts from just after it exists until just before it is freed. */
#ifndef PEAKPROOF_MEMTRACE_H
#define PEAKPROOF_MEMTRACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: 1. */
int pp_memtrace_version(void);
/* Bytes, and blocks, that exist now. */
int64_t pp_memtrace_current(void);
int64_t pp_memtrace_blocks(void);
/* Aligned allocations since the program began. */
int64_t pp_memtrace_allocations(void);
/* Blocks that could not be recorded because the table could not grow. A measurement during which
 * this changed is worthless. */
int64_t pp_memtrace_lost(void);
/* The requested size of a block that is counted, or -1. */
int64_t pp_memtrace_size(const void *block);

/* Intervals: up to 16 at a time, nested or overlapping, from any thread. Returns a number, or -1 if
 * all are in use. The peak of an interval is the highest value of pp_memtrace_current from its
 * opening on; resetting makes it the current value. */
int pp_memtrace_open(void);
int64_t pp_memtrace_peak(int interval);
void pp_memtrace_reset(int interval);
void pp_memtrace_close(int interval);

#ifdef __cplusplus
}
#endif
#endif
