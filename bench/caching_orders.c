/* caching-orders [-n ORDERS] PROGRAM...: orders that request less than the original one and reserve
 * more, in the model of the CUDA caching allocator, and which rule is to blame.
 *
 * For each program, size factor and history a line, fields separated by tabs: name, factor,
 * history, orders (distinct peaks of requested bytes are not asked for), those better than the
 * original in requested bytes, of these worse in reserved, worse in allocated; pairs of orders that
 * differ in requested bytes, of these in the other order by reserved bytes; then for each cause how
 * many of the worse ones it is to blame for (rounding, remainder, fragmentation, segments,
 * history); then requested, reserved of the original, the planned and the robust order.
 *
 * The cause to blame is the one by which an order loses most against the original.
 * Orders: the original, the planned one, walks of random legal moves from either, descents from
 * the original, random legal orders. All from one seed: equal calls give equal lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/model.h"
#include "memory.h"
#include "random.h"

enum { CAUSES = 5, HISTORIES = 4 };
static const char *const histories[HISTORIES] = {"empty", "warm", "batches", "service"};

static uint64_t state;

static uint64_t next(void) {
  return pp_random(&state);
}

static pp_index pick(pp_index below) {
  return (pp_index)(next() % (uint64_t)below);
}

static void need(pp_status status, const pp_error *error) {
  if (!status)
    return;
  fprintf(stderr, "caching-orders: %s\n", error->message);
  exit(70);
}

static void *take(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory)
    exit(71);
  return memory;
}

/* ---- Programs of other sizes ---- */

static int64_t times(int64_t bytes, int64_t by, int64_t through) {
  return bytes == PP_WHOLE || !bytes ? bytes : (bytes * by + through - 1) / through;
}

/* Every size by/through of what it was. Ranges stay disjoint only if through is 1; `whole` drops
 * them, and then only the original order is sure to be legal. */
static pp_program *scaled(const pp_program *program, int64_t by, int64_t through, bool whole) {
  pp_error error;
  pp_program *out = pp_program_new(&error);
  for (pp_index s = 0; s < pp_program_storages(program); s++) {
    pp_storage_info info = pp_program_storage(program, s);
    need(pp_program_add_storage(out, info.name, times(info.bytes, by, through), info.flags, NULL,
                                &error),
         &error);
  }
  for (pp_index v = 0; v < pp_program_statements(program); v++) {
    pp_statement_info info = pp_program_statement(program, v);
    need(pp_program_add_statement(out, info.name, &error), &error);
    for (size_t i = 0; i < info.accesses; i++) {
      const pp_access *a = &info.access[i];
      need(pp_program_add_access(out, a->storage, whole ? PP_WHOLE : times(a->from, by, through),
                                 whole ? PP_WHOLE : times(a->to, by, through), a->flags, &error),
           &error);
    }
    for (size_t i = 0; i < info.requests; i++)
      need(pp_program_add_work(out, times(info.request[i], by, through), &error), &error);
  }
  const pp_index *pair;
  size_t pairs = pp_program_orders(program, &pair);
  for (size_t i = 0; i < pairs; i++)
    need(pp_program_add_order(out, pair[2 * i], pair[2 * i + 1], &error), &error);
  need(pp_program_finish(out, &error), &error);
  return out;
}

/* ---- Histories ---- */

static void run_original(pp_caching *caching, const pp_program *program, int64_t by,
                         int64_t through) {
  pp_error error;
  pp_index full;
  pp_program *other = scaled(program, by, through, true);
  need(pp_caching_run(caching, other, NULL, NULL, &full, &error), &error);
  pp_program_free(other);
}

/* What other users of the device left: three times the program's peak in requests of all sizes, of
 * which a third still lives. */
static void run_service(pp_caching *caching, int64_t peak) {
  pp_error error;
  pp_index *held = take(1 << 16, sizeof *held);
  pp_index count = 0;
  for (int64_t sum = 0; sum < 3 * peak && count < 1 << 16;) {
    int64_t floor = (int64_t)512 << pick(15), bytes = floor + (int64_t)(next() % (uint64_t)floor);
    need(pp_caching_allocate(caching, bytes, 0, &held[count++], &error), &error);
    sum += bytes;
  }
  for (pp_index i = 0; i < count; i++)
    if (pick(3))
      pp_caching_release(caching, held[i]);
  free(held);
}

