/* Recomputation: what may run again, sequences with repetitions, and the ways to choose them
 * (THEORY.md section 4; doc/remat.md says which problem each method solves). */
#ifndef PP_REMAT_H
#define PP_REMAT_H

#include "program.h"

/* What a run costs beyond memory: multiply-accumulates first, then bytes written (elementwise work
 * has no multiply-accumulates). Compared lexicographically; sums saturate. */
struct pp_remat_cost {
  int64_t macs, bytes;
};

static inline int64_t pp_saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline struct pp_remat_cost pp_cost_add(struct pp_remat_cost a, struct pp_remat_cost b) {
  return (struct pp_remat_cost){pp_saturating_add(a.macs, b.macs),
                                pp_saturating_add(a.bytes, b.bytes)};
}
static inline int pp_cost_compare(struct pp_remat_cost a, struct pp_remat_cost b) {
  if (a.macs != b.macs)
    return a.macs < b.macs ? -1 : 1;
  return (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* A point of the plane in which curves live. */
struct pp_remat_label {
  int64_t peak;
  struct pp_remat_cost cost;
};
/* Is `a` no worse than `b` in both? */
static inline bool pp_label_covers(struct pp_remat_label a, struct pp_remat_label b) {
  return a.peak <= b.peak && pp_cost_compare(a.cost, b.cost) <= 0;
}

/* ---- Facts (remat_facts.c) ---- */

enum pp_remat_kind {
  PP_SIMPLE, /* one statement writes all of it and does not read it; it can be had in copies */
  PP_SOURCE, /* exists from the start and is never written: it can be held longer */
  PP_RIGID   /* anything else (in-place updates, several writers): stays one block */
};

/* What the program allows. Statements that may run more than once write simple storages only. */
struct pp_remat_facts {
  const pp_program *program;
  pp_index n, m;
  uint8_t *kind;                /* of each storage: enum pp_remat_kind */
  pp_index *writer;             /* of each simple storage */
  int32_t *cap;                 /* of each statement: how often it may run, at least 1 */
  struct pp_remat_cost *cost;   /* of each statement; unknown macs count as 0 and cap is 1 */
  struct pp_rows reads, writes; /* distinct storages of each statement, by effect */
  struct pp_rows before, after; /* hard dependences: through rigid storages and order pairs */
};

/* `cap` for every statement that may run again, or caps[v] for each (if not NULL). False when out
 * of memory; free it either way. */
bool pp_remat_facts_init(struct pp_remat_facts *facts, const pp_program *program, int32_t cap,
                         const int32_t *caps);
void pp_remat_facts_free(struct pp_remat_facts *facts);

/* ---- Sequences (remat_sequence.c) ---- */

/* Runs of statements in time; every statement runs at least once. A read of a simple storage takes
 * the copy made last. */
struct pp_sequence {
  PP_VECTOR(pp_index) run;
};

bool pp_sequence_set(struct pp_sequence *sequence, const pp_index *run, size_t count);
void pp_sequence_free(struct pp_sequence *sequence);

/* Walks a sequence backward: which storages are needed now, and how many bytes they are. */
struct pp_demand {
  const struct pp_remat_facts *facts;
  bool *needed;
  pp_index *left; /* of each rigid storage: runs that access it and are still to come */
  int64_t memory; /* the sum over needed storages */
};
/* `run`, `count`: what will be walked. False when out of memory; free it either way. */
bool pp_demand_init(struct pp_demand *demand, const struct pp_remat_facts *facts,
                    const pp_index *run, size_t count);
void pp_demand_free(struct pp_demand *demand);
/* One run earlier: returns the bytes that exist while v runs. */
int64_t pp_demand_step(struct pp_demand *demand, pp_index v);

/* Peak and extra cost of a sequence; step (if not NULL) receives the bytes during each run. */
bool pp_sequence_label(const struct pp_remat_facts *facts, const struct pp_sequence *sequence,
                       struct pp_remat_label *label, int64_t *step);
/* Takes out runs whose results nobody reads, but for the last run of a statement. */
bool pp_sequence_prune(const struct pp_remat_facts *facts, struct pp_sequence *sequence);

/* A sequence as a program: run i is statement i, every copy of a storage is a storage. The copy
 * that keeps the original's name and flags is the first, or the last where it is live_out. */
struct pp_rewritten {
  pp_program *program;
  pp_index *statement; /* of each statement: the original one */
  pp_index *storage;   /* of each storage: the original one */
  pp_index *again;     /* of each statement: how often the original ran before it */
};
pp_status pp_rewrite(const pp_program *program, const struct pp_sequence *sequence,
                     const struct pp_remat_facts *facts, struct pp_rewritten *rewritten,
                     pp_error *error);
void pp_rewritten_free(struct pp_rewritten *rewritten);

/* ---- Check (remat_check.c) ---- */

/* Does the rewritten program compute the same? Every statement runs, impure ones once and in their
 * order; every run reads byte for byte what the original read; live_out storages end with the same
 * bytes. Knows effects only, not how the rewriting was made. PP_ERROR_INTERNAL if not. */
pp_status pp_remat_check(const pp_program *original, const pp_program *rewritten,
                         const pp_index *statement, const pp_index *storage, pp_error *error);

/* ---- Exact methods ---- */

/* A curve: labels of falling peak and rising cost, each with its sequence. */
struct pp_remat_entry {
  struct pp_remat_label label;
  struct pp_sequence sequence;
};
struct pp_remat_front {
  PP_VECTOR(struct pp_remat_entry) entry;
};
void pp_front_free(struct pp_remat_front *front);
/* Takes the sequence (which is then empty) unless an entry covers it; drops what it covers. */
bool pp_front_add(struct pp_remat_front *front, struct pp_remat_label label,
                  struct pp_sequence *sequence);
bool pp_front_covers(const struct pp_remat_front *front, struct pp_remat_label label);

enum pp_remat_result { PP_REMAT_DONE, PP_REMAT_LIMIT, PP_REMAT_MEMORY };

struct pp_remat_limits {
  int64_t states;            /* labels that may be held */
  struct pp_remat_cost cost; /* no dearer sequence is wanted */
  bool (*stop)(void *);      /* may be NULL */
  void *data;
};
struct pp_remat_statistics {
  int64_t states, labels;
};

/* All sequences in which the first runs stand in `order` (NULL: the original one): adds the Pareto
 * curve to the front (labels that its entries cover are left out). After PP_REMAT_DONE the front is
 * exact for this order. remat_fixed.c. */
enum pp_remat_result pp_remat_fixed(const struct pp_remat_facts *facts, const pp_index *order,
                                    const struct pp_remat_limits *limits,
                                    struct pp_remat_front *front,
                                    struct pp_remat_statistics *statistics);
/* The same over all sequences. remat_joint.c. */
enum pp_remat_result pp_remat_joint(const struct pp_remat_facts *facts,
                                    const struct pp_remat_limits *limits,
                                    struct pp_remat_front *front,
                                    struct pp_remat_statistics *statistics);

#endif
