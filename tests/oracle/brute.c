/* brute - what the oracle says of random programs.
 *
 *   brute [--json] FIRST_SEED COUNT STATEMENTS
 *
 * prints for each seed: seed, original peak, optimum, floor, best forward trap, best reverse trap;
 * or, with --json, a line of program JSON. */
#include "oracle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **argument) {
  bool json = count == 5 && !strcmp(argument[1], "--json");
  if (count != 4 + json) {
    fprintf(stderr, "usage: %s [--json] FIRST_SEED COUNT STATEMENTS\n", argument[0]);
    return 64;
  }
  argument += json;
  uint64_t first = strtoull(argument[1], NULL, 10), many = strtoull(argument[2], NULL, 10);
  for (uint64_t seed = first; seed < first + many; seed++) {
    oracle_program *p = oracle_random(seed, atoi(argument[3]));
    if (json)
      oracle_print(p, stdout);
    else
      printf("%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", seed,
             oracle_peak(p, NULL), oracle_optimum(p, NULL), oracle_floor(p),
             oracle_best_trap(p, false), oracle_best_trap(p, true));
    oracle_free(p);
  }
  return fflush(stdout) ? 74 : 0;
}
