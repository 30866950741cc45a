/* Expandable segments: address space for a whole device, backed by pages where it is used. */
#include "caching.h"

#include "error.h"

#define AT(b) (c->blocks.items[b])

/* What a device has at most, where no capacity is given. */
#define MUCH ((int64_t)1 << 40)

int64_t pp_expandable_bytes(const struct pp_caching *c, int64_t granule) {
  int64_t device = c->config.capacity && c->config.capacity < MUCH ? c->config.capacity : MUCH;
  return (device + device / 8 + granule - 1) / granule * granule;
}

pp_status pp_expandable_new(struct pp_caching *c, int64_t base, int64_t granule, int32_t *index,
                            pp_error *error) {
  if (c->expandables.count >= INT32_MAX || !PP_ROOM(&c->expandables))
    return pp_fail_memory(error);
  *index = (int32_t)c->expandables.count;
  c->expandables.items[c->expandables.count++] =
      (struct pp_expandable){base, pp_expandable_bytes(c, granule), granule};
  return PP_OK;
}

/* Can the free and unmapped blocks from b on hold so many bytes? */
static bool has_room(const struct pp_caching *c, pp_index b, int64_t bytes) {
  int64_t room = 0;
  for (; room < bytes && b != PP_NO_BLOCK && !AT(b).allocated; b = AT(b).next)
    room += AT(b).bytes;
  return room >= bytes;
}

/* The lowest place in address space that has room; a new segment if none has. */
static pp_status find_room(struct pp_caching *c, int64_t bytes, int64_t stream,
                           enum pp_caching_pool pool, pp_index *block, pp_error *error) {
  struct pp_caching_key key = {stream, 0, INT64_MIN};
  pp_index b = pp_set_find(c, c->hollow[pool], PP_ORDER_ADDRESS, key, false);
  while (b != PP_NO_BLOCK && AT(b).stream == stream) {
    pp_index before = AT(b).prev, from = b;
    if (before != PP_NO_BLOCK && !AT(before).allocated)
      from = before;
    if (has_room(c, from, bytes)) {
      *block = from;
      return PP_OK;
    }
    b = pp_set_find(c, c->hollow[pool], PP_ORDER_ADDRESS, pp_block_key(c, b), true);
  }
  const pp_caching_config *config = &c->config;
  int64_t granule = pool == PP_POOL_SMALL ? config->small_buffer : config->large_buffer;
  int64_t space = pp_expandable_bytes(c, granule);
  *block = PP_NO_BLOCK;
  if (bytes > space || c->next_address > PP_LAST_ADDRESS - space) /* no device has so much */
    return PP_OK;
  int64_t base = pp_driver_place(c, space);
  int32_t index;
  pp_status status = pp_expandable_new(c, base, granule, &index, error);
  if (status)
    return status;
  b = pp_block_new(c, base, space, stream, pool);
  if (b == PP_NO_BLOCK)
    return pp_fail_memory(error);
  AT(b).mapped = false;
  AT(b).expandable = index;
  pp_set_insert(c, &c->hollow[pool], PP_ORDER_ADDRESS, b);
  *block = b;
  return PP_OK;
}

