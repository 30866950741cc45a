/* Random small programs for the tests of recomputation. */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t random_next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

int random_below(uint64_t *state, int below) {
  return (int)(random_next(state) % (uint64_t)below);
}

static bool chance(uint64_t *state, int percent) {
  return random_below(state, 100) < percent;
}

static void must(pp_status status, const pp_error *error) {
  if (!status)
    return;
  fprintf(stderr, "random program: %s\n", error->message);
  exit(70);
}

/* Reads, then a fresh storage or two, now and then an update in place. Storages 0 .. inputs - 1 are
 * live in. */
static void add_statement(pp_program *program, uint64_t *state, bool tame, int *storages, int limit,
                          const int64_t *bytes) {
  pp_error error;
  must(pp_program_add_statement(program, NULL, &error), &error);
  must(pp_program_add_work(program, random_below(state, 3) ? 0 : random_below(state, 8), &error),
       &error);
  if (tame || !chance(state, 5))
    must(pp_program_set_macs(program, random_below(state, 10), &error), &error);
  must(pp_program_set_pure(program, tame || !chance(state, 10), &error), &error);
  for (int reads = random_below(state, 3) + (*storages > 0); reads > 0 && *storages; reads--) {
    int s = chance(state, 50) ? *storages - 1 - random_below(state, *storages < 3 ? *storages : 3)
                              : random_below(state, *storages);
    bool part = bytes[s] > 1 && chance(state, 15), update = !tame && chance(state, 6);
    int64_t from = part ? random_below(state, (int)bytes[s] - 1) : PP_WHOLE;
    int64_t to = part ? from + 1 + random_below(state, (int)(bytes[s] - from)) : PP_WHOLE;
    unsigned flags =
        update ? chance(state, 50) ? PP_READ | PP_WRITE : PP_WRITE | PP_OVERWRITE : PP_READ;
    must(pp_program_add_access(program, s, from, to, flags, &error), &error);
  }
  for (int writes = chance(state, 15) ? 2 : 1; writes > 0 && *storages < limit; writes--) {
    unsigned flags = !tame && chance(state, 6) ? PP_WRITE : PP_WRITE | PP_OVERWRITE;
    must(pp_program_add_access(program, (*storages)++, PP_WHOLE, PP_WHOLE, flags, &error), &error);
  }
}

pp_program *random_program(uint64_t seed, int statements, int storages) {
  uint64_t state = seed * 0x2545f4914f6cdd1du + 1;
  pp_error error;
  pp_program *program = pp_program_new(&error);
  int64_t bytes[64];
  if (!program)
    exit(70);
  int n = 2 + random_below(&state, statements - 1), used = 1 + random_below(&state, 2);
  for (int s = 0; s < storages; s++) {
    unsigned flags = s < used ? PP_LIVE_IN : 0;
    flags |= chance(&state, s < used ? 20 : 12) ? PP_LIVE_OUT : 0;
    bytes[s] = random_below(&state, 12) ? 1 + random_below(&state, 12) : 0;
    must(pp_program_add_storage(program, NULL, bytes[s], flags, NULL, &error), &error);
  }
  for (int v = 0; v < n; v++)
    add_statement(program, &state, seed % 2, &used, storages, bytes);
  if (n > 2 && !(seed % 2) && chance(&state, 15)) {
    int before = random_below(&state, n - 1);
    must(pp_program_add_order(program, before, before + 1 + random_below(&state, n - before - 1),
                              &error),
         &error);
  }
  must(pp_program_finish(program, &error), &error);
  return program;
}
