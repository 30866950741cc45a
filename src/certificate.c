/* Writes the proof of a plan: doc/certificate.md. */
#include "error.h"
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct writer {
  pp_write *write;
  void *data;
  size_t used;
  bool failed;
  char buffer[1 << 14];
};

static void flush(struct writer *w) {
  if (!w->failed && w->used && !w->write(w->buffer, w->used, w->data))
    w->failed = true;
  w->used = 0;
}

static void put_text(struct writer *w, const char *text, size_t size) {
  if (w->used + size > sizeof w->buffer)
    flush(w);
  memcpy(w->buffer + w->used, text, size);
  w->used += size;
}

static void put_char(struct writer *w, char c) {
  put_text(w, &c, 1);
}

static void put_number(struct writer *w, int64_t number) {
  char text[24];
  put_text(w, text, (size_t)snprintf(text, sizeof text, "%" PRId64, number));
}

/* A line "k number". */
static void put_fact(struct writer *w, char letter, int64_t number) {
  put_char(w, letter);
  put_char(w, ' ');
  put_number(w, number);
  put_char(w, '\n');
}

static void put_list(struct writer *w, const pp_index *item, size_t count) {
  for (size_t i = 0; i < count; i++) {
    put_char(w, ' ');
    put_number(w, item[i]);
  }
}

static void put_chain(struct writer *w, const struct pp_chains *chains, size_t index) {
  const struct pp_chain *chain = chains->chains.items + index;
  put_text(w, "c ", 2);
  put_number(w, chain->weight);
  for (size_t i = chain->begin; i < chain->end; i++) {
    pp_index token = chains->tokens.items[i];
    bool run_goes_on = i > chain->begin && token >= 0 && chains->tokens.items[i - 1] >= 0;
    put_char(w, run_goes_on ? ',' : ' ');
    put_number(w, token < 0 ? ~token : token);
  }
  put_char(w, '\n');
}

/* The line of a trap: T is a prefix of the order in the trap's direction, and the rest. */
static bool put_trapped(struct writer *w, const pp_plan *plan) {
  const struct pp_proof *proof = &plan->proof;
  pp_index n = plan->program->n, prefix = 0;
  bool reverse = proof->kind == PP_PROOF_REVERSE_TRAP;
  bool *inside = pp_zalloc((size_t)n, sizeof *inside);
  if (!inside)
    return false;
  for (size_t i = 0; i < proof->inside.count; i++)
    inside[proof->inside.items[i]] = true;
  for (pp_index v; prefix < n; prefix++) {
    v = plan->order[reverse ? n - 1 - prefix : prefix];
    if (!inside[v])
      break;
    inside[v] = false;
  }
  put_text(w, reverse ? "t r " : "t f ", 4);
  put_number(w, prefix);
  for (pp_index v = 0; v < n; v++)
    if (inside[v])
      put_list(w, &v, 1);
  put_char(w, '\n');
  free(inside);
  return true;
}

/* A base with its first `chains` chains, and the exits that rely on these or not. Without chains
 * the anchors still tell a checker what all exits have in common. */
static void put_exits(struct writer *w, const struct pp_proof *proof, bool shares, size_t chains) {
  bool begun = false;
  for (size_t i = 0; i < proof->exits.count; i++) {
    const struct pp_exit *exit = proof->exits.items + i;
    if (exit->shares != shares)
      continue;
    if (!begun && (proof->anchors.count || chains)) {
      put_char(w, 'b');
      put_list(w, proof->anchors.items, proof->anchors.count);
      put_char(w, '\n');
      for (size_t j = 0; j < chains; j++)
        put_chain(w, &proof->chains, j);
    }
    begun = true;
    put_fact(w, 'e', exit->statement);
    for (size_t j = exit->begin; j < exit->end; j++)
      put_chain(w, &proof->chains, j);
  }
}

static bool put_trap(struct writer *w, const pp_plan *plan) {
  if (!put_trapped(w, plan))
    return false;
  put_exits(w, &plan->proof, false, 0);
  put_exits(w, &plan->proof, true, plan->proof.base);
  return true;
}

static void put_edges(struct writer *w, const struct pp_edges *edges) {
  for (size_t i = 0; i < edges->edges.count; i++) {
    const struct pp_edge *edge = edges->edges.items + i;
    put_char(w, 'a');
    put_list(w, &edge->before, 1);
    put_list(w, &edge->after, 1);
    put_char(w, '\n');
    for (size_t j = edge->begin; j < edge->end; j++)
      put_chain(w, &edges->chains, j);
  }
}

static void put_search(struct writer *w, const struct pp_proof *proof) {
  for (size_t i = 0; i < proof->lines.count; i++) {
    const struct pp_line *line = proof->lines.items + i;
    put_char(w, line->letter);
    if (line->direction) {
      put_char(w, ' ');
      put_char(w, line->direction);
    }
    put_list(w, proof->tokens.items + line->begin, line->end - line->begin);
    put_char(w, '\n');
    for (size_t j = line->chain_begin; j < line->chain_end; j++)
      put_chain(w, &proof->chains, j);
  }
}

static void put_head(struct writer *w, const pp_plan *plan, const char *sha256) {
  static const char first[] = "p peakproof 1\nh ";
  put_text(w, first, sizeof first - 1);
  put_text(w, sha256, 64);
  put_text(w, "\nn ", 3);
  put_number(w, plan->program->n);
  put_char(w, ' ');
  put_number(w, plan->program->m);
  put_text(w, "\no", 2);
  put_list(w, plan->order, (size_t)plan->program->n);
  put_char(w, '\n');
  put_fact(w, 'u', plan->peak);
  put_fact(w, 'l', plan->bound);
}

pp_status pp_certificate_write(const pp_plan *plan, const char *sha256, pp_write *write, void *data,
                               pp_error *error) {
  if (strlen(sha256) != 64)
    return pp_fail(error, PP_ERROR_USAGE, "a SHA-256 has 64 hexadecimal digits");
  struct writer *w = pp_zalloc(1, sizeof *w);
  if (!w)
    return pp_fail_memory(error);
  w->write = write;
  w->data = data;
  put_head(w, plan, sha256);
  bool memory = true;
  put_edges(w, &plan->proof.probed);
  if (plan->proof.kind == PP_PROOF_FLOOR && plan->proof.statement >= 0)
    put_fact(w, 'f', plan->proof.statement);
  else if (plan->proof.kind == PP_PROOF_FLOOR)
    put_text(w, "f\n", 2);
  else if (plan->proof.kind == PP_PROOF_SEARCH)
    put_search(w, &plan->proof);
  else if (plan->proof.kind != PP_PROOF_NONE)
    memory = put_trap(w, plan);
  put_text(w, "q\n", 2);
  flush(w);
  bool failed = w->failed;
  free(w);
  if (!memory)
    return pp_fail_memory(error);
  return failed ? pp_fail(error, PP_ERROR_IO, "writing the certificate failed") : PP_OK;
}
