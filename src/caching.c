/* Requests and frees (doc/caching.md has the source of each rule). */
#include "caching.h"

#include <string.h>

#include "error.h"
#include "random.h"

#define AT(b) (c->blocks.items[b])

/* A request of so many bytes is refused before anything else: c10's 1 EB. */
#define TOO_MUCH ((int64_t)1 << 60)
/* Where the first segment stands, and what addresses are multiples of: nothing depends on it but
 * ties. */
#define FIRST_ADDRESS ((int64_t)1 << 44)
#define ADDRESS_STEP ((int64_t)1 << 21)

int64_t pp_address_above(int64_t address) {
  return (address / ADDRESS_STEP + 1) * ADDRESS_STEP;
}

/* ---- Handles ---- */

pp_status pp_caching_new(const pp_caching_config *config, pp_caching **caching, pp_error *error) {
  pp_status status = pp_caching_check(config, error);
  if (status)
    return status;
  pp_caching *c = pp_zalloc(1, sizeof *c);
  if (!c)
    return pp_fail_memory(error);
  c->config = *config;
  c->unused = PP_NO_BLOCK;
  for (int pool = 0; pool < PP_POOLS; pool++)
    c->cached[pool] = c->hollow[pool] = PP_NO_BLOCK;
  c->next_address = FIRST_ADDRESS;
  *caching = c;
  return PP_OK;
}

void pp_caching_free(pp_caching *caching) {
  if (!caching)
    return;
  free(caching->blocks.items);
  free(caching->expandables.items);
  free(caching->scratch.items);
  free(caching->places.items);
  free(caching);
}

static bool copy_items(void **items, size_t *capacity, size_t count, size_t size) {
  void *copy = pp_alloc(count, size);
  if (copy && count)
    memcpy(copy, *items, count * size);
  *items = copy;
  *capacity = copy ? count : 0;
  return copy;
}

pp_status pp_caching_copy(const pp_caching *caching, pp_caching **copy, pp_error *error) {
  pp_caching *c = pp_alloc(1, sizeof *c);
  if (!c)
    return pp_fail_memory(error);
  *c = *caching;
  c->scratch.items = NULL;
  c->scratch.count = c->scratch.capacity = 0;
  bool blocks = copy_items((void **)&c->blocks.items, &c->blocks.capacity, c->blocks.count,
                           sizeof *c->blocks.items);
  bool expandables = copy_items((void **)&c->expandables.items, &c->expandables.capacity,
                                c->expandables.count, sizeof *c->expandables.items);
  bool places = copy_items((void **)&c->places.items, &c->places.capacity, c->places.count,
                           sizeof *c->places.items);
  if (!blocks || !expandables || !places) {
    pp_caching_free(c);
    return pp_fail_memory(error);
  }
  *copy = c;
  return PP_OK;
}

/* ---- Blocks ---- */

pp_index pp_block_new(struct pp_caching *c, int64_t address, int64_t bytes, int64_t stream,
                      enum pp_caching_pool pool) {
  pp_index b = c->unused;
  if (b != PP_NO_BLOCK)
    c->unused = AT(b).next;
  else if (c->blocks.count >= INT32_MAX || !PP_ROOM(&c->blocks))
    return PP_NO_BLOCK;
  else
    b = (pp_index)c->blocks.count++;
  AT(b) = (struct pp_cached){.address = address,
                             .bytes = bytes,
                             .stream = stream,
                             .prev = PP_NO_BLOCK,
                             .next = PP_NO_BLOCK,
                             .priority = (uint32_t)pp_random(&c->random) | 1,
                             .expandable = -1,
                             .pool = (uint8_t)pool,
                             .mapped = true};
  return b;
}

void pp_block_drop(struct pp_caching *c, pp_index b) {
  AT(b).priority = 0;
  AT(b).next = c->unused;
  c->unused = b;
}

void pp_block_splice(struct pp_caching *c, pp_index b, pp_index prev, pp_index next) {
  AT(b).prev = prev;
  AT(b).next = next;
  if (prev != PP_NO_BLOCK)
    AT(prev).next = b;
  if (next != PP_NO_BLOCK)
    AT(next).prev = b;
}

