/* The proof of an infeasible level (doc/certificate.md, Exact search): the commits of both sides,
 * then for every component of the middle the states that the exploration settled, in the order in
 * which they depend on each other. */
#include "search.h"

#include <string.h>

struct prover {
  pp_search *search; /* a replica: its commits are repeated one by one */
  struct pp_proof *proof;
  int side;
  /* One block. Numbers are those of the certificate. */
  int32_t *number; /* of a state, once its set is declared */
  bool *claimed;   /* by number */
  int32_t declared;
  int32_t *first_child, *next_sibling; /* of states */
  int32_t *table;                      /* states, by set; -1: free */
  size_t slots;
  PP_VECTOR(int32_t) todo, chain;
};

/* ---- Lines ---- */

static bool begin_line(struct prover *prover, char letter, char direction) {
  struct pp_proof *proof = prover->proof;
  if (!PP_ROOM(&proof->lines))
    return false;
  size_t tokens = proof->tokens.count, chains = proof->chains.chains.count;
  proof->lines.items[proof->lines.count++] =
      (struct pp_line){letter, direction, tokens, tokens, chains, chains};
  return true;
}

static bool add_token(struct prover *prover, int32_t token) {
  struct pp_proof *proof = prover->proof;
  if (!PP_ROOM(&proof->tokens))
    return false;
  proof->tokens.items[proof->tokens.count++] = token;
  proof->lines.items[proof->lines.count - 1].end = proof->tokens.count;
  return true;
}

/* The chains that show that no set between the lower one (without the statements added to the cut)
 * and the run's holds less than `memory`. *shown: they do. */
static bool add_chains(struct prover *prover, struct pp_cut *cut, int64_t memory, bool *shown) {
  int64_t value;
  struct pp_proof *proof = prover->proof;
  if (!pp_cut_value(cut, -1, memory, false, &value))
    return false;
  *shown = value >= memory;
  if (*shown && !pp_cut_chains(cut, &proof->chains))
    return false;
  proof->lines.items[proof->lines.count - 1].chain_end = proof->chains.chains.count;
  return true;
}

/* ---- Commits ---- */

static void execute(pp_search *search, struct pp_search_side *side, pp_index v) {
  pp_run_step(&side->run, v);
  search->left--;
}

static bool add_single(struct prover *prover, char direction, pp_index v) {
  const struct pp_proof *proof = prover->proof;
  const struct pp_line *last = proof->lines.items + proof->lines.count - 1;
  return ((last->letter == 'k' && last->direction == direction) ||
          begin_line(prover, 'k', direction)) &&
         add_token(prover, v);
}

static bool add_commit(struct prover *prover, struct pp_search_side *side, char direction,
                       const pp_index *statement, size_t count) {
  bool shown;
  if (count == 1) {
    execute(prover->search, side, *statement);
    return add_single(prover, direction, *statement);
  }
  if (!begin_line(prover, 'K', direction) || !pp_cut_begin(&side->cut))
    return false;
  for (size_t i = 0; i < count; i++) {
    execute(prover->search, side, statement[i]);
    if (!add_token(prover, statement[i]) || !pp_cut_add(&side->cut, statement[i]))
      return false;
  }
  return add_chains(prover, &side->cut, side->run.memory, &shown);
}

/* The longest prefix of what one side committed, ending with a commit, whose last statement is
 * comparable with every statement: every order executes just these first, and no commit need be
 * shown for them (THEORY.md section 3, decomposition). In the prefix it must be the only statement
 * without a successor, in the rest with it the only one without a predecessor. Stores how many
 * commits that are. */
static bool decompose(const pp_search *search, int which, size_t *commits) {
  const struct pp_search_side *side = search->side + which;
  const struct pp_view *view = &side->run.view;
  size_t n = (size_t)view->n, sinks = 0, sources = 0, next = 0;
  pp_index *before = pp_alloc(n, sizeof *before); /* predecessors not in the prefix */
  bool *succeeded = pp_zalloc(n, sizeof *succeeded);
  *commits = 0;
  if (!before || !succeeded) {
    free(before);
    free(succeeded);
    return false;
  }
  for (size_t v = 0; v < n; v++) {
    before[v] = (pp_index)pp_row_size(view->predecessors, (pp_index)v);
    sources += !before[v]; /* of the rest */
  }
  for (size_t i = 0; next < search->proved.commits[which]; i++) {
    pp_index v = side->order.items[i];
    bool only_source = sources == 1;
    sinks++;
    PP_FOR_ROW (p, view->predecessors, v) {
      sinks -= !succeeded[*p];
      succeeded[*p] = true;
    }
    sources--;
    PP_FOR_ROW (x, view->successors, v)
      sources += !--before[*x];
    if (side->commits.items[next] == i + 1) {
      next++;
      if (only_source && sinks == 1)
        *commits = next;
    }
  }
  free(before);
  free(succeeded);
  return true;
}