/* Backs the low end of an unmapped block with pages, which join their free neighbours. */
static pp_status map(struct pp_caching *c, pp_index b, int64_t bytes, bool *done, pp_error *error) {
  int64_t granule = c->expandables.items[AT(b).expandable].granule;
  int64_t mapped = (bytes + granule - 1) / granule * granule;
  enum pp_caching_pool pool = AT(b).pool;
  *done = pp_driver_take(c, mapped);
  if (!*done)
    return PP_OK;
  pp_set_erase(c, &c->hollow[pool], PP_ORDER_ADDRESS, b);
  AT(b).mapped = true;
  pp_caching_tell(c, PP_SEGMENT_MAP, AT(b).address, mapped, AT(b).stream);
  if (mapped < AT(b).bytes) {
    pp_index rest =
        pp_block_new(c, AT(b).address + mapped, AT(b).bytes - mapped, AT(b).stream, pool);
    if (rest == PP_NO_BLOCK)
      return pp_fail_memory(error);
    AT(rest).mapped = false;
    AT(rest).expandable = AT(b).expandable;
    pp_block_splice(c, rest, b, AT(b).next);
    pp_set_insert(c, &c->hollow[pool], PP_ORDER_ADDRESS, rest);
    AT(b).bytes = mapped;
  }
  pp_block_merge(c, b, AT(b).prev);
  pp_block_merge(c, b, AT(b).next);
  pp_block_cache(c, b);
  return PP_OK;
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

pp_status pp_expand(struct pp_caching *c, int64_t bytes, int64_t stream, enum pp_caching_pool pool,
                    pp_index *block, pp_error *error) {
  pp_index b;
  bool done = true;
  pp_status status = find_room(c, bytes, stream, pool, &b, error);
  if (status || b == PP_NO_BLOCK)
    return status;
  if (!AT(b).mapped)
    status = map(c, b, smaller(bytes, AT(b).bytes), &done, error);
  while (!status && done && AT(b).bytes < bytes) {
    pp_index next = AT(b).next; /* unmapped: two free blocks do not lie side by side */
    status = map(c, next, smaller(bytes - AT(b).bytes, AT(next).bytes), &done, error);
    if (done)
      b = next;
  }
  if (status || !done)
    return status;
  pp_block_uncache(c, b);
  *block = b;
  return PP_OK;
}

void pp_expandable_settle(struct pp_caching *c, int64_t address, int64_t stream,
                          enum pp_caching_pool pool) {
  for (size_t i = 0; i < c->expandables.count; i++) {
    const struct pp_expandable *e = &c->expandables.items[i];
    if (address >= e->base && address - e->base < e->bytes)
      return;
  }
  struct pp_caching_key key = {stream, 0, INT64_MIN};
  pp_index b = pp_set_find(c, c->hollow[pool], PP_ORDER_ADDRESS, key, false);
  for (; b != PP_NO_BLOCK && AT(b).stream == stream;
       b = pp_set_find(c, c->hollow[pool], PP_ORDER_ADDRESS, pp_block_key(c, b), true))
    if (!pp_block_split(&AT(b))) {
      pp_set_erase(c, &c->hollow[pool], PP_ORDER_ADDRESS, b);
      AT(b).address = c->expandables.items[AT(b).expandable].base = address;
      pp_set_insert(c, &c->hollow[pool], PP_ORDER_ADDRESS, b);
      return;
    }
}

/* ---- Unmapping ---- */

/* What lies outside the pages that go stays, as a free block of its own. */
static pp_status cut_off(struct pp_caching *c, pp_index b, int64_t address, int64_t bytes,
                         bool before, pp_error *error) {
  if (!bytes)
    return PP_OK;
  pp_index part = pp_block_new(c, address, bytes, AT(b).stream, AT(b).pool);
  if (part == PP_NO_BLOCK)
    return pp_fail_memory(error);
  AT(part).expandable = AT(b).expandable;
  if (before)
    pp_block_splice(c, part, AT(b).prev, b);
  else
    pp_block_splice(c, part, b, AT(b).next);
  pp_block_cache(c, part);
  return PP_OK;
}

static void drop_if_empty(struct pp_caching *c, pp_index b) {
  if (AT(b).prev != PP_NO_BLOCK || AT(b).next != PP_NO_BLOCK)
    return;
  pp_set_erase(c, &c->hollow[AT(b).pool], PP_ORDER_ADDRESS, b);
  c->expandables.items[AT(b).expandable].bytes = 0; /* its address space is gone */
  pp_block_drop(c, b);
}

pp_status pp_unmap(struct pp_caching *c, pp_index b, pp_error *error) {
  struct pp_expandable in = c->expandables.items[AT(b).expandable];
  int64_t from = AT(b).address - in.base, to = from + AT(b).bytes;
  int64_t low = (from + in.granule - 1) / in.granule * in.granule,
          high = to / in.granule * in.granule;
  if (low >= high)
    return PP_OK;
  pp_block_uncache(c, b);
  pp_status status = cut_off(c, b, AT(b).address, low - from, true, error);
  if (!status)
    status = cut_off(c, b, in.base + high, to - high, false, error);
  if (status)
    return status;
  AT(b).address = in.base + low;
  AT(b).bytes = high - low;
  AT(b).mapped = false;
  pp_block_merge(c, b, AT(b).prev);
  pp_block_merge(c, b, AT(b).next);
  pp_set_insert(c, &c->hollow[AT(b).pool], PP_ORDER_ADDRESS, b);
  pp_driver_give(c, high - low);
  pp_caching_tell(c, PP_SEGMENT_UNMAP, in.base + low, high - low, AT(b).stream);
  drop_if_empty(c, b);
  return PP_OK;
}