void pp_block_cache(struct pp_caching *c, pp_index b) {
  AT(b).born = c->calls[AT(b).pool];
  pp_set_insert(c, &c->cached[AT(b).pool], PP_ORDER_BYTES, b);
}

void pp_block_uncache(struct pp_caching *c, pp_index b) {
  pp_set_erase(c, &c->cached[AT(b).pool], PP_ORDER_BYTES, b);
}

void pp_block_merge(struct pp_caching *c, pp_index b, pp_index neighbour) {
  if (neighbour == PP_NO_BLOCK || AT(neighbour).allocated || AT(neighbour).mapped != AT(b).mapped)
    return;
  if (AT(neighbour).mapped)
    pp_block_uncache(c, neighbour);
  else
    pp_set_erase(c, &c->hollow[AT(neighbour).pool], PP_ORDER_ADDRESS, neighbour);
  if (AT(b).prev == neighbour) {
    AT(b).address = AT(neighbour).address;
    pp_block_splice(c, b, AT(neighbour).prev, AT(b).next);
  } else {
    pp_block_splice(c, b, AT(b).prev, AT(neighbour).next);
  }
  AT(b).bytes += AT(neighbour).bytes;
  pp_block_drop(c, neighbour);
}

/* ---- The driver ---- */

bool pp_driver_take(struct pp_caching *c, int64_t bytes) {
  pp_caching_figures *f = &c->figures;
  if (c->refusals > 0) {
    c->refusals--;
    return false;
  }
  int64_t limit = c->config.capacity ? c->config.capacity : INT64_MAX;
  if (bytes > limit - f->reserved || c->next_address > PP_LAST_ADDRESS - bytes)
    return false;
  f->reserved += bytes;
  if (f->reserved > f->reserved_peak)
    f->reserved_peak = f->reserved;
  return true;
}

void pp_driver_give(struct pp_caching *c, int64_t bytes) {
  c->figures.reserved -= bytes;
}

int64_t pp_driver_place(struct pp_caching *c, int64_t bytes) {
  if (c->places_used < c->places.count)
    return c->places.items[c->places_used++];
  int64_t address = c->next_address, step = bytes + ADDRESS_STEP - 1;
  c->next_address += step - step % ADDRESS_STEP;
  return address;
}

void pp_caching_tell(struct pp_caching *c, pp_caching_action action, int64_t address, int64_t bytes,
                     int64_t stream) {
  if (c->watch)
    c->watch(action, address, bytes, stream, c->data);
}

/* ---- Sizes ---- */

static int log2_floor(int64_t x) {
  return 63 - __builtin_clzll((unsigned long long)x);
}

/* Up to the next of `divisions` equal steps between two powers of 2. */
static int64_t round_division(int64_t bytes, int64_t divisions) {
  if (bytes <= 4 || divisions <= 1 || !(bytes & (bytes - 1)))
    return bytes;
  int64_t floor = (int64_t)1 << log2_floor(bytes), step = floor >> log2_floor(divisions);
  if (!step)
    return floor * 2;
  return (bytes + step - 1) & ~(step - 1);
}

static int64_t round_up(int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}

int64_t pp_caching_rounded(const pp_caching_config *config, int64_t bytes) {
  if (bytes < config->min_block)
    return config->min_block;
  int interval = log2_floor(bytes) - 20;
  int64_t divisions =
      config->divisions[interval < 0                       ? 0
                        : interval >= PP_CACHING_DIVISIONS ? PP_CACHING_DIVISIONS - 1
                                                           : interval];
  if (divisions > 0 && bytes > config->min_block * divisions)
    return round_division(bytes, divisions);
  return round_up(bytes, config->min_block);
}

static int64_t segment_bytes(const pp_caching_config *config, int64_t bytes) {
  if (config->exact_segments)
    return bytes;
  if (bytes <= config->small_size)
    return config->small_buffer;
  return bytes < config->min_large ? config->large_buffer : round_up(bytes, config->round_large);
}

/* ---- Requests ---- */

/* A request on its way. */
struct request {
  int64_t bytes; /* rounded */
  int64_t stream, segment;
  enum pp_caching_pool pool;
  pp_index block;
};

