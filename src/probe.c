/* Probing (THEORY.md section 3): if v costs at least `level` whenever it runs before u, then u runs
 * before v in every order of a lower peak. The cost of v is a minimum cut; each cut that is cheap
 * also says which other statements v does not wait for. Edges make later cuts dearer, so they are
 * added at once and statements are looked at again until none gives another edge. */
#include "probe.h"

#include <string.h>

#include "cut.h"
#include "order.h"

struct prober {
  struct pp_probing *probing;
  int64_t level, work; /* work that is left */
  struct pp_run run;   /* executed: all but what is held back */
  struct pp_cut cut;
  pp_index *order, *place; /* a legal order, and where statements stand in it */
  pp_index *held;          /* held back, in legal order */
  pp_index held_count;
  bool *needed;    /* by v, directly or not */
  bool *candidate; /* v may have to wait for it */
  bool *member;    /* of a cheap set */
};

/* ---- The program with edges ---- */

static bool copy_rows(struct pp_rows *to, const struct pp_rows *from, pp_index rows) {
  size_t count = from->start[rows];
  to->start = pp_alloc((size_t)rows + 1, sizeof *to->start);
  to->item = pp_alloc(count, sizeof *to->item);
  if (!to->start || !to->item)
    return false;
  memcpy(to->start, from->start, ((size_t)rows + 1) * sizeof *to->start);
  memcpy(to->item, from->item, count * sizeof *to->item);
  return true;
}

/* Rows stay ascending. */
static bool insert(struct pp_rows *rows, pp_index count, pp_index row, pp_index item) {
  size_t total = rows->start[count], at = rows->start[row];
  pp_index *items = realloc(rows->item, (total + 1) * sizeof *items);
  if (!items)
    return false;
  rows->item = items;
  while (at < rows->start[row + 1] && items[at] < item)
    at++;
  memmove(items + at + 1, items + at, (total - at) * sizeof *items);
  items[at] = item;
  for (pp_index i = row + 1; i <= count; i++)
    rows->start[i]++;
  return true;
}

static bool begin_program(pp_program *program, const pp_program *original) {
  *program = *original;
  program->predecessors = program->successors = (struct pp_rows){0};
  return copy_rows(&program->predecessors, &original->predecessors, original->n) &&
         copy_rows(&program->successors, &original->successors, original->n);
}

void pp_probing_free(struct pp_probing *probing) {
  free(probing->program.predecessors.start);
  free(probing->program.predecessors.item);
  free(probing->program.successors.start);
  free(probing->program.successors.item);
  pp_edges_free(&probing->found);
  *probing = (struct pp_probing){0};
}

/* Adds the edge, shown by the flow of the last cut. Both statements are held back. */
static bool add_edge(struct prober *prober, pp_index before, pp_index after) {
  pp_program *program = &prober->probing->program;
  struct pp_edges *found = &prober->probing->found;
  struct pp_edge edge = {before, after, found->chains.chains.count, 0};
  if (!pp_cut_chains(&prober->cut, &found->chains))
    return false;
  edge.end = found->chains.chains.count;
  prober->run.waiting[after]++;
  if (!PP_ROOM(&found->edges) || !insert(&program->predecessors, program->n, after, before) ||
      !insert(&program->successors, program->n, before, after))
    return false;
  found->edges.items[found->edges.count++] = edge;
  return true;
}

/* ---- Sets of statements ---- */

/* A legal order: breadth first. */
static void set_order(struct prober *prober) {
  const struct pp_view *view = &prober->run.view;
  pp_index *waiting = prober->place, count = 0;
  for (pp_index v = 0; v < view->n; v++)
    if (!(waiting[v] = (pp_index)pp_row_size(view->predecessors, v)))
      prober->order[count++] = v;
  for (pp_index i = 0; i < count; i++)
    PP_FOR_ROW (x, view->successors, prober->order[i])
      if (!--waiting[*x])
        prober->order[count++] = *x;
  for (pp_index i = 0; i < count; i++)
    prober->place[prober->order[i]] = i;
}

/* Takes v and all that needs it out of the run, behind what is held back already. */
static void hold_back(struct prober *prober, pp_index v) {
  const struct pp_view *view = &prober->run.view;
  pp_index first = prober->held_count;
  bool *reached = prober->member;
  memset(reached, 0, (size_t)view->n * sizeof *reached);
  reached[v] = true;
  for (pp_index i = prober->place[v]; i < view->n; i++) {
    pp_index u = prober->order[i];
    if (!reached[u])
      continue;
    PP_FOR_ROW (x, view->successors, u)
      reached[*x] = true;
    if (prober->run.done[u])
      prober->held[prober->held_count++] = u;
  }
  for (pp_index i = prober->held_count; i-- > first;)
    pp_run_undo(&prober->run, prober->held[i]);
  prober->work -= view->n;
}

static void release(struct prober *prober, pp_index first) {
  for (pp_index i = first; i < prober->held_count; i++)
    pp_run_step(&prober->run, prober->held[i]);
  prober->held_count = first;
}

