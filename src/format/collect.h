/* What a pp_write writes, kept in memory. */
#ifndef PP_FORMAT_COLLECT_H
#define PP_FORMAT_COLLECT_H

#include "peakproof.h"

typedef struct pp_collected {
  uint8_t *bytes; /* malloc'ed, with a zero behind the last; NULL: nothing was written yet */
  size_t size, capacity;
} pp_collected;

/* A pp_write to a pp_collected; false when out of memory, and then nothing has changed. */
bool pp_collect(const void *bytes, size_t size, void *collected);

#endif
