/* brute [--certificates] SEED COUNT [STATEMENTS]: random programs, planned, against brute force
 * (tests/oracle).
 *
 * Of each program of up to STATEMENTS (16) statements: original peak, floor, peak of the planned
 * order and optimum are those of the definitions; no bound, certified or searched, is above the
 * optimum; the certificate is accepted by the checker with exactly this peak and bound. Says how
 * many were certified optimal, and by which proof. With --certificates it only writes those that
 * rest on a search or on probing edges, as records for tests/check/mutate, until there are COUNT.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sha2.h>

#include "../oracle/oracle.h"
#include "checker.h"
#include "format/model.h"
#include "plan.h"
#include "repair.h"

struct tally {
  long programs, failed, optimal, proof[PP_PROOF_SEARCH + 1], based; /* with base chains */
};

static void fail(struct tally *tally, uint64_t seed, const char *what, int64_t found,
                 int64_t expected) {
  printf("FAILED: program %" PRIu64 ": %s is %" PRId64 ", not %" PRId64 "\n", seed, what, found,
         expected);
  tally->failed++;
}

static void die(const pp_error *error) {
  printf("FAILED: %s\n0 passed, 1 failed\n", error->message);
  exit(1);
}

static void add_accesses(pp_program *program, const oracle_program *p, int statement,
                         pp_error *error) {
  for (size_t i = 0; i < p->accesses; i++) {
    const oracle_access *a = p->access + i;
    int64_t from = a->from < 0 ? PP_WHOLE : a->from, to = a->from < 0 ? PP_WHOLE : a->to;
    if (a->statement == statement &&
        pp_program_add_access(program, a->storage, from, to, a->write ? PP_WRITE : PP_READ, error))
      die(error);
  }
}

static pp_program *build(const oracle_program *p) {
  pp_error error;
  pp_program *program = pp_program_new(&error);
  for (int s = 0; s < p->m; s++) {
    unsigned flags = (p->live_in[s] ? PP_LIVE_IN : 0u) | (p->live_out[s] ? PP_LIVE_OUT : 0u);
    if (pp_program_add_storage(program, NULL, p->size[s], flags, NULL, &error))
      die(&error);
  }
  for (int v = 0; v < p->n; v++) {
    if (pp_program_add_statement(program, NULL, &error) ||
        pp_program_add_work(program, p->work[v], &error))
      die(&error);
    add_accesses(program, p, v, &error);
  }
  for (size_t i = 0; i < p->pairs; i++)
    if (pp_program_add_order(program, p->pair[i][0], p->pair[i][1], &error))
      die(&error);
  if (pp_program_finish(program, &error))
    die(&error);
  return program;
}

static bool write_stream(const void *bytes, size_t size, void *file) {
  return fwrite(bytes, 1, size, file) == size;
}

static void check_certificate(const pp_program *program, const pp_plan *plan, uint64_t seed,
                              struct tally *tally) {
  char *text[2], sha256[SHA256_DIGEST_STRING_LENGTH], verdict[512], expected[128];
  size_t size[2];
  pp_error error;
  FILE *out = open_memstream(&text[0], &size[0]);
  if (pp_program_json_write(program, write_stream, out, &error))
    die(&error);
  fclose(out);
  SHA256Data((const uint8_t *)text[0], size[0], sha256);
  out = open_memstream(&text[1], &size[1]);
  if (pp_certificate_write(plan, sha256, write_stream, out, &error))
    die(&error);
  fclose(out);
  int code = core_check(text[0], size[0], text[1], size[1], verdict);
  snprintf(expected, sizeof expected, "s VERIFIED peak %" PRId64 " bound %" PRId64 "%s",
           pp_plan_peak(plan), pp_plan_lower_bound(plan), pp_plan_optimal(plan) ? " optimal" : "");
  if (code || strcmp(verdict, expected)) {
    printf("FAILED: program %" PRIu64 ": %s, not %s\n", seed, verdict, expected);
    tally->failed++;
  }
  free(text[0]);
  free(text[1]);
}

/* Returns whether it wrote a record. */
static bool write_record(const oracle_program *p, const pp_plan *plan, uint64_t seed,
                         int statements) {
  if (pp_plan_proof(plan) != PP_PROOF_SEARCH && pp_plan_proof(plan) != PP_PROOF_PROBING)
    return false;
  char *text[2], sha256[SHA256_DIGEST_STRING_LENGTH];
  size_t size[2];
  pp_error error;
  FILE *out = open_memstream(&text[0], &size[0]);
  oracle_print(p, out);
  fclose(out);
  SHA256Data((const uint8_t *)text[0], size[0], sha256);
  out = open_memstream(&text[1], &size[1]);
  if (pp_certificate_write(plan, sha256, write_stream, out, &error))
    die(&error);
  fclose(out);
  printf("%" PRIu64 " %d %zu\n%s", seed, statements, size[1], text[1]);
  free(text[0]);
  free(text[1]);
  return true;
}

