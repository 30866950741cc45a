/* Does a rewritten program compute the same? Runs both on symbols: every byte that a statement
 * writes is a new one, named after the statement and the access; what it reads must be the same
 * symbols in both. */
#include <string.h>

#include "error.h"
#include "program.h"
#include "remat.h"

/* Bytes from <= b < to hold what access `symbol` wrote there; -1 - s: as storage s began.
 * (Originals have the same index in both programs; copies begin with bytes of their own.) */
struct piece {
  int64_t from, to, symbol;
};
struct pieces {
  struct piece *items;
  size_t count, capacity;
};

struct machine {
  const pp_program *program;
  const pp_index *statement, *storage; /* the original ones; NULL: itself */
  struct pieces *content;              /* of each storage, in order, covering all of it */
};

struct check {
  struct machine machine[2]; /* original, rewritten */
  struct pieces *read;       /* of each original statement: what it read, access by access */
  struct pieces scratch;
  pp_index *runs;
  pp_error *error;
};

static bool add_piece(struct pieces *list, struct piece piece) {
  struct piece *last = list->count ? list->items + list->count - 1 : NULL;
  if (last && last->symbol == piece.symbol && last->to == piece.from) {
    last->to = piece.to;
    return true;
  }
  if (!PP_ROOM(list))
    return false;
  list->items[list->count++] = piece;
  return true;
}

static bool machine_init(struct machine *machine, const pp_program *program,
                         const pp_index *statement, const pp_index *storage) {
  *machine = (struct machine){program, statement, storage,
                              pp_zalloc((size_t)program->m, sizeof(struct pieces))};
  bool done = machine->content != NULL;
  for (pp_index s = 0; done && s < program->m; s++)
    done = add_piece(machine->content + s, (struct piece){0, INT64_MAX, -1 - s});
  return done;
}

static void machine_free(struct machine *machine) {
  for (pp_index s = 0; machine->content && s < machine->program->m; s++)
    free(machine->content[s].items);
  free(machine->content);
}

static struct piece range_of(const pp_access *access) {
  bool whole = access->from == PP_WHOLE;
  return (struct piece){whole ? 0 : access->from, whole ? INT64_MAX : access->to, 0};
}

/* Appends what the range holds. A separator keeps the ranges of two accesses apart. */
static bool read_range(const struct machine *machine, const pp_access *access,
                       struct pieces *list) {
  struct piece range = range_of(access);
  const struct pieces *content = machine->content + access->storage;
  bool done = add_piece(list, (struct piece){-1, -1, INT64_MIN});
  for (size_t i = 0; done && i < content->count; i++) {
    struct piece piece = content->items[i];
    piece.from = piece.from > range.from ? piece.from : range.from;
    piece.to = piece.to < range.to ? piece.to : range.to;
    if (piece.from < piece.to)
      done = add_piece(list, piece);
  }
  return done;
}

static bool write_range(struct machine *machine, const pp_access *access, int64_t symbol) {
  struct piece range = range_of(access);
  struct pieces *content = machine->content + access->storage, made = {0};
  bool done = true, written = false;
  range.symbol = symbol;
  for (size_t i = 0; done && i < content->count; i++) {
    struct piece p = content->items[i];
    if (p.from < range.from)
      done =
          add_piece(&made, (struct piece){p.from, p.to < range.from ? p.to : range.from, p.symbol});
    if (done && !written && p.to > range.from) {
      done = add_piece(&made, range);
      written = true;
    }
    if (done && p.to > range.to)
      done =
          add_piece(&made, (struct piece){p.from > range.to ? p.from : range.to, p.to, p.symbol});
  }
  free(content->items);
  *content = made;
  return done;
}

/* Executes a statement; `list` receives what it reads. */
static bool execute(struct machine *machine, pp_index v, struct pieces *list) {
  pp_statement_info info = pp_program_statement(machine->program, v);
  pp_index original = machine->statement ? machine->statement[v] : v;
  bool done = true;
  list->count = 0;
  for (size_t i = 0; done && i < info.accesses; i++)
    if (info.access[i].flags & PP_READ || !(info.access[i].flags & PP_OVERWRITE))
      done = read_range(machine, info.access + i, list);
  for (size_t i = 0; done && i < info.accesses; i++)
    if (info.access[i].flags & PP_WRITE)
      done = write_range(machine, info.access + i, ((int64_t)original << 31) + (int64_t)i);
  return done;
}

static pp_status fail_check(struct check *check, const char *what, pp_index v) {
  return pp_fail(check->error, PP_ERROR_INTERNAL, "the rewritten program is wrong: %s, %d", what,
                 v);
}

static bool same_pieces(const struct pieces *a, const struct pieces *b) {
  if (a->count != b->count)
    return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i].from != b->items[i].from || a->items[i].to != b->items[i].to ||
        a->items[i].symbol != b->items[i].symbol)
      return false;
  return true;
}

