/* Replays traces. A trace says what the driver did before it says for which request: the entries
 * about segments are held back until the request or the free behind them, and then the question is
 * which of a few stories they tell. */
#include "caching.h"

#include <inttypes.h>
#include <stdio.h>

#include "error.h"

#define AT(b) (c->blocks.items[b])

/* What may have happened before a request: the cache was emptied; so many requests to the driver
 * were refused. */
static const struct story {
  bool emptied;
  int refusals;
} stories[] = {{false, 0}, {false, 1}, {false, 2}, {true, 0},
               {true, 1},  {true, 2},  {false, 3}, {true, 3}};
enum { STORIES = sizeof stories / sizeof *stories, WHY = 200 };

/* Which block stands at an address: a hash table of chains, by block. */
struct places {
  pp_index *first, *next;
  size_t mask, blocks;
};

struct replay {
  pp_caching *caching;
  const pp_caching_event *event;
  size_t from, seen; /* entries about segments that are held back: from <= i; seen of them met */
  size_t to;
  bool differs; /* the driver was asked for something else */
  struct places places;
  char *why;
  pp_error *error;
};

static size_t bucket(const struct replay *r, int64_t address) {
  return (size_t)((uint64_t)address * 0x9e3779b97f4a7c15u >> 20) & r->places.mask;
}

static pp_status remember(struct replay *r, pp_index b) {
  struct places *p = &r->places;
  size_t at = bucket(r, pp_caching_address(r->caching, b));
  if (!pp_reserve((void **)&p->next, &p->blocks, (size_t)b + 1, sizeof *p->next))
    return pp_fail_memory(r->error);
  p->next[b] = p->first[at];
  p->first[at] = b;
  return PP_OK;
}

/* Takes it out of the table; PP_NO_BLOCK if there is none. */
static pp_index forget(struct replay *r, int64_t address) {
  pp_index *link = &r->places.first[bucket(r, address)];
  while (*link != PP_NO_BLOCK && pp_caching_address(r->caching, *link) != address)
    link = &r->places.next[*link];
  pp_index b = *link;
  if (b != PP_NO_BLOCK)
    *link = r->places.next[b];
  return b;
}

static pp_status remember_all(struct replay *r, size_t events) {
  const struct pp_caching *c = r->caching;
  size_t size = 1024;
  while (size < events / 4)
    size *= 2;
  r->places.mask = size - 1;
  r->places.first = pp_alloc(size, sizeof *r->places.first);
  if (!r->places.first)
    return pp_fail_memory(r->error);
  for (size_t i = 0; i < size; i++)
    r->places.first[i] = PP_NO_BLOCK;
  pp_status status = PP_OK;
  for (size_t b = 0; b < c->blocks.count && !status; b++)
    if (AT(b).priority && AT(b).allocated)
      status = remember(r, (pp_index)b);
  return status;
}

static void watch(pp_caching_action action, int64_t address, int64_t bytes, int64_t stream,
                  void *data) {
  struct replay *r = data;
  const pp_caching_event *e = r->event + r->seen;
  (void)stream;
  if (r->seen == r->to || e->action != action || e->address != address || e->bytes != bytes)
    r->differs = true;
  else
    r->seen++;
}

/* Tells one story to an allocator; *told: it is what the trace says. */
static pp_status tell(struct replay *r, pp_caching *c, const struct story *story,
                      const pp_caching_event *e, bool *told, pp_index *block) {
  pp_status status = PP_OK;
  r->seen = r->from;
  r->differs = false;
  *block = PP_CACHING_NOTHING;
  pp_caching_set_watch(c, watch, r);
  for (size_t i = r->from; i < r->to && !status; i++) {
    int64_t address = r->event[i].address;
    if (r->event[i].action == PP_SEGMENT_MAP && e && e->bytes < PP_LAST_ADDRESS)
      pp_expandable_settle(c, address, e->stream,
                           pp_caching_rounded(&c->config, e->bytes) <= c->config.small_size
                               ? PP_POOL_SMALL
                               : PP_POOL_LARGE);
    if (r->event[i].action == PP_SEGMENT_ALLOC || r->event[i].action == PP_SEGMENT_MAP)
      status = pp_caching_place_next(c, address, r->error);
  }
  if (!status && story->emptied)
    status = pp_caching_empty(c, r->error);
  pp_caching_refuse_next(c, story->refusals);
  if (!status && e)
    status = pp_caching_allocate(c, e->bytes, e->stream, block, r->error);
  bool unused = c->refusals == 0; /* or the story says more than happened */
  pp_caching_refuse_next(c, 0);
  c->places.count = c->places_used = 0;
  pp_caching_set_watch(c, NULL, NULL);
  *told = !status && !r->differs && r->seen == r->to && unused;
  if (*told && e)
    *told = e->kind == PP_EVENT_FULL ? *block == PP_CACHING_FULL
                                     : *block >= 0 && pp_caching_address(c, *block) == e->address;
  return status;
}

