/* The program inside: compressed rows, immutable once finished (THEORY.md section 1). */
#ifndef PP_PROGRAM_H
#define PP_PROGRAM_H

#include "memory.h"
#include "peakproof.h"

/* Row i is item[start[i]] .. item[start[i + 1]], ascending and without repetition. */
struct pp_rows {
  size_t *start;
  pp_index *item;
};

static inline size_t pp_row_size(const struct pp_rows *rows, pp_index row) {
  return rows->start[row + 1] - rows->start[row];
}
#define PP_FOR_ROW(x, rows, row)                                                                   \
  for (const pp_index *x = (rows)->item + (rows)->start[row],                                      \
                      *x##_end = (rows)->item + (rows)->start[(row) + 1];                          \
       x < x##_end; x++)

typedef PP_VECTOR(pp_index) pp_indices;

struct pp_statement {
  size_t access, request; /* where they begin; they end where the next statement's begin */
  size_t name;            /* offset into names; 0 is "" */
  int64_t work, macs, line;
  bool pure;
};

struct pp_storage {
  int64_t bytes;
  size_t name;
  unsigned flags;
};

struct pp_program {
  bool finished;
  size_t name;
  PP_VECTOR(char) names; /* zero-terminated, one after the other */
  PP_VECTOR(struct pp_statement) statements;
  PP_VECTOR(struct pp_storage) storages;
  PP_VECTOR(pp_access) accesses;
  PP_VECTOR(int64_t) requests;
  PP_VECTOR(pp_index) orders; /* pairs */
  /* From here on: made by pp_program_finish. */
  pp_index n, m;
  int64_t *work, *bytes; /* of statements, of storages: the hot copies */
  struct pp_rows predecessors, successors, accessed, accessors;
};

/* The program read forward or backward. Reversed, predecessors and successors, live_in and live_out
 * trade places; costs stay (THEORY.md section 2). */
struct pp_view {
  const struct pp_program *program;
  pp_index n, m;
  const struct pp_rows *predecessors, *successors, *accessed, *accessors;
  const int64_t *work, *bytes;
  unsigned begin, end; /* the flag of a storage that exists before (after) the whole view */
  bool reverse;
};

struct pp_view pp_view_of(const struct pp_program *program, bool reverse);

static inline bool pp_begins(const struct pp_view *view, pp_index storage) {
  return view->program->storages.items[storage].flags & view->begin;
}
static inline bool pp_ends_never(const struct pp_view *view, pp_index storage) {
  return view->program->storages.items[storage].flags & view->end;
}

#endif
