/* States of the allocator as lists of blocks. */
#include "caching.h"

#include <inttypes.h>

#include "error.h"

#define AT(b) (c->blocks.items[b])

/* ---- Out ---- */

static int by_address(const void *a, const void *b) {
  int64_t x = ((const pp_caching_block *)a)->address, y = ((const pp_caching_block *)b)->address;
  return (x > y) - (x < y);
}

pp_status pp_caching_blocks(const pp_caching *c, pp_caching_block **block, size_t *count,
                            pp_error *error) {
  pp_caching_block *out = pp_alloc(c->blocks.count, sizeof *out);
  size_t used = 0;
  if (!out)
    return pp_fail_memory(error);
  for (size_t i = 0; i < c->blocks.count; i++) {
    const struct pp_cached *b = &AT(i);
    if (b->priority && b->mapped)
      out[used++] = (pp_caching_block){.address = b->address,
                                       .bytes = b->bytes,
                                       .requested = b->requested,
                                       .stream = b->stream,
                                       .allocated = b->allocated,
                                       .small = b->pool == PP_POOL_SMALL,
                                       .expandable = b->expandable >= 0,
                                       .first = b->prev == PP_NO_BLOCK || !AT(b->prev).mapped};
  }
  qsort(out, used, sizeof *out, by_address);
  *block = out;
  *count = used;
  return PP_OK;
}

/* ---- In ---- */

static pp_status check_block(const pp_caching_block *block, size_t i, pp_error *error) {
  const pp_caching_block *b = &block[i], *before = i ? b - 1 : NULL;
  if (b->address < 0 || b->bytes <= 0 || b->address > PP_LAST_ADDRESS ||
      b->bytes > PP_LAST_ADDRESS - b->address)
    return pp_fail(error, PP_ERROR_INPUT, "block %zu: address or size out of range", i);
  if (b->requested < 0 || b->requested > b->bytes || (b->requested && !b->allocated))
    return pp_fail(error, PP_ERROR_INPUT, "block %zu: %" PRId64 " bytes requested of %" PRId64, i,
                   b->requested, b->bytes);
  if (before && b->address < before->address + before->bytes)
    return pp_fail(error, PP_ERROR_INPUT, "block %zu overlaps the one before", i);
  if (!before && !b->first)
    return pp_fail(error, PP_ERROR_INPUT, "block 0 begins no segment");
  if (b->first)
    return PP_OK;
  if (b->address != before->address + before->bytes || b->stream != before->stream ||
      b->small != before->small || b->expandable != before->expandable)
    return pp_fail(error, PP_ERROR_INPUT, "block %zu does not continue its segment", i);
  if (!b->allocated && !before->allocated)
    return pp_fail(error, PP_ERROR_INPUT, "blocks %zu and %zu are free side by side", i - 1, i);
  return PP_OK;
}

/* Appends an unmapped block of an expandable segment behind `prev`. */
static pp_status add_hollow(struct pp_caching *c, pp_index prev, int64_t address, int64_t bytes,
                            pp_error *error) {
  if (!bytes)
    return PP_OK;
  pp_index b = pp_block_new(c, address, bytes, AT(prev).stream, AT(prev).pool);
  if (b == PP_NO_BLOCK)
    return pp_fail_memory(error);
  AT(b).mapped = false;
  AT(b).expandable = AT(prev).expandable;
  pp_block_splice(c, b, prev, PP_NO_BLOCK);
  pp_set_insert(c, &c->hollow[AT(b).pool], PP_ORDER_ADDRESS, b);
  return PP_OK;
}

static int64_t space_end(const struct pp_caching *c, pp_index b) {
  const struct pp_expandable *in = &c->expandables.items[AT(b).expandable];
  return in->base + in->bytes;
}

/* The mapped ranges [from, to) of one kind, stream and neighbourhood are parts of one expandable
 * segment, which begins with the first of them: what is not mapped before it does not matter. */
static pp_status join_expandable(struct pp_caching *c, pp_index from, pp_index *last,
                                 pp_error *error) {
  pp_index before = *last;
  const pp_caching_config *config = &c->config;
  int64_t granule = AT(from).pool == PP_POOL_SMALL ? config->small_buffer : config->large_buffer;
  bool joins = before != PP_NO_BLOCK && AT(before).stream == AT(from).stream &&
               AT(before).pool == AT(from).pool && AT(from).address < space_end(c, before);
  int64_t end = before == PP_NO_BLOCK ? 0 : AT(before).address + AT(before).bytes;
  if (before != PP_NO_BLOCK && !joins) {
    pp_status status = add_hollow(c, before, end, space_end(c, before) - end, error);
    if (status)
      return status;
  }
  if (!joins)
    return pp_expandable_new(c, AT(from).address, granule, &AT(from).expandable, error);
  AT(from).expandable = AT(before).expandable;
  pp_status status = add_hollow(c, before, end, AT(from).address - end, error);
  if (!status)
    pp_block_splice(c, from, AT(before).next != PP_NO_BLOCK ? AT(before).next : before,
                    PP_NO_BLOCK);
  return status;
}

