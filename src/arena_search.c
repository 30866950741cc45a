/* Exact packing of a strip within a capacity, by depth-first search.
 *
 * A state is a skyline: everything that is still to come lies above the floor of its sections. In
 * any packing pushed down as far as it goes, look at one section of a valley (a run of equal floor
 * between higher neighbours): either a buffer stands on its floor, and it lives inside the valley,
 * since it would stick in a wall otherwise; or nothing does, and then the room up to the next
 * height on which something can rest is lost there. The search branches on that question in the
 * section with the fewest answers. What a section has lost may not exceed its slack, the
 * capacity less its load. When nothing that is left crosses from one section to the next, both
 * sides are searched by themselves, and a failure of one goes back to where they parted.
 *
 * Pushed-down packings, slack as inference and decomposition are those of Moffitt, "MiniMalloc",
 * ASPLOS 2023; branching on a section instead of a buffer is ours. */
#include "arena.h"

#include <string.h>

#include "arena_memo.h"
#include "memory.h"

enum { MEMO_NODES = 3 }; /* a refutation of fewer is not worth remembering */

struct change { /* of a section, to be undone */
  int32_t section;
  int64_t floor, slack;
};

struct component { /* sections from <= s < to, to be packed below frame `parent` */
  int32_t from, to, parent;
};

struct frame { /* one question: what stands on the floor of `section`? */
  struct component component;
  int32_t section; /* or -1: there is no answer */
  int32_t answer;  /* being tried; -1: none yet */
  int32_t answers; /* candidates, behind first_candidate */
  int32_t placed;  /* by this answer, or -1 */
  size_t first_candidate;
  int64_t height;       /* of the floor */
  int64_t raised;       /* the floor when nothing stands on it; -1: that is no answer */
  size_t before, after; /* length of the trail before the frame's inferences, and after them */
  size_t waiting;       /* components still to come after this one */
  size_t key;           /* of its state, in `keys`, up to the next frame's or the end */
  uint64_t hash;
  int64_t opened; /* nodes when it was opened */
  int64_t next;   /* the smallest capacity that what was refuted in it could need */
};

struct question {            /* the best one so far in a component */
  int32_t section, from, to; /* the valley */
  int64_t height, step;      /* step: see lost_step */
  int64_t key[2];
};

struct pp_packer {
  const struct pp_strip *strip;
  enum pp_choice choice;
  int64_t capacity, nodes;
  int64_t next; /* the smallest capacity that what was just refuted could need */
  /* In the order of rank: the buffers that begin in a section, and those that cover it. */
  int32_t *begin, *beginner;
  int64_t *cover_begin;
  int32_t *cover;
  int32_t *by_rank;
  /* Equal buffers have one kind; `seen` stamps the kinds among the candidates. */
  int32_t *kind;
  int64_t *seen;
  int64_t stamp;
  /* Of a section. */
  int64_t *floor, *slack;
  int32_t *left;     /* buffers that cover it and are not placed */
  int32_t *crossing; /* of these, those that cover the section before as well */
  /* Of a buffer. */
  int32_t *bit;       /* its place among the buffers sorted by their first section */
  int32_t *first_bit; /* of a section: the first place of those that begin there or later */
  uint64_t *present;  /* bits of those that are not placed */
  bool *placed;
  int64_t *blame;
  int64_t *offset;
  /* Of the valley at hand: per section, candidates that cover it and the sum of their heights; the
   * lowest candidate that ends before it, and that begins behind it. */
  int32_t *covers;
  int64_t *fill, *lowest_before, *lowest_behind;
  PP_VECTOR(struct change) trail;
  PP_VECTOR(struct frame) frames;
  PP_VECTOR(struct component) waiting;
  PP_VECTOR(int32_t) candidates;
  PP_VECTOR(uint64_t) keys; /* of the open frames */
  struct pp_memo refuted;   /* states, and the capacity below which there is no packing */
};

/* ---- Setting up ---- */

static int compare_kinds(const struct pp_strip *strip, int32_t a, int32_t b) {
  if (strip->from[a] != strip->from[b])
    return strip->from[a] < strip->from[b] ? -1 : 1;
  if (strip->to[a] != strip->to[b])
    return strip->to[a] < strip->to[b] ? -1 : 1;
  if (strip->bytes[a] != strip->bytes[b])
    return strip->bytes[a] < strip->bytes[b] ? -1 : 1;
  return 0;
}

