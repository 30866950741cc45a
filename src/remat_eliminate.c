/* Bucket elimination (Dechter 1999) with Pareto sets. A variable is eliminated by a table over its
 * neighbours, which become neighbours of each other: for each of their choices it holds the Pareto
 * set of what the variable, and all that was eliminated through it, can add. The variable with
 * fewest neighbours goes first, which finds small widths where they are there. With width w and d
 * choices a variable, a table has d^w cells and filling it takes d^(w+1) sums of Pareto sets. */
#include "remat_eliminate.h"

#include <string.h>

enum { CELLS_MAX = 1 << 20 };

struct ints {
  int32_t *items;
  size_t count, capacity;
};

struct labels {
  struct pp_elimination_label *items;
  size_t count, capacity;
};

struct table {
  int32_t *scope; /* variables, ascending */
  size_t scopes;
  struct labels labels;
  size_t *start; /* of each cell in labels, and the end */
  bool used;
};

struct solver {
  struct pp_elimination *e;
  struct ints *near;   /* of each variable: its neighbours, ascending */
  struct ints *edges;  /* of each variable: demand edges at it */
  struct ints *tables; /* of each variable: tables over it */
  bool *gone;
  uint32_t *choice;
  PP_VECTOR(struct table) table;
  struct labels sum, cell;        /* of one choice, of one cell */
  struct labels row, sums, spare; /* for combine */
};

/* ---- Labels ---- */

/* Is x to be kept behind `kept`, which has less memory or as much? */
static bool is_cheaper(const struct pp_elimination_label *x,
                       const struct pp_elimination_label *kept) {
  return pp_cost_compare(x->cost, kept->cost) < 0;
}

static bool comes_first(const struct pp_elimination_label *x,
                        const struct pp_elimination_label *y) {
  return x->memory != y->memory ? x->memory < y->memory : pp_cost_compare(x->cost, y->cost) <= 0;
}

/* list := the Pareto set of both, which are Pareto sets: memory falls, cost rises. They are merged
 * from their ends, from the least memory up, so that what is kept is cheaper than all before. */
static bool merge(struct labels *list, const struct pp_elimination_label *b, size_t count,
                  struct labels *spare) {
  size_t i = list->count, room = list->count + count, used = room;
  if (!pp_reserve((void **)&spare->items, &spare->capacity, room, sizeof *b))
    return false;
  while (i || count) {
    const struct pp_elimination_label *x;
    if (i && (!count || comes_first(list->items + i - 1, b + count - 1)))
      x = list->items + --i;
    else
      x = b + --count;
    if (used == room || is_cheaper(x, spare->items + used))
      spare->items[--used] = *x;
  }
  spare->count = room - used;
  if (spare->count)
    memmove(spare->items, spare->items + used, spare->count * sizeof *b);
  struct labels other = *list;
  *list = *spare;
  *spare = other;
  return true;
}

/* Every k-th label, with the first and the last. */
static void thin(struct pp_elimination *e, struct labels *list) {
  if (!e->thin || list->count <= e->thin)
    return;
  for (size_t i = 0; i < e->thin; i++)
    list->items[i] = list->items[i * (list->count - 1) / (e->thin - 1)];
  list->count = e->thin;
  e->thinned = true;
}

static bool add_label(struct labels *list, struct pp_elimination_label label) {
  if (!PP_ROOM(list))
    return false;
  list->items[list->count++] = label;
  return true;
}

/* s->row := a label with each of b; what is above the limits is left out. */
static bool sum_row(struct solver *s, const struct pp_elimination_label *a, size_t index,
                    const struct pp_elimination_label *b, size_t count) {
  s->row.count = 0;
  for (size_t j = 0; j < count; j++) {
    struct pp_elimination_label sum = {.memory = pp_saturating_add(a->memory, b[j].memory),
                                       .cost = pp_cost_add(a->cost, b[j].cost),
                                       .node = (int32_t)(index * count + j)};
    if (sum.memory <= s->e->memory && pp_cost_compare(sum.cost, s->e->cost) <= 0 &&
        !add_label(&s->row, sum))
      return false;
  }
  return true;
}

