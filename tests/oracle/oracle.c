/* See oracle.h. Sets of statements are bit masks. */
#include "oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t set;

struct oracle {
  const oracle_program *p;
  int n;
  set all;
  set direct[ORACLE_MAX];    /* predecessors */
  set ancestors[ORACLE_MAX]; /* all of them */
  set *accessors;            /* of a storage */
};

static void *take(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) {
    fputs("oracle: out of memory\n", stderr);
    exit(71);
  }
  return memory;
}

static bool share_a_byte(const oracle_access *a, const oracle_access *b) {
  if (a->storage != b->storage)
    return false;
  return a->from < 0 || b->from < 0 || (a->from < b->to && b->from < a->to);
}

static void open_oracle(struct oracle *o, const oracle_program *p) {
  *o = (struct oracle){.p = p, .n = p->n, .all = ((set)1 << p->n) - 1};
  o->accessors = take((size_t)p->m, sizeof *o->accessors);
  for (size_t i = 0; i < p->accesses; i++) {
    const oracle_access *a = p->access + i;
    o->accessors[a->storage] |= (set)1 << a->statement;
    for (size_t j = 0; j < p->accesses; j++) {
      const oracle_access *b = p->access + j;
      if (a->statement < b->statement && (a->write || b->write) && share_a_byte(a, b))
        o->direct[b->statement] |= (set)1 << a->statement;
    }
  }
  for (size_t i = 0; i < p->pairs; i++)
    o->direct[p->pair[i][1]] |= (set)1 << p->pair[i][0];
  for (int v = 0; v < o->n; v++)
    for (int u = 0; u < v; u++)
      if (o->direct[v] >> u & 1)
        o->ancestors[v] |= o->ancestors[u] | (set)1 << u;
}

/* Turns it into the oracle of the reversed program: only what costs and down-sets need. Statements
 * keep their numbers. */
static void reverse_oracle(struct oracle *o) {
  set direct[ORACLE_MAX] = {0}, ancestors[ORACLE_MAX] = {0};
  for (int v = 0; v < o->n; v++)
    for (int u = 0; u < v; u++) {
      direct[u] |= (o->direct[v] >> u & 1) << v;
      ancestors[u] |= (o->ancestors[v] >> u & 1) << v;
    }
  memcpy(o->direct, direct, sizeof direct);
  memcpy(o->ancestors, ancestors, sizeof ancestors);
}

static bool is_live(const struct oracle *o, int s, set done) {
  bool begun = o->p->live_in[s] || (o->accessors[s] & done);
  bool ended = !o->p->live_out[s] && !(o->accessors[s] & ~done & o->all);
  return begun && !ended;
}

/* M(S). */
static int64_t memory(const struct oracle *o, set done) {
  int64_t sum = 0;
  for (int s = 0; s < o->p->m; s++)
    sum += is_live(o, s, done) ? o->p->size[s] : 0;
  return sum;
}

/* c(S, v), given M(S). */
static int64_t cost(const struct oracle *o, set done, int64_t live, int v) {
  int64_t sum = live + o->p->work[v];
  for (int s = 0; s < o->p->m; s++)
    if (o->accessors[s] >> v & 1 && !is_live(o, s, done))
      sum += o->p->size[s];
  return sum;
}

static bool is_ready(const struct oracle *o, set done, int v) {
  return !(done >> v & 1) && !(o->direct[v] & ~done);
}

int64_t oracle_peak(const oracle_program *program, const int *order) {
  struct oracle o;
  open_oracle(&o, program);
  set done = 0;
  int64_t peak = memory(&o, 0);
  for (int i = 0; i < o.n && peak >= 0; i++) {
    int v = order ? order[i] : i;
    int64_t step =
        v >= 0 && v < o.n && is_ready(&o, done, v) ? cost(&o, done, memory(&o, done), v) : -1;
    peak = step < 0 ? -1 : step > peak ? step : peak;
    done |= step < 0 ? 0 : (set)1 << v;
  }
  free(o.accessors);
  return peak;
}