static pp_caching *make_history(const pp_caching_config *config, const pp_program *program,
                                int history) {
  pp_caching *caching;
  pp_error error;
  int64_t peak;
  if (!history)
    return NULL;
  need(pp_caching_new(config, &caching, &error), &error);
  if (history == 1) {
    run_original(caching, program, 1, 1);
    run_original(caching, program, 1, 1);
  } else if (history == 2) { /* batches of other sizes */
    run_original(caching, program, 3, 4);
    run_original(caching, program, 9, 8);
    run_original(caching, program, 5, 8);
  } else {
    need(pp_simulate(program, NULL, &peak, NULL, NULL, &error), &error);
    run_service(caching, peak);
  }
  return caching;
}

/* ---- Orders ---- */

struct orders {
  const pp_program *program;
  pp_index n;
  size_t count;
  pp_index *order; /* count rows of n */
  int64_t *requested;
};

static void range(const struct orders *o, const pp_index *order, const pp_index *place, pp_index v,
                  pp_index *low, pp_index *high) {
  const pp_index *other;
  size_t count = pp_program_predecessors(o->program, v, &other);
  (void)order;
  *low = 0;
  *high = o->n - 1;
  for (size_t i = 0; i < count; i++)
    if (place[other[i]] + 1 > *low)
      *low = place[other[i]] + 1;
  count = pp_program_successors(o->program, v, &other);
  for (size_t i = 0; i < count; i++)
    if (place[other[i]] - 1 < *high)
      *high = place[other[i]] - 1;
}

static void move(const struct orders *o, pp_index *order) {
  pp_index *place = take((size_t)o->n, sizeof *place), low, high, v = pick(o->n);
  for (pp_index i = 0; i < o->n; i++)
    place[order[i]] = i;
  range(o, order, place, v, &low, &high);
  pp_index from = place[v], to = low + pick(high - low + 1);
  if (to < from)
    memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
  else
    memmove(order + from, order + from + 1, (size_t)(to - from) * sizeof *order);
  order[to] = v;
  free(place);
}

static int64_t requested(const struct orders *o, const pp_index *order) {
  pp_error error;
  int64_t peak;
  need(pp_simulate(o->program, order, &peak, NULL, NULL, &error), &error);
  return peak;
}

static void keep(struct orders *o, const pp_index *order) {
  memcpy(o->order + o->count * (size_t)o->n, order, (size_t)o->n * sizeof *order);
  o->requested[o->count++] = requested(o, order);
}

static void random_order(const struct orders *o, pp_index *order) {
  pp_index *ready = take((size_t)o->n, sizeof *ready), *left = take((size_t)o->n, sizeof *left);
  pp_index count = 0;
  const pp_index *other;
  for (pp_index v = 0; v < o->n; v++)
    if (!(left[v] = (pp_index)pp_program_predecessors(o->program, v, &other)))
      ready[count++] = v;
  for (pp_index i = 0; i < o->n; i++) {
    pp_index at = pick(count), v = ready[at];
    ready[at] = ready[--count];
    order[i] = v;
    size_t successors = pp_program_successors(o->program, v, &other);
    for (size_t k = 0; k < successors; k++)
      if (!--left[other[k]])
        ready[count++] = other[k];
  }
  free(ready);
  free(left);
}

static void make_orders(struct orders *o, const pp_index *planned, size_t wanted) {
  pp_index *order = take((size_t)o->n, sizeof *order), *trial = take((size_t)o->n, sizeof *trial);
  const size_t bytes = (size_t)o->n * sizeof *order;
  for (pp_index i = 0; i < o->n; i++)
    order[i] = i;
  keep(o, order);
  keep(o, planned);
  for (size_t i = 0; i < wanted / 4; i++) { /* walks from the planned order */
    if (i % 16 == 0)
      memcpy(order, planned, bytes);
    move(o, order);
    keep(o, order);
  }
  for (size_t i = 0; i < wanted / 4; i++) { /* and from the original */
    for (pp_index k = 0; k < o->n && i % 16 == 0; k++)
      order[k] = k;
    move(o, order);
    keep(o, order);
  }
  for (size_t i = 0; i < wanted / 4; i++) { /* descents: eight moves, none for the worse */
    for (pp_index k = 0; k < o->n && i % 32 == 0; k++)
      order[k] = k;
    int64_t now = requested(o, order);
    for (int k = 0; k < 8; k++) {
      memcpy(trial, order, bytes);
      move(o, trial);
      int64_t then = requested(o, trial);
      if (then <= now) {
        memcpy(order, trial, bytes);
        now = then;
      }
    }
    keep(o, order);
  }
  for (size_t i = 0; i < wanted / 4; i++) {
    random_order(o, order);
    keep(o, order);
  }
  free(order);
  free(trial);
}

/* ---- Counting ---- */