/* Labels that were numbered by pairs get nodes. */
static enum pp_remat_result make_nodes(struct pp_elimination *e, struct labels *sums,
                                       const struct pp_elimination_label *a,
                                       const struct pp_elimination_label *b, size_t count) {
  for (size_t k = 0; k < sums->count; k++) {
    size_t pair = (size_t)sums->items[k].node;
    if (!PP_ROOM(&e->nodes))
      return PP_REMAT_MEMORY;
    if ((int64_t)e->nodes.count >= e->limit || e->nodes.count >= INT32_MAX - 1)
      return PP_REMAT_LIMIT;
    e->nodes.items[e->nodes.count] =
        (struct pp_elimination_node){a[pair / count].node, b[pair % count].node};
    sums->items[k].node = (int32_t)e->nodes.count++;
  }
  return PP_REMAT_DONE;
}

/* list := the Pareto set of the sums of list and b. */
static enum pp_remat_result combine(struct solver *s, struct labels *list,
                                    const struct pp_elimination_label *b, size_t count) {
  struct pp_elimination *e = s->e;
  e->work += (int64_t)(list->count * count) + 1;
  if (list->count * count > (size_t)INT32_MAX || e->work > e->work_limit)
    return PP_REMAT_LIMIT;
  s->sums.count = 0;
  for (size_t i = 0; i < list->count; i++)
    if (!sum_row(s, list->items + i, i, b, count) ||
        !merge(&s->sums, s->row.items, s->row.count, &s->spare))
      return PP_REMAT_MEMORY;
  thin(e, &s->sums);
  enum pp_remat_result result = make_nodes(e, &s->sums, list->items, b, count);
  struct labels other = *list;
  *list = s->sums;
  s->sums = other;
  return result;
}

/* ---- The graph ---- */

static bool insert(struct ints *set, int32_t x) {
  size_t i = set->count;
  while (i && set->items[i - 1] > x)
    i--;
  if (i && set->items[i - 1] == x)
    return true;
  if (!PP_ROOM(set))
    return false;
  memmove(set->items + i + 1, set->items + i, (set->count - i) * sizeof *set->items);
  set->items[i] = x;
  set->count++;
  return true;
}

static void discard(struct ints *set, int32_t x) {
  size_t kept = 0;
  for (size_t i = 0; i < set->count; i++)
    if (set->items[i] != x)
      set->items[kept++] = set->items[i];
  set->count = kept;
}

static bool begin(struct solver *s) {
  struct pp_elimination *e = s->e;
  size_t n = e->variables.count;
  s->near = pp_zalloc(n, sizeof *s->near);
  s->edges = pp_zalloc(n, sizeof *s->edges);
  s->tables = pp_zalloc(n, sizeof *s->tables);
  s->gone = pp_zalloc(n, sizeof *s->gone);
  s->choice = pp_zalloc(n, sizeof *s->choice);
  bool done = s->near && s->edges && s->tables && s->gone && s->choice;
  for (size_t i = 0; done && i < e->edges.count; i++) {
    int32_t u = e->edges.items[i].user, v = e->edges.items[i].maker;
    done = insert(&s->edges[u], (int32_t)i) && insert(&s->edges[v], (int32_t)i) &&
           (u == v || (insert(&s->near[u], v) && insert(&s->near[v], u)));
  }
  return done;
}

static int32_t next_variable(const struct solver *s) {
  int32_t best = -1;
  for (size_t v = 0; v < s->e->variables.count; v++)
    if (!s->gone[v] && (best < 0 || s->near[v].count < s->near[best].count))
      best = (int32_t)v;
  return best;
}

static bool join_neighbours(struct solver *s, int32_t v) {
  const struct ints *near = s->near + v;
  for (size_t i = 0; i < near->count; i++) {
    int32_t u = near->items[i];
    discard(&s->near[u], v);
    for (size_t j = 0; j < near->count; j++)
      if (near->items[j] != u && !insert(&s->near[u], near->items[j]))
        return false;
  }
  return true;
}

/* ---- Tables ---- */

/* The cell of a table for the present choices. */
static size_t cell_of(const struct solver *s, const struct table *table) {
  size_t cell = 0;
  for (size_t i = table->scopes; i-- > 0;)
    cell = cell * s->e->variables.items[table->scope[i]].choices + s->choice[table->scope[i]];
  return cell;
}