int64_t oracle_optimum(const oracle_program *program, int *order) {
  struct oracle o;
  open_oracle(&o, program);
  int64_t *best =
      take((size_t)o.all + 1, sizeof *best); /* 1 + peak; 0: no down-set, or not reached */
  int8_t *last = take((size_t)o.all + 1, sizeof *last);
  best[0] = memory(&o, 0) + 1;
  for (set done = 0; done < o.all; done++) {
    if (!best[done])
      continue;
    int64_t live = memory(&o, done);
    for (int v = 0; v < o.n; v++) {
      if (!is_ready(&o, done, v))
        continue;
      int64_t peak = cost(&o, done, live, v) + 1;
      set then = done | (set)1 << v;
      peak = peak < best[done] ? best[done] : peak;
      if (!best[then] || peak < best[then]) {
        best[then] = peak;
        last[then] = (int8_t)v;
      }
    }
  }
  int64_t optimum = best[o.all] - 1;
  set done = o.all;
  for (int i = o.n; order && i-- > 0; done &= ~((set)1 << order[i]))
    order[i] = last[done];
  free(best);
  free(last);
  free(o.accessors);
  return optimum;
}

int64_t oracle_floor(const oracle_program *program) {
  struct oracle o;
  open_oracle(&o, program);
  int64_t floor = memory(&o, 0);
  for (int v = 0; v < o.n; v++) {
    int64_t sum = program->work[v];
    for (int s = 0; s < program->m; s++)
      if (o.accessors[s] >> v & 1 || (program->live_in[s] && program->live_out[s]))
        sum += program->size[s];
    floor = sum > floor ? sum : floor;
  }
  free(o.accessors);
  return floor;
}

int64_t oracle_best_trap(const oracle_program *program, bool reverse) {
  struct oracle o;
  open_oracle(&o, program);
  if (reverse)
    reverse_oracle(&o);
  /* cheapest[T][v]: the least c(S, v) over down-sets S with anc(v) in S in T; -1: T is no down-set
   */
  int64_t(*cheapest)[ORACLE_MAX] = take((size_t)o.all + 1, sizeof *cheapest);
  int64_t best = 0;
  for (set trap = 0;; trap++) {
    bool closed = true;
    for (int v = 0; v < o.n; v++)
      closed &= !(trap >> v & 1) || !(o.direct[v] & ~trap);
    int64_t least = INT64_MAX;
    for (int v = 0; v < o.n; v++) {
      cheapest[trap][v] = -1;
      if (!closed || trap >> v & 1 || o.ancestors[v] & ~trap)
        continue;
      /* costs are symmetric: S is what runs before v in the reversed program, so after it in this
       */
      set done = reverse ? o.all & ~trap & ~((set)1 << v) : trap;
      int64_t value = cost(&o, done, memory(&o, done), v);
      for (int u = 0; u < o.n; u++) {
        set smaller = trap & ~((set)1 << u);
        if (smaller != trap && cheapest[smaller][v] >= 0 && cheapest[smaller][v] < value)
          value = cheapest[smaller][v];
      }
      cheapest[trap][v] = value;
      if (value < least)
        least = value;
    }
    if (closed && trap != o.all && least > best)
      best = least;
    if (trap == o.all)
      break;
  }
  free(cheapest);
  free(o.accessors);
  return best;
}

/* ---- Random programs ---- */

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static int below(uint64_t *state, int limit) {
  return (int)(draw(state) % (uint64_t)limit);
}

struct random { /* the program and what it points to */
  oracle_program program;
  int64_t work[ORACLE_MAX], size[5 + 3 * ORACLE_MAX];
  bool live_in[5 + 3 * ORACLE_MAX], live_out[5 + 3 * ORACLE_MAX];
  oracle_access access[6 * ORACLE_MAX];
  int pair[3][2];
};

static int add_storage(struct random *r, uint64_t *state, int largest, bool live_in) {
  int s = r->program.m++;
  r->size[s] = below(state, 20) ? 1 + below(state, largest) : 0;
  r->live_in[s] = live_in;
  r->live_out[s] = below(state, live_in ? 2 : 10) == 0;
  return s;
}