static int64_t cause(const pp_caching_causes *c, int i) {
  const int64_t values[CAUSES] = {c->rounding, c->remainder, c->fragmentation, c->segments,
                                  c->history};
  return values[i];
}

static int blame(const pp_caching_causes *original, const pp_caching_causes *order) {
  int worst = 0;
  for (int i = 1; i < CAUSES; i++)
    if (cause(order, i) - cause(original, i) > cause(order, worst) - cause(original, worst))
      worst = i;
  return worst;
}

static void print_robust(const struct orders *o, const pp_caching_config *config,
                         const pp_caching *history, const pp_caching_causes *causes) {
  pp_error error;
  pp_caching_causes robust;
  pp_index *order = take((size_t)o->n, sizeof *order);
  pp_caching_robust_options how = {.runs = 1000};
  memcpy(order, o->order + o->n, (size_t)o->n * sizeof *order);
  need(pp_caching_robust(config, history, o->program, order, &how, NULL, &error), &error);
  need(pp_caching_explain(config, history, o->program, order, &robust, &error), &error);
  for (int k = 0; k < 2; k++)
    printf("\t%" PRId64 "\t%" PRId64, causes[k].requested, causes[k].reserved);
  printf("\t%" PRId64 "\t%" PRId64 "\n", robust.requested, robust.reserved);
  free(order);
}

static void count_orders(const struct orders *o, const pp_caching_config *config, const char *name,
                         int64_t factor, int history) {
  pp_error error;
  pp_caching *start = make_history(config, o->program, history);
  pp_caching_causes *c = take(o->count, sizeof *c);
  size_t better = 0, worse = 0, worse_allocated = 0, pairs = 0, discordant = 0;
  size_t blamed[CAUSES] = {0};
  for (size_t i = 0; i < o->count; i++) {
    need(pp_caching_explain(config, start, o->program, o->order + i * (size_t)o->n, &c[i], &error),
         &error);
    if (c[i].requested >= c[0].requested)
      continue;
    better++;
    worse_allocated += c[i].allocated > c[0].allocated;
    if (c[i].reserved > c[0].reserved) {
      worse++;
      blamed[blame(&c[0], &c[i])]++;
    }
  }
  for (size_t i = 0; i < o->count; i++)
    for (size_t k = 0; k < i; k++)
      if (c[i].requested != c[k].requested) {
        pairs++;
        bool first = c[i].requested < c[k].requested;
        discordant += first ? c[i].reserved > c[k].reserved : c[i].reserved < c[k].reserved;
      }
  printf("%s\t%" PRId64 "\t%s\t%zu\t%zu\t%zu\t%zu\t%zu\t%zu", name, factor, histories[history],
         o->count, better, worse, worse_allocated, pairs, discordant);
  for (int i = 0; i < CAUSES; i++)
    printf("\t%zu", blamed[i]);
  print_robust(o, config, start, c);
  fflush(stdout);
  free(c);
  pp_caching_free(start);
}

static void one_program(const pp_model *model, const char *name, size_t wanted) {
  static const int64_t factors[] = {1, 16};
  pp_error error;
  pp_caching_config config;
  pp_program *program;
  pp_plan *plan;
  int64_t peak = 0;
  pp_caching_preset(NULL, &config);
  need(pp_model_build(model, 0, &peak, &program, &error), &error);
  pp_options limits = {.time_limit = 60};
  need(pp_solve(program, &limits, &plan, &error), &error);
  for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
    pp_program *sized = scaled(program, factors[f], 1, false);
    struct orders o = {.program = sized, .n = pp_program_statements(sized)};
    o.order = take((wanted + 2) * (size_t)o.n, sizeof *o.order);
    o.requested = take(wanted + 2, sizeof *o.requested);
    state = 1;
    make_orders(&o, pp_plan_order(plan), wanted);
    for (int history = 0; history < HISTORIES; history++)
      count_orders(&o, &config, name, factors[f], history);
    free(o.order);
    free(o.requested);
    pp_program_free(sized);
  }
  pp_plan_free(plan);
  pp_program_free(program);
}

int main(int argc, char **argv) {
  size_t wanted = 200;
  int i = 1;
  if (argc > 2 && !strcmp(argv[1], "-n")) {
    wanted = (size_t)atoi(argv[2]);
    i = 3;
  }
  for (; i < argc; i++) {
    pp_model *model;
    pp_error error;
    const char *slash = strrchr(argv[i], '/');
    need(pp_model_read(argv[i], NULL, &model, &error), &error);
    one_program(model, slash ? slash + 1 : argv[i], wanted);
    pp_model_free(model);
  }
  return 0;
}
