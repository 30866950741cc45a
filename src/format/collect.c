#include "format/collect.h"

#include <string.h>

#include "memory.h"

bool pp_collect(const void *bytes, size_t size, void *collected) {
  pp_collected *to = collected;
  if (size > PTRDIFF_MAX - 1 - to->size ||
      !pp_reserve((void **)&to->bytes, &to->capacity, to->size + size + 1, 1))
    return false;
  if (size)
    memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
  to->bytes[to->size] = 0;
  return true;
}
