/* What to hold over one step, and what to run again after it (THEORY.md section 4, Limits).
 *
 * A sequence and one step t of it are given. Values that exist before t are needed after it: each
 * is held over t, at its size, or made again after t, at the cost of its statement and from inputs
 * that are held or made again themselves. Wanted is the whole Pareto curve of (bytes at t, cost).
 * This is KNAPSACK already on series-parallel graphs. It is solved exactly by eliminating
 * statements one by one (remat_eliminate.c): a statement with one value has three choices (not
 * needed, held, made again), so with width w, the treewidth of the dependence graph where the
 * elimination order is best, time is n * 3^(w+1) sums of Pareto sets.
 *
 * Whatever a sequence does elsewhere, at t it holds some set of values, and after t it runs some
 * set of statements again. So if its first runs stand in the given order and its peak is at most P,
 * it costs at least what the cheapest point with memory <= P costs, whatever the caps: the curves
 * of single steps bound every way to recompute in this order. */
#include "remat_barrier.h"

#include <string.h>

#include "remat_eliminate.h"

/* A statement with more values than this is not run again; VARIABLES_MAX: the elimination takes
 * their square. */
enum { VALUES_MAX = 8, VARIABLES_MAX = 1 << 13 };

struct problem {
  const struct pp_remat_facts *facts;
  const struct pp_sequence *sequence;
  size_t place;
  struct pp_barrier *out;
  struct pp_elimination elimination;
  bool *free;                    /* of each storage: there at t and after it, whatever is chosen */
  bool *required;                /* of each storage: needed after t by what runs there */
  bool *can;                     /* of each statement: may run again after t */
  int32_t *of_storage;           /* the variable that has the value, or -1 */
  uint32_t *bit;                 /* of each storage: its bit in the variable */
  int32_t *of_statement;         /* the variable, or -1 */
  PP_VECTOR(pp_index) statement; /* of each variable, or -1 */
  PP_VECTOR(size_t) level;       /* of each variable: how far from what is required */
  size_t depth;                  /* levels that may run again; 0: all */
  int64_t fixed;                 /* bytes at t, whatever is chosen */
};

static bool problem_init(struct problem *p) {
  size_t n = (size_t)p->facts->n, m = (size_t)p->facts->m;
  p->free = pp_zalloc(m, sizeof *p->free);
  p->required = pp_zalloc(m, sizeof *p->required);
  p->can = pp_zalloc(n, sizeof *p->can);
  p->of_storage = pp_alloc(m, sizeof *p->of_storage);
  p->bit = pp_zalloc(m, sizeof *p->bit);
  p->of_statement = pp_alloc(n, sizeof *p->of_statement);
  if (!p->free || !p->required || !p->can || !p->of_storage || !p->bit || !p->of_statement)
    return false;
  memset(p->of_storage, 0xff, m * sizeof *p->of_storage);
  memset(p->of_statement, 0xff, n * sizeof *p->of_statement);
  return true;
}

static void problem_free(struct problem *p) {
  pp_elimination_free(&p->elimination);
  free(p->free);
  free(p->required);
  free(p->can);
  free(p->of_storage);
  free(p->bit);
  free(p->of_statement);
  free(p->statement.items);
  free(p->level.items);
}

/* ---- What must be there ---- */

/* Walks from the end back to t: `required` is what is needed right after t. What t accesses is
 * there at t, and rigid storages that are needed after t are too; neither is a choice. */
static bool find_required(struct problem *p) {
  const struct pp_remat_facts *facts = p->facts;
  const pp_program *program = facts->program;
  const pp_index *run = p->sequence->run.items;
  struct pp_demand demand;
  bool done = pp_demand_init(&demand, facts, run, p->sequence->run.count);
  for (size_t i = p->sequence->run.count; done && i-- > p->place + 1;)
    pp_demand_step(&demand, run[i]);
  if (done)
    memcpy(p->required, demand.needed, (size_t)facts->m * sizeof *p->required);
  pp_demand_free(&demand);
  pp_index t = run[p->place];
  p->fixed = program->work[t];
  PP_FOR_ROW (s, &program->accessed, t) {
    p->free[*s] = true;
    p->fixed += program->bytes[*s];
  }
  for (pp_index s = 0; done && s < facts->m; s++)
    if (p->required[s] && !p->free[s] && facts->kind[s] == PP_RIGID) {
      p->free[s] = true;
      p->fixed += program->bytes[s];
    }
  return done;
}

/* A statement may run again after t if it ran before, its cap leaves room, and no rigid storage
 * that it reads has changed by then. */
static bool find_can(struct problem *p) {
  const struct pp_remat_facts *facts = p->facts;
  const pp_index *run = p->sequence->run.items;
  int32_t *runs = pp_zalloc((size_t)facts->n, sizeof *runs);
  bool *changed = pp_zalloc((size_t)facts->n, sizeof *changed);
  bool done = runs && changed;
  for (size_t i = 0; done && i < p->sequence->run.count; i++)
    runs[run[i]]++;
  for (size_t i = 0; done && i <= p->place; i++) {
    p->can[run[i]] = true;
    PP_FOR_ROW (v, &facts->before, run[i])
      changed[*v] = true;
  }
  for (pp_index v = 0; done && v < facts->n; v++)
    p->can[v] &=
        runs[v] < facts->cap[v] && !changed[v] && pp_row_size(&facts->writes, v) <= VALUES_MAX;
  free(runs);
  free(changed);
  return done;
}

