/* What may run again, and from what (THEORY.md section 4, Rewrite). */
#include "dependence.h"
#include "remat.h"

static bool is_whole(const pp_program *program, const pp_access *access) {
  return access->from == PP_WHOLE ||
         (access->from == 0 && access->to == program->bytes[access->storage]);
}

/* What a statement does to one storage, all its accesses together. */
struct effect {
  bool reads, writes, overwrites; /* overwrites: all of it, and reads nothing */
};

static struct effect effect_on(const pp_program *program, const pp_statement_info *info,
                               pp_index storage) {
  struct effect effect = {0};
  for (size_t i = 0; i < info->accesses; i++) {
    const pp_access *access = info->access + i;
    if (access->storage != storage)
      continue;
    effect.writes |= (access->flags & PP_WRITE) != 0;
    if (access->flags & PP_READ || !(access->flags & PP_OVERWRITE))
      effect.reads = true;
    else
      effect.overwrites |= is_whole(program, access);
  }
  /* A partial overwrite leaves the other bytes as they were, which is to read them. */
  effect.reads |= !effect.overwrites;
  effect.overwrites &= !effect.reads;
  return effect;
}

static void free_rows(struct pp_rows *rows) {
  free(rows->start);
  free(rows->item);
}

static bool init_rows(struct pp_rows *rows, pp_index n, size_t items) {
  rows->start = pp_zalloc((size_t)n + 1, sizeof *rows->start);
  rows->item = pp_alloc(items, sizeof *rows->item);
  return rows->start && rows->item;
}

/* Effects of all statements; kind and writer of all storages. */
static bool find_kinds(struct pp_remat_facts *facts) {
  const pp_program *program = facts->program;
  size_t items = program->accessed.start[facts->n];
  if (!init_rows(&facts->reads, facts->n, items) || !init_rows(&facts->writes, facts->n, items))
    return false;
  for (pp_index s = 0; s < facts->m; s++) {
    facts->kind[s] = program->storages.items[s].flags & PP_LIVE_IN ? PP_SOURCE : PP_SIMPLE;
    facts->writer[s] = -1;
  }
  size_t reads = 0, writes = 0;
  for (pp_index v = 0; v < facts->n; v++) {
    pp_statement_info info = pp_program_statement(program, v);
    PP_FOR_ROW (s, &program->accessed, v) {
      struct effect effect = effect_on(program, &info, *s);
      if (effect.reads)
        facts->reads.item[reads++] = *s;
      if (effect.writes) {
        facts->writes.item[writes++] = *s;
        if (!effect.overwrites || facts->kind[*s] != PP_SIMPLE || facts->writer[*s] >= 0)
          facts->kind[*s] = PP_RIGID;
        facts->writer[*s] = v;
      } else if (facts->kind[*s] == PP_SIMPLE && facts->writer[*s] < 0)
        facts->kind[*s] = PP_RIGID; /* read before it is written */
    }
    facts->reads.start[v + 1] = reads;
    facts->writes.start[v + 1] = writes;
  }
  return true;
}

/* Pure, with known cost, writing nothing but simple storages, and pinned by nobody. */
static void find_caps(struct pp_remat_facts *facts, int32_t cap, const int32_t *caps) {
  const pp_program *program = facts->program;
  for (pp_index v = 0; v < facts->n; v++) {
    const struct pp_statement *statement = program->statements.items + v;
    int32_t wanted = caps ? caps[v] : cap;
    bool may =
        statement->pure && statement->macs != PP_MACS_UNKNOWN && pp_row_size(&facts->writes, v) > 0;
    facts->cost[v].macs = statement->macs > 0 ? statement->macs : 0;
    PP_FOR_ROW (s, &facts->writes, v) {
      may &= facts->kind[*s] == PP_SIMPLE;
      facts->cost[v].bytes = pp_saturating_add(facts->cost[v].bytes, program->bytes[*s]);
    }
    facts->cap[v] = may && wanted > 1 ? wanted : 1;
  }
  for (size_t i = 0; i < program->orders.count; i++)
    facts->cap[program->orders.items[i]] = 1;
}

/* Does one of `x` write a rigid storage that `y` accesses? Rows ascend. */
static bool writes_rigid(const struct pp_remat_facts *facts, pp_index x, pp_index y) {
  const struct pp_rows *a = &facts->writes, *b = &facts->program->accessed;
  size_t i = a->start[x], j = b->start[y];
  while (i < a->start[x + 1] && j < b->start[y + 1]) {
    pp_index s = a->item[i], t = b->item[j];
    if (s == t && facts->kind[s] == PP_RIGID)
      return true;
    i += s <= t;
    j += t <= s;
  }
  return false;
}

/* The order pairs as rows: statements that must come before each one. */
static bool find_pins(const pp_program *program, struct pp_rows *pins) {
  size_t pairs = program->orders.count / 2;
  struct pp_rows by_first = {0};
  bool done = init_rows(&by_first, program->n + 1, pairs);
  for (size_t i = 0; done && i < pairs; i++)
    by_first.start[program->orders.items[2 * i] + 2]++;
  for (pp_index v = 0; done && v < program->n; v++)
    by_first.start[v + 2] += by_first.start[v + 1];
  for (size_t i = 0; done && i < pairs; i++)
    by_first.item[by_first.start[program->orders.items[2 * i] + 1]++] =
        program->orders.items[2 * i + 1];
  done = done && pp_rows_transpose(&by_first, program->n, program->n, pins);
  free_rows(&by_first);
  return done;
}

/* Dependences that copies cannot loosen. */
static bool find_hard(struct pp_remat_facts *facts) {
  const struct pp_rows *rows = &facts->program->predecessors;
  struct pp_rows pins = {0};
  pp_index *pinned = pp_alloc((size_t)facts->n, sizeof *pinned);
  bool done = pinned && find_pins(facts->program, &pins) &&
              init_rows(&facts->before, facts->n, rows->start[facts->n]);
  size_t used = 0;
  for (pp_index v = 0; done && v < facts->n; v++)
    pinned[v] = -1;
  for (pp_index v = 0; done && v < facts->n; v++) {
    PP_FOR_ROW (u, &pins, v)
      pinned[*u] = v;
    PP_FOR_ROW (u, rows, v)
      if (pinned[*u] == v || writes_rigid(facts, *u, v) || writes_rigid(facts, v, *u))
        facts->before.item[used++] = *u;
    facts->before.start[v + 1] = used;
  }
  free(pinned);
  free_rows(&pins);
  return done && pp_rows_transpose(&facts->before, facts->n, facts->n, &facts->after);
}

bool pp_remat_facts_init(struct pp_remat_facts *facts, const pp_program *program, int32_t cap,
                         const int32_t *caps) {
  *facts = (struct pp_remat_facts){.program = program, .n = program->n, .m = program->m};
  size_t n = (size_t)program->n, m = (size_t)program->m;
  facts->kind = pp_alloc(m, sizeof *facts->kind);
  facts->writer = pp_alloc(m, sizeof *facts->writer);
  facts->cap = pp_alloc(n, sizeof *facts->cap);
  facts->cost = pp_zalloc(n, sizeof *facts->cost);
  if (!facts->kind || !facts->writer || !facts->cap || !facts->cost || !find_kinds(facts))
    return false;
  find_caps(facts, cap, caps);
  return find_hard(facts);
}

void pp_remat_facts_free(struct pp_remat_facts *facts) {
  free(facts->kind);
  free(facts->writer);
  free(facts->cap);
  free(facts->cost);
  free_rows(&facts->reads);
  free_rows(&facts->writes);
  free_rows(&facts->before);
  free_rows(&facts->after);
}
