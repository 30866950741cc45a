/* Offsets: heuristics, then exact search until the lower bound is met or raised to the best arena
 * found (THEORY.md section 5). */
#include "arena.h"

#include "clock.h"
#include "error.h"
#include "memory.h"

enum {
  DEFAULT_NODES = 8000000,
  DEFAULT_WORK = 2000000000,    /* nodes times buffers: a node looks at many of them */
  SEARCH_BUFFERS = 20000,       /* with more, one packing takes too long */
  SEARCH_INCIDENCES = 20000000, /* the search lists the buffers of every section */
  PLANNER_BUFFERS = 3000        /* the runtimes' planners are quadratic */
};

struct pp_arena {
  size_t buffers;
  int64_t *offset;
  int64_t bytes, load, bound, nodes;
  double seconds;
  bool limited, searched;
};

struct work {
  const pp_arena_options *options;
  struct pp_strip strip;
  pp_arena *arena;
  double start;
  int32_t *rank;
  int64_t *offset; /* of the strip's buffers, in units */
  pp_packer *packer;
  struct tactic *tactic;
  double *weight; /* of all tactics */
  int64_t left;   /* nodes */
  int64_t step;   /* units below the best arena to aim at */
  uint64_t seed;
};

static bool done(const struct work *work) {
  const pp_arena *arena = work->arena;
  int64_t capacity = work->options->capacity;
  return arena->bytes >= 0 &&
         (arena->bytes <= arena->bound ||
          (capacity > 0 && (arena->bytes <= capacity || arena->bound > capacity)));
}

/* True when a limit or the caller ends the work. */
static bool stopped(struct work *work) {
  pp_arena *arena = work->arena;
  double seconds = pp_now() - work->start;
  if (work->options->time_limit > 0 && seconds >= work->options->time_limit)
    arena->limited = true;
  if (work->options->progress && !arena->limited) {
    pp_arena_progress progress = {arena->bytes, arena->bound, seconds, arena->nodes};
    arena->limited = work->options->progress(&progress, work->options->data);
  }
  return arena->limited;
}

/* Keeps the packing if it is the best so far. */
static void keep(struct work *work, const int64_t *offset) {
  pp_arena *arena = work->arena;
  int64_t used;
  if (!pp_strip_used(&work->strip, offset, &used) || (arena->bytes >= 0 && used >= arena->bytes))
    return;
  arena->bytes = used;
  for (int32_t b = 0; b < work->strip.count; b++)
    arena->offset[work->strip.id[b]] = offset[b] * work->strip.unit;
}

/* ---- Heuristics ---- */

static pp_status run_skylines(struct work *work, pp_error *error) {
  for (int p = 0; p < PP_PREFERENCES && !done(work) && !stopped(work); p++) {
    if (!pp_strip_rank(&work->strip, (enum pp_preference)p, NULL, 0, 0, work->rank))
      return pp_fail_memory(error);
    pp_status status = pp_skyline_pack(&work->strip, work->rank, work->offset);
    if (status == PP_ERROR_MEMORY)
      return pp_fail_memory(error);
    if (status == PP_OK)
      keep(work, work->offset);
  }
  return PP_OK;
}

static pp_status run_planners(struct work *work, const pp_buffer *buffer, size_t buffers,
                              pp_error *error) {
  int64_t *offset = pp_alloc(buffers, sizeof *offset), bytes;
  if (!offset)
    return pp_fail_memory(error);
  pp_status status = PP_OK;
  for (int p = PP_PLANNER_TFLM; p <= PP_PLANNER_LITERT && status == PP_OK && !done(work); p++) {
    for (size_t i = 0; i < buffers; i++)
      offset[i] = -1;
    status =
        pp_arena_greedy(buffer, buffers, work->strip.unit, (pp_planner)p, offset, &bytes, error);
    if (status == PP_ERROR_OVERFLOW) {
      status = PP_OK;
      continue;
    }
    for (int32_t b = 0; b < work->strip.count; b++)
      work->offset[b] = offset[work->strip.id[b]] / work->strip.unit;
    if (status == PP_OK)
      keep(work, work->offset);
  }
  free(offset);
  return status;
}

/* ---- Exact search ---- */

/* Ways to run, each with weights of its own that it learns: buffers that were in the way of a
 * packing are preferred the next time (Joslin, Clements, "Squeaky wheel optimization", 1999). */
struct tactic {
  enum pp_preference preference;
  enum pp_choice choice;
  int noise;    /* for pp_strip_rank */
  double learn; /* how much blame counts; 0: a plain order, run again and longer */
  int64_t runs;
  double *weight;
};

enum { BURST = 8 }; /* runs of a tactic that learns */
enum { PAIRS = PP_PREFERENCES * PP_CHOICES, LEARNERS = 2 * PAIRS, TACTICS = LEARNERS + PAIRS };

