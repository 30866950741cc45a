/* Minimum cuts: the smallest memory between two down-sets (THEORY.md section 2, the cut network).
 *
 * The upper set T is what a run has executed; the lower one is T without the *free* statements,
 * which the caller names. A storage has *surely begun* if it exists from the start or a statement
 * of the lower set accesses it; it is *never ended* if it exists to the end or a statement outside
 * T accesses it. */
#ifndef PP_CUT_H
#define PP_CUT_H

#include "flow.h"
#include "order.h"
#include "proof.h"

struct pp_cut {
  const struct pp_run *run;          /* executed is T */
  int32_t epoch;                     /* what is stamped is valid where the stamp is `epoch` */
  int32_t *is_free;                  /* stamp of statements */
  int32_t *seen;                     /* stamp of storages */
  pp_index *free_accessors;          /* of a storage, or -1: it does not belong to the network */
  pp_index *node;                    /* of a free statement, or -1 */
  pp_index *begun_node, *ended_node; /* a(s), b(s) of THEORY.md, or -1 */
  pp_indices statements;             /* free */
  pp_indices storages;               /* that these access */
  struct pp_flow flow;
  const struct pp_chains *base; /* or NULL: see pp_cut_set_base */
  int64_t *taken;               /* of a storage: what a base chain that counts takes of it */
};

bool pp_cut_init(struct pp_cut *cut, const struct pp_run *run);
void pp_cut_free(struct pp_cut *cut);

/* Starts anew: nothing is free. */
bool pp_cut_begin(struct pp_cut *cut);
/* Statement u of T is free; all its successors in T are, or will be before pp_cut_value. */
bool pp_cut_add(struct pp_cut *cut, pp_index u);
static inline bool pp_cut_is_free(const struct pp_cut *cut, pp_index u) {
  return cut->is_free[u] == cut->epoch;
}

/* v = -1: *value := min M(S) over down-sets S between the lower set and T. Else: min c(S, v); v is
 * outside T and all its predecessors are in it. The exact minimum if it is below `target`, else
 * some value that is at least `target` (and the flow that shows it). With `exact` false, also some
 * value below `target` that is at least the minimum, when the minimum is below. */
bool pp_cut_value(struct pp_cut *cut, pp_index v, int64_t target, bool exact, int64_t *value);
/* From now on v can rely on chains that are proved already (doc/certificate.md, base chains): those
 * that count for it are part of the value, and leave their storages less room for its own. NULL:
 * on none. The chains are the caller's. */
bool pp_cut_set_base(struct pp_cut *cut, const struct pp_chains *base);
/* After an exact pp_cut_value below its target: marks the free statements of a set S that has the
 * value (others are left alone). */
bool pp_cut_members(struct pp_cut *cut, bool *member);
/* After pp_cut_begin and pp_cut_add: the free statements that belong to the largest S with the
 * smallest M(S) are marked in `member` (indexed by statement; others are left alone). */
bool pp_cut_largest(struct pp_cut *cut, bool *member, int64_t *value);
/* Takes the flow of the last pp_cut_value apart into chains, behind those that are there. */
bool pp_cut_chains(struct pp_cut *cut, struct pp_chains *chains);

#endif