static bool add_commits(struct prover *prover, const pp_search *search, int which) {
  const struct pp_search_side *from = search->side + which;
  struct pp_search_side *to = prover->search->side + which;
  char direction = which ? 'r' : 'f';
  size_t begin = 0, skipped;
  if (!decompose(search, which, &skipped))
    return false;
  for (size_t i = 0; i < search->proved.commits[which]; i++) {
    size_t end = from->commits.items[i];
    if (i >= skipped) {
      if (!add_commit(prover, to, direction, from->order.items + begin, end - begin))
        return false;
    } else
      for (size_t j = begin; j < end; j++)
        execute(prover->search, to, from->order.items[j]);
    if (i + 1 == skipped &&
        (!begin_line(prover, 'y', direction) || !add_token(prover, from->order.items[end - 1])))
      return false;
    begin = end;
  }
  return true;
}

/* ---- States of a block ---- */

static const struct pp_state *state_at(const struct prover *prover, int32_t index) {
  return prover->search->explorer.states.items + index;
}

/* Where the set of a state stands among those declared, or where it belongs. */
static int32_t *declared_slot(struct prover *prover, int32_t index) {
  size_t at = state_at(prover, index)->hash & (prover->slots - 1);
  while (prover->table[at] >= 0 &&
         !pp_explorer_same_set(&prover->search->explorer, prover->table[at], index))
    at = (at + 1) & (prover->slots - 1);
  return prover->table + at;
}

/* The number of a state's set. Declares it, and what it is built on, where needed. */
static bool declare(struct prover *prover, int32_t index, int32_t *number) {
  prover->chain.count = 0;
  for (int32_t s = index; prover->number[s] < 0; s = state_at(prover, s)->parent) {
    int32_t other = *declared_slot(prover, s);
    if (other >= 0) {
      prover->number[s] = prover->number[other];
      break;
    }
    if (!PP_ROOM(&prover->chain))
      return false;
    prover->chain.items[prover->chain.count++] = s;
  }
  while (prover->chain.count) {
    int32_t s = prover->chain.items[--prover->chain.count];
    const struct pp_state *state = state_at(prover, s);
    if (!begin_line(prover, 's', 0) || !add_token(prover, prover->number[state->parent]) ||
        !add_token(prover, state->statement))
      return false;
    prover->number[s] = prover->declared++;
    *declared_slot(prover, s) = s;
  }
  *number = prover->number[index];
  return true;
}

/* The state that tells why the set of `index` is settled: itself if a free move led on, else the
 * one in the explorer's table. */
static int32_t settled_state(struct prover *prover, int32_t index) {
  if (state_at(prover, index)->settled == PP_PASSED)
    return index;
  index = pp_explorer_find(&prover->search->explorer, index);
  if (index < 0)
    return -1;
  uint8_t settled = state_at(prover, index)->settled;
  return settled == PP_OPEN || settled == PP_ABANDONED ? -1 : index;
}

static bool push_todo(struct prover *prover, int32_t index) {
  if (!PP_ROOM(&prover->todo))
    return false;
  prover->todo.items[prover->todo.count++] = index;
  return true;
}

static bool is_claimed(struct prover *prover, int32_t index) {
  int32_t other = prover->number[index] >= 0 ? index : *declared_slot(prover, index);
  return other >= 0 && prover->claimed[prover->number[other]];
}

/* Puts on the stack what the claim of a state needs and is not claimed; *ready: nothing. */
static bool push_needed(struct prover *prover, int32_t index, bool *ready) {
  const struct pp_state *state = state_at(prover, index);
  *ready = true;
  if (state->settled != PP_EXPANDED) {
    *ready = is_claimed(prover, state->target);
    return *ready || push_todo(prover, state->target);
  }
  for (int32_t c = prover->first_child[index]; c >= 0; c = prover->next_sibling[c])
    if (!is_claimed(prover, c)) {
      *ready = false;
      if (!push_todo(prover, c))
        return false;
    }
  return true;
}