/* ---- Variables ---- */

static bool add_option(struct problem *p, int64_t memory, struct pp_remat_cost cost) {
  if (!PP_ROOM(&p->elimination.options))
    return false;
  p->elimination.options.items[p->elimination.options.count++] = (struct pp_option){memory, cost};
  return true;
}

/* Holding what is required, and more if it pays: option 1 + b holds the values in b. */
static bool add_options(struct problem *p, pp_index v, const pp_index *value, size_t values) {
  struct pp_variable variable = {.choices = 1 + (1u << values),
                                 .option = p->elimination.options.count};
  bool done =
      PP_ROOM(&p->elimination.variables) &&
      add_option(p, v >= 0 ? 0 : -1, v >= 0 ? p->facts->cost[v] : (struct pp_remat_cost){0});
  for (uint32_t b = 0; done && b < 1u << values; b++) {
    int64_t memory = 0;
    for (size_t i = 0; i < values; i++) {
      bool held = b >> i & 1;
      if (held && memory >= 0)
        memory += p->facts->program->bytes[value[i]];
      if (!held && p->required[value[i]])
        memory = -1;
    }
    done = add_option(p, memory, (struct pp_remat_cost){0});
  }
  if (done)
    p->elimination.variables.items[p->elimination.variables.count++] = variable;
  return done;
}

/* The variable of a value that is not free; -1 when out of memory. Variables are made level by
 * level: a value that is met again keeps its first one. */
static int32_t variable_for(struct problem *p, pp_index s, size_t level) {
  if (p->of_storage[s] >= 0)
    return p->of_storage[s];
  const struct pp_remat_facts *facts = p->facts;
  pp_index w = facts->kind[s] == PP_SIMPLE ? facts->writer[s] : -1, value[VALUES_MAX];
  int32_t variable = (int32_t)p->elimination.variables.count;
  size_t values = 0;
  bool far = p->depth && level > p->depth;
  p->out->thinned |= far && w >= 0 && p->can[w];
  if (w >= 0 && p->can[w] && !far) {
    PP_FOR_ROW (x, &facts->writes, w) {
      if (p->free[*x])
        continue;
      p->bit[*x] = (uint32_t)values;
      p->of_storage[*x] = variable;
      value[values++] = *x;
    }
    p->of_statement[w] = variable;
  } else {
    w = -1;
    value[values++] = s;
    p->of_storage[s] = variable;
  }
  if (!PP_ROOM(&p->statement) || !PP_ROOM(&p->level))
    return -1;
  p->statement.items[p->statement.count++] = w;
  p->level.items[p->level.count++] = level;
  return add_options(p, w, value, values) ? variable : -1;
}

/* What running the variable's statement again reads. */
static bool add_inputs(struct problem *p, int32_t user) {
  pp_index v = p->statement.items[user];
  if (v < 0)
    return true;
  PP_FOR_ROW (s, &p->facts->reads, v) {
    if (p->free[*s])
      continue;
    int32_t maker = variable_for(p, *s, p->level.items[user] + 1);
    if (maker < 0 || !PP_ROOM(&p->elimination.edges))
      return false;
    p->elimination.edges.items[p->elimination.edges.count++] =
        (struct pp_demand_edge){user, maker, p->bit[*s]};
  }
  return true;
}

static enum pp_remat_result build(struct problem *p) {
  if (!problem_init(p) || !find_required(p) || !find_can(p))
    return PP_REMAT_MEMORY;
  for (pp_index s = 0; s < p->facts->m; s++)
    if (p->required[s] && !p->free[s] && variable_for(p, s, 1) < 0)
      return PP_REMAT_MEMORY;
  for (size_t v = 0; v < p->elimination.variables.count; v++) {
    if (p->elimination.variables.count > VARIABLES_MAX)
      return PP_REMAT_LIMIT;
    if (!add_inputs(p, (int32_t)v))
      return PP_REMAT_MEMORY;
  }
  return PP_REMAT_DONE;
}

/* ---- The curve ---- */

static int compare_index(const void *a, const void *b) {
  pp_index x = *(const pp_index *)a, y = *(const pp_index *)b;
  return (x > y) - (x < y);
}

static bool add_point(struct problem *p, size_t label, uint32_t *choice) {
  struct pp_barrier *out = p->out;
  const struct pp_elimination *e = &p->elimination;
  struct pp_barrier_point point = {.memory = p->fixed + e->curve.items[label].memory,
                                   .cost = e->curve.items[label].cost,
                                   .first = out->rerun.count};
  if (!PP_ROOM(&out->points) || !pp_elimination_choices(e, label, choice))
    return false;
  for (size_t v = 0; v < e->variables.count; v++) {
    if (choice[v])
      continue;
    if (!PP_ROOM(&out->rerun))
      return false;
    out->rerun.items[out->rerun.count++] = p->statement.items[v];
    point.count++;
  }
  if (point.count)
    qsort(out->rerun.items + point.first, point.count, sizeof(pp_index), compare_index);
  out->points.items[out->points.count++] = point;
  return true;
}

