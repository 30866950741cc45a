/* impure: what must never run again, one case a test. Each is the same program, in which a value x
 * is made early and read late over a statement that needs much; running its producer again lowers
 * the peak from 32 to 23 bytes. A twist forbids that. Says "N passed, M failed". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remat.h"

enum { IN, X, Y, Z, OUT, STORAGES };
enum { MAKE, READ_EARLY, WIDE, READ_LATE };

struct twist {
  const char *name;
  bool can; /* does running MAKE again stay possible? */
  bool impure, no_macs, no_overwrite, part, update, live_in, pinned;
  bool input_updated; /* between the runs */
  bool input_part;    /* MAKE reads half of its input; the other half is updated */
  bool input_later;   /* after the second run would be: no harm */
  bool value_updated; /* the value itself, after it was read early */
  bool capped;
};

static const struct twist twists[] = {
    {.name = "none", .can = true},
    {.name = "an impure producer (random numbers, state, a custom operator)", .impure = true},
    {.name = "a producer of unknown cost", .no_macs = true},
    {.name = "a producer that may read what it writes", .no_overwrite = true},
    {.name = "a producer that writes a part", .part = true},
    {.name = "a producer that updates in place", .update = true},
    {.name = "a producer that writes an argument", .live_in = true},
    {.name = "a producer that is pinned", .pinned = true},
    {.name = "an input that is overwritten meanwhile", .input_updated = true},
    {.name = "another part of the input overwritten meanwhile", .input_part = true, .can = true},
    {.name = "an input that is overwritten after the last use", .input_later = true, .can = true},
    {.name = "a value that is updated in place", .value_updated = true},
    {.name = "a cap of its own", .capped = true},
};

static void must(pp_status status, const pp_error *error) {
  if (!status)
    return;
  fprintf(stderr, "impure: %s\n", error->message);
  exit(70);
}

static void storage(pp_program *program, int64_t bytes, unsigned flags) {
  pp_error error;
  must(pp_program_add_storage(program, NULL, bytes, flags, NULL, &error), &error);
}

static void statement(pp_program *program, bool pure, int64_t macs, int64_t work) {
  pp_error error;
  must(pp_program_add_statement(program, NULL, &error), &error);
  must(pp_program_set_pure(program, pure, &error), &error);
  must(pp_program_add_work(program, work, &error), &error);
  if (macs >= 0)
    must(pp_program_set_macs(program, macs, &error), &error);
}

static void access(pp_program *program, pp_index s, int64_t from, int64_t to, unsigned flags) {
  pp_error error;
  must(pp_program_add_access(program, s, from, to, flags, &error), &error);
}

static void reads(pp_program *program, pp_index s) {
  access(program, s, PP_WHOLE, PP_WHOLE, PP_READ);
}

static void writes(pp_program *program, pp_index s) {
  access(program, s, PP_WHOLE, PP_WHOLE, PP_WRITE | PP_OVERWRITE);
}

static void add_make(pp_program *program, const struct twist *t) {
  statement(program, !t->impure, t->no_macs ? -1 : 5, 0);
  if (t->input_part)
    access(program, IN, 0, 1, PP_READ);
  else
    reads(program, IN);
  if (t->part) {
    access(program, X, 0, 5, PP_WRITE | PP_OVERWRITE);
    access(program, X, 5, 9, PP_WRITE | PP_OVERWRITE);
  } else if (t->update || t->no_overwrite)
    access(program, X, PP_WHOLE, PP_WHOLE, t->update ? PP_READ | PP_WRITE : PP_WRITE);
  else
    writes(program, X);
}

static pp_program *make(const struct twist *t) {
  pp_error error;
  pp_program *program = pp_program_new(&error);
  if (!program)
    exit(70);
  storage(program, 1 + t->input_part, PP_LIVE_IN);
  storage(program, 10, t->live_in ? PP_LIVE_IN : 0);
  storage(program, 1, 0);
  storage(program, 1, 0);
  storage(program, 1, PP_LIVE_OUT);
  add_make(program, t);
  statement(program, true, 1, 0); /* READ_EARLY */
  reads(program, X);
  writes(program, Y);
  statement(program, true, 1, 20); /* WIDE */
  reads(program, Y);
  writes(program, Z);
  if (t->input_updated)
    access(program, IN, PP_WHOLE, PP_WHOLE, PP_READ | PP_WRITE);
  if (t->input_part)
    access(program, IN, 1, 2, PP_WRITE | PP_OVERWRITE);
  if (t->value_updated) {
    statement(program, false, 0, 0);
    access(program, X, 0, 1, PP_READ | PP_WRITE);
    reads(program, Z);
  }
  statement(program, true, 1, 0); /* READ_LATE */
  reads(program, X);
  reads(program, Z);
  writes(program, OUT);
  pp_index last = pp_program_statements(program) - 1;
  if (t->input_later) {
    statement(program, false, 0, 0);
    reads(program, OUT);
    access(program, IN, PP_WHOLE, PP_WHOLE, PP_WRITE | PP_OVERWRITE);
  }
  if (t->pinned)
    must(pp_program_add_order(program, MAKE, last, &error), &error);
  must(pp_program_finish(program, &error), &error);
  return program;
}

