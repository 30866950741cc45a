/* Sequences with repetitions: what they cost, and the program that they are. */
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "remat.h"

bool pp_sequence_set(struct pp_sequence *sequence, const pp_index *run, size_t count) {
  if (!pp_reserve((void **)&sequence->run.items, &sequence->run.capacity, count, sizeof *run))
    return false;
  if (count)
    memmove(sequence->run.items, run, count * sizeof *run);
  sequence->run.count = count;
  return true;
}

void pp_sequence_free(struct pp_sequence *sequence) {
  free(sequence->run.items);
  *sequence = (struct pp_sequence){0};
}

/* ---- Demand ---- */

static bool exists_after(const pp_program *program, pp_index s) {
  unsigned flags = program->storages.items[s].flags;
  return flags & PP_LIVE_OUT && (flags & PP_LIVE_IN || pp_row_size(&program->accessors, s));
}

bool pp_demand_init(struct pp_demand *demand, const struct pp_remat_facts *facts,
                    const pp_index *run, size_t count) {
  const pp_program *program = facts->program;
  *demand = (struct pp_demand){.facts = facts,
                               .needed = pp_zalloc((size_t)facts->m, sizeof *demand->needed),
                               .left = pp_zalloc((size_t)facts->m, sizeof *demand->left)};
  if (!demand->needed || !demand->left)
    return false;
  for (size_t i = 0; i < count; i++)
    PP_FOR_ROW (s, &program->accessed, run[i])
      demand->left[*s]++;
  for (pp_index s = 0; s < facts->m; s++)
    if (exists_after(program, s)) {
      demand->needed[s] = true;
      demand->memory += program->bytes[s];
    }
  return true;
}

void pp_demand_free(struct pp_demand *demand) {
  free(demand->needed);
  free(demand->left);
}

static void set_needed(struct pp_demand *demand, pp_index s, bool needed) {
  if (demand->needed[s] == needed)
    return;
  demand->needed[s] = needed;
  demand->memory += needed ? demand->facts->program->bytes[s] : -demand->facts->program->bytes[s];
}

/* A copy is not needed before the run that makes it, a rigid storage not before its first run. */
int64_t pp_demand_step(struct pp_demand *demand, pp_index v) {
  const struct pp_remat_facts *facts = demand->facts;
  const pp_program *program = facts->program;
  PP_FOR_ROW (s, &program->accessed, v) {
    set_needed(demand, *s, true);
    demand->left[*s]--;
  }
  int64_t cost = demand->memory + program->work[v];
  PP_FOR_ROW (s, &program->accessed, v) {
    bool live_in = program->storages.items[*s].flags & PP_LIVE_IN;
    if (facts->kind[*s] == PP_SIMPLE ? facts->writer[*s] == v : !demand->left[*s] && !live_in)
      set_needed(demand, *s, false);
  }
  return cost;
}

bool pp_sequence_label(const struct pp_remat_facts *facts, const struct pp_sequence *sequence,
                       struct pp_remat_label *label, int64_t *step) {
  struct pp_demand demand;
  size_t count = sequence->run.count;
  const pp_index *run = sequence->run.items;
  bool *ran = pp_zalloc((size_t)facts->n, sizeof *ran);
  bool done = pp_demand_init(&demand, facts, run, count) && ran;
  *label = (struct pp_remat_label){.peak = demand.memory};
  for (size_t i = count; done && i-- > 0;) {
    int64_t cost = pp_demand_step(&demand, run[i]);
    if (step)
      step[i] = cost;
    if (cost > label->peak)
      label->peak = cost;
    if (ran[run[i]])
      label->cost = pp_cost_add(label->cost, facts->cost[run[i]]);
    ran[run[i]] = true;
  }
  if (demand.memory > label->peak)
    label->peak = demand.memory;
  pp_demand_free(&demand);
  free(ran);
  return done;
}

