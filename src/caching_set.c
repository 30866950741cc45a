/* Ordered sets of blocks: treaps with pseudo-random priorities, without recursion (Seidel and
 * Aragon, Randomized search trees, 1996). Insertion splits, erasure merges, both downwards. */
#include "caching.h"

#define AT(b) (c->blocks.items[b])

struct pp_caching_key pp_block_key(const struct pp_caching *c, pp_index b) {
  return (struct pp_caching_key){AT(b).stream, AT(b).bytes, AT(b).address};
}

static bool below(enum pp_caching_order order, struct pp_caching_key a, struct pp_caching_key b) {
  if (a.stream != b.stream)
    return a.stream < b.stream;
  if (order == PP_ORDER_BYTES && a.bytes != b.bytes)
    return a.bytes < b.bytes;
  return a.address < b.address;
}

void pp_set_insert(struct pp_caching *c, pp_index *root, enum pp_caching_order order, pp_index b) {
  struct pp_caching_key key = pp_block_key(c, b);
  pp_index *link = root, *low = &AT(b).left, *high = &AT(b).right;
  while (*link != PP_NO_BLOCK && AT(*link).priority >= AT(b).priority)
    link = below(order, key, pp_block_key(c, *link)) ? &AT(*link).left : &AT(*link).right;
  pp_index rest = *link;
  *link = b;
  while (rest != PP_NO_BLOCK)
    if (below(order, pp_block_key(c, rest), key)) {
      *low = rest;
      low = &AT(rest).right;
      rest = *low;
    } else {
      *high = rest;
      high = &AT(rest).left;
      rest = *high;
    }
  *low = *high = PP_NO_BLOCK;
}

void pp_set_erase(struct pp_caching *c, pp_index *root, enum pp_caching_order order, pp_index b) {
  struct pp_caching_key key = pp_block_key(c, b);
  pp_index *link = root, low = AT(b).left, high = AT(b).right;
  while (*link != b)
    link = below(order, key, pp_block_key(c, *link)) ? &AT(*link).left : &AT(*link).right;
  while (low != PP_NO_BLOCK && high != PP_NO_BLOCK)
    if (AT(low).priority > AT(high).priority) {
      *link = low;
      link = &AT(low).right;
      low = *link;
    } else {
      *link = high;
      link = &AT(high).left;
      high = *link;
    }
  *link = low != PP_NO_BLOCK ? low : high;
}

pp_index pp_set_find(const struct pp_caching *c, pp_index root, enum pp_caching_order order,
                     struct pp_caching_key key, bool after) {
  pp_index found = PP_NO_BLOCK;
  for (pp_index b = root; b != PP_NO_BLOCK;) {
    struct pp_caching_key here = pp_block_key(c, b);
    bool right = after ? !below(order, key, here) : below(order, here, key);
    if (!right)
      found = b;
    b = right ? AT(b).right : AT(b).left;
  }
  return found;
}

pp_index pp_set_before(const struct pp_caching *c, pp_index root, enum pp_caching_order order,
                       struct pp_caching_key key) {
  pp_index found = PP_NO_BLOCK;
  for (pp_index b = root; b != PP_NO_BLOCK;) {
    bool right = below(order, pp_block_key(c, b), key);
    if (right)
      found = b;
    b = right ? AT(b).right : AT(b).left;
  }
  return found;
}

bool pp_set_list(struct pp_caching *c, pp_index root) {
  c->scratch.count = 0;
  /* Pre-order in place of a stack would lose the order: walk by key, O(log n) a step. */
  struct pp_caching_key key = {INT64_MIN, INT64_MIN, INT64_MIN};
  for (pp_index b = pp_set_find(c, root, PP_ORDER_BYTES, key, false); b != PP_NO_BLOCK;
       b = pp_set_find(c, root, PP_ORDER_BYTES, pp_block_key(c, b), true)) {
    if (!PP_ROOM(&c->scratch))
      return false;
    c->scratch.items[c->scratch.count++] = b;
  }
  return true;
}