/* Sorts the buffers by kind with a heap: qsort has no room for the strip. */
static void sift_kinds(const struct pp_strip *strip, int32_t *order, int32_t i, int32_t n) {
  int32_t b = order[i];
  for (int32_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && compare_kinds(strip, order[child + 1], order[child]) > 0)
      child++;
    if (compare_kinds(strip, order[child], b) <= 0)
      break;
    order[i] = order[child];
  }
  order[i] = b;
}

static void find_kinds(pp_packer *packer) {
  const struct pp_strip *strip = packer->strip;
  int32_t n = strip->count, *order = packer->by_rank;
  for (int32_t b = 0; b < n; b++)
    order[b] = b;
  for (int32_t i = n / 2 - 1; i >= 0; i--)
    sift_kinds(strip, order, i, n);
  for (int32_t end = n - 1; end > 0; end--) {
    int32_t b = order[0];
    order[0] = order[end];
    order[end] = b;
    sift_kinds(strip, order, 0, end);
  }
  for (int32_t i = 0, kind = 0; i < n; i++) {
    if (i > 0 && compare_kinds(strip, order[i - 1], order[i]) != 0)
      kind++;
    packer->kind[order[i]] = kind;
  }
}

static void find_bits(pp_packer *packer) {
  const struct pp_strip *strip = packer->strip;
  int32_t *first = packer->first_bit;
  memset(first, 0, ((size_t)strip->sections + 1) * sizeof *first);
  for (int32_t b = 0; b < strip->count; b++)
    first[strip->from[b] + 1]++;
  for (int32_t s = 0; s < strip->sections; s++)
    first[s + 1] += first[s];
  for (int32_t b = 0; b < strip->count; b++)
    packer->bit[b] = first[strip->from[b]]++;
  for (int32_t s = strip->sections; s > 0; s--)
    first[s] = first[s - 1];
  first[0] = 0;
}

static bool allocate(pp_packer *packer) {
  size_t n = (size_t)packer->strip->count, m = (size_t)packer->strip->sections + 1;
  packer->begin = pp_alloc(m, sizeof *packer->begin);
  packer->beginner = pp_alloc(n, sizeof *packer->beginner);
  packer->cover_begin = pp_alloc(m, sizeof *packer->cover_begin);
  packer->cover = pp_alloc((size_t)packer->strip->incidences, sizeof *packer->cover);
  packer->by_rank = pp_alloc(n, sizeof *packer->by_rank);
  packer->kind = pp_alloc(n, sizeof *packer->kind);
  packer->seen = pp_zalloc(n, sizeof *packer->seen);
  packer->floor = pp_alloc(m, sizeof *packer->floor);
  packer->slack = pp_alloc(m, sizeof *packer->slack);
  packer->left = pp_alloc(m, sizeof *packer->left);
  packer->crossing = pp_alloc(m, sizeof *packer->crossing);
  packer->bit = pp_alloc(n, sizeof *packer->bit);
  packer->first_bit = pp_alloc(m, sizeof *packer->first_bit);
  packer->present = pp_alloc(n / 64 + 1, sizeof *packer->present);
  packer->blame = pp_alloc(n, sizeof *packer->blame);
  packer->placed = pp_alloc(n, sizeof *packer->placed);
  packer->offset = pp_alloc(n, sizeof *packer->offset);
  packer->covers = pp_alloc(m, sizeof *packer->covers);
  packer->fill = pp_alloc(m, sizeof *packer->fill);
  packer->lowest_before = pp_alloc(m, sizeof *packer->lowest_before);
  packer->lowest_behind = pp_alloc(m, sizeof *packer->lowest_behind);
  return packer->begin && packer->beginner && packer->cover_begin && packer->cover &&
         packer->by_rank && packer->kind && packer->seen && packer->floor && packer->slack &&
         packer->left && packer->crossing && packer->bit && packer->first_bit && packer->present &&
         packer->blame && packer->placed && packer->offset && packer->covers && packer->fill &&
         packer->lowest_before && packer->lowest_behind;
}