/* Do the edges at v to neighbours that are still there allow the present choices? */
static bool is_allowed(const struct solver *s, int32_t v) {
  for (size_t i = 0; i < s->edges[v].count; i++) {
    struct pp_demand_edge edge = s->e->edges.items[s->edges[v].items[i]];
    int32_t other = edge.user == v ? edge.maker : edge.user;
    if (s->gone[other])
      continue; /* was looked at then */
    uint32_t maker = s->choice[edge.maker];
    if (!s->choice[edge.user] && maker && !((maker - 1) >> edge.bit & 1))
      return false;
  }
  return true;
}

/* What v adds with its present choice. */
static enum pp_remat_result sum_choice(struct solver *s, int32_t v) {
  const struct pp_variable *variable = s->e->variables.items + v;
  const struct pp_option *option = s->e->options.items + variable->option + s->choice[v];
  enum pp_remat_result result = PP_REMAT_DONE;
  s->sum.count = 0;
  if (option->memory < 0 || option->memory > s->e->memory ||
      pp_cost_compare(option->cost, s->e->cost) > 0 || !is_allowed(s, v))
    return PP_REMAT_DONE;
  /* A leaf: negative, the option's index. */
  if (!add_label(&s->sum,
                 (struct pp_elimination_label){option->memory, option->cost,
                                               -2 - (int32_t)(variable->option + s->choice[v])}))
    return PP_REMAT_MEMORY;
  for (size_t i = 0; !result && i < s->tables[v].count; i++) {
    const struct table *table = s->table.items + s->tables[v].items[i];
    if (table->used)
      continue;
    size_t cell = cell_of(s, table);
    result = combine(s, &s->sum, table->labels.items + table->start[cell],
                     table->start[cell + 1] - table->start[cell]);
  }
  return result;
}

static enum pp_remat_result fill_cell(struct solver *s, int32_t v, struct table *table) {
  enum pp_remat_result result = PP_REMAT_DONE;
  s->cell.count = 0;
  for (uint32_t c = 0; !result && c < s->e->variables.items[v].choices; c++) {
    s->choice[v] = c;
    result = sum_choice(s, v);
    if (!result && !merge(&s->cell, s->sum.items, s->sum.count, &s->spare))
      result = PP_REMAT_MEMORY;
  }
  if (result)
    return result;
  thin(s->e, &s->cell);
  for (size_t i = 0; i < s->cell.count; i++)
    if (!add_label(&table->labels, s->cell.items[i]))
      return PP_REMAT_MEMORY;
  return s->e->stop && s->e->stop(s->e->data) ? PP_REMAT_LIMIT : PP_REMAT_DONE;
}

static enum pp_remat_result fill_table(struct solver *s, int32_t v, struct table *table) {
  const struct ints *near = s->near + v;
  size_t cells = 1;
  for (size_t i = 0; i < near->count; i++) {
    cells *= s->e->variables.items[near->items[i]].choices;
    if (cells > CELLS_MAX)
      return PP_REMAT_LIMIT;
  }
  table->scope = pp_alloc(near->count, sizeof *table->scope);
  table->start = pp_zalloc(cells + 1, sizeof *table->start);
  if (!table->scope || !table->start)
    return PP_REMAT_MEMORY;
  table->scopes = near->count;
  s->e->work += (int64_t)cells;
  if (s->e->work > s->e->work_limit)
    return PP_REMAT_LIMIT;
  if (near->count)
    memcpy(table->scope, near->items, near->count * sizeof *near->items);
  for (size_t cell = 0; cell < cells; cell++) {
    size_t rest = cell;
    for (size_t i = 0; i < near->count; i++) {
      uint32_t choices = s->e->variables.items[near->items[i]].choices;
      s->choice[near->items[i]] = (uint32_t)(rest % choices);
      rest /= choices;
    }
    enum pp_remat_result result = fill_cell(s, v, table);
    if (result)
      return result;
    table->start[cell + 1] = table->labels.count;
  }
  return PP_REMAT_DONE;
}