static int64_t room_to_grow(const struct pp_caching *c, pp_index b) {
  pp_index next = AT(b).next;
  return AT(b).bytes + (next != PP_NO_BLOCK && !AT(next).mapped ? AT(next).bytes : 0);
}

static pp_index next_cached(const struct pp_caching *c, enum pp_caching_pool pool, pp_index b) {
  pp_index next = pp_set_find(c, c->cached[pool], PP_ORDER_BYTES, pp_block_key(c, b), true);
  return next != PP_NO_BLOCK && AT(next).stream == AT(b).stream ? next : PP_NO_BLOCK;
}

/* Of blocks that can grow, the one that can grow least; without expandable segments, none of them.
 */
static pp_index prefer(const struct pp_caching *c, enum pp_caching_pool pool, pp_index b) {
  if (!c->config.expandable_segments) {
    while (b != PP_NO_BLOCK && AT(b).expandable >= 0)
      b = next_cached(c, pool, b);
    return b;
  }
  while (AT(b).expandable >= 0) {
    pp_index next = next_cached(c, pool, b);
    if (next == PP_NO_BLOCK || room_to_grow(c, next) >= room_to_grow(c, b))
      break;
    b = next;
  }
  return b;
}

static bool collects(const struct pp_caching *c) {
  return c->config.memory_fraction > 0 && c->config.capacity &&
         c->config.garbage_collection_threshold > 0;
}

/* Best fit. */
static bool find_cached(struct pp_caching *c, struct request *r) {
  const pp_caching_config *config = &c->config;
  if (collects(c))
    c->calls[r->pool]++;
  struct pp_caching_key key = {r->stream, r->bytes, INT64_MIN};
  pp_index b = pp_set_find(c, c->cached[r->pool], PP_ORDER_BYTES, key, false);
  if (b == PP_NO_BLOCK || AT(b).stream != r->stream)
    return false;
  if (AT(b).expandable >= 0 && (b = prefer(c, r->pool, b)) == PP_NO_BLOCK)
    return false;
  int64_t slack = config->fixed_rounding ? config->large_buffer : config->max_non_split_rounding;
  if (r->bytes < config->max_split_size ? AT(b).bytes >= config->max_split_size
                                        : AT(b).bytes - r->bytes >= slack)
    return false;
  pp_block_uncache(c, b);
  r->block = b;
  return true;
}

static int64_t allowed(const struct pp_caching *c) {
  return c->config.memory_fraction > 0 && c->config.capacity
             ? (int64_t)(c->config.memory_fraction * (double)c->config.capacity)
             : INT64_MAX;
}

static pp_status take_segment(struct pp_caching *c, struct request *r, pp_error *error) {
  r->block = PP_NO_BLOCK;
  if (r->segment > allowed(c) - c->figures.reserved)
    return PP_OK;
  if (c->config.expandable_segments)
    return pp_expand(c, r->bytes, r->stream, r->pool, &r->block, error);
  if (!pp_driver_take(c, r->segment))
    return PP_OK;
  int64_t address = pp_driver_place(c, r->segment);
  r->block = pp_block_new(c, address, r->segment, r->stream, r->pool);
  if (r->block == PP_NO_BLOCK)
    return pp_fail_memory(error);
  c->figures.segments++;
  pp_caching_tell(c, PP_SEGMENT_ALLOC, address, r->segment, r->stream);
  return PP_OK;
}

static pp_status find_or_take(struct pp_caching *c, struct request *r, pp_error *error) {
  pp_status status = PP_OK;
  if (find_cached(c, r))
    return PP_OK;
  if (collects(c))
    status = pp_garbage_collect(c, error);
  if (!status)
    status = take_segment(c, r, error);
  if (!status && r->block == PP_NO_BLOCK && pp_release_available(c, r->bytes, r->stream, r->pool))
    status = take_segment(c, r, error);
  if (status || r->block != PP_NO_BLOCK)
    return status;
  status = pp_release_cached(c, error);
  c->figures.retries++;
  return status ? status : take_segment(c, r, error);
}

static bool should_split(const struct pp_caching *c, const struct request *r) {
  int64_t left = AT(r->block).bytes - r->bytes;
  if (r->pool == PP_POOL_SMALL || c->config.expandable_segments)
    return left >= c->config.min_block;
  return r->bytes < c->config.max_split_size && left > c->config.small_size;
}