static bool make_tactics(struct work *work) {
  static const struct {
    int noise;
    double learn;
  } kinds[] = {{12, 3}, {5, 1}, {0, 0}};
  size_t n = (size_t)work->strip.count;
  work->tactic = pp_zalloc(TACTICS, sizeof *work->tactic);
  work->weight = pp_alloc(TACTICS * n, sizeof *work->weight);
  if (!work->tactic || !work->weight)
    return false;
  for (size_t i = 0; i < TACTICS * n; i++)
    work->weight[i] = 1;
  for (int i = 0; i < TACTICS; i++)
    work->tactic[i] = (struct tactic){.preference = (enum pp_preference)(i % PP_PREFERENCES),
                                      .choice = (enum pp_choice)(i / PP_PREFERENCES % PP_CHOICES),
                                      .noise = kinds[i / PAIRS].noise,
                                      .learn = kinds[i / PAIRS].learn,
                                      .weight = &work->weight[(size_t)i * n]};
  return true;
}

static void learn(struct work *work, struct tactic *tactic) {
  const int64_t *blame = pp_packer_blame(work->packer);
  int64_t most = 1;
  for (int32_t b = 0; b < work->strip.count; b++)
    if (blame[b] > most)
      most = blame[b];
  for (int32_t b = 0; b < work->strip.count; b++) {
    double kept = (tactic->weight[b] - 1) * 0.9;
    tactic->weight[b] = 1 + kept + tactic->learn * (double)blame[b] / (double)most;
  }
}

static pp_status run_packer(struct work *work, int64_t capacity, struct tactic *tactic,
                            int64_t nodes, pp_error *error) {
  pp_arena *arena = work->arena;
  if (!pp_strip_rank(&work->strip, tactic->preference, tactic->weight, tactic->noise, work->seed++,
                     work->rank))
    return pp_fail_memory(error);
  pp_packer_result result = pp_packer_run(work->packer, capacity, work->rank, tactic->choice,
                                          nodes < work->left ? nodes : work->left);
  arena->nodes += pp_packer_nodes(work->packer);
  work->left -= pp_packer_nodes(work->packer);
  tactic->runs++;
  if (result == PP_PACKER_MEMORY)
    return pp_fail_memory(error);
  if (result == PP_PACKER_PACKED)
    keep(work, pp_packer_offsets(work->packer));
  if (result == PP_PACKER_LIMIT && tactic->learn > 0)
    learn(work, tactic);
  if (result == PP_PACKER_IMPOSSIBLE) {
    int64_t next = pp_packer_next(work->packer);
    arena->bound = arena->bytes >= 0 && next > arena->bytes ? arena->bytes : next;
    arena->searched = true;
  }
  return PP_OK;
}

/* 1 1 2 1 1 2 4 1 1 2 ... for i = 1, 2, ...: how long to run when one does not know (Luby,
 * Sinclair, Zuckerman 1993). */
static int64_t luby(int64_t i) {
  for (;;) {
    int64_t power = 1;
    while (2 * power <= i)
      power *= 2;
    if (2 * power - 1 == i)
      return power;
    i -= power - 1;
  }
}

/* Where to aim: at the lower bound, which is usually met, or somewhat below the best arena, the
 * farther the better that went of late. */
static int64_t choose_capacity(const struct work *work, bool low, int64_t step) {
  const pp_arena *arena = work->arena;
  int64_t wanted = work->options->capacity > arena->bound ? work->options->capacity : arena->bound;
  if (low || arena->bytes < 0 || work->options->capacity > 0 ||
      step >= (arena->bytes - wanted) / work->strip.unit)
    return wanted;
  return arena->bytes - step * work->strip.unit;
}

/* Runs a tactic some times, and again while it goes well. */
static pp_status run_burst(struct work *work, struct tactic *tactic, bool low, bool *better,
                           pp_error *error) {
  pp_arena *arena = work->arena;
  int64_t base = 500 + 4 * (int64_t)work->strip.count;
  int count = tactic->learn > 0 ? BURST : 1;
  *better = false;
  for (int run = 0; run < count && !done(work); run++) {
    if (work->left <= 0)
      arena->limited = true;
    if (arena->limited || stopped(work))
      return PP_OK;
    int64_t capacity = choose_capacity(work, low, work->step), bytes = arena->bytes;
    int64_t nodes = tactic->learn > 0 ? base : base * luby(1 + tactic->runs);
    pp_status status = run_packer(work, capacity, tactic, nodes, error);
    if (status != PP_OK)
      return status;
    if (bytes >= 0 && arena->bytes == bytes)
      continue;
    *better = true;
    run = -1;
    work->step *= 2;
  }
  if (!*better && !low && work->step > 1)
    work->step /= 2;
  return PP_OK;
}

/* Many short runs find packings that one long run does not; long runs are needed to refute, though
 * what short ones refuted is remembered. What worked last is tried again and again. */
