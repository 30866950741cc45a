#include "brute.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct labels {
  brute_point *item;
  int count, capacity;
} labels;

typedef struct brute {
  const pp_program *program;
  int n, m, cap[BRUTE_STATEMENTS], rank[BRUTE_STATEMENTS];
  bool fixed;
  unsigned reads[BRUTE_STATEMENTS], writes[BRUTE_STATEMENTS];  /* sets of storages */
  unsigned earlier[BRUTE_STATEMENTS], later[BRUTE_STATEMENTS]; /* must run before, after */
  unsigned users[BRUTE_STORAGES];                              /* statements */
  bool simple[BRUTE_STORAGES];
  int64_t size[BRUTE_STORAGES], work[BRUTE_STATEMENTS], macs[BRUTE_STATEMENTS];
  unsigned in, out; /* sets of storages */
  labels *state;    /* [counts * 2^m + live] */
} brute;

static void *need(void *memory) {
  if (!memory) {
    fputs("brute: out of memory\n", stderr);
    exit(70);
  }
  return memory;
}

static bool better(brute_point a, brute_point b) {
  return a.peak <= b.peak && (a.macs < b.macs || (a.macs == b.macs && a.bytes <= b.bytes));
}

static void add(labels *to, brute_point point) {
  int kept = 0;
  for (int i = 0; i < to->count; i++)
    if (better(to->item[i], point))
      return;
  for (int i = 0; i < to->count; i++)
    if (!better(point, to->item[i]))
      to->item[kept++] = to->item[i];
  to->count = kept;
  if (to->count == to->capacity) {
    to->capacity = 2 * to->capacity + 2;
    to->item = need(realloc(to->item, (size_t)to->capacity * sizeof *to->item));
  }
  to->item[to->count++] = point;
}

/* ---- The rules ---- */

static bool overlap(const brute *b, const pp_access *x, const pp_access *y) {
  if (x->storage != y->storage)
    return false;
  (void)b;
  if (x->from == PP_WHOLE || y->from == PP_WHOLE)
    return true;
  return x->from < y->to && y->from < x->to;
}

/* Written once, by one statement that overwrites it all and does not read it, and never read
 * before. */
static bool is_simple(const brute *b, int s) {
  int writer = -1, first = -1;
  if (b->in >> s & 1)
    return false;
  for (int v = 0; v < b->n; v++) {
    pp_statement_info info = pp_program_statement(b->program, v);
    bool all = false;
    for (size_t i = 0; i < info.accesses; i++) {
      const pp_access *a = info.access + i;
      if (a->storage != s)
        continue;
      if (first < 0)
        first = v;
      if (!(a->flags & PP_WRITE))
        continue;
      if ((writer >= 0 && writer != v) || a->flags & PP_READ || !(a->flags & PP_OVERWRITE))
        return false;
      writer = v;
      all |= a->from == PP_WHOLE || (a->from == 0 && a->to == b->size[s]);
    }
    if (writer == v) {
      if (!all)
        return false;
      for (size_t i = 0; i < info.accesses; i++)
        if (info.access[i].storage == s && info.access[i].flags & PP_READ)
          return false;
    }
  }
  return writer < 0 ? first < 0 : first == writer;
}

static void read_program(brute *b, int cap) {
  const pp_index *pair;
  size_t pairs = pp_program_orders(b->program, &pair);
  for (int s = 0; s < b->m; s++) {
    pp_storage_info info = pp_program_storage(b->program, s);
    b->size[s] = info.bytes;
    b->in |= info.flags & PP_LIVE_IN ? 1u << s : 0;
    b->out |= info.flags & PP_LIVE_OUT ? 1u << s : 0;
  }
  for (int s = 0; s < b->m; s++)
    b->simple[s] = is_simple(b, s);
  for (int v = 0; v < b->n; v++) {
    pp_statement_info info = pp_program_statement(b->program, v);
    b->work[v] = info.work;
    b->macs[v] = info.macs;
    b->cap[v] = info.pure && info.macs >= 0 ? cap : 1;
    for (size_t i = 0; i < info.accesses; i++) {
      const pp_access *a = info.access + i;
      unsigned bit = 1u << a->storage;
      b->users[a->storage] |= 1u << v;
      if (a->flags & PP_WRITE)
        b->writes[v] |= bit;
      if (!(a->flags & PP_WRITE) || !b->simple[a->storage])
        b->reads[v] |= bit;
      if (a->flags & PP_WRITE && !b->simple[a->storage])
        b->cap[v] = 1;
    }
    if (!b->writes[v])
      b->cap[v] = 1;
  }
  for (size_t i = 0; i < pairs; i++) {
    b->cap[pair[2 * i]] = b->cap[pair[2 * i + 1]] = 1;
    b->earlier[pair[2 * i + 1]] |= 1u << pair[2 * i];
    b->later[pair[2 * i]] |= 1u << pair[2 * i + 1];
  }
  for (int u = 0; u < b->n; u++)
    for (int v = u + 1; v < b->n; v++) {
      pp_statement_info x = pp_program_statement(b->program, u),
                        y = pp_program_statement(b->program, v);
      for (size_t i = 0; i < x.accesses; i++)
        for (size_t j = 0; j < y.accesses; j++)
          if ((x.access[i].flags | y.access[j].flags) & PP_WRITE &&
              !b->simple[x.access[i].storage] && overlap(b, x.access + i, y.access + j)) {
            b->earlier[v] |= 1u << u;
            b->later[u] |= 1u << v;
          }
    }
}

