/* Allocation with the overflow checks in one place. */
#ifndef PP_MEMORY_H
#define PP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* count * size bytes, uninitialised (pp_alloc) or zeroed (pp_zalloc); never NULL for count 0; NULL
 * when out of memory or when the product overflows. */
static inline void *pp_alloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    return NULL;
  return malloc(bytes ? bytes : 1);
}

static inline void *pp_zalloc(size_t count, size_t size) {
  return count ? calloc(count, size) : calloc(1, 1);
}

/* Makes room for `needed` elements of `size` bytes in *array; false when out of memory, and then
 * nothing has changed. */
static inline bool pp_reserve(void **array, size_t *capacity, size_t needed, size_t size) {
  if (needed <= *capacity)
    return true;
  size_t wanted = *capacity < 8 ? 16 : *capacity + *capacity / 2 + 8, bytes;
  if (wanted < needed)
    wanted = needed;
  if (__builtin_mul_overflow(wanted, size, &bytes))
    return false;
  void *grown = realloc(*array, bytes);
  if (!grown)
    return false;
  *array = grown;
  *capacity = wanted;
  return true;
}

/* A growing array of type T named `items`, `count` used. */
#define PP_VECTOR(T)                                                                               \
  struct {                                                                                         \
    T *items;                                                                                      \
    size_t count, capacity;                                                                        \
  }
/* Makes room for one more; false when out of memory. */
#define PP_ROOM(vector)                                                                            \
  pp_reserve((void **)&(vector)->items, &(vector)->capacity, (vector)->count + 1,                  \
             sizeof *(vector)->items)

#endif