static bool claim_commit(struct prover *prover, int32_t index, int32_t number) {
  struct pp_search_side *side = prover->search->side + prover->side;
  const struct pp_state *state = state_at(prover, index);
  int32_t to;
  bool shown;
  if (!declare(prover, state->target, &to) || !begin_line(prover, 'd', 0) ||
      !add_token(prover, number) || !add_token(prover, to))
    return false;
  if (state_at(prover, state->target)->depth == state->depth + 1)
    return true;
  if (!pp_explorer_go_to(&prover->search->explorer, state->target) || !pp_cut_begin(&side->cut))
    return false;
  for (int32_t s = state->target; s != index; s = state_at(prover, s)->parent)
    if (!pp_cut_add(&side->cut, state_at(prover, s)->statement))
      return false;
  return add_chains(prover, &side->cut, side->run.memory, &shown);
}

static bool claim_reached(struct prover *prover, int32_t index, int32_t number) {
  const struct pp_state *state = state_at(prover, index);
  int32_t from;
  if (!declare(prover, state->target, &from) || !begin_line(prover, 'r', 0) ||
      !add_token(prover, number) || !add_token(prover, from))
    return false;
  prover->chain.count = 0;
  for (int32_t s = index; s != state->target; s = state_at(prover, s)->parent) {
    if (!PP_ROOM(&prover->chain))
      return false;
    prover->chain.items[prover->chain.count++] = state_at(prover, s)->statement;
  }
  while (prover->chain.count)
    if (!add_token(prover, prover->chain.items[--prover->chain.count]))
      return false;
  return true;
}

static bool claim(struct prover *prover, int32_t index) {
  int32_t number;
  if (!declare(prover, index, &number))
    return false;
  bool done;
  switch (state_at(prover, index)->settled) {
  case PP_EXPANDED:
    done = begin_line(prover, 'n', 0) && add_token(prover, number);
    break;
  case PP_REACHED:
    done = claim_reached(prover, index, number);
    break;
  default:
    done = claim_commit(prover, index, number);
  }
  prover->claimed[number] = true;
  return done;
}

/* Claims the root and all that this needs, what is needed first. */
static bool claim_all(struct prover *prover) {
  prover->todo.count = 0;
  if (!push_todo(prover, 0))
    return false;
  while (prover->todo.count) {
    int32_t top = prover->todo.items[prover->todo.count - 1];
    int32_t index = settled_state(prover, top);
    bool ready;
    if (index < 0)
      return false; /* never: what is settled is settled by what is */
    if (is_claimed(prover, index)) {
      prover->todo.count--;
      continue;
    }
    if (!push_needed(prover, index, &ready))
      return false;
    if (!ready)
      continue;
    prover->todo.count--;
    if (!claim(prover, index))
      return false;
  }
  return true;
}

static void free_block(struct prover *prover) {
  free(prover->number);
  free(prover->claimed);
  free(prover->first_child);
  free(prover->next_sibling);
  free(prover->table);
  prover->number = prover->first_child = prover->next_sibling = prover->table = NULL;
  prover->claimed = NULL;
}

static bool begin_block(struct prover *prover) {
  size_t count = prover->search->explorer.states.count;
  prover->declared = 1; /* the root */
  for (prover->slots = 64; prover->slots < 2 * count; prover->slots *= 2)
    ;
  prover->number = pp_alloc(count, sizeof *prover->number);
  prover->claimed = pp_zalloc(count, sizeof *prover->claimed);
  prover->first_child = pp_alloc(count, sizeof *prover->first_child);
  prover->next_sibling = pp_alloc(count, sizeof *prover->next_sibling);
  prover->table = pp_alloc(prover->slots, sizeof *prover->table);
  if (!prover->number || !prover->claimed || !prover->first_child || !prover->next_sibling ||
      !prover->table)
    return false;
  memset(prover->table, -1, prover->slots * sizeof *prover->table);
  memset(prover->number, -1, count * sizeof *prover->number);
  memset(prover->first_child, -1, count * sizeof *prover->first_child);
  for (int32_t s = (int32_t)count - 1; s > 0; s--) {
    int32_t parent = state_at(prover, s)->parent;
    prover->next_sibling[s] = prover->first_child[parent];
    prover->first_child[parent] = s;
  }
  prover->number[0] = 0;
  *declared_slot(prover, 0) = 0;
  return true;
}