static void set_needed(struct prober *prober, pp_index v) {
  const struct pp_view *view = &prober->run.view;
  memset(prober->needed, 0, (size_t)view->n * sizeof *prober->needed);
  prober->needed[v] = true;
  for (pp_index i = prober->place[v] + 1; i-- > 0;)
    if (prober->needed[prober->order[i]])
      PP_FOR_ROW (p, view->predecessors, prober->order[i])
        prober->needed[*p] = true;
}

/* ---- Cuts ---- */

/* The least cost of v with what is held back behind it. */
static bool cut(struct prober *prober, pp_index v, int64_t *cost) {
  const struct pp_view *view = &prober->run.view;
  bool done = pp_cut_begin(&prober->cut);
  for (pp_index u = 0; done && u < view->n; u++)
    if (prober->run.done[u] && !prober->needed[u])
      done = pp_cut_add(&prober->cut, u);
  prober->work -= view->n + 4 * (int64_t)prober->cut.statements.count;
  return done && pp_cut_value(&prober->cut, v, prober->level, true, cost);
}

/* Only what is in the cheap set of the last cut remains a candidate. */
static bool narrow(struct prober *prober) {
  pp_index n = prober->run.view.n;
  memset(prober->member, 0, (size_t)n * sizeof *prober->member);
  if (!pp_cut_members(&prober->cut, prober->member))
    return false;
  for (pp_index u = 0; u < n; u++)
    prober->candidate[u] &= prober->member[u];
  return true;
}

/* u and all that it needs are no candidates any more; after an edge, v needs them. */
static void strike(struct prober *prober, pp_index u, bool edge) {
  const struct pp_view *view = &prober->run.view;
  bool *reached = prober->member;
  memset(reached, 0, (size_t)view->n * sizeof *reached);
  reached[u] = true;
  for (pp_index i = prober->place[u] + 1; i-- > 0;) {
    pp_index x = prober->order[i];
    if (!reached[x])
      continue;
    prober->candidate[x] = false;
    prober->needed[x] |= edge;
    PP_FOR_ROW (p, view->predecessors, x)
      reached[*p] = true;
  }
}

/* All edges into v. *found: there are some. */
static bool probe(struct prober *prober, pp_index v, bool *found) {
  pp_index n = prober->run.view.n;
  int64_t cost;
  hold_back(prober, v);
  set_needed(prober, v);
  pp_index held = prober->held_count;
  for (pp_index u = 0; u < n; u++)
    prober->candidate[u] = prober->run.done[u] && !prober->needed[u];
  bool done = cut(prober, v, &cost), fits = done && cost < prober->level;
  done = done && (!fits || narrow(prober));
  for (pp_index i = n; done && fits && i-- > 0 && prober->work > 0;) {
    pp_index u = prober->order[i];
    if (!prober->candidate[u])
      continue;
    hold_back(prober, u);
    done = cut(prober, v, &cost);
    bool edge = done && cost >= prober->level;
    done = done && (edge ? add_edge(prober, u, v) : narrow(prober));
    *found |= edge;
    release(prober, held);
    strike(prober, u, edge);
  }
  release(prober, 0);
  if (*found)
    set_order(prober);
  return done;
}

/* ---- The whole ---- */

static bool begin(struct prober *prober, const pp_program *original) {
  pp_program *program = &prober->probing->program;
  size_t n = (size_t)original->n;
  if (!begin_program(program, original))
    return false;
  bool done = pp_run_init(&prober->run, pp_view_of(program, false));
  done &= pp_cut_init(&prober->cut, &prober->run);
  done &= (prober->order = pp_alloc(n, sizeof *prober->order)) != NULL;
  done &= (prober->place = pp_alloc(n, sizeof *prober->place)) != NULL;
  done &= (prober->held = pp_alloc(n, sizeof *prober->held)) != NULL;
  done &= (prober->needed = pp_alloc(n, sizeof *prober->needed)) != NULL;
  done &= (prober->candidate = pp_alloc(n, sizeof *prober->candidate)) != NULL;
  done &= (prober->member = pp_alloc(n, sizeof *prober->member)) != NULL;
  if (!done)
    return false;
  set_order(prober);
  for (pp_index i = 0; i < original->n; i++)
    pp_run_step(&prober->run, prober->order[i]);
  return true;
}

static void end(struct prober *prober) {
  pp_run_free(&prober->run);
  pp_cut_free(&prober->cut);
  free(prober->order);
  free(prober->place);
  free(prober->held);
  free(prober->needed);
  free(prober->candidate);
  free(prober->member);
}

pp_status pp_probe(const pp_program *program, int64_t level, int64_t work, bool (*stop)(void *),
                   void *data, struct pp_probing *probing) {
  *probing = (struct pp_probing){0};
  struct prober prober = {.probing = probing, .level = level, .work = work};
  pp_status status = begin(&prober, program) ? PP_OK : PP_ERROR_MEMORY;
  for (bool again = true; !status && again && prober.work > 0;) {
    again = false;
    for (pp_index v = 0; !status && v < program->n && prober.work > 0; v++) {
      bool found = false;
      if (stop && stop(data))
        status = PP_ERROR_USAGE;
      else if (!probe(&prober, v, &found))
        status = PP_ERROR_MEMORY;
      again |= found;
    }
  }
  end(&prober);
  return status;
}