/* Same accesses, to storages of the same originals and sizes. */
static bool same_statement(const struct check *check, pp_index v, pp_index original) {
  const pp_program *a = check->machine[0].program, *b = check->machine[1].program;
  pp_statement_info x = pp_program_statement(a, original), y = pp_program_statement(b, v);
  if (x.accesses != y.accesses || x.work != y.work || x.pure != y.pure)
    return false;
  for (size_t i = 0; i < x.accesses; i++) {
    pp_access p = x.access[i], q = y.access[i];
    if (check->machine[1].storage[q.storage] != p.storage || p.flags != q.flags ||
        p.from != q.from || p.to != q.to || a->bytes[p.storage] != b->bytes[q.storage])
      return false;
  }
  return true;
}

static pp_status run_original(struct check *check) {
  const pp_program *program = check->machine[0].program;
  for (pp_index v = 0; v < program->n; v++)
    if (!execute(&check->machine[0], v, check->read + v))
      return pp_fail_memory(check->error);
  return PP_OK;
}

static pp_status run_rewritten(struct check *check) {
  const struct machine *machine = &check->machine[1];
  const pp_program *original = check->machine[0].program;
  for (pp_index v = 0; v < machine->program->n; v++) {
    pp_index o = machine->statement[v];
    if (!same_statement(check, v, o))
      return fail_check(check, "a statement is not the original one", v);
    if (check->runs[o]++ && !original->statements.items[o].pure)
      return fail_check(check, "an impure statement runs twice", v);
    if (!execute(&check->machine[1], v, &check->scratch))
      return pp_fail_memory(check->error);
    if (!same_pieces(&check->scratch, check->read + o))
      return fail_check(check, "a statement reads other bytes", v);
  }
  for (pp_index o = 0; o < original->n; o++)
    if (!check->runs[o])
      return fail_check(check, "a statement does not run", o);
  return PP_OK;
}

/* The flags of originals stand on exactly one copy, and live-out ones end as they should. */
static pp_status compare_ends(struct check *check) {
  const pp_program *a = check->machine[0].program, *b = check->machine[1].program;
  for (pp_index s = 0; s < b->m; s++) {
    pp_index o = check->machine[1].storage[s];
    bool original = s < a->m;
    if (original ? o != s || b->storages.items[s].flags != a->storages.items[s].flags
                 : b->storages.items[s].flags != 0)
      return fail_check(check, "a storage is not the original one", s);
    if (b->storages.items[s].flags & PP_LIVE_OUT &&
        !same_pieces(check->machine[0].content + o, check->machine[1].content + s))
      return fail_check(check, "an output has other bytes", s);
  }
  return b->m < a->m ? fail_check(check, "a storage is missing", b->m) : PP_OK;
}

static int compare_keys(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The pairs of `order` as sorted keys, in the original's statements. NULL when out of memory. */
static int64_t *sorted_pairs(const struct machine *machine, size_t *pairs) {
  const pp_index *pair, *statement = machine->statement;
  *pairs = pp_program_orders(machine->program, &pair);
  int64_t *key = pp_alloc(*pairs, sizeof *key);
  for (size_t i = 0; key && i < *pairs; i++) {
    pp_index u = pair[2 * i], v = pair[2 * i + 1];
    key[i] = (int64_t)(statement ? statement[u] : u) << 32 | (statement ? statement[v] : v);
  }
  if (key && *pairs)
    qsort(key, *pairs, sizeof *key, compare_keys);
  return key;
}

/* The pairs of `order` are there, and what is in them runs once. More pairs do no harm: a file that
 * is read again may have them, where a copy lacks the path that made one needless. */
static pp_status check_orders(struct check *check) {
  size_t pairs, others, at = 0;
  int64_t *key = sorted_pairs(&check->machine[0], &pairs);
  int64_t *other = sorted_pairs(&check->machine[1], &others);
  pp_status status = key && other ? PP_OK : pp_fail_memory(check->error);
  for (size_t i = 0; !status && i < pairs; i++) {
    pp_index u = (pp_index)(key[i] >> 32), v = (pp_index)(key[i] & INT32_MAX);
    while (at < others && other[at] < key[i])
      at++;
    if (at == others || other[at] != key[i])
      status = fail_check(check, "an order pair is missing", u);
    else if (check->runs[u] != 1 || check->runs[v] != 1)
      status = fail_check(check, "a statement of an order pair runs twice", u);
  }
  free(key);
  free(other);
  return status;
}

pp_status pp_remat_check(const pp_program *original, const pp_program *rewritten,
                         const pp_index *statement, const pp_index *storage, pp_error *error) {
  struct check check = {.read = pp_zalloc((size_t)original->n, sizeof *check.read),
                        .runs = pp_zalloc((size_t)original->n, sizeof *check.runs),
                        .error = error};
  bool ready = machine_init(&check.machine[0], original, NULL, NULL);
  ready &= machine_init(&check.machine[1], rewritten, statement, storage);
  pp_status status = ready && check.read && check.runs ? PP_OK : pp_fail_memory(error);
  if (!status && !(status = run_original(&check)) && !(status = run_rewritten(&check)) &&
      !(status = compare_ends(&check)))
    status = check_orders(&check);
  for (pp_index v = 0; check.read && v < original->n; v++)
    free(check.read[v].items);
  free(check.read);
  free(check.scratch.items);
  free(check.runs);
  machine_free(&check.machine[0]);
  machine_free(&check.machine[1]);
  return status;
}