pp_packer *pp_packer_new(const struct pp_strip *strip) {
  pp_packer *packer = pp_zalloc(1, sizeof *packer);
  if (!packer)
    return NULL;
  packer->strip = strip;
  if (!allocate(packer)) {
    pp_packer_free(packer);
    return NULL;
  }
  find_kinds(packer);
  find_bits(packer);
  return packer;
}

void pp_packer_free(pp_packer *packer) {
  if (!packer)
    return;
  free(packer->begin);
  free(packer->beginner);
  free(packer->cover_begin);
  free(packer->cover);
  free(packer->by_rank);
  free(packer->kind);
  free(packer->seen);
  free(packer->floor);
  free(packer->slack);
  free(packer->left);
  free(packer->crossing);
  free(packer->bit);
  free(packer->first_bit);
  free(packer->present);
  free(packer->blame);
  free(packer->placed);
  free(packer->offset);
  free(packer->covers);
  free(packer->fill);
  free(packer->lowest_before);
  free(packer->lowest_behind);
  free(packer->trail.items);
  free(packer->frames.items);
  free(packer->waiting.items);
  free(packer->candidates.items);
  free(packer->keys.items);
  pp_memo_free(&packer->refuted);
  free(packer);
}

const int64_t *pp_packer_offsets(const pp_packer *packer) {
  return packer->offset;
}

const int64_t *pp_packer_blame(const pp_packer *packer) {
  return packer->blame;
}

int64_t pp_packer_next(const pp_packer *packer) {
  return packer->next;
}

int64_t pp_packer_nodes(const pp_packer *packer) {
  return packer->nodes;
}

/* Lists the buffers of every section in the order of rank. */
static void list_buffers(pp_packer *packer, const int32_t *rank) {
  const struct pp_strip *strip = packer->strip;
  int32_t n = strip->count, m = strip->sections;
  for (int32_t b = 0; b < n; b++)
    packer->by_rank[rank[b]] = b;
  memset(packer->begin, 0, ((size_t)m + 1) * sizeof *packer->begin);
  memset(packer->left, 0, ((size_t)m + 1) * sizeof *packer->left);
  memset(packer->crossing, 0, ((size_t)m + 1) * sizeof *packer->crossing);
  for (int32_t b = 0; b < n; b++) {
    packer->begin[strip->from[b]]++;
    for (int32_t s = strip->from[b]; s < strip->to[b]; s++) {
      packer->left[s]++;
      packer->crossing[s] += s > strip->from[b];
    }
  }
  int32_t begin = 0;
  int64_t cover = 0;
  for (int32_t s = 0; s <= m; s++) { /* where the lists end; filled from behind below */
    packer->begin[s] = begin += packer->begin[s];
    packer->cover_begin[s] = cover += packer->left[s];
  }
  for (int32_t i = n - 1; i >= 0; i--) {
    int32_t b = packer->by_rank[i];
    packer->beginner[--packer->begin[strip->from[b]]] = b;
    for (int32_t s = strip->from[b]; s < strip->to[b]; s++)
      packer->cover[--packer->cover_begin[s]] = b;
  }
}

static void start(pp_packer *packer, int64_t capacity) {
  const struct pp_strip *strip = packer->strip;
  for (int32_t s = 0; s < strip->sections; s++) {
    packer->floor[s] = 0;
    packer->slack[s] =
        pp_strip_units(strip, capacity, strip->section_last_bytes[s]) - strip->load[s];
  }
  memset(packer->blame, 0, (size_t)strip->count * sizeof *packer->blame);
  memset(packer->placed, 0, (size_t)strip->count * sizeof *packer->placed);
  memset(packer->present, 0, ((size_t)strip->count / 64 + 1) * sizeof *packer->present);
  for (int32_t b = 0; b < strip->count; b++)
    packer->present[b / 64] |= (uint64_t)1 << b % 64;
  packer->capacity = capacity;
  packer->nodes = 0;
  packer->trail.count = packer->frames.count = 0;
  packer->waiting.count = packer->candidates.count = packer->keys.count = 0;
}

/* ---- Placing and raising ---- */

/* Something was refuted that holds up to `units` units: a smaller capacity than that is none. */
static void need(pp_packer *packer, int64_t units, int64_t last_bytes) {
  int64_t bytes = pp_strip_bytes(packer->strip, units, last_bytes);
  if (bytes < packer->next && bytes > packer->capacity)
    packer->next = bytes;
}