static enum pp_remat_result eliminate(struct solver *s, int32_t v) {
  if (!PP_ROOM(&s->table))
    return PP_REMAT_MEMORY;
  size_t index = s->table.count++;
  s->table.items[index] = (struct table){0};
  if ((int32_t)s->near[v].count > s->e->width)
    s->e->width = (int32_t)s->near[v].count;
  enum pp_remat_result result = fill_table(s, v, s->table.items + index);
  if (result)
    return result;
  for (size_t i = 0; i < s->tables[v].count; i++)
    s->table.items[s->tables[v].items[i]].used = true;
  for (size_t i = 0; i < s->near[v].count; i++)
    if (!insert(&s->tables[s->near[v].items[i]], (int32_t)index))
      return PP_REMAT_MEMORY;
  s->gone[v] = true;
  return join_neighbours(s, v) ? PP_REMAT_DONE : PP_REMAT_MEMORY;
}

/* Tables that are used up need their labels no more. */
static void drop_used(struct solver *s, int32_t v) {
  for (size_t i = 0; i < s->tables[v].count; i++) {
    struct table *table = s->table.items + s->tables[v].items[i];
    free(table->labels.items);
    free(table->start);
    table->labels = (struct labels){0};
    table->start = NULL;
  }
}

static enum pp_remat_result run(struct solver *s) {
  if (!begin(s))
    return PP_REMAT_MEMORY;
  for (int32_t v; (v = next_variable(s)) >= 0;) {
    enum pp_remat_result result = eliminate(s, v);
    if (result)
      return result;
    drop_used(s, v);
  }
  s->sum.count = 0;
  if (!add_label(&s->sum, (struct pp_elimination_label){.node = -1}))
    return PP_REMAT_MEMORY;
  for (size_t i = 0; i < s->table.count; i++)
    if (!s->table.items[i].scopes) { /* what is left of a component */
      const struct labels *labels = &s->table.items[i].labels;
      enum pp_remat_result result = combine(s, &s->sum, labels->items, labels->count);
      if (result)
        return result;
    }
  for (size_t i = 0; i < s->sum.count; i++) {
    if (!PP_ROOM(&s->e->curve))
      return PP_REMAT_MEMORY;
    s->e->curve.items[s->e->curve.count++] = s->sum.items[i];
  }
  return PP_REMAT_DONE;
}

static void free_ints(struct ints *set, size_t count) {
  for (size_t i = 0; set && i < count; i++)
    free(set[i].items);
  free(set);
}

enum pp_remat_result pp_eliminate(struct pp_elimination *elimination) {
  struct solver s = {.e = elimination};
  size_t n = elimination->variables.count;
  enum pp_remat_result result = run(&s);
  free_ints(s.near, n);
  free_ints(s.edges, n);
  free_ints(s.tables, n);
  free(s.gone);
  free(s.choice);
  for (size_t i = 0; i < s.table.count; i++) {
    free(s.table.items[i].scope);
    free(s.table.items[i].start);
    free(s.table.items[i].labels.items);
  }
  free(s.table.items);
  free(s.sum.items);
  free(s.cell.items);
  free(s.row.items);
  free(s.sums.items);
  free(s.spare.items);
  return result;
}

void pp_elimination_free(struct pp_elimination *elimination) {
  free(elimination->variables.items);
  free(elimination->options.items);
  free(elimination->edges.items);
  free(elimination->curve.items);
  free(elimination->nodes.items);
  *elimination = (struct pp_elimination){0};
}

/* Leaves name options; the variable is the last one whose options begin at or before it. */
static size_t variable_of(const struct pp_elimination *e, size_t option) {
  size_t low = 0, high = e->variables.count;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (e->variables.items[middle].option <= option)
      low = middle;
    else
      high = middle;
  }
  return low;
}

bool pp_elimination_choices(const struct pp_elimination *e, size_t label, uint32_t *choice) {
  struct ints stack = {0};
  bool done = PP_ROOM(&stack);
  if (done)
    stack.items[stack.count++] = e->curve.items[label].node;
  while (done && stack.count) {
    int32_t node = stack.items[--stack.count];
    if (node < -1) {
      size_t option = (size_t)(-2 - node), v = variable_of(e, option);
      choice[v] = (uint32_t)(option - e->variables.items[v].option);
    } else if (node >= 0) {
      done = pp_reserve((void **)&stack.items, &stack.capacity, stack.count + 2, sizeof(int32_t));
      if (done) {
        stack.items[stack.count++] = e->nodes.items[node].a;
        stack.items[stack.count++] = e->nodes.items[node].b;
      }
    }
  }
  free(stack.items);
  return done;
}