/* Is some storage that v writes needed? */
static bool is_useful(const struct pp_demand *demand, pp_index v) {
  PP_FOR_ROW (s, &demand->facts->writes, v)
    if (demand->needed[*s])
      return true;
  return false;
}

bool pp_sequence_prune(const struct pp_remat_facts *facts, struct pp_sequence *sequence) {
  struct pp_demand demand;
  size_t count = sequence->run.count, kept = count;
  pp_index *run = sequence->run.items, *left = pp_zalloc((size_t)facts->n, sizeof *left);
  bool done = pp_demand_init(&demand, facts, run, count) && left;
  for (size_t i = 0; done && i < count; i++)
    left[run[i]]++;
  for (size_t i = count; done && i-- > 0;) {
    pp_index v = run[i];
    if (left[v] > 1 && !is_useful(&demand, v)) {
      left[v]--;
      PP_FOR_ROW (s, &facts->program->accessed, v)
        demand.left[*s]--;
      continue;
    }
    pp_demand_step(&demand, v);
    run[--kept] = v;
  }
  if (done) {
    sequence->run.count = count - kept;
    if (sequence->run.count)
      memmove(run, run + kept, sequence->run.count * sizeof *run);
  }
  pp_demand_free(&demand);
  free(left);
  return done;
}

/* ---- Rewriting ---- */

struct rewrite {
  const pp_program *program;
  const struct pp_remat_facts *facts;
  const struct pp_sequence *sequence;
  struct pp_rewritten *out;
  pp_index *copy;  /* of each storage: the storage that holds it now */
  pp_index *runs;  /* of each statement: in the whole sequence */
  pp_index *place; /* of each statement: its first run */
  pp_index copies;
  size_t capacity; /* of out->storage */
  pp_error *error;
};

static bool begin_rewrite(struct rewrite *r) {
  size_t n = (size_t)r->facts->n, m = (size_t)r->facts->m, count = r->sequence->run.count;
  r->copy = pp_alloc(m, sizeof *r->copy);
  r->runs = pp_zalloc(n, sizeof *r->runs);
  r->place = pp_alloc(n, sizeof *r->place);
  r->out->statement = pp_alloc(count, sizeof(pp_index));
  r->out->again = pp_zalloc(count, sizeof(pp_index));
  r->capacity = m;
  r->out->storage = pp_alloc(m, sizeof(pp_index));
  if (!r->copy || !r->runs || !r->place || !r->out->statement || !r->out->again || !r->out->storage)
    return false;
  for (size_t i = 0; i < count; i++) {
    pp_index v = r->sequence->run.items[i];
    if (!r->runs[v])
      r->place[v] = (pp_index)i;
    r->out->statement[i] = v;
    r->out->again[i] = r->runs[v]++;
  }
  return true;
}

static pp_status add_storage(struct rewrite *r, pp_index s, pp_index again, unsigned flags) {
  char name[256], number[24] = "";
  pp_storage_info info = pp_program_storage(r->program, s);
  if (!pp_reserve((void **)&r->out->storage, &r->capacity, (size_t)r->copies + 1, sizeof(pp_index)))
    return pp_fail_memory(r->error);
  if (again)
    snprintf(number, sizeof number, "~%d", again);
  snprintf(name, sizeof name, "%.200s%s", info.name, number);
  r->out->storage[r->copies] = s;
  return pp_program_add_storage(r->out->program, again ? name : info.name, info.bytes, flags,
                                &r->copies, r->error);
}

/* Storages 0 .. m-1 are the originals. */
static pp_status add_originals(struct rewrite *r) {
  pp_status status = PP_OK;
  for (pp_index s = 0; !status && s < r->facts->m; s++) {
    r->copy[s] = s;
    status = add_storage(r, s, 0, r->program->storages.items[s].flags);
    r->copies = s + 1;
  }
  return status;
}