static pp_status search_on(struct work *work, pp_error *error) {
  struct tactic *good = work->tactic;
  work->step = 1;
  for (int i = 0; !done(work) && !work->arena->limited; i++) {
    struct tactic *tactic = good;
    bool better;
    if (i < PAIRS) /* each plain order once */
      tactic = &work->tactic[LEARNERS + i];
    else if (i % 3)
      tactic = &work->tactic[(i - i / 3) % TACTICS];
    pp_status status = run_burst(work, tactic, i / 2 % 2 == 0, &better, error);
    if (status != PP_OK)
      return status;
    if (better)
      good = tactic;
  }
  return PP_OK;
}

static pp_status search(struct work *work, pp_error *error) {
  work->left = DEFAULT_WORK / work->strip.count;
  if (work->left > DEFAULT_NODES)
    work->left = DEFAULT_NODES;
  if (work->options->node_limit > 0)
    work->left = work->options->node_limit;
  work->packer = pp_packer_new(&work->strip);
  if (!work->packer || !make_tactics(work))
    return pp_fail_memory(error);
  return search_on(work, error);
}

/* ---- All of it ---- */

static pp_status solve(struct work *work, const pp_buffer *buffer, size_t buffers,
                       pp_error *error) {
  pp_arena *arena = work->arena;
  arena->bound = work->strip.bound;
  arena->load = work->strip.peak;
  arena->bytes = work->strip.count ? -1 : 0;
  pp_status status = run_skylines(work, error);
  if (status == PP_OK && !done(work) && buffers <= PLANNER_BUFFERS)
    status = run_planners(work, buffer, buffers, error);
  if (status != PP_OK || done(work) || arena->limited)
    return status;
  if (work->options->node_limit < 0 || work->strip.incidences > SEARCH_INCIDENCES ||
      work->strip.count > SEARCH_BUFFERS) {
    arena->limited = true;
    return PP_OK;
  }
  return search(work, error);
}

static pp_status finish(struct work *work, const pp_buffer *buffer, size_t buffers,
                        pp_error *error) {
  pp_arena *arena = work->arena;
  int64_t bytes;
  if (arena->bytes < 0)
    return pp_fail(error, PP_ERROR_OVERFLOW, "no arena below 2^63 bytes was found");
  pp_status status =
      pp_arena_check(buffer, buffers, work->strip.unit, arena->offset, &bytes, error);
  if (status == PP_OK && bytes != arena->bytes)
    status = pp_fail(error, PP_ERROR_INTERNAL, "an arena of %lld bytes was promised, not %lld",
                     (long long)arena->bytes, (long long)bytes);
  if (status != PP_OK && error)
    error->status = PP_ERROR_INTERNAL;
  arena->seconds = pp_now() - work->start;
  return status == PP_OK ? PP_OK : PP_ERROR_INTERNAL;
}

pp_status pp_arena_solve(const pp_buffer *buffer, size_t buffers, const pp_arena_options *options,
                         pp_arena **arena, pp_error *error) {
  static const pp_arena_options defaults = {0};
  struct work work = {.options = options ? options : &defaults, .start = pp_now()};
  int64_t alignment = work.options->alignment ? work.options->alignment : 1;
  pp_status status = pp_strip_init(&work.strip, buffer, buffers, alignment, error);
  if (status != PP_OK)
    return status;
  work.arena = pp_zalloc(1, sizeof *work.arena);
  work.rank = pp_alloc((size_t)work.strip.count, sizeof *work.rank);
  work.offset = pp_alloc((size_t)work.strip.count, sizeof *work.offset);
  if (work.arena)
    work.arena->offset = pp_zalloc(buffers, sizeof *work.arena->offset);
  if (!work.arena || !work.rank || !work.offset || !work.arena->offset)
    status = pp_fail_memory(error);
  if (status == PP_OK)
    status = solve(&work, buffer, buffers, error);
  if (status == PP_OK)
    status = finish(&work, buffer, buffers, error);
  pp_packer_free(work.packer);
  pp_strip_free(&work.strip);
  free(work.tactic);
  free(work.weight);
  free(work.rank);
  free(work.offset);
  if (status == PP_OK)
    *arena = work.arena;
  else
    pp_arena_free(work.arena);
  return status;
}

void pp_arena_free(pp_arena *arena) {
  if (!arena)
    return;
  free(arena->offset);
  free(arena);
}

const int64_t *pp_arena_offsets(const pp_arena *arena) {
  return arena->offset;
}

int64_t pp_arena_bytes(const pp_arena *arena) {
  return arena->bytes;
}

int64_t pp_arena_load(const pp_arena *arena) {
  return arena->load;
}

int64_t pp_arena_lower_bound(const pp_arena *arena) {
  return arena->bound;
}

bool pp_arena_optimal(const pp_arena *arena) {
  return arena->bytes == arena->bound;
}

pp_arena_proof pp_arena_proved_by(const pp_arena *arena) {
  return arena->searched ? PP_ARENA_SEARCH : PP_ARENA_LOAD;
}

bool pp_arena_limited(const pp_arena *arena) {
  return arena->limited;
}

double pp_arena_seconds(const pp_arena *arena) {
  return arena->seconds;
}

int64_t pp_arena_nodes(const pp_arena *arena) {
  return arena->nodes;
}
