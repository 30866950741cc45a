/* Giving cached memory back to the driver: when it refuses, when asked to, and before it comes to
 * that. Only blocks that are whole segments can be given back, and pages of expandable ones. */
#include "caching.h"

#include "error.h"

#define AT(b) (c->blocks.items[b])

static void release_segment(struct pp_caching *c, pp_index b) {
  pp_caching_tell(c, PP_SEGMENT_FREE, AT(b).address, AT(b).bytes, AT(b).stream);
  pp_driver_give(c, AT(b).bytes);
  c->figures.segments--;
  pp_block_uncache(c, b);
  pp_block_drop(c, b);
}

static bool is_segment(const struct pp_caching *c, pp_index b) {
  return AT(b).expandable < 0 && !pp_block_split(&AT(b));
}

static pp_status release_pool(struct pp_caching *c, enum pp_caching_pool pool, pp_error *error) {
  if (!pp_set_list(c, c->cached[pool]))
    return pp_fail_memory(error);
  for (size_t i = 0; i < c->scratch.count; i++)
    if (is_segment(c, c->scratch.items[i]))
      release_segment(c, c->scratch.items[i]);
    else if (AT(c->scratch.items[i]).expandable < 0)
      c->scratch.items[i] = PP_NO_BLOCK;
  for (size_t i = 0; i < c->scratch.count; i++) { /* unmapping changes the pool: afterwards */
    pp_index b = c->scratch.items[i];
    if (b == PP_NO_BLOCK || !AT(b).priority || AT(b).expandable < 0)
      continue;
    pp_status status = pp_unmap(c, b, error);
    if (status)
      return status;
  }
  return PP_OK;
}

pp_status pp_release_cached(struct pp_caching *c, pp_error *error) {
  pp_status status = release_pool(c, PP_POOL_LARGE, error);
  return status ? status : release_pool(c, PP_POOL_SMALL, error);
}

bool pp_release_available(struct pp_caching *c, int64_t bytes, int64_t stream,
                          enum pp_caching_pool pool) {
  int64_t least = c->config.max_split_size, released = 0;
  if (least == INT64_MAX)
    return false;
  struct pp_caching_key key = {stream, bytes < least ? least : bytes, INT64_MIN};
  pp_index b = pp_set_find(c, c->cached[pool], PP_ORDER_BYTES, key, false);
  if (b != PP_NO_BLOCK && AT(b).stream == stream && is_segment(c, b)) {
    release_segment(c, b);
    return true;
  }
  /* No single one is large enough: several, the largest first. */
  if (b != PP_NO_BLOCK)
    key = pp_block_key(c, b);
  else
    key = (struct pp_caching_key){INT64_MAX, INT64_MAX, INT64_MAX};
  int64_t wanted = bytes < least ? least : bytes;
  b = pp_set_before(c, c->cached[pool], PP_ORDER_BYTES, key);
  while (b != PP_NO_BLOCK && released < wanted && AT(b).bytes >= least && AT(b).stream == stream) {
    pp_index before = pp_set_before(c, c->cached[pool], PP_ORDER_BYTES, pp_block_key(c, b));
    if (is_segment(c, b)) {
      released += AT(b).bytes;
      release_segment(c, b);
    }
    b = before;
  }
  return released >= wanted;
}

/* ---- Garbage collection: the oldest unused segments of the pool of large requests ---- */

static int64_t age(const struct pp_caching *c, pp_index b) {
  return c->calls[AT(b).pool] - AT(b).born;
}

pp_status pp_garbage_collect(struct pp_caching *c, pp_error *error) {
  double allowed = (double)(int64_t)(c->config.memory_fraction * (double)c->config.capacity);
  int64_t threshold = (int64_t)(c->config.garbage_collection_threshold * allowed);
  int64_t target = c->figures.reserved - threshold, released = 0, total = 0, left = 0;
  if (target <= 0)
    return PP_OK;
  if (!pp_set_list(c, c->cached[PP_POOL_LARGE]))
    return pp_fail_memory(error);
  for (size_t i = 0; i < c->scratch.count; i++)
    if (is_segment(c, c->scratch.items[i])) {
      total += age(c, c->scratch.items[i]);
      c->scratch.items[left++] = c->scratch.items[i];
    }
  for (bool freed = true; released < target && freed && left > 0;) {
    double limit = (double)total / (double)left;
    int64_t kept = 0, looked = left;
    freed = false;
    for (int64_t i = 0; i < looked; i++) {
      pp_index b = c->scratch.items[i];
      if ((double)age(c, b) < limit) {
        c->scratch.items[kept++] = b;
        continue;
      }
      freed = true;
      released += AT(b).bytes;
      total -= age(c, b);
      release_segment(c, b);
    }
    left = kept;
  }
  return PP_OK;
}