/* Section s lacks `slack` units more than it has. */
static void need_slack(pp_packer *packer, int32_t s, int64_t slack) {
  const struct pp_strip *strip = packer->strip;
  int64_t last = strip->section_last_bytes[s],
          units = pp_strip_units(strip, packer->capacity, last);
  if (!__builtin_add_overflow(units, slack - packer->slack[s], &units))
    need(packer, units, last);
}

static bool note(pp_packer *packer, int32_t s) {
  if (!PP_ROOM(&packer->trail))
    return false;
  packer->trail.items[packer->trail.count++] =
      (struct change){s, packer->floor[s], packer->slack[s]};
  return true;
}

static void undo(pp_packer *packer, size_t length) {
  while (packer->trail.count > length) {
    const struct change *change = &packer->trail.items[--packer->trail.count];
    packer->floor[change->section] = change->floor;
    packer->slack[change->section] = change->slack;
  }
}

static bool place(pp_packer *packer, int32_t b, int64_t offset) {
  const struct pp_strip *strip = packer->strip;
  for (int32_t s = strip->from[b]; s < strip->to[b]; s++) {
    if (!note(packer, s))
      return false;
    packer->floor[s] = offset + strip->height[b];
    packer->left[s]--;
    packer->crossing[s] -= s > strip->from[b];
  }
  packer->offset[b] = offset;
  packer->placed[b] = true;
  packer->present[packer->bit[b] / 64] ^= (uint64_t)1 << packer->bit[b] % 64;
  return true;
}

/* The floors are the trail's to restore. */
static void unplace(pp_packer *packer, int32_t b) {
  const struct pp_strip *strip = packer->strip;
  for (int32_t s = strip->from[b]; s < strip->to[b]; s++) {
    packer->left[s]++;
    packer->crossing[s] += s > strip->from[b];
  }
  packer->placed[b] = false;
  packer->present[packer->bit[b] / 64] ^= (uint64_t)1 << packer->bit[b] % 64;
}

static bool raise_floor(pp_packer *packer, int32_t s, int64_t floor) {
  if (!note(packer, s))
    return false;
  packer->slack[s] -= floor - packer->floor[s];
  packer->floor[s] = floor;
  return true;
}

/* ---- Valleys ---- */

struct valley {
  int32_t from, to;
  int64_t height, wall; /* wall: of the lower neighbour; INT64_MAX if there is none */
};

/* The run of equal floors that begins at s; false if a neighbour is lower. */
static bool find_valley(const pp_packer *packer, struct component component, int32_t s,
                        struct valley *valley) {
  int64_t height = packer->floor[s], wall = INT64_MAX;
  int32_t to = s + 1;
  while (to < component.to && packer->left[to] && packer->floor[to] == height)
    to++;
  if (s > component.from && packer->left[s - 1])
    wall = packer->floor[s - 1];
  if (to < component.to && packer->left[to] && packer->floor[to] < wall)
    wall = packer->floor[to];
  *valley = (struct valley){s, to, height, wall};
  return wall > height;
}

/* Counts what can stand in the valley, section by section. */
static void count_candidates(pp_packer *packer, const struct valley *valley) {
  const struct pp_strip *strip = packer->strip;
  int32_t from = valley->from, to = valley->to;
  int32_t *covers = packer->covers;
  int64_t *fill = packer->fill, *before = packer->lowest_before, *behind = packer->lowest_behind;
  for (int32_t s = from; s <= to; s++) {
    covers[s] = 0;
    fill[s] = 0;
    before[s] = behind[s] = INT64_MAX;
  }
  for (int32_t i = packer->begin[from]; i < packer->begin[to]; i++) {
    int32_t b = packer->beginner[i];
    if (packer->placed[b] || strip->to[b] > to)
      continue;
    int32_t first = strip->from[b], end = strip->to[b];
    int64_t height = strip->height[b];
    covers[first]++;
    covers[end]--;
    fill[first] += height;
    fill[end] -= height;
    if (height < before[end])
      before[end] = height;
    if (first > from && height < behind[first - 1])
      behind[first - 1] = height;
  }
  for (int32_t s = from + 1; s < to; s++) {
    covers[s] += covers[s - 1];
    fill[s] += fill[s - 1];
    if (before[s - 1] < before[s])
      before[s] = before[s - 1];
  }
  for (int32_t s = to - 2; s >= from; s--)
    if (behind[s + 1] < behind[s])
      behind[s] = behind[s + 1];
}