/* The pages of a range must be whole, and inside the address space. */
static pp_status check_range(const struct pp_caching *c, pp_index from, pp_index to,
                             pp_error *error) {
  const struct pp_expandable *in = &c->expandables.items[AT(from).expandable];
  int64_t begin = AT(from).address - in->base;
  int64_t end = AT(to).address + AT(to).bytes - in->base;
  if (begin % in->granule || end % in->granule || end > in->bytes)
    return pp_fail(error, PP_ERROR_INPUT,
                   "the expandable segment at block %d does not consist of pages of %" PRId64
                   " bytes",
                   from, in->granule);
  return PP_OK;
}

static pp_status join_segments(struct pp_caching *c, const pp_caching_block *block, size_t count,
                               pp_error *error) {
  pp_index last[PP_POOLS] = {PP_NO_BLOCK, PP_NO_BLOCK};
  pp_status status = PP_OK;
  for (size_t i = 0; i < count && !status; i++) {
    pp_index b = (pp_index)i;
    if (block[i].first && block[i].expandable)
      status = join_expandable(c, b, &last[AT(b).pool], error);
    else if (!block[i].first) {
      AT(b).expandable = AT(b - 1).expandable;
      pp_block_splice(c, b, b - 1, PP_NO_BLOCK);
    }
    if (status || !block[i].expandable)
      continue;
    last[AT(b).pool] = b;
    if (i + 1 == count || block[i + 1].first) {
      pp_index from = b;
      while (!block[from].first)
        from--;
      status = check_range(c, from, b, error);
    }
  }
  for (int pool = 0; pool < PP_POOLS && !status; pool++)
    if (last[pool] != PP_NO_BLOCK) {
      int64_t end = AT(last[pool]).address + AT(last[pool]).bytes;
      status = add_hollow(c, last[pool], end, space_end(c, last[pool]) - end, error);
    }
  return status;
}

static pp_status add_blocks(struct pp_caching *c, const pp_caching_block *block, size_t count,
                            pp_error *error) {
  pp_caching_figures *f = &c->figures;
  int64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    const pp_caching_block *b = &block[i];
    pp_status status = check_block(block, i, error);
    if (status)
      return status;
    sum += b->bytes; /* disjoint and below PP_LAST_ADDRESS */
    pp_index made =
        pp_block_new(c, b->address, b->bytes, b->stream, b->small ? PP_POOL_SMALL : PP_POOL_LARGE);
    if (made == PP_NO_BLOCK)
      return pp_fail_memory(error);
    f->segments += b->first && !b->expandable;
    c->next_address = pp_address_above(b->address + b->bytes);
    if (!b->allocated)
      continue;
    int64_t rounded = b->requested ? pp_caching_rounded(&c->config, b->requested) : b->bytes;
    AT(made).allocated = true;
    AT(made).requested = b->requested;
    AT(made).rounded = rounded < b->bytes ? rounded : b->bytes;
    f->requested += b->requested;
    f->rounded += AT(made).rounded;
    f->allocated += b->bytes;
  }
  f->reserved = sum;
  if (c->config.capacity && sum > c->config.capacity)
    return pp_fail(error, PP_ERROR_INPUT, "%" PRId64 " bytes are reserved, the device has %" PRId64,
                   sum, c->config.capacity);
  return PP_OK;
}

pp_status pp_caching_load(const pp_caching_config *config, const pp_caching_block *block,
                          size_t count, pp_caching **caching, pp_error *error) {
  struct pp_caching *c;
  if (count > INT32_MAX)
    return pp_fail(error, PP_ERROR_OVERFLOW, "%zu blocks", count);
  pp_status status = pp_caching_new(config, &c, error);
  if (status)
    return status;
  status = add_blocks(c, block, count, error);
  if (!status)
    status = join_segments(c, block, count, error);
  if (status) {
    pp_caching_free(c);
    return status;
  }
  for (size_t i = 0; i < count; i++)
    if (!block[i].allocated)
      pp_block_cache(c, (pp_index)i);
  if (c->expandables.count) { /* above all address space that is taken */
    int64_t end = 0;
    for (size_t i = 0; i < c->expandables.count; i++)
      if (c->expandables.items[i].base + c->expandables.items[i].bytes > end)
        end = c->expandables.items[i].base + c->expandables.items[i].bytes;
    if (end >= c->next_address)
      c->next_address = pp_address_above(end);
  }
  pp_caching_reset_peaks(c);
  *caching = c;
  return PP_OK;
}