/* All methods, one by one: none may run MAKE twice. */
static bool never_again(const pp_program *program, const struct twist *t) {
  static const struct pp_remat_limits limits = {.states = 1 << 20, .cost = {INT64_MAX, INT64_MAX}};
  int32_t caps[8] = {t->capped ? 1 : 3, 3, 3, 3, 3, 3, 3, 3};
  bool good = true;
  for (int joint = 0; joint < 2; joint++) {
    struct pp_remat_facts facts;
    struct pp_remat_front front = {0};
    struct pp_remat_statistics statistics = {0};
    good &= pp_remat_facts_init(&facts, program, 3, caps);
    good &=
        (facts.cap[MAKE] > 1) == t->can || t->input_updated; /* may run again, but never in time */
    enum pp_remat_result result = joint
                                      ? pp_remat_joint(&facts, &limits, &front, &statistics)
                                      : pp_remat_fixed(&facts, NULL, &limits, &front, &statistics);
    good &= result == PP_REMAT_DONE;
    bool again = false;
    for (size_t i = 0; i < front.entry.count; i++) {
      size_t runs = 0;
      for (size_t k = 0; k < front.entry.items[i].sequence.run.count; k++)
        runs += front.entry.items[i].sequence.run.items[k] == MAKE;
      again |= runs > 1;
    }
    good &= again == t->can;
    pp_front_free(&front);
    pp_remat_facts_free(&facts);
  }
  return good;
}

static bool solved(const pp_program *program, const struct twist *t) {
  pp_error error;
  pp_plan *plan;
  pp_remat *remat;
  int32_t caps[8] = {t->capped ? 1 : 2, 2, 2, 2, 2, 2, 2, 2};
  pp_remat_options options = {.caps = caps, .max_extra_macs = -1};
  must(pp_solve(program, NULL, &plan, &error), &error);
  must(pp_remat_solve(program, plan, &options, &remat, &error), &error);
  size_t points = pp_remat_points(remat);
  bool good = (points > 1) == t->can;
  if (good && !strcmp(t->name, "none"))
    good = pp_remat_point_of(remat, 0).peak == 32 && pp_remat_point_of(remat, 1).peak == 23 &&
           pp_remat_point_of(remat, 1).extra_macs == 5;
  pp_remat_free(remat);
  pp_plan_free(plan);
  return good;
}

/* A check that accepts everything would be worth nothing: swap the copies that two readers read. */
static bool check_refuses(void) {
  pp_program *program = make(&twists[0]), *other = pp_program_new(NULL);
  pp_error error;
  pp_index statements[5] = {0, 1, 2, 0, 3}, storages[6] = {0, 1, 2, 3, 4, 1};
  for (pp_index s = 0; s < 6; s++) {
    pp_storage_info info = pp_program_storage(program, storages[s]);
    storage(other, info.bytes, s < 5 ? info.flags : 0);
  }
  statement(other, true, 5, 0);
  reads(other, IN);
  writes(other, X);
  statement(other, true, 1, 0);
  reads(other, 5); /* the copy, before it is made */
  writes(other, Y);
  statement(other, true, 1, 20);
  reads(other, Y);
  writes(other, Z);
  statement(other, true, 5, 0);
  reads(other, IN);
  writes(other, 5);
  statement(other, true, 1, 0);
  reads(other, 5);
  reads(other, Z);
  writes(other, OUT);
  must(pp_program_finish(other, &error), &error);
  bool refused = pp_remat_check(program, other, statements, storages, &error) == PP_ERROR_INTERNAL;
  pp_program_free(program);
  pp_program_free(other);
  return refused;
}

int main(void) {
  int passed = 0, failed = 0;
  for (size_t i = 0; i < sizeof twists / sizeof *twists; i++) {
    pp_program *program = make(twists + i);
    bool good = never_again(program, twists + i) && solved(program, twists + i);
    if (!good)
      printf("not ok %s\n", twists[i].name);
    passed += good;
    failed += !good;
    pp_program_free(program);
  }
  bool refused = check_refuses();
  if (!refused)
    puts("not ok the check accepts a program that reads other bytes");
  passed += refused;
  failed += !refused;
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