static int bits(int64_t value) {
  return value > 0 ? 64 - __builtin_clzll((unsigned long long)value) : 0;
}

static void consider(pp_packer *packer, const struct valley *valley, int32_t s, int64_t step,
                     struct question *best) {
  int64_t answers = packer->covers[s] + (step <= packer->slack[s]);
  int64_t key[2] = {answers, valley->height};
  if (packer->choice == PP_LOWEST_FIRST) {
    key[0] = valley->height;
    key[1] = answers;
  } else if (packer->choice == PP_TIGHTEST_FIRST) {
    key[0] = answers * (1 + bits(packer->slack[s]));
  }
  if (best->section >= 0 &&
      (key[0] > best->key[0] || (key[0] == best->key[0] && key[1] >= best->key[1])))
    return;
  *best = (struct question){s, valley->from, valley->to, valley->height, step, {key[0], key[1]}};
}

/* By how much the floor of s rises at least if nothing stands on it: up to the wall, or to the top
 * of the lowest candidate beside s, since what comes next at s must rest on one of them. INT64_MAX:
 * something must stand on it. */
static int64_t lost_step(const pp_packer *packer, const struct valley *valley, int32_t s) {
  int64_t step = packer->lowest_before[s];
  if (packer->lowest_behind[s] < step)
    step = packer->lowest_behind[s];
  if (valley->wall != INT64_MAX && valley->wall - valley->height < step)
    step = valley->wall - valley->height;
  return step;
}

static void blame(pp_packer *packer, int32_t s) {
  for (int64_t i = packer->cover_begin[s]; i < packer->cover_begin[s + 1]; i++)
    packer->blame[packer->cover[i]] += !packer->placed[packer->cover[i]];
}

enum outcome { FINE, RAISED, DEAD, OUT_OF_MEMORY };

/* What the valley allows: raises floors on which nothing can stand, refutes, or asks. */
static enum outcome look_at(pp_packer *packer, const struct valley *valley, struct question *best) {
  enum outcome outcome = FINE;
  count_candidates(packer, valley);
  for (int32_t s = valley->from; s < valley->to; s++) {
    /* What can stand below the wall does not reach it: at least the rest is lost. */
    if (valley->wall != INT64_MAX) {
      int64_t loss = valley->wall - valley->height;
      loss = packer->fill[s] < loss ? loss - packer->fill[s] : 0;
      if (loss > packer->slack[s]) {
        need_slack(packer, s, loss);
        blame(packer, s);
        return DEAD;
      }
    }
    if (packer->covers[s] == 0) {
      if (!raise_floor(packer, s, valley->wall))
        return OUT_OF_MEMORY;
      outcome = RAISED;
    }
  }
  if (outcome == FINE)
    for (int32_t s = valley->from; s < valley->to; s++)
      consider(packer, valley, s, lost_step(packer, valley, s), best);
  return outcome;
}

/* Looks at all valleys of a component until nothing changes. */
static enum outcome look_around(pp_packer *packer, struct component component,
                                struct question *best) {
  for (int32_t s = component.from; s < component.to;) {
    struct valley valley;
    if (!packer->left[s]) {
      s++;
      continue;
    }
    if (!find_valley(packer, component, s, &valley)) {
      s = valley.to;
      continue;
    }
    enum outcome outcome = look_at(packer, &valley, best);
    if (outcome == DEAD || outcome == OUT_OF_MEMORY)
      return outcome;
    if (outcome == FINE) {
      s = valley.to;
      continue;
    }
    /* Look again, from the run on the left, which may have grown. */
    if (s > component.from && packer->left[s - 1])
      s--;
    while (s > component.from && packer->left[s - 1] && packer->floor[s - 1] == packer->floor[s])
      s--;
  }
  return FINE;
}

/* ---- Search ---- */

