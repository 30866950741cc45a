/* Probing (THEORY.md section 3): edges that every order of a low peak respects. */
#ifndef PP_PROBE_H
#define PP_PROBE_H

#include "program.h"
#include "proof.h"

/* Edges that hold in every order of peak < level, and the program with them: it shares all but its
 * dependences with the program that it was made of, which must outlive it. */
struct pp_probing {
  pp_program program;
  struct pp_edges found;
};

/* Looks for edges, with about so much work (statements looked at in cuts). Returns PP_OK,
 * PP_ERROR_MEMORY, or PP_ERROR_USAGE when `stop` said so. Free with pp_probing_free in any case. */
pp_status pp_probe(const pp_program *program, int64_t level, int64_t work, bool (*stop)(void *),
                   void *data, struct pp_probing *probing);
void pp_probing_free(struct pp_probing *probing);

#endif