/* ---- The search ---- */

typedef struct place {
  int count[BRUTE_STATEMENTS];
  unsigned ran, live;
  size_t counts; /* mixed radix */
} place;

static int64_t memory(const brute *b, unsigned live) {
  int64_t sum = 0;
  for (int s = 0; s < b->m; s++)
    sum += live >> s & 1 ? b->size[s] : 0;
  return sum;
}

static bool may_run(const brute *b, const place *at, int v) {
  if (at->count[v] >= b->cap[v] || b->earlier[v] & ~at->ran || b->later[v] & at->ran)
    return false;
  if (b->fixed && !at->count[v])
    for (int u = 0; u < b->n; u++)
      if (b->rank[u] < b->rank[v] && !at->count[u])
        return false;
  for (int s = 0; s < b->m; s++)
    if (b->reads[v] >> s & 1 && !(at->live >> s & 1)) {
      /* a block that is read or updated before anything is in it comes into being here */
      bool fresh = !b->simple[s] && !(b->in >> s & 1) && !(b->users[s] & at->ran);
      if (!fresh)
        return false;
    }
  return true;
}

/* A block that some statement has still to access stays where it is. */
static bool may_drop(const brute *b, const place *at, int s) {
  if (!(at->live >> s & 1) || (b->in & b->out) >> s & 1)
    return false;
  if (b->simple[s] || b->in >> s & 1) {
    bool written = false;
    for (int v = 0; v < b->n; v++)
      written |= b->writes[v] >> s & 1;
    if (b->simple[s] || !written)
      return true;
  }
  return !(b->users[s] & ~at->ran) && !(b->out >> s & 1);
}

static void leave(brute *b, const place *at, labels *here, const size_t *radix, size_t sets) {
  for (int v = 0; v < b->n; v++) {
    if (!may_run(b, at, v))
      continue;
    unsigned during = at->live | b->reads[v] | b->writes[v];
    int64_t cost = memory(b, during) + b->work[v];
    for (int i = 0; i < here->count; i++) {
      brute_point p = here->item[i];
      p.peak = cost > p.peak ? cost : p.peak;
      if (at->count[v]) {
        p.macs += b->macs[v];
        for (int s = 0; s < b->m; s++)
          p.bytes += b->writes[v] >> s & 1 ? b->size[s] : 0;
      }
      add(&b->state[(at->counts + radix[v]) * sets + during], p);
    }
  }
  for (int s = 0; s < b->m; s++)
    if (may_drop(b, at, s))
      for (int i = 0; i < here->count; i++)
        add(&b->state[at->counts * sets + (at->live & ~(1u << s))], here->item[i]);
}

size_t brute_curve(const pp_program *program, int cap, const pp_index *order, brute_point *point,
                   size_t room) {
  brute b = {.program = program,
             .n = pp_program_statements(program),
             .m = pp_program_storages(program),
             .fixed = order != NULL};
  size_t radix[BRUTE_STATEMENTS], total = 1, sets = (size_t)1 << b.m;
  read_program(&b, cap);
  for (int v = 0; v < b.n; v++) {
    radix[v] = total;
    total *= (size_t)b.cap[v] + 1;
    if (order)
      b.rank[order[v]] = v;
  }
  b.state = need(calloc(total * sets, sizeof *b.state));
  unsigned start = 0, end = 0;
  for (int s = 0; s < b.m; s++) {
    bool both = (b.in & b.out) >> s & 1;
    start |= b.in >> s & 1 && (b.users[s] || both) ? 1u << s : 0;
    end |= b.out >> s & 1 && (b.users[s] || both) ? 1u << s : 0;
  }
  add(&b.state[start], (brute_point){memory(&b, start), 0, 0});
  labels found = {0};
  /* A run raises the counts, a drop lowers the set: this order visits every state once. */
  for (size_t counts = 0; counts < total; counts++)
    for (size_t set = sets; set-- > 0;) {
      labels *here = &b.state[counts * sets + set];
      if (!here->count)
        continue;
      place at = {.live = (unsigned)set, .counts = counts};
      for (int v = 0; v < b.n; v++) {
        at.count[v] = (int)(counts / radix[v] % ((size_t)b.cap[v] + 1));
        at.ran |= at.count[v] ? 1u << v : 0;
      }
      if (at.ran == (1u << b.n) - 1 && (at.live & end) == end)
        for (int i = 0; i < here->count; i++)
          add(&found, here->item[i]);
      leave(&b, &at, here, radix, sets);
      free(here->item);
      *here = (labels){0};
    }
  free(b.state);
  for (int i = 1; i < found.count; i++)
    for (int j = i; j && found.item[j - 1].peak < found.item[j].peak; j--) {
      brute_point other = found.item[j];
      found.item[j] = found.item[j - 1];
      found.item[j - 1] = other;
    }
  for (int i = 0; i < found.count && (size_t)i < room; i++)
    point[i] = found.item[i];
  free(found.item);
  return (size_t)found.count;
}