static void add_access(struct random *r, uint64_t *state, int v, int s, bool write) {
  oracle_access *a = r->access + r->program.accesses++;
  *a = (oracle_access){v, s, -1, -1, write};
  if (r->size[s] < 2 || below(state, 5) > 0)
    return;
  a->from = below(state, (int)r->size[s]);
  a->to = a->from + 1 + below(state, (int)(r->size[s] - a->from));
}

oracle_program *oracle_random(uint64_t seed, int statements) {
  static const int largest[] = {3, 10, 100, 4096}, reads[] = {0, 1, 1, 2, 3},
                   writes[] = {0, 1, 1, 1, 2};
  struct random *r = take(1, sizeof *r);
  uint64_t s = seed * 0x9e3779b97f4a7c15 + 1, *state = &s;
  oracle_program *p = &r->program;
  int size = largest[below(state, 4)], near = below(state, 2);
  *p = (oracle_program){.work = r->work,
                        .size = r->size,
                        .live_in = r->live_in,
                        .live_out = r->live_out,
                        .access = r->access,
                        .pair = (const int(*)[2])r->pair};
  p->n = 1 + below(state, statements < ORACLE_MAX ? statements : ORACLE_MAX);
  for (int i = below(state, 4); i > 0; i--)
    add_storage(r, state, size, true);
  for (int v = 0; v < p->n; v++) {
    int recent = near && p->m > 4 ? 4 : p->m;
    for (int i = reads[below(state, 5)]; i > 0 && recent > 0; i--)
      add_access(r, state, v, p->m - 1 - below(state, recent), false);
    for (int i = writes[below(state, 5)]; i > 0; i--) {
      bool old = p->m > 0 && below(state, 5) == 0;
      add_access(r, state, v, old ? below(state, p->m) : add_storage(r, state, size, false), true);
    }
    r->work[v] = below(state, 10) < 3 ? below(state, size) : 0;
  }
  if (below(state, 10) < 3)
    add_storage(r, state, size, below(state, 2));
  if (p->n > 1 && below(state, 10) < 3)
    p->pairs = 1 + (size_t)below(state, 3);
  for (size_t i = 0; i < p->pairs; i++) {
    r->pair[i][1] = 1 + below(state, p->n - 1);
    r->pair[i][0] = below(state, r->pair[i][1]);
  }
  return p;
}

void oracle_free(oracle_program *program) {
  free(program); /* the first member of its struct random */
}

static void print_accesses(const oracle_program *p, int v, bool write, FILE *out) {
  const char *separator = "";
  for (size_t i = 0; i < p->accesses; i++) {
    const oracle_access *a = p->access + i;
    if (a->statement != v || a->write != write)
      continue;
    if (a->from < 0)
      fprintf(out, "%s%d", separator, a->storage);
    else
      fprintf(out, "%s[%d,%" PRId64 ",%" PRId64 "]", separator, a->storage, a->from, a->to);
    separator = ",";
  }
}

void oracle_print(const oracle_program *p, FILE *out) {
  fputs("{\"peakproof\":1,\"statements\":[", out);
  for (int v = 0; v < p->n; v++) {
    fprintf(out, "%s{\"work\":%" PRId64 ",\"reads\":[", v ? "," : "", p->work[v]);
    print_accesses(p, v, false, out);
    fputs("],\"writes\":[", out);
    print_accesses(p, v, true, out);
    fputs("]}", out);
  }
  fputs("],\"storages\":[", out);
  for (int s = 0; s < p->m; s++)
    fprintf(out, "%s{\"bytes\":%" PRId64 ",\"live_in\":%s,\"live_out\":%s}", s ? "," : "",
            p->size[s], p->live_in[s] ? "true" : "false", p->live_out[s] ? "true" : "false");
  fputs("],\"order\":[", out);
  for (size_t i = 0; i < p->pairs; i++)
    fprintf(out, "%s[%d,%d]", i ? "," : "", p->pair[i][0], p->pair[i][1]);
  fputs("]}\n", out);
}
