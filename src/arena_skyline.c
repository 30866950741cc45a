/* Packs a strip by filling the lowest valley of the skyline.
 *
 * The skyline is the top of what is placed, section by section; a valley is a run of equal height
 * between higher neighbours. What lives inside the lowest valley can stand on its ground, nothing
 * else can: the best ranked of it is placed, or the valley is filled up to its lower neighbour.
 * (Burke, Kendall, Whitwell, "A new placement heuristic for the orthogonal stock-cutting problem",
 * 2004, with the places in time fixed.) */
#include "arena.h"

#include "memory.h"

/* How many nodes all queries together may look at, so that a query has some hundred of them with
 * 100,000 buffers. One that has found nothing yet goes on, if there is anything to be found: one
 * more way down does it. */
enum { ALL_NODES = 24000000, LEAST_NODES = 32 };

struct segment { /* indexed by its first section */
  int64_t height;
  int32_t to, before; /* its end; the first section of the segment before it, or -1 */
  bool alive;
};

struct entry {
  int64_t height;
  int32_t from;
};

struct skyline {
  const struct pp_strip *strip;
  const int32_t *rank;
  struct segment *segment;
  struct entry *heap; /* lowest segment first; may hold segments that have changed since */
  size_t entries, capacity;
  int32_t query_nodes;
  /* A tree over the buffers sorted by their first section: node k has children 2k and 2k + 1. */
  int32_t leaves;
  int32_t *buffer;   /* of a leaf */
  int32_t *leaf;     /* of a buffer */
  int32_t *begin;    /* of a section: the first leaf that begins there or later */
  int32_t *min_to;   /* of a node: the smallest end of what is not placed; INT32_MAX if nothing */
  int32_t *min_rank; /* of a node: the best rank of what is not placed */
};

/* ---- The heap ---- */

static bool lower(struct entry a, struct entry b) {
  return a.height != b.height ? a.height < b.height : a.from < b.from;
}

static bool push(struct skyline *line, int32_t from) {
  if (!pp_reserve((void **)&line->heap, &line->capacity, line->entries + 1, sizeof *line->heap))
    return false;
  struct entry entry = {line->segment[from].height, from};
  size_t i = line->entries++;
  while (i > 0 && lower(entry, line->heap[(i - 1) / 2])) {
    line->heap[i] = line->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  line->heap[i] = entry;
  return true;
}

static struct entry pop(struct skyline *line) {
  struct entry top = line->heap[0], entry = line->heap[--line->entries];
  size_t i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= line->entries)
      break;
    if (child + 1 < line->entries && lower(line->heap[child + 1], line->heap[child]))
      child++;
    if (!lower(line->heap[child], entry))
      break;
    line->heap[i] = line->heap[child];
    i = child;
  }
  line->heap[i] = entry;
  return top;
}

/* ---- The tree ---- */

static void update_node(struct skyline *line, int32_t node) {
  int32_t a = 2 * node, b = 2 * node + 1;
  line->min_to[node] = line->min_to[a] < line->min_to[b] ? line->min_to[a] : line->min_to[b];
  line->min_rank[node] =
      line->min_rank[a] < line->min_rank[b] ? line->min_rank[a] : line->min_rank[b];
}

static void sort_buffers(struct skyline *line) {
  const struct pp_strip *strip = line->strip;
  for (int32_t s = 0; s <= strip->sections; s++)
    line->begin[s] = 0;
  for (int32_t b = 0; b < strip->count; b++)
    line->begin[strip->from[b] + 1]++;
  for (int32_t s = 0; s < strip->sections; s++)
    line->begin[s + 1] += line->begin[s];
  for (int32_t b = 0; b < strip->count; b++) {
    int32_t leaf = line->begin[strip->from[b]]++;
    line->buffer[leaf] = b;
    line->leaf[b] = leaf;
  }
  for (int32_t s = strip->sections; s > 0; s--)
    line->begin[s] = line->begin[s - 1];
  line->begin[0] = 0;
}

static void build_tree(struct skyline *line) {
  const struct pp_strip *strip = line->strip;
  sort_buffers(line);
  for (int32_t i = 0; i < line->leaves; i++) {
    bool real = i < strip->count;
    line->min_to[line->leaves + i] = real ? strip->to[line->buffer[i]] : INT32_MAX;
    line->min_rank[line->leaves + i] = real ? line->rank[line->buffer[i]] : INT32_MAX;
  }
  for (int32_t node = line->leaves - 1; node > 0; node--)
    update_node(line, node);
}

static void remove_buffer(struct skyline *line, int32_t b) {
  int32_t node = line->leaves + line->leaf[b];
  line->min_to[node] = line->min_rank[node] = INT32_MAX;
  while (node /= 2)
    update_node(line, node);
}

/* The best ranked buffer that lives within sections from..to-1, or -1. It is the best of those seen
 * if there are more than a query looks at. */
