/* Turns buffers into a strip of sections (arena.h). */
#include "arena.h"

#include "error.h"
#include "memory.h"

struct event {
  int64_t time;
  int32_t buffer;
};

static int compare_events(const void *a, const void *b) {
  const struct event *x = a, *y = b;
  if (x->time != y->time)
    return x->time < y->time ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static pp_status check_buffer(const pp_buffer *buffer, size_t index, pp_error *error) {
  if (buffer->bytes < 0)
    return pp_fail(error, PP_ERROR_INPUT, "buffer %zu: negative size", index);
  if (buffer->first > buffer->last)
    return pp_fail(error, PP_ERROR_INPUT, "buffer %zu: it ends before it begins", index);
  return PP_OK;
}

static pp_status count_buffers(struct pp_strip *strip, const pp_buffer *buffer, size_t buffers,
                               pp_error *error) {
  size_t count = 0;
  for (size_t i = 0; i < buffers; i++) {
    pp_status status = check_buffer(&buffer[i], i, error);
    if (status != PP_OK)
      return status;
    count += buffer[i].bytes > 0;
  }
  if (count > INT32_MAX / 2)
    return pp_fail(error, PP_ERROR_OVERFLOW, "too many buffers");
  strip->count = (int32_t)count;
  return PP_OK;
}

static bool allocate(struct pp_strip *strip) {
  size_t n = (size_t)strip->count;
  strip->id = pp_alloc(n, sizeof *strip->id);
  strip->bytes = pp_alloc(n, sizeof *strip->bytes);
  strip->height = pp_alloc(n, sizeof *strip->height);
  strip->from = pp_alloc(n, sizeof *strip->from);
  strip->to = pp_alloc(n, sizeof *strip->to);
  strip->width = pp_alloc(n, sizeof *strip->width);
  strip->last_bytes = pp_alloc(n, sizeof *strip->last_bytes);
  /* There are at most as many maximal sections as buffers; one more for differences. */
  strip->load = pp_zalloc(n + 1, sizeof *strip->load);
  strip->section_last_bytes = pp_alloc(n + 1, sizeof *strip->section_last_bytes);
  return strip->id && strip->bytes && strip->height && strip->from && strip->to && strip->width &&
         strip->last_bytes && strip->load && strip->section_last_bytes;
}

static void fill_buffers(struct pp_strip *strip, const pp_buffer *buffer, size_t buffers) {
  int32_t b = 0;
  for (size_t i = 0; i < buffers; i++) {
    if (buffer[i].bytes == 0)
      continue;
    strip->id[b] = i;
    strip->bytes[b] = buffer[i].bytes;
    strip->height[b] = (buffer[i].bytes - 1) / strip->unit + 1;
    strip->last_bytes[b] = (buffer[i].bytes - 1) % strip->unit + 1;
    strip->width[b] = (double)buffer[i].last - (double)buffer[i].first + 1;
    b++;
  }
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Makes the unit as large as it can be. */
static void find_unit(struct pp_strip *strip) {
  int64_t common = 0, unit;
  for (int32_t b = 0; b < strip->count && common != 1; b++)
    common = gcd(strip->height[b], common);
  if (common <= 1 || __builtin_mul_overflow(strip->unit, common, &unit))
    return;
  strip->unit = unit;
  for (int32_t b = 0; b < strip->count; b++) {
    strip->height[b] /= common;
    strip->last_bytes[b] = strip->bytes[b] - (strip->height[b] - 1) * unit;
  }
}

/* Sweeps over births and deaths. A section is closed by the first death after a birth: what lives
 * then lives together, and no other section holds all of it. */
static pp_status sweep(struct pp_strip *strip, const struct event *birth, const struct event *death,
                       pp_error *error) {
  int32_t n = strip->count;
  int64_t load = 0, bytes = 0;
  bool open = false;
  for (int32_t i = 0, j = 0; j < n;) {
    if (i < n && birth[i].time <= death[j].time) {
      int32_t b = birth[i++].buffer;
      strip->from[b] = strip->sections;
      if (__builtin_add_overflow(load, strip->height[b], &load) ||
          __builtin_add_overflow(bytes, strip->bytes[b], &bytes))
        return pp_fail(error, PP_ERROR_OVERFLOW,
                       "the buffers that live together at time %lld "
                       "need more than 2^63-1 bytes",
                       (long long)birth[i - 1].time);
      open = true;
      continue;
    }
    if (open)
      strip->load[strip->sections++] = load;
    if (bytes > strip->peak)
      strip->peak = bytes;
    open = false;
    int32_t b = death[j++].buffer;
    strip->to[b] = strip->sections;
    load -= strip->height[b];
    bytes -= strip->bytes[b];
    strip->incidences += strip->to[b] - strip->from[b];
  }
  return PP_OK;
}

static pp_status find_sections(struct pp_strip *strip, const pp_buffer *buffer, pp_error *error) {
  size_t n = (size_t)strip->count;
  struct event *birth = pp_alloc(n, sizeof *birth), *death = pp_alloc(n, sizeof *death);
  pp_status status = birth && death ? PP_OK : pp_fail_memory(error);
  if (status == PP_OK) {
    for (int32_t b = 0; b < strip->count; b++) {
      birth[b] = (struct event){buffer[strip->id[b]].first, b};
      death[b] = (struct event){buffer[strip->id[b]].last, b};
    }
    qsort(birth, n, sizeof *birth, compare_events);
    qsort(death, n, sizeof *death, compare_events);
    status = sweep(strip, birth, death, error);
  }
  free(birth);
  free(death);
  return status;
}

static int32_t unpainted(int32_t *next, int32_t s) {
  while (next[s] != s)
    s = next[s] = next[next[s]];
  return s;
}

/* The smallest last_bytes of every section: the buffers are painted in the order of theirs, each
 * over the sections that no other has painted (union-find of painted runs). */
static pp_status find_last_bytes(struct pp_strip *strip, pp_error *error) {
  int32_t n = strip->count;
  int32_t *next = pp_alloc((size_t)strip->sections + 1, sizeof *next);
  struct event *order = pp_alloc((size_t)n, sizeof *order);
  pp_status status = next && order ? PP_OK : pp_fail_memory(error);
  if (status == PP_OK) {
    for (int32_t s = 0; s <= strip->sections; s++)
      next[s] = s;
    for (int32_t b = 0; b < n; b++)
      order[b] = (struct event){strip->last_bytes[b], b};
    qsort(order, (size_t)n, sizeof *order, compare_events);
    for (int32_t i = 0; i < n; i++) {
      int32_t b = order[i].buffer;
      for (int32_t s = unpainted(next, strip->from[b]); s < strip->to[b]; s = unpainted(next, s)) {
        strip->section_last_bytes[s] = strip->last_bytes[b];
        next[s] = s + 1;
      }
    }
  }
  free(next);
  free(order);
  return status;
}

/* In each section the buffers stand on each other, at best the one that fills its last unit least
 * on top. */
static pp_status find_bound(struct pp_strip *strip, pp_error *error) {
  for (int32_t s = 0; s < strip->sections; s++) {
    int64_t last = strip->section_last_bytes[s];
    if (strip->load[s] - 1 > (INT64_MAX - last) / strip->unit)
      return pp_fail(error, PP_ERROR_OVERFLOW,
                     "buffers that live together need more than 2^63-1 bytes, aligned");
    int64_t bytes = pp_strip_bytes(strip, strip->load[s], last);
    if (bytes > strip->bound)
      strip->bound = bytes;
  }
  return PP_OK;
}

pp_status pp_strip_init(struct pp_strip *strip, const pp_buffer *buffer, size_t buffers,
                        int64_t alignment, pp_error *error) {
  *strip = (struct pp_strip){.unit = alignment};
  if (alignment < 1)
    return pp_fail(error, PP_ERROR_USAGE, "the alignment must be at least 1");
  pp_status status = count_buffers(strip, buffer, buffers, error);
  if (status == PP_OK && !allocate(strip))
    status = pp_fail_memory(error);
  if (status == PP_OK) {
    fill_buffers(strip, buffer, buffers);
    find_unit(strip);
    status = find_sections(strip, buffer, error);
  }
  if (status == PP_OK)
    status = find_last_bytes(strip, error);
  if (status == PP_OK)
    status = find_bound(strip, error);
  if (status != PP_OK)
    pp_strip_free(strip);
  return status;
}

void pp_strip_free(struct pp_strip *strip) {
  free(strip->id);
  free(strip->bytes);
  free(strip->height);
  free(strip->from);
  free(strip->to);
  free(strip->width);
  free(strip->last_bytes);
  free(strip->load);
  free(strip->section_last_bytes);
  *strip = (struct pp_strip){0};
}

bool pp_strip_used(const struct pp_strip *strip, const int64_t *offset, int64_t *used) {
  *used = 0;
  for (int32_t b = 0; b < strip->count; b++) {
    int64_t end;
    if (__builtin_mul_overflow(offset[b], strip->unit, &end) ||
        __builtin_add_overflow(end, strip->bytes[b], &end))
      return false;
    if (end > *used)
      *used = end;
  }
  return true;
}

/* ---- Ranks ---- */

struct rank_key {
  double major, minor;
  int32_t buffer;
};

static int compare_ranks(const void *a, const void *b) {
  const struct rank_key *x = a, *y = b;
  if (x->major != y->major)
    return x->major > y->major ? -1 : 1;
  if (x->minor != y->minor)
    return x->minor > y->minor ? -1 : 1;
  return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

/* 1 to 1 + noise / 16. */
static double jitter(int noise, uint64_t *state) {
  return 1 + noise / 16.0 * (double)(pp_random(state) >> 32) / 4294967296.0;
}

/* The highest load of the sections that each buffer spans, by a sparse table. */
static bool fill_loads(const struct pp_strip *strip, struct rank_key *key) {
  int32_t m = strip->sections;
  int levels = 1;
  while ((int64_t)1 << levels <= m)
    levels++;
  int64_t *table = pp_alloc((size_t)m * (size_t)levels, sizeof *table);
  if (!table)
    return false;
  for (int32_t s = 0; s < m; s++)
    table[s] = strip->load[s];
  for (int k = 1; k < levels; k++)
    for (int32_t s = 0; s + (1 << k) <= m; s++) {
      int64_t a = table[(size_t)(k - 1) * (size_t)m + (size_t)s];
      int64_t b = table[(size_t)(k - 1) * (size_t)m + (size_t)(s + (1 << (k - 1)))];
      table[(size_t)k * (size_t)m + (size_t)s] = a > b ? a : b;
    }
  for (int32_t i = 0; i < strip->count; i++) {
    int k = 0;
    while (2 << k <= strip->to[i] - strip->from[i])
      k++;
    int64_t a = table[(size_t)k * (size_t)m + (size_t)strip->from[i]];
    int64_t b = table[(size_t)k * (size_t)m + (size_t)(strip->to[i] - (1 << k))];
    key[i].major = (double)(a > b ? a : b);
  }
  free(table);
  return true;
}

static void fill_key(const struct pp_strip *strip, enum pp_preference preference, int32_t b,
                     struct rank_key *key) {
  double area = (double)strip->height[b] * strip->width[b];
  key->minor = area;
  if (preference == PP_BY_WIDTH)
    key->major = strip->width[b];
  else if (preference == PP_BY_AREA)
    key->major = area;
  else if (preference == PP_BY_HEIGHT)
    key->major = (double)strip->height[b];
}

bool pp_strip_rank(const struct pp_strip *strip, enum pp_preference preference,
                   const double *weight, int noise, uint64_t seed, int32_t *rank) {
  struct rank_key *key = pp_zalloc((size_t)strip->count, sizeof *key);
  if (!key || (preference == PP_BY_LOAD && !fill_loads(strip, key))) {
    free(key);
    return false;
  }
  for (int32_t b = 0; b < strip->count; b++) {
    key[b].buffer = b;
    fill_key(strip, preference, b, &key[b]);
    double factor = weight ? weight[b] : 1;
    key[b].major *= noise ? factor * jitter(noise, &seed) : factor;
    key[b].minor *= noise ? factor * jitter(noise, &seed) : factor;
  }
  qsort(key, (size_t)strip->count, sizeof *key, compare_ranks);
  for (int32_t i = 0; i < strip->count; i++)
    rank[key[i].buffer] = i;
  free(key);
  return true;
}
