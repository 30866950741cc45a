#include "proof.h"

#include <string.h>

void pp_chains_free(struct pp_chains *chains) {
  free(chains->chains.items);
  free(chains->tokens.items);
}

bool pp_chains_append(struct pp_chains *to, const struct pp_chains *from, size_t index) {
  struct pp_chain chain = from->chains.items[index];
  size_t count = chain.end - chain.begin;
  if (!PP_ROOM(&to->chains) || !pp_reserve((void **)&to->tokens.items, &to->tokens.capacity,
                                           to->tokens.count + count, sizeof *to->tokens.items))
    return false;
  memcpy(to->tokens.items + to->tokens.count, from->tokens.items + chain.begin,
         count * sizeof *to->tokens.items);
  chain.begin = to->tokens.count;
  chain.end = to->tokens.count += count;
  to->chains.items[to->chains.count++] = chain;
  return true;
}

bool pp_edges_copy(const struct pp_edges *from, struct pp_edges *to) {
  bool done = true;
  for (size_t i = 0; done && i < from->chains.chains.count; i++)
    done = pp_chains_append(&to->chains, &from->chains, i);
  for (size_t i = 0; done && i < from->edges.count; i++)
    if ((done = PP_ROOM(&to->edges)))
      to->edges.items[to->edges.count++] = from->edges.items[i];
  return done;
}

void pp_edges_free(struct pp_edges *edges) {
  free(edges->edges.items);
  pp_chains_free(&edges->chains);
}

void pp_proof_free(struct pp_proof *proof) {
  pp_edges_free(&proof->probed);
  free(proof->inside.items);
  free(proof->anchors.items);
  free(proof->exits.items);
  pp_chains_free(&proof->chains);
  free(proof->lines.items);
  free(proof->tokens.items);
  *proof = (struct pp_proof){0};
}
