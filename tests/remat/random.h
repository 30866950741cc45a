/* Random small programs for the tests of recomputation, the same for the same seed everywhere. */
#ifndef PEAKPROOF_TESTS_REMAT_RANDOM_H
#define PEAKPROOF_TESTS_REMAT_RANDOM_H

#include "peakproof.h"

uint64_t random_next(uint64_t *state);
int random_below(uint64_t *state, int below);

/* 2 to `statements` statements over at most `storages` storages, with parts and several outputs;
 * for even seeds also with updates in place, order pairs, unknown macs, impure statements. Free it
 * with pp_program_free. */
pp_program *random_program(uint64_t seed, int statements, int storages);

#endif