/* The request gets the low end: the rest becomes a block of its own. */
static pp_status split(struct pp_caching *c, struct request *r, pp_error *error) {
  pp_index rest = r->block;
  pp_index b = pp_block_new(c, AT(rest).address, r->bytes, r->stream, r->pool);
  if (b == PP_NO_BLOCK)
    return pp_fail_memory(error);
  AT(b).expandable = AT(rest).expandable;
  pp_block_splice(c, b, AT(rest).prev, rest);
  AT(rest).address += r->bytes;
  AT(rest).bytes -= r->bytes;
  pp_block_cache(c, rest);
  r->block = b;
  return PP_OK;
}

static void climb(int64_t *now, int64_t *peak, int64_t by) {
  *now += by;
  if (*now > *peak)
    *peak = *now;
}

pp_status pp_caching_allocate(pp_caching *c, int64_t bytes, int64_t stream, pp_index *block,
                              pp_error *error) {
  if (bytes < 0)
    return pp_fail(error, PP_ERROR_USAGE, "a request of %lld bytes", (long long)bytes);
  *block = bytes ? PP_CACHING_FULL : PP_CACHING_NOTHING;
  c->figures.failures += bytes >= TOO_MUCH;
  if (!bytes || bytes >= TOO_MUCH)
    return PP_OK;
  struct request r = {
      .bytes = pp_caching_rounded(&c->config, bytes), .stream = stream, .block = PP_NO_BLOCK};
  r.pool = r.bytes <= c->config.small_size ? PP_POOL_SMALL : PP_POOL_LARGE;
  r.segment = segment_bytes(&c->config, r.bytes);
  int64_t size = r.bytes;
  pp_status status = find_or_take(c, &r, error);
  if (!status && r.block == PP_NO_BLOCK)
    c->figures.failures++;
  if (status || r.block == PP_NO_BLOCK)
    return status;
  if (should_split(c, &r) && (status = split(c, &r, error)))
    return status;
  struct pp_cached *b = &AT(r.block);
  b->allocated = true;
  b->requested = bytes;
  b->rounded = size;
  pp_caching_figures *f = &c->figures;
  climb(&f->requested, &f->requested_peak, bytes);
  climb(&f->rounded, &f->rounded_peak, size);
  climb(&f->allocated, &f->allocated_peak, b->bytes);
  *block = r.block;
  return PP_OK;
}

void pp_caching_release(pp_caching *c, pp_index b) {
  if (b < 0)
    return;
  c->figures.requested -= AT(b).requested;
  c->figures.rounded -= AT(b).rounded;
  c->figures.allocated -= AT(b).bytes;
  AT(b).allocated = false;
  AT(b).requested = AT(b).rounded = 0;
  pp_block_merge(c, b, AT(b).prev);
  pp_block_merge(c, b, AT(b).next);
  pp_block_cache(c, b);
}

pp_status pp_caching_empty(pp_caching *c, pp_error *error) {
  return pp_release_cached(c, error);
}

/* ---- Looking ---- */

pp_caching_figures pp_caching_now(const pp_caching *c) {
  return c->figures;
}

void pp_caching_reset_peaks(pp_caching *c) {
  pp_caching_figures *f = &c->figures;
  f->requested_peak = f->requested;
  f->rounded_peak = f->rounded;
  f->allocated_peak = f->allocated;
  f->reserved_peak = f->reserved;
}

int64_t pp_caching_address(const pp_caching *c, pp_index b) {
  return AT(b).address;
}

void pp_caching_set_watch(pp_caching *c, pp_caching_watch *watch, void *data) {
  c->watch = watch;
  c->data = data;
}

pp_status pp_caching_place_next(pp_caching *c, int64_t address, pp_error *error) {
  if (c->places_used == c->places.count)
    c->places_used = c->places.count = 0;
  if (!PP_ROOM(&c->places))
    return pp_fail_memory(error);
  c->places.items[c->places.count++] = address;
  return PP_OK;
}

void pp_caching_refuse_next(pp_caching *c, int64_t requests) {
  c->refusals = requests;
}