/* Lists the answers to the question: what stands on the section's floor, each kind once. */
static bool list_answers(pp_packer *packer, const struct question *question, struct frame *frame) {
  const struct pp_strip *strip = packer->strip;
  frame->section = question->section;
  frame->height = question->height;
  if (question->step <= packer->slack[question->section])
    frame->raised = question->height + question->step;
  else if (question->step != INT64_MAX)
    need_slack(packer, question->section, question->step);
  packer->stamp++;
  for (int64_t i = packer->cover_begin[question->section];
       i < packer->cover_begin[question->section + 1]; i++) {
    int32_t b = packer->cover[i];
    if (packer->placed[b] || strip->from[b] < question->from || strip->to[b] > question->to ||
        packer->seen[packer->kind[b]] == packer->stamp)
      continue;
    packer->seen[packer->kind[b]] = packer->stamp;
    int64_t top = question->height + strip->height[b];
    if (top > pp_strip_units(strip, packer->capacity, strip->last_bytes[b])) {
      need(packer, top, strip->last_bytes[b]);
      continue;
    }
    if (!PP_ROOM(&packer->candidates))
      return false;
    packer->candidates.items[packer->candidates.count++] = b;
    frame->answers++;
  }
  return true;
}

static bool append(pp_packer *packer, uint64_t word) {
  if (!PP_ROOM(&packer->keys))
    return false;
  packer->keys.items[packer->keys.count++] = word;
  return true;
}

/* Writes the state of a component behind the keys of the open frames: its runs of equal floor, and
 * which of the buffers that begin in it are left. */
static bool write_key(pp_packer *packer, struct component component) {
  int32_t from = component.from, to = component.to;
  if (!append(packer, (uint64_t)from << 32 | (uint64_t)to))
    return false;
  for (int32_t s = from; s < to; s++)
    if ((s == from || packer->floor[s] != packer->floor[s - 1]) &&
        (!append(packer, (uint64_t)s) || !append(packer, (uint64_t)packer->floor[s])))
      return false;
  int32_t first = packer->first_bit[from], last = packer->first_bit[to] - 1;
  for (int32_t i = first / 64; i <= last / 64; i++) {
    uint64_t word = packer->present[i];
    if (i == first / 64)
      word &= ~(uint64_t)0 << first % 64;
    if (i == last / 64)
      word &= ~(uint64_t)0 >> (63 - last % 64);
    if (!append(packer, word))
      return false;
  }
  return true;
}

/* Is the component's state known to be refuted? */
static bool recall(pp_packer *packer, struct component component, struct frame *frame,
                   enum outcome *outcome) {
  if (!write_key(packer, component))
    return false;
  const uint64_t *key = &packer->keys.items[frame->key];
  size_t words = packer->keys.count - frame->key;
  frame->hash = pp_memo_hash(key, words);
  int64_t refuted_below = pp_memo_get(&packer->refuted, key, words, frame->hash);
  if (refuted_below > packer->capacity) {
    packer->next = refuted_below;
    *outcome = DEAD;
  }
  return true;
}

/* Remembers that the top frame's state was refuted, if finding that out again would cost more. */
static void remember(pp_packer *packer) {
  const struct frame *frame = &packer->frames.items[packer->frames.count - 1];
  if (packer->nodes - frame->opened >= MEMO_NODES)
    pp_memo_put(&packer->refuted, &packer->keys.items[frame->key], packer->keys.count - frame->key,
                frame->hash, frame->next);
}

static bool open_frame(pp_packer *packer, struct component component) {
  if (!PP_ROOM(&packer->frames))
    return false;
  struct frame frame = {.component = component,
                        .section = -1,
                        .answer = -1,
                        .placed = -1,
                        .raised = -1,
                        .first_candidate = packer->candidates.count,
                        .before = packer->trail.count,
                        .waiting = packer->waiting.count,
                        .key = packer->keys.count,
                        .opened = packer->nodes};
  packer->next = INT64_MAX;
  struct question question = {.section = -1};
  enum outcome outcome = look_around(packer, component, &question);
  if (outcome == FINE && !recall(packer, component, &frame, &outcome))
    return false;
  if (outcome == OUT_OF_MEMORY)
    return false;
  if (outcome == FINE && question.section >= 0 && !list_answers(packer, &question, &frame))
    return false;
  frame.next = packer->next;
  frame.after = packer->trail.count;
  packer->frames.items[packer->frames.count++] = frame;
  packer->nodes++;
  return true;
}

