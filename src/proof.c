#include "proof.h"

void pp_chains_free(struct pp_chains *chains) {
  free(chains->chains.items);
  free(chains->tokens.items);
}

void pp_proof_free(struct pp_proof *proof) {
  free(proof->inside.items);
  free(proof->anchors.items);
  free(proof->exits.items);
  pp_chains_free(&proof->chains);
  free(proof->lines.items);
  free(proof->tokens.items);
  *proof = (struct pp_proof){0};
}