/* Which block receives what run i writes to simple storage s. */
static pp_status choose_copy(struct rewrite *r, size_t i, pp_index s) {
  pp_index v = r->out->statement[i], again = r->out->again[i];
  bool live_out = r->program->storages.items[s].flags & PP_LIVE_OUT;
  if (again == (live_out ? r->runs[v] - 1 : 0)) {
    r->copy[s] = s;
    return PP_OK;
  }
  pp_index made = r->copies;
  pp_status status = add_storage(r, s, live_out ? again + 1 : again, 0);
  r->copies = made + 1;
  r->copy[s] = made;
  return status;
}

static pp_status describe_run(struct rewrite *r, const pp_statement_info *info) {
  pp_status status = PP_OK;
  pp_program *program = r->out->program;
  for (size_t k = 0; !status && k < info->requests; k++)
    status = pp_program_add_work(program, info->request[k], r->error);
  if (!status && info->macs != PP_MACS_UNKNOWN)
    status = pp_program_set_macs(program, info->macs, r->error);
  if (!status && info->line >= 0)
    status = pp_program_set_line(program, info->line, r->error);
  return status ? status : pp_program_set_pure(program, info->pure, r->error);
}

static pp_status add_run(struct rewrite *r, size_t i) {
  pp_index v = r->out->statement[i];
  pp_statement_info info = pp_program_statement(r->program, v);
  char name[256];
  if (r->out->again[i])
    snprintf(name, sizeof name, "%.200s~%d", info.name, r->out->again[i]);
  pp_status status =
      pp_program_add_statement(r->out->program, r->out->again[i] ? name : info.name, r->error);
  PP_FOR_ROW (s, &r->facts->writes, v)
    if (!status && r->facts->kind[*s] == PP_SIMPLE)
      status = choose_copy(r, i, *s);
  for (size_t k = 0; !status && k < info.accesses; k++)
    status =
        pp_program_add_access(r->out->program, r->copy[info.access[k].storage], info.access[k].from,
                              info.access[k].to, info.access[k].flags, r->error);
  return status ? status : describe_run(r, &info);
}

static pp_status add_orders(struct rewrite *r) {
  const pp_index *pair;
  size_t pairs = pp_program_orders(r->program, &pair);
  pp_status status = PP_OK;
  for (size_t i = 0; !status && i < pairs; i++)
    status = pp_program_add_order(r->out->program, r->place[pair[2 * i]], r->place[pair[2 * i + 1]],
                                  r->error);
  return status;
}

static pp_status fill(struct rewrite *r) {
  if (!begin_rewrite(r))
    return pp_fail_memory(r->error);
  if (!(r->out->program = pp_program_new(r->error)))
    return PP_ERROR_MEMORY;
  pp_status status = pp_program_set_name(r->out->program, pp_program_name(r->program), r->error);
  if (!status)
    status = add_originals(r);
  for (size_t i = 0; !status && i < r->sequence->run.count; i++)
    status = add_run(r, i);
  if (!status)
    status = add_orders(r);
  return status ? status : pp_program_finish(r->out->program, r->error);
}

pp_status pp_rewrite(const pp_program *program, const struct pp_sequence *sequence,
                     const struct pp_remat_facts *facts, struct pp_rewritten *rewritten,
                     pp_error *error) {
  *rewritten = (struct pp_rewritten){0};
  struct rewrite r = {
      .program = program, .facts = facts, .sequence = sequence, .out = rewritten, .error = error};
  pp_status status = fill(&r);
  free(r.copy);
  free(r.runs);
  free(r.place);
  if (!status)
    status = pp_remat_check(program, rewritten->program, rewritten->statement, rewritten->storage,
                            error);
  if (status)
    pp_rewritten_free(rewritten);
  return status;
}

void pp_rewritten_free(struct pp_rewritten *rewritten) {
  pp_program_free(rewritten->program);
  free(rewritten->statement);
  free(rewritten->storage);
  free(rewritten->again);
  *rewritten = (struct pp_rewritten){0};
}