static void compare(const oracle_program *p, const pp_program *program, const pp_plan *plan,
                    uint64_t seed, struct tally *tally) {
  int order[ORACLE_MAX];
  int64_t optimum = oracle_optimum(p, NULL), peak = pp_plan_peak(plan);
  for (int i = 0; i < p->n; i++)
    order[i] = pp_plan_order(plan)[i];
  if (pp_plan_peak_before(plan) != oracle_peak(p, NULL))
    fail(tally, seed, "the original peak", pp_plan_peak_before(plan), oracle_peak(p, NULL));
  if (peak != oracle_peak(p, order))
    fail(tally, seed, "the peak of the order", peak, oracle_peak(p, order));
  if (peak != optimum)
    fail(tally, seed, "the optimum", peak, optimum);
  if (pp_floor(program, NULL) != oracle_floor(p))
    fail(tally, seed, "the floor", pp_floor(program, NULL), oracle_floor(p));
  if (pp_plan_lower_bound(plan) > optimum)
    fail(tally, seed, "the bound", pp_plan_lower_bound(plan), optimum);
  if (pp_plan_searched_bound(plan) > optimum)
    fail(tally, seed, "the searched bound", pp_plan_searched_bound(plan), optimum);
}

/* Repairs the original order, forward and backward: it stays legal and gets no dearer. */
static void check_repair(const oracle_program *p, const pp_program *program, uint64_t seed,
                         struct tally *tally) {
  int64_t before = oracle_peak(p, NULL), optimum = oracle_optimum(p, NULL), peak;
  for (int reverse = 0; reverse < 2; reverse++) {
    pp_index order[ORACLE_MAX];
    pp_error error;
    struct pp_view view = pp_view_of(program, reverse);
    for (int i = 0; i < p->n; i++)
      order[i] = reverse ? p->n - 1 - i : i;
    if (!pp_repair_order(view, order, 0, NULL, NULL) || pp_peak(view, order, &peak, &error))
      fail(tally, seed, "a repaired order", -1, 0);
    else if (peak > before || peak < optimum)
      fail(tally, seed, "the peak of a repaired order", peak, before);
  }
}

/* Returns whether a certificate was written. */
static bool one(uint64_t seed, int statements, bool write, struct tally *tally) {
  oracle_program *p = oracle_random(seed, statements);
  pp_program *program = build(p);
  pp_plan *plan;
  pp_error error;
  if (pp_solve(program, NULL, &plan, &error))
    die(&error);
  bool written = write && write_record(p, plan, seed, statements);
  if (!write) {
    compare(p, program, plan, seed, tally);
    check_certificate(program, plan, seed, tally);
    check_repair(p, program, seed, tally);
  }
  tally->programs++;
  tally->optimal += pp_plan_optimal(plan);
  tally->proof[pp_plan_proof(plan)]++;
  tally->based += plan->proof.base > 0;
  pp_plan_free(plan);
  pp_program_free(program);
  oracle_free(p);
  return written;
}

int main(int argc, char **argv) {
  bool write = argc > 1 && !strcmp(argv[1], "--certificates");
  argv += write;
  argc -= write;
  if (argc < 3) {
    fputs("usage: brute [--certificates] SEED COUNT [STATEMENTS]\n", stderr);
    return 64;
  }
  uint64_t seed = strtoull(argv[1], NULL, 10);
  long count = atol(argv[2]);
  int statements = argc > 3 ? atoi(argv[3]) : 16;
  struct tally tally = {0};
  for (long i = 0; i < count && tally.failed < 20; seed++)
    i += one(seed, statements, write, &tally) || !write;
  if (write)
    return fflush(stdout) != 0;
  printf("note: %ld of %ld certified optimal:", tally.optimal, tally.programs);
  for (pp_proof_kind kind = 0; kind <= PP_PROOF_SEARCH; kind++)
    printf(" %s %ld", pp_proof_name(kind), tally.proof[kind]);
  printf(", base chains in %ld", tally.based);
  printf("\n%ld passed, %ld failed\n", tally.programs - (tally.failed ? tally.failed : 0),
         tally.failed);
  return tally.failed > 0;
}
