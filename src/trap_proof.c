/* The proof by a trap: chains for every exit, and those that many exits need once, as a base
 * (doc/certificate.md). */
#include "trap.h"

#include <string.h>

/* ---- Without a base ---- */

static bool prove_exit(struct pp_trap *trap, pp_index v, int64_t level, struct pp_proof *proof) {
  struct pp_exit exit = {.statement = v, .begin = proof->chains.chains.count};
  int64_t cost;
  if (!pp_trap_cut(trap, v, level, false, &cost) || !pp_cut_chains(&trap->cut, &proof->chains))
    return false;
  exit.end = proof->chains.chains.count;
  if (!PP_ROOM(&proof->exits))
    return false;
  proof->exits.items[proof->exits.count++] = exit;
  return true;
}

static bool copy_members(const struct pp_trap *trap, struct pp_proof *proof) {
  size_t count = trap->members.count;
  if (!pp_reserve((void **)&proof->inside.items, &proof->inside.capacity, count,
                  sizeof *proof->inside.items))
    return false;
  if (count)
    memcpy(proof->inside.items, trap->members.items, count * sizeof *trap->members.items);
  proof->inside.count = count;
  return true;
}

/* What the base can rely on is what every exit needs: T without what is free for some exit. The
 * maximal statements of that anchor it. */
static bool set_anchors(struct pp_trap *trap, const bool *somewhere_free, struct pp_proof *proof) {
  for (size_t i = 0; i < trap->members.count; i++) {
    pp_index u = trap->members.items[i];
    bool maximal = !somewhere_free[u];
    PP_FOR_ROW (x, trap->run.view.successors, u)
      maximal &= !trap->run.done[*x] || somewhere_free[*x];
    if (!maximal)
      continue;
    if (!PP_ROOM(&proof->anchors))
      return false;
    proof->anchors.items[proof->anchors.count++] = u;
  }
  return true;
}

/* ---- The base ---- */

/* The chains of a flow between what all exits need and T that have no storage in common, the first
 * ones first, each as heavy as its lightest storage. */
static bool choose_base(struct pp_trap *trap, const bool *somewhere_free, struct pp_chains *base) {
  const struct pp_view *view = &trap->run.view;
  struct pp_chains flow = {0};
  int64_t value;
  bool *used = pp_zalloc((size_t)view->m, sizeof *used), done = used && pp_cut_begin(&trap->cut);
  for (size_t i = 0; done && i < trap->members.count; i++)
    if (somewhere_free[trap->members.items[i]])
      done = pp_cut_add(&trap->cut, trap->members.items[i]);
  done = done && pp_cut_value(&trap->cut, -1, INT64_MAX, true, &value) &&
         pp_cut_chains(&trap->cut, &flow);
  for (size_t k = 0; done && k < flow.chains.count; k++) {
    struct pp_chain *chain = flow.chains.items + k;
    const pp_index *token = flow.tokens.items;
    bool apart = true;
    chain->weight = INT64_MAX;
    for (size_t i = chain->begin; i < chain->end; i++)
      if (token[i] < 0) {
        apart &= !used[~token[i]];
        if (view->bytes[~token[i]] < chain->weight)
          chain->weight = view->bytes[~token[i]];
      }
    for (size_t i = chain->begin; apart && i < chain->end; i++)
      if (token[i] < 0)
        used[~token[i]] = true;
    done = !apart || pp_chains_append(base, &flow, k);
  }
  pp_chains_free(&flow);
  free(used);
  return done;
}

/* ---- Exits that share it ---- */

static size_t tokens_of(const struct pp_chains *chains, size_t begin, size_t end) {
  return begin < end ? chains->chains.items[end - 1].end - chains->chains.items[begin].begin : 0;
}

/* Puts the base in front of the proof's chains; an exit relies on it where it needs fewer chains of
 * its own then. Base chains cannot give way, so it may need others, or none are enough. */
static bool rely_on_base(struct pp_trap *trap, int64_t level, const struct pp_chains *base,
                         const struct pp_proof *proof, struct pp_proof *shared) {
  bool done = pp_cut_set_base(&trap->cut, base);
  for (size_t k = 0; done && k < base->chains.count; k++)
    done = pp_chains_append(&shared->chains, base, k);
  shared->base = base->chains.count;
  for (size_t i = 0; done && i < proof->exits.count; i++) {
    struct pp_exit exit = proof->exits.items[i];
    size_t own = tokens_of(&proof->chains, exit.begin, exit.end);
    size_t begin = shared->chains.chains.count, before = shared->chains.tokens.count;
    int64_t cost;
    done = pp_trap_cut(trap, exit.statement, level, false, &cost) &&
           (cost < level || pp_cut_chains(&trap->cut, &shared->chains));
    exit.shares = cost >= level && shared->chains.tokens.count - before < own;
    if (!exit.shares) {
      shared->chains.chains.count = begin;
      shared->chains.tokens.count = before;
      for (size_t k = exit.begin; done && k < exit.end; k++)
        done = pp_chains_append(&shared->chains, &proof->chains, k);
    }
    exit.begin = begin;
    exit.end = shared->chains.chains.count;
    done = done && PP_ROOM(&shared->exits);
    if (done)
      shared->exits.items[shared->exits.count++] = exit;
  }
  return pp_cut_set_base(&trap->cut, NULL) && done;
}

/* Without a base a wide program's proof is as long as exits times chains. */
static bool share(struct pp_trap *trap, int64_t level, const bool *somewhere_free,
                  struct pp_proof *proof) {
  struct pp_chains base = {0};
  struct pp_proof shared = {0};
  bool done =
      choose_base(trap, somewhere_free, &base) && rely_on_base(trap, level, &base, proof, &shared);
  if (done && shared.chains.tokens.count < proof->chains.tokens.count) {
    struct pp_proof old = *proof;
    proof->exits.items = shared.exits.items;
    proof->exits.capacity = shared.exits.capacity;
    proof->chains = shared.chains;
    proof->base = shared.base;
    shared = (struct pp_proof){.chains = old.chains};
    shared.exits.items = old.exits.items;
  }
  pp_proof_free(&shared);
  pp_chains_free(&base);
  return done;
}

bool pp_trap_proof(struct pp_trap *trap, int64_t level, struct pp_proof *proof) {
  *proof = (struct pp_proof){.kind = trap->run.view.reverse ? PP_PROOF_REVERSE_TRAP
                                                            : PP_PROOF_FORWARD_TRAP,
                             .bound = level,
                             .statement = -1};
  bool *somewhere_free = pp_zalloc((size_t)trap->run.view.n, sizeof *somewhere_free);
  bool done = somewhere_free && copy_members(trap, proof);
  for (size_t i = 0; done && i < trap->exits.count; i++) {
    pp_index v = trap->exits.items[i];
    if (trap->run.done[v])
      continue;
    done = prove_exit(trap, v, level, proof);
    for (size_t j = 0; done && j < trap->cut.statements.count; j++)
      somewhere_free[trap->cut.statements.items[j]] = true;
  }
  done = done && set_anchors(trap, somewhere_free, proof);
  if (done && proof->exits.count > 1)
    done = share(trap, level, somewhere_free, proof);
  free(somewhere_free);
  if (!done)
    pp_proof_free(proof);
  return done;
}