static enum pp_remat_result solve(struct problem *p, const struct pp_barrier_limits *limits) {
  struct pp_elimination *e = &p->elimination;
  enum pp_remat_result result = build(p);
  p->out->variables = (pp_index)e->variables.count;
  if (result || limits->memory < p->fixed)
    return result;
  e->memory = limits->memory - p->fixed;
  e->cost = limits->cost;
  e->limit = limits->nodes;
  e->work_limit = limits->work;
  e->thin = limits->thin;
  e->stop = limits->stop;
  e->data = limits->data;
  result = pp_eliminate(e);
  p->out->width = e->width;
  p->out->nodes = (int64_t)e->nodes.count;
  p->out->work = e->work;
  p->out->thinned |= e->thinned;
  uint32_t *choice = pp_alloc(e->variables.count, sizeof *choice);
  for (size_t i = 0; !result && i < e->curve.count; i++)
    if (!choice || !add_point(p, i, choice))
      result = PP_REMAT_MEMORY;
  free(choice);
  return result;
}

enum pp_remat_result pp_remat_barrier(const struct pp_remat_facts *facts,
                                      const struct pp_sequence *sequence, size_t place,
                                      const struct pp_barrier_limits *limits,
                                      struct pp_barrier *barrier) {
  struct problem p = {
      .facts = facts, .sequence = sequence, .place = place, .out = barrier, .depth = limits->depth};
  *barrier = (struct pp_barrier){0};
  enum pp_remat_result result = solve(&p, limits);
  problem_free(&p);
  return result;
}

void pp_barrier_free(struct pp_barrier *barrier) {
  free(barrier->points.items);
  free(barrier->rerun.items);
  *barrier = (struct pp_barrier){0};
}

/* ---- Applying a point ---- */

struct apply {
  const struct pp_remat_facts *facts;
  bool *wanted; /* of each statement: to be run again, and not yet there */
  bool *chain;  /* of each statement: of the chain that is being made */
  struct pp_sequence *out;
};

static bool append(struct pp_sequence *sequence, pp_index v) {
  if (!PP_ROOM(&sequence->run))
    return false;
  sequence->run.items[sequence->run.count++] = v;
  return true;
}

/* What v reads of wanted statements, they of others, and so on: in the order of the program, which
 * is legal. `rerun` ascends, and statements read from smaller ones. If v changes what a wanted
 * statement reads, that one must come now, too. */
static bool append_chain(struct apply *a, const pp_index *rerun, size_t count, pp_index v) {
  const struct pp_remat_facts *facts = a->facts;
  pp_index reader = v;
  bool any = false;
  PP_FOR_ROW (u, &facts->before, v)
    if (a->wanted[*u])
      any = a->chain[*u] = true;
  for (size_t i = count + 1; i-- > 0;) {
    if (i < count) {
      reader = rerun[i];
      if (!a->chain[reader])
        continue;
    }
    PP_FOR_ROW (s, &facts->reads, reader) {
      pp_index w = facts->kind[*s] == PP_SIMPLE ? facts->writer[*s] : -1;
      if (w >= 0 && a->wanted[w])
        any = a->chain[w] = true;
    }
  }
  for (size_t i = 0; any && i < count; i++)
    if (a->chain[rerun[i]]) {
      a->wanted[rerun[i]] = a->chain[rerun[i]] = false;
      if (!append(a->out, rerun[i]))
        return false;
    }
  return true;
}

bool pp_barrier_apply(const struct pp_remat_facts *facts, const struct pp_sequence *sequence,
                      size_t place, const struct pp_barrier *barrier, size_t point,
                      struct pp_sequence *out) {
  struct apply a = {.facts = facts,
                    .wanted = pp_zalloc((size_t)facts->n, sizeof *a.wanted),
                    .chain = pp_zalloc((size_t)facts->n, sizeof *a.chain),
                    .out = out};
  const struct pp_barrier_point *it = barrier->points.items + point;
  const pp_index *rerun = barrier->rerun.items + it->first;
  bool done = a.wanted && a.chain;
  out->run.count = 0;
  for (size_t i = 0; done && i < it->count; i++)
    a.wanted[rerun[i]] = true;
  for (size_t i = 0; done && i < sequence->run.count; i++) {
    pp_index v = sequence->run.items[i];
    if (i > place) {
      a.wanted[v] = false; /* an older run of the same statement comes in time */
      done = append_chain(&a, rerun, it->count, v);
    }
    done = done && append(out, v);
  }
  /* What only the end needs. */
  for (size_t i = 0; done && i < it->count; i++)
    if (a.wanted[rerun[i]])
      done = append(out, rerun[i]);
  free(a.wanted);
  free(a.chain);
  return done;
}
