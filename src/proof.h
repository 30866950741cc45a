/* What a certificate says (doc/certificate.md), in memory. */
#ifndef PP_PROOF_H
#define PP_PROOF_H

#include "program.h"

/* `weight` and the tokens token[begin] .. token[end - 1]: a statement v is v, a storage s is ~s. */
struct pp_chain {
  int64_t weight;
  size_t begin, end;
};

struct pp_chains {
  PP_VECTOR(struct pp_chain) chains;
  pp_indices tokens;
};

/* Copies a chain of `from` behind those of `to`. False when out of memory. */
bool pp_chains_append(struct pp_chains *to, const struct pp_chains *from, size_t index);
void pp_chains_free(struct pp_chains *chains);

struct pp_exit {
  pp_index statement;
  bool shares;       /* the base chains count for it too */
  size_t begin, end; /* its own chains */
};

/* A line of a proof by search: letter, direction ('f', 'r', or 0), numbers, and the chains behind
 * it. */
struct pp_line {
  char letter, direction;
  size_t begin, end; /* in `tokens` */
  size_t chain_begin, chain_end;
};

/* By probing: `before` runs before `after` in every order of peak < bound. Chains begin .. end - 1
 * show it, in the program with the edges in front of this one. */
struct pp_edge {
  pp_index before, after;
  size_t begin, end;
};

struct pp_edges {
  PP_VECTOR(struct pp_edge) edges;
  struct pp_chains chains;
};

bool pp_edges_copy(const struct pp_edges *from, struct pp_edges *to); /* false: out of memory */
void pp_edges_free(struct pp_edges *edges);

struct pp_proof {
  pp_proof_kind kind;
  struct pp_edges probed; /* the rest is about the program with these */
  int64_t bound;          /* L */
  pp_index statement;     /* floor: or -1 */
  /* Traps. */
  pp_indices inside;  /* T */
  pp_indices anchors; /* of the base: all exits need them */
  size_t base;        /* its chains are the first so many */
  PP_VECTOR(struct pp_exit) exits;
  struct pp_chains chains;
  /* Search. */
  PP_VECTOR(struct pp_line) lines;
  PP_VECTOR(int32_t) tokens;
};

void pp_proof_free(struct pp_proof *proof);

#endif