static bool queue(pp_packer *packer, int32_t from, int32_t to, int32_t parent) {
  if (!PP_ROOM(&packer->waiting))
    return false;
  packer->waiting.items[packer->waiting.count++] = (struct component){from, to, parent};
  return true;
}

/* Queues what is left of a component after b was placed in it, cut where nothing crosses now. */
static bool split(pp_packer *packer, struct component component, int32_t b, int32_t parent) {
  int32_t first = packer->strip->from[b], to = component.to;
  for (int32_t s = packer->strip->to[b] - 1; s >= first; s--) {
    bool whole = s == first;
    if (!whole && packer->crossing[s] > 0)
      continue;
    int32_t from = whole ? component.from : s;
    if ((to - from > 1 || packer->left[from]) && !queue(packer, from, to, parent))
      return false;
    to = from;
  }
  return true;
}

enum step { STEP_DEEPER, STEP_BACK, STEP_MEMORY };

/* Tries the next answer of the top frame. */
static enum step try_next(pp_packer *packer) {
  int32_t index = (int32_t)packer->frames.count - 1;
  struct frame *frame = &packer->frames.items[index];
  if (frame->placed >= 0)
    unplace(packer, frame->placed);
  frame->placed = -1;
  undo(packer, frame->after);
  packer->waiting.count = frame->waiting;
  packer->candidates.count = frame->first_candidate + (size_t)frame->answers;
  frame->answer++;
  if (frame->section < 0)
    return STEP_BACK;
  if (frame->answer < frame->answers) {
    int32_t b = packer->candidates.items[frame->first_candidate + (size_t)frame->answer];
    if (!place(packer, b, frame->height))
      return STEP_MEMORY;
    frame->placed = b;
    return split(packer, frame->component, b, index) ? STEP_DEEPER : STEP_MEMORY;
  }
  if (frame->answer == frame->answers && frame->raised >= 0) {
    if (!raise_floor(packer, frame->section, frame->raised) ||
        !queue(packer, frame->component.from, frame->component.to, index))
      return STEP_MEMORY;
    return STEP_DEEPER;
  }
  return STEP_BACK;
}

/* Leaves the top frame, which has no answer left, and all those that were opened since its
 * component parted from its siblings. False if it was the first. */
static bool go_back(pp_packer *packer) {
  remember(packer);
  int32_t parent = packer->frames.items[packer->frames.count - 1].component.parent;
  int64_t next = packer->frames.items[packer->frames.count - 1].next;
  if (parent < 0)
    packer->next = next;
  else if (next < packer->frames.items[parent].next)
    packer->frames.items[parent].next = next;
  while ((int32_t)packer->frames.count - 1 > parent) {
    struct frame *frame = &packer->frames.items[--packer->frames.count];
    if (frame->placed >= 0)
      unplace(packer, frame->placed);
    undo(packer, frame->before);
    packer->candidates.count = frame->first_candidate;
    packer->keys.count = frame->key;
  }
  return parent >= 0;
}

static pp_packer_result search(pp_packer *packer, int64_t nodes) {
  while (packer->waiting.count > 0) {
    struct component component = packer->waiting.items[--packer->waiting.count];
    if (packer->nodes >= nodes)
      return PP_PACKER_LIMIT;
    if (!open_frame(packer, component))
      return PP_PACKER_MEMORY;
    enum step step;
    while ((step = try_next(packer)) == STEP_BACK)
      if (!go_back(packer))
        return PP_PACKER_IMPOSSIBLE;
    if (step == STEP_MEMORY)
      return PP_PACKER_MEMORY;
  }
  return PP_PACKER_PACKED;
}

/* Queues the parts of the strip that share no buffer. */
static bool queue_all(pp_packer *packer) {
  int32_t to = packer->strip->sections;
  for (int32_t s = to - 1; s >= 0; s--) {
    if (packer->crossing[s] > 0)
      continue;
    if (!queue(packer, s, to, -1))
      return false;
    to = s;
  }
  return true;
}

pp_packer_result pp_packer_run(pp_packer *packer, int64_t capacity, const int32_t *rank,
                               enum pp_choice choice, int64_t nodes) {
  packer->choice = choice;
  list_buffers(packer, rank);
  start(packer, capacity);
  if (!queue_all(packer))
    return PP_PACKER_MEMORY;
  return search(packer, nodes);
}
