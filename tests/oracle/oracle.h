/* oracle.h - brute force for small programs, straight from the definitions of THEORY.md section 1.
 * It shares no code with the core and none with the checkers: tests compare against it.
 *
 * Programs have at most ORACLE_MAX statements. Time and memory grow with the down-sets, up to 2^n.
 * Sizes are bytes; nothing is checked for overflow, so keep them small. */
#ifndef PEAKPROOF_TESTS_ORACLE_H
#define PEAKPROOF_TESTS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ORACLE_MAX = 20 };

typedef struct oracle_access {
  int statement, storage;
  int64_t from, to; /* bytes from <= b < to; -1, -1: all of it */
  bool write;
} oracle_access;

typedef struct oracle_program {
  int n, m;                       /* statements, storages */
  const int64_t *work;            /* n */
  const int64_t *size;            /* m */
  const bool *live_in, *live_out; /* m */
  size_t accesses;
  const oracle_access *access; /* in any order */
  size_t pairs;
  const int (*pair)[2]; /* of "order": before, after */
} oracle_program;

/* Peak of an order (NULL: the original one); -1 if it is not legal. */
int64_t oracle_peak(const oracle_program *program, const int *order);

/* Lowest peak of any legal order, by dynamic programming over all down-sets. `order`, if not NULL,
 * receives n statements. */
int64_t oracle_optimum(const oracle_program *program, int *order);

/* work + accessed storages + others that are both live in and out, largest over all statements. */
int64_t oracle_floor(const oracle_program *program);

/* The largest e(T) over all T (THEORY.md section 2), forward or reverse, by trying all T; 0 if
 * there are no statements. Needs 2^n * n * 8 bytes. */
int64_t oracle_best_trap(const oracle_program *program, bool reverse);

/* A random program of 1 to `statements` statements, the same for the same seed everywhere. It has
 * shared, multi-writer, partly accessed, empty, unused, live-in and live-out storages, work and
 * order pairs. Ends the process when out of memory. Free it with oracle_free. */
oracle_program *oracle_random(uint64_t seed, int statements);
void oracle_free(oracle_program *program);

/* As program JSON (DESIGN.md section 3). */
void oracle_print(const oracle_program *program, FILE *out);

#endif