/* ---- Blocks ---- */

static bool begin_group(struct prover *prover, pp_index component) {
  const pp_search *search = prover->search;
  const size_t *start = search->starts.items;
  if (!begin_line(prover, 'g', 0))
    return false;
  for (size_t i = start[component]; i < start[component + 1]; i++)
    if (!add_token(prover, search->members.items[i]))
      return false;
  return true;
}

/* A block whose memory is nowhere less than at its start, however its statements run. */
static bool add_quiet(struct prover *prover, pp_index component, bool *quiet) {
  struct pp_search_side *side = prover->search->side + prover->side;
  const pp_search *search = prover->search;
  size_t begin = search->starts.items[component], end = search->starts.items[component + 1];
  struct pp_proof *proof = prover->proof;
  size_t lines = proof->lines.count, tokens = proof->tokens.count;
  int64_t memory = side->run.memory;
  bool done = begin_group(prover, component) && pp_cut_begin(&side->cut);
  for (size_t i = begin; i < end; i++) {
    pp_index v = search->members.items[prover->side ? end - 1 - (i - begin) : i];
    pp_run_step(&side->run, v);
    done = done && pp_cut_add(&side->cut, v);
  }
  done = done && add_chains(prover, &side->cut, memory, quiet);
  for (size_t i = end; i-- > begin;)
    pp_run_undo(&side->run, search->members.items[prover->side ? end - 1 - (i - begin) : i]);
  if (done && !*quiet) {
    proof->lines.count = lines;
    proof->tokens.count = tokens;
  }
  return done;
}

static bool explore_block(struct prover *prover, pp_index component, int64_t states,
                          enum pp_outcome *outcome) {
  if (!pp_search_turn(prover->search, prover->side, component))
    return false;
  *outcome = pp_explore(&prover->search->explorer, states, NULL, NULL);
  return *outcome != PP_NO_MEMORY;
}

static bool add_states(struct prover *prover, pp_index component) {
  bool done = begin_group(prover, component) && begin_block(prover) && claim_all(prover);
  free_block(prover);
  return done && pp_explorer_go_to(&prover->search->explorer, 0);
}

/* The stuck component whose exploration is smallest, or -1. */
static bool find_stuck(struct prover *prover, int64_t states, pp_index *stuck) {
  size_t best = SIZE_MAX;
  *stuck = -1;
  for (pp_index k = 0; k + 1 < (pp_index)prover->search->starts.count; k++) {
    enum pp_outcome outcome;
    if (!explore_block(prover, k, states, &outcome))
      return false;
    if (outcome == PP_STUCK && prover->search->explorer.states.count < best) {
      best = prover->search->explorer.states.count;
      *stuck = k;
    }
  }
  return true;
}

static bool add_blocks(struct prover *prover, int64_t states, bool *proved) {
  pp_index stuck;
  *proved = false;
  if (!pp_search_components(prover->search) || !find_stuck(prover, states, &stuck) ||
      !begin_line(prover, 'm', prover->side ? 'r' : 'f'))
    return false;
  if (stuck < 0)
    return true;
  for (pp_index k = 0; k + 1 < (pp_index)prover->search->starts.count; k++) {
    bool quiet = false;
    enum pp_outcome outcome;
    if (k != stuck && !add_quiet(prover, k, &quiet))
      return false;
    if (quiet)
      continue;
    if (!explore_block(prover, k, states, &outcome))
      return false;
    if (outcome != PP_STUCK && outcome != PP_COMPLETED)
      return true;
    if (!add_states(prover, k))
      return false;
  }
  *proved = true;
  return true;
}

bool pp_search_proof(const pp_search *search, int64_t bound, int64_t states,
                     struct pp_proof *proof) {
  struct prover prover = {.proof = proof, .side = search->proved.side};
  *proof = (struct pp_proof){.kind = PP_PROOF_SEARCH, .bound = bound, .statement = -1};
  prover.search = pp_search_new(search->program);
  bool proved = false;
  bool done = prover.search != NULL && begin_line(&prover, 'x', 0) &&
              add_commits(&prover, search, 0) && add_commits(&prover, search, 1);
  if (done) {
    prover.search->level = bound - 1;
    done = add_blocks(&prover, states, &proved);
  }
  pp_search_free(prover.search);
  free(prover.todo.items);
  free(prover.chain.items);
  if (!done || !proved)
    pp_proof_free(proof);
  return done && proved;
}