static int32_t find_buffer(const struct skyline *line, int32_t from, int32_t to) {
  int32_t stack[128], top = 0, best = INT32_MAX, seen = 0; /* stack: two nodes a level */
  int32_t a = line->leaves + line->begin[from], b = line->leaves + line->begin[to];
  for (; a < b; a /= 2, b /= 2) {
    if (a & 1)
      stack[top++] = a++;
    if (b & 1)
      stack[top++] = --b;
  }
  int32_t found = -1;
  while (top > 0 && (found < 0 || seen < line->query_nodes)) {
    int32_t node = stack[--top];
    seen++;
    if (line->min_to[node] > to || line->min_rank[node] >= best)
      continue;
    if (node >= line->leaves) {
      best = line->min_rank[node];
      found = line->buffer[node - line->leaves];
      continue;
    }
    int32_t first = 2 * node, second = 2 * node + 1;
    if (line->min_rank[second] < line->min_rank[first]) {
      first = second;
      second = 2 * node;
    }
    stack[top++] = second; /* the first one is popped first */
    stack[top++] = first;
  }
  return found;
}

/* ---- The skyline ---- */

/* Makes one segment of `from` and the one behind it if they are equally high. */
static void join(struct skyline *line, int32_t from) {
  struct segment *segment = line->segment;
  int32_t next = segment[from].to;
  if (next >= line->strip->sections || segment[next].height != segment[from].height)
    return;
  segment[next].alive = false;
  segment[from].to = segment[next].to;
  if (segment[from].to < line->strip->sections)
    segment[segment[from].to].before = from;
}

static bool raise_to(struct skyline *line, int32_t from, int64_t height) {
  struct segment *segment = line->segment;
  segment[from].height = height;
  join(line, from);
  int32_t before = segment[from].before;
  if (before >= 0 && segment[before].height == height) {
    join(line, before);
    from = before;
  }
  return push(line, from);
}

/* Cuts the segment that begins at `from` in two at `at`. */
static void cut(struct skyline *line, int32_t from, int32_t at) {
  struct segment *segment = line->segment;
  segment[at] = (struct segment){segment[from].height, segment[from].to, from, true};
  segment[from].to = at;
  if (segment[at].to < line->strip->sections)
    segment[segment[at].to].before = at;
}

static bool fill_valley(struct skyline *line, int32_t from) {
  struct segment *segment = line->segment;
  int32_t before = segment[from].before, after = segment[from].to;
  bool left = before >= 0, right = after < line->strip->sections;
  int64_t height = left ? segment[before].height : INT64_MAX;
  if (right && segment[after].height < height)
    height = segment[after].height;
  return raise_to(line, from, height);
}

static pp_status place(struct skyline *line, int32_t from, int32_t b, int64_t *offset) {
  const struct pp_strip *strip = line->strip;
  struct segment *segment = line->segment;
  int64_t top;
  offset[b] = segment[from].height;
  if (__builtin_add_overflow(offset[b], strip->height[b], &top))
    return PP_ERROR_OVERFLOW;
  remove_buffer(line, b);
  if (strip->to[b] < segment[from].to) {
    cut(line, from, strip->to[b]);
    if (!push(line, strip->to[b]))
      return PP_ERROR_MEMORY;
  }
  if (strip->from[b] > from) {
    cut(line, from, strip->from[b]);
    if (!push(line, from))
      return PP_ERROR_MEMORY;
  }
  return raise_to(line, strip->from[b], top) ? PP_OK : PP_ERROR_MEMORY;
}

static pp_status pack(struct skyline *line, int64_t *offset) {
  line->segment[0] = (struct segment){0, line->strip->sections, -1, true};
  if (!push(line, 0))
    return PP_ERROR_MEMORY;
  for (int32_t left = line->strip->count; left > 0;) {
    struct entry entry = pop(line);
    struct segment *segment = &line->segment[entry.from];
    if (!segment->alive || segment->height != entry.height)
      continue;
    int32_t b = find_buffer(line, entry.from, segment->to);
    if (b < 0) {
      if (!fill_valley(line, entry.from))
        return PP_ERROR_MEMORY;
      continue;
    }
    pp_status status = place(line, entry.from, b, offset);
    if (status != PP_OK)
      return status;
    left--;
  }
  return PP_OK;
}

pp_status pp_skyline_pack(const struct pp_strip *strip, const int32_t *rank, int64_t *offset) {
  if (strip->count == 0)
    return PP_OK;
  struct skyline line = {.strip = strip, .rank = rank, .leaves = 1};
  line.query_nodes =
      ALL_NODES / strip->count > LEAST_NODES ? ALL_NODES / strip->count : LEAST_NODES;
  while (line.leaves < strip->count)
    line.leaves *= 2;
  size_t n = (size_t)strip->count, nodes = 2 * (size_t)line.leaves;
  line.segment = pp_zalloc((size_t)strip->sections, sizeof *line.segment);
  line.buffer = pp_alloc(n, sizeof *line.buffer);
  line.leaf = pp_alloc(n, sizeof *line.leaf);
  line.begin = pp_alloc((size_t)strip->sections + 1, sizeof *line.begin);
  line.min_to = pp_alloc(nodes, sizeof *line.min_to);
  line.min_rank = pp_alloc(nodes, sizeof *line.min_rank);
  pp_status status = PP_ERROR_MEMORY;
  if (line.segment && line.buffer && line.leaf && line.begin && line.min_to && line.min_rank) {
    build_tree(&line);
    status = pack(&line, offset);
  }
  free(line.segment);
  free(line.heap);
  free(line.buffer);
  free(line.leaf);
  free(line.begin);
  free(line.min_to);
  free(line.min_rank);
  return status;
}