/* A request (NULL: none, the cache was emptied) behind the entries that are held back. */
static pp_status explain(struct replay *r, const pp_caching_event *e, bool *told) {
  pp_index block = PP_CACHING_NOTHING;
  pp_status status = PP_OK;
  *told = false;
  for (size_t i = 0; i < STORIES && !status && !*told; i++) {
    pp_caching *copy;
    if (!e && (!stories[i].emptied || stories[i].refusals))
      continue;
    /* Where nothing was given back there is only one story, and it needs no second try. */
    bool plain = r->to - r->from <= 1 && e && e->kind == PP_EVENT_ALLOC &&
                 (r->to == r->from || r->event[r->from].action == PP_SEGMENT_ALLOC ||
                  r->event[r->from].action == PP_SEGMENT_MAP);
    if (plain && i)
      break;
    if (plain) {
      status = tell(r, r->caching, &stories[i], e, told, &block);
      break;
    }
    status = pp_caching_copy(r->caching, &copy, r->error);
    if (!status)
      status = tell(r, copy, &stories[i], e, told, &block);
    if (*told) {
      pp_caching_free(r->caching);
      r->caching = copy;
    } else if (!status) {
      pp_caching_free(copy);
    }
  }
  if (!status && *told && block >= 0)
    status = remember(r, block);
  if (!*told && !status && r->why) {
    if (!e)
      snprintf(r->why, WHY, "emptying the cache does not give back what the trace says");
    else if (e->kind == PP_EVENT_FULL)
      snprintf(r->why, WHY, "a request of %" PRId64 " bytes is not refused", e->bytes);
    else
      snprintf(r->why, WHY, "a request of %" PRId64 " bytes is not served from %#" PRIx64, e->bytes,
               e->address);
  }
  return status;
}

static pp_status take_back(struct replay *r, const pp_caching_event *e, bool *told) {
  *told = true;
  if (r->to > r->from) {
    pp_status status = explain(r, NULL, told);
    if (status || !*told)
      return status;
  }
  pp_index b = forget(r, e->address);
  if (b == PP_NO_BLOCK) {
    *told = false;
    if (r->why)
      snprintf(r->why, WHY, "nothing was allocated at %#" PRIx64, e->address);
  } else {
    pp_caching_release(r->caching, b);
  }
  return PP_OK;
}

static pp_status replay_all(struct replay *r, size_t count, bool *same, size_t *at) {
  pp_status status = PP_OK;
  *same = true;
  for (size_t i = 0; i < count && !status && *same; i++) {
    const pp_caching_event *e = &r->event[i];
    *at = i;
    r->to = i;
    if (e->kind == PP_EVENT_SEGMENT)
      continue;
    status = e->kind == PP_EVENT_FREE ? take_back(r, e, same) : explain(r, e, same);
    r->from = i + 1;
  }
  r->to = count;
  if (!status && *same && r->to > r->from) {
    *at = r->from;
    status = explain(r, NULL, same);
  }
  if (!status && *same)
    *at = count;
  return status;
}

pp_status pp_caching_replay(pp_caching **caching, const pp_caching_event *event, size_t count,
                            bool *same, size_t *at, char *why, pp_error *error) {
  struct replay r = {.caching = *caching, .event = event, .why = why, .error = error};
  pp_status status = remember_all(&r, count);
  if (!status)
    status = replay_all(&r, count, same, at);
  free(r.places.first);
  free(r.places.next);
  *caching = r.caching;
  return status;
}
