/* Program JSON into a program, as yajl's events arrive: what is held besides the program is one
 * statement, the sizes of the storages and the names of unknown keys.
 *
 * Storages may stand behind the statements that access them. Then indices and ranges can be checked
 * only at the end, where their positions are gone; if something is wrong, the text is read again
 * with the storages known, and the first error met is the one to report. */
#include "format/program_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "error.h"
#include "format/json.h"
#include "memory.h"

/* ---- Where the reader is ---- */

enum where {
  DOCUMENT,
  ROOT,
  STATEMENTS,
  STATEMENT,
  WORK,
  ACCESSES,
  RANGE,
  STORAGES,
  STORAGE,
  ORDERS,
  PAIR
};

static const struct {
  enum where parent;
  const char *holds, *called; /* what stands in it, what it is */
} places[] = {
    [DOCUMENT] = {DOCUMENT, "an object", "the file"},
    [ROOT] = {DOCUMENT, "", "the program"},
    [STATEMENTS] = {ROOT, "objects", "\"statements\""},
    [STATEMENT] = {STATEMENTS, "", "a statement"},
    [WORK] = {STATEMENT, "integers", "\"work\""},
    [ACCESSES] = {STATEMENT, "integers and [storage, from, to]", "a list of accesses"},
    [RANGE] = {ACCESSES, "three integers: storage, from, to", "an access"},
    [STORAGES] = {ROOT, "objects", "\"storages\""},
    [STORAGE] = {STORAGES, "", "a storage"},
    [ORDERS] = {ROOT, "pairs [before, after]", "\"order\""},
    [PAIR] = {ORDERS, "two integers: before, after", "a pair of \"order\""},
};

enum kind { KIND_NULL, KIND_BOOL, KIND_INTEGER, KIND_STRING, KIND_OBJECT, KIND_ARRAY };

static const char *const kind_names[] = {"null",     "a boolean", "an integer",
                                         "a string", "an object", "an array"};

enum key_id {
  KEY_VERSION,
  KEY_NAME,
  KEY_STATEMENTS,
  KEY_STORAGES,
  KEY_ORDER,
  KEY_WORK,
  KEY_READS,
  KEY_WRITES,
  KEY_OVERWRITES,
  KEY_LINE,
  KEY_MACS,
  KEY_PURE,
  KEY_BYTES,
  KEY_LIVE_IN,
  KEY_LIVE_OUT
};

struct key {
  const char *name;
  enum key_id id;
  enum kind kind;
};

static const struct key root_keys[] = {
    {"peakproof", KEY_VERSION, KIND_INTEGER},   {"name", KEY_NAME, KIND_STRING},
    {"statements", KEY_STATEMENTS, KIND_ARRAY}, {"storages", KEY_STORAGES, KIND_ARRAY},
    {"order", KEY_ORDER, KIND_ARRAY},           {NULL, 0, 0}};
static const struct key statement_keys[] = {{"name", KEY_NAME, KIND_STRING},
                                            {"work", KEY_WORK, KIND_INTEGER}, /* or a list */
                                            {"reads", KEY_READS, KIND_ARRAY},
                                            {"writes", KEY_WRITES, KIND_ARRAY},
                                            {"line", KEY_LINE, KIND_INTEGER},
                                            {"overwrites", KEY_OVERWRITES, KIND_ARRAY},
                                            {"macs", KEY_MACS, KIND_INTEGER},
                                            {"pure", KEY_PURE, KIND_BOOL},
                                            {NULL, 0, 0}};
static const struct key storage_keys[] = {{"name", KEY_NAME, KIND_STRING},
                                          {"bytes", KEY_BYTES, KIND_INTEGER},
                                          {"live_in", KEY_LIVE_IN, KIND_BOOL},
                                          {"live_out", KEY_LIVE_OUT, KIND_BOOL},
                                          {NULL, 0, 0}};

/* ---- The reader ---- */

struct entry { /* an access as read */
  int64_t storage, from, to;
  unsigned flags;
  size_t end; /* the offset behind its storage's index, to say where it stands */
};
typedef PP_VECTOR(struct entry) entries;

struct unknown { /* an unknown key, one for each name and place */
  enum where where;
  char *name;
  size_t length, object; /* the last object that had it */
};

struct reader {
  const uint8_t *bytes;
  size_t size;
  yajl_handle yajl;
  bool completing;     /* yajl has all the bytes and reads the end */
  pp_program *program; /* NULL when only looking for an error */
  pp_notices *notices;
  pp_error *error;
  pp_status status;

  enum where where;
  size_t skip;           /* depth inside the value of an unknown key */
  const struct key *key; /* whose value comes next; NULL: unknown */
  unsigned root_seen, seen;
  size_t objects, object_end; /* a number for each object; the offset behind its brace */

  bool known;     /* all storages are */
  bool uncertain; /* something can only be checked once they are */
  int64_t total;  /* bytes of all storages */
  PP_VECTOR(int64_t) sizes;
  size_t statements;
  int64_t all_statements; /* their number once known, else INT32_MAX */

  PP_VECTOR(char) name; /* of the current statement or storage */
  PP_VECTOR(int64_t) requests;
  entries reads, writes, overwrites, sorted, *list;
  int64_t line, macs, size_of_storage, field[3];
  size_t fields, field_end, storage_size_end;
  bool pure;
  unsigned flags;

  PP_VECTOR(struct unknown) unknown;
  size_t *slot, slots; /* hash table over them; 0: free, else index + 1 */
};

/* ---- Positions and errors ---- */

static size_t here(const struct reader *r) {
  return r->completing ? r->size : yajl_get_bytes_consumed(r->yajl);
}

static bool is_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.' || c >= 0x80;
}

/* Where the token that ends before `end` begins. Inside a string a quote follows an odd number of
 * backslashes. */
static size_t token_begin(const uint8_t *bytes, size_t end) {
  if (!end)
    return 0;
  size_t i = end - 1;
  if (bytes[i] == '"') {
    while (i--) {
      size_t slashes = 0;
      while (slashes < i && bytes[i - 1 - slashes] == '\\')
        slashes++;
      if (bytes[i] == '"' && slashes % 2 == 0)
        return i;
      i -= slashes;
    }
    return 0;
  }
  if (is_word(bytes[i]))
    while (i && is_word(bytes[i - 1]))
      i--;
  return i;
}

static void locate(const uint8_t *bytes, size_t offset, pp_error *error) {
  if (!error)
    return;
  size_t begin = 0;
  error->line = 1;
  for (const uint8_t *newline; (newline = memchr(bytes + begin, '\n', offset - begin));
       error->line++)
    begin = (size_t)(newline - bytes) + 1;
  error->column = (int64_t)(offset - begin) + 1;
}

__attribute__((format(printf, 3, 4))) static int fail_at(struct reader *r, size_t offset,
                                                         const char *format, ...) {
  char message[sizeof r->error->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  r->status = pp_fail(r->error, PP_ERROR_INPUT, "%s", message);
  locate(r->bytes, offset, r->error);
  return 0;
}

#define FAIL(...) fail_at(r, token_begin(r->bytes, here(r)), __VA_ARGS__)

static int fail_memory(struct reader *r) {
  r->status = pp_fail_memory(r->error);
  return 0;
}

/* After a call into the core: its error gets the position of the current object. */
static int check(struct reader *r, pp_status status) {
  if (status) {
    r->status = status;
    if (status != PP_ERROR_MEMORY)
      locate(r->bytes, r->object_end - 1, r->error);
  }
  return !status;
}

/* ---- Strings ---- */

static unsigned hex4(const uint8_t *text) {
  unsigned value = 0;
  for (int i = 0; i < 4; i++)
    value = value * 16 + (text[i] <= '9' ? text[i] - '0' : (text[i] | 32) - 'a' + 10);
  return value;
}

/* yajl makes "?" of half a surrogate pair and a byte 0 of \u0000; neither may pass for a name. */
static bool check_escapes(const uint8_t *text, size_t size) {
  for (size_t i = 0; i + 1 < size; i++) {
    if (text[i] != '\\')
      continue;
    i++;
    if (text[i] != 'u')
      continue;
    unsigned code = hex4(text + i + 1);
    i += 4;
    if (code == 0 || (code >= 0xdc00 && code < 0xe000))
      return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (i + 6 >= size || text[i + 1] != '\\' || text[i + 2] != 'u' ||
          (hex4(text + i + 3) & 0xfc00) != 0xdc00)
        return false;
      i += 6;
    }
  }
  return true;
}

static int check_string(struct reader *r, const unsigned char *string) {
  if (string >= r->bytes && string < r->bytes + r->size)
    return 1; /* no escapes */
  size_t end = here(r), begin = token_begin(r->bytes, end);
  if (!check_escapes(r->bytes + begin, end - begin))
    return fail_at(r, begin, "a string escapes U+0000 or half a surrogate pair");
  return 1;
}

static int keep_name(struct reader *r, const unsigned char *string, size_t length) {
  if (!check_string(r, string))
    return 0;
  if (!pp_reserve((void **)&r->name.items, &r->name.capacity, length + 1, 1))
    return fail_memory(r);
  memcpy(r->name.items, string, length);
  r->name.items[length] = 0;
  r->name.count = length;
  return 1;
}

static const char *name_of(const struct reader *r) {
  return r->name.count ? r->name.items : NULL;
}

/* ---- Keys ---- */

static uint64_t hash(enum where where, const unsigned char *text, size_t length) {
  uint64_t value = 1469598103934665603u ^ (uint64_t)where; /* FNV-1a */
  for (size_t i = 0; i < length; i++)
    value = (value ^ text[i]) * 1099511628211u;
  return value ^ value >> 29;
}

static size_t find_unknown(const struct reader *r, enum where where, const unsigned char *name,
                           size_t length) {
  size_t i = hash(where, name, length) & (r->slots - 1);
  for (; r->slot[i]; i = (i + 1) & (r->slots - 1)) {
    const struct unknown *u = r->unknown.items + r->slot[i] - 1;
    if (u->where == where && u->length == length && !memcmp(u->name, name, length))
      break;
  }
  return i;
}

static bool grow_unknown(struct reader *r) {
  if (r->unknown.count * 2 < r->slots)
    return true;
  size_t slots = r->slots ? r->slots * 2 : 16;
  size_t *slot = pp_zalloc(slots, sizeof *slot);
  if (!slot)
    return false;
  free(r->slot);
  r->slot = slot;
  r->slots = slots;
  for (size_t i = 0; i < r->unknown.count; i++) {
    const struct unknown *u = r->unknown.items + i;
    slot[find_unknown(r, u->where, (const unsigned char *)u->name, u->length)] = i + 1;
  }
  return true;
}

/* A key's name for a message: short, printable. */
static const char *shown(char text[64], const unsigned char *name, size_t length) {
  size_t used = 0;
  for (size_t i = 0; i < length && used < 60; i++)
    text[used++] = name[i] < 0x20 || name[i] == 0x7f ? '?' : (char)name[i];
  while (used < length && used && ((unsigned char)text[used - 1] & 0xc0) == 0x80)
    used--; /* no half character */
  text[used] = 0;
  return text;
}

enum { KEYS_TOLD = 16 }; /* unknown keys with a notice of their own */

static int unknown_key(struct reader *r, const unsigned char *name, size_t length) {
  char text[64];
  if (!grow_unknown(r))
    return fail_memory(r);
  size_t i = find_unknown(r, r->where, name, length);
  size_t object = r->where == ROOT ? 0 : r->objects;
  if (r->slot[i]) {
    struct unknown *u = r->unknown.items + r->slot[i] - 1;
    if (u->object == object)
      return FAIL("the key \"%s\" is given twice", shown(text, name, length));
    u->object = object;
    return 1;
  }
  struct unknown u = {.where = r->where, .length = length, .object = object};
  u.name = pp_alloc(length, 1);
  if (!u.name || !PP_ROOM(&r->unknown)) {
    free(u.name);
    return fail_memory(r);
  }
  memcpy(u.name, name, length);
  r->unknown.items[r->unknown.count++] = u;
  r->slot[i] = r->unknown.count;
  if (r->notices && r->unknown.count <= KEYS_TOLD) {
    pp_error at;
    locate(r->bytes, token_begin(r->bytes, here(r)), &at);
    pp_notices_add(r->notices, "%" PRId64 ":%" PRId64 ": ignored the unknown key \"%s\" of %s",
                   at.line, at.column, shown(text, name, length), places[r->where].called);
  }
  return 1;
}

static int on_key(void *context, const unsigned char *name, size_t length) {
  struct reader *r = context;
  if (r->skip)
    return 1;
  if (!check_string(r, name))
    return 0;
  const struct key *key = r->where == ROOT        ? root_keys
                          : r->where == STATEMENT ? statement_keys
                                                  : storage_keys;
  while (key->name && (strlen(key->name) != length || memcmp(key->name, name, length)))
    key++;
  r->key = key->name ? key : NULL;
  if (!r->key)
    return unknown_key(r, name, length);
  unsigned *seen = r->where == ROOT ? &r->root_seen : &r->seen, bit = 1u << key->id;
  if (*seen & bit)
    return FAIL("the key \"%s\" is given twice", key->name);
  *seen |= bit;
  return 1;
}

/* ---- Statements ---- */

static int begin_object(struct reader *r, enum where where) {
  r->where = where;
  r->seen = 0;
  r->objects++;
  r->object_end = here(r);
  r->name.count = 0;
  r->requests.count = r->reads.count = r->writes.count = r->overwrites.count = 0;
  r->line = -1;
  r->macs = PP_MACS_UNKNOWN;
  r->pure = false;
  r->flags = 0;
  return 1;
}

static int add_entry(struct reader *r, int64_t storage, int64_t from, int64_t to, unsigned flags,
                     size_t end) {
  if (!PP_ROOM(r->list))
    return fail_memory(r);
  r->list->items[r->list->count++] =
      (struct entry){.storage = storage, .from = from, .to = to, .flags = flags, .end = end};
  return 1;
}

static int compare_entries(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  if (x->storage != y->storage)
    return x->storage < y->storage ? -1 : 1;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

/* Merges what a sorted list of accesses covers into disjoint intervals. A whole storage is
 * 0..INT64_MAX. */
static void merge(entries *list) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    struct entry e = list->items[i], *last = kept ? list->items + kept - 1 : NULL;
    if (e.from == PP_WHOLE) {
      e.from = 0;
      e.to = INT64_MAX;
    }
    if (!last || last->storage != e.storage || last->to < e.from)
      list->items[kept++] = e;
    else if (last->to < e.to)
      last->to = e.to;
  }
  list->count = kept;
}

/* Is e inside one of the merged intervals? */
static bool covered(struct reader *r, const struct entry *e) {
  size_t low = 0, high = r->sorted.count;
  int64_t from = e->from == PP_WHOLE ? 0 : e->from;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct entry *m = r->sorted.items + middle;
    if (m->storage < e->storage || (m->storage == e->storage && m->from <= from))
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || r->sorted.items[low - 1].storage != e->storage)
    return false;
  int64_t to = r->sorted.items[low - 1].to;
  if (e->from != PP_WHOLE || to == INT64_MAX)
    return to >= e->to;
  if (!r->known)
    r->uncertain = true;
  return !r->known || (e->storage < (int64_t)r->sizes.count && to >= r->sizes.items[e->storage]);
}

/* Marks the writes that are equal to e; false if there are none. `sorted` is not merged yet; its
 * `end` says where an entry stands in `writes`. */
static bool mark_equal(struct reader *r, const struct entry *e) {
  size_t low = 0, high = r->sorted.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare_entries(r->sorted.items + middle, e) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  size_t i = low;
  for (; i < r->sorted.count && !compare_entries(r->sorted.items + i, e); i++) {
    struct entry *equal = r->writes.items + r->sorted.items[i].end;
    if (equal->flags & PP_OVERWRITE)
      return true; /* then all of them are */
    equal->flags |= PP_OVERWRITE;
  }
  return i > low;
}

static bool sort_writes(struct reader *r) {
  size_t writes = r->writes.count;
  if (!pp_reserve((void **)&r->sorted.items, &r->sorted.capacity, writes, sizeof(struct entry)))
    return false;
  for (size_t i = 0; i < writes; i++) {
    r->sorted.items[i] = r->writes.items[i];
    r->sorted.items[i].end = i;
  }
  r->sorted.count = writes;
  if (writes)
    qsort(r->sorted.items, writes, sizeof(struct entry), compare_entries);
  return true;
}

/* An entry of "overwrites" marks the equal write, or becomes an access of its own inside the
 * statement's writes. */
static int join_overwrites(struct reader *r) {
  if (!r->overwrites.count)
    return 1;
  if (!sort_writes(r))
    return fail_memory(r);
  size_t apart = 0;
  for (size_t i = 0; i < r->overwrites.count; i++)
    if (!mark_equal(r, r->overwrites.items + i))
      r->overwrites.items[apart++] = r->overwrites.items[i];
  merge(&r->sorted);
  for (size_t i = 0; i < apart; i++) {
    struct entry e = r->overwrites.items[i];
    if (!covered(r, &e))
      return fail_at(r, token_begin(r->bytes, e.end),
                     "\"overwrites\" lists bytes of storage %" PRId64 " that \"writes\" does not",
                     e.storage);
    e.flags = PP_WRITE | PP_OVERWRITE;
    if (!PP_ROOM(&r->writes))
      return fail_memory(r);
    r->writes.items[r->writes.count++] = e;
  }
  return 1;
}

static int check_entry(struct reader *r, const struct entry *e) {
  size_t at = token_begin(r->bytes, e->end);
  int64_t count = (int64_t)r->sizes.count;
  if (e->storage >= count)
    return fail_at(r, at, "storage %" PRId64 " does not exist: there are %" PRId64, e->storage,
                   count);
  if (e->from != PP_WHOLE && e->to > r->sizes.items[e->storage])
    return fail_at(r, at,
                   "bytes %" PRId64 " to %" PRId64 " of storage %" PRId64 ", which has %" PRId64,
                   e->from, e->to, e->storage, r->sizes.items[e->storage]);
  return 1;
}

static int add_accesses(struct reader *r, const entries *list) {
  for (size_t i = 0; i < list->count; i++) {
    const struct entry *e = list->items + i;
    if (r->known && !check_entry(r, e))
      return 0;
    if (e->storage > INT32_MAX)
      return fail_at(r, token_begin(r->bytes, e->end), "storage %" PRId64 " does not exist",
                     e->storage);
    if (r->program && !check(r, pp_program_add_access(r->program, (pp_index)e->storage, e->from,
                                                      e->to, e->flags, r->error)))
      return 0;
  }
  return 1;
}

static int add_work(struct reader *r) {
  int64_t sum = 0;
  for (size_t i = 0; i < r->requests.count; i++) {
    int64_t bytes = r->requests.items[i];
    if (__builtin_add_overflow(sum, bytes, &sum))
      return fail_at(r, r->object_end - 1, "the statement's work exceeds 2^63-1 bytes");
    if (bytes && r->program && !check(r, pp_program_add_work(r->program, bytes, r->error)))
      return 0;
  }
  if (r->known && __builtin_add_overflow(sum, r->total, &sum))
    return fail_at(r, r->object_end - 1,
                   "the statement's work and all storages exceed 2^63-1 bytes");
  return 1;
}

static int end_statement(struct reader *r) {
  pp_program *program = r->program;
  r->statements++;
  if (program && !check(r, pp_program_add_statement(program, name_of(r), r->error)))
    return 0;
  if (!add_work(r) || !join_overwrites(r) || !add_accesses(r, &r->reads) ||
      !add_accesses(r, &r->writes))
    return 0;
  if (!program)
    return 1;
  if (r->macs >= 0 && !check(r, pp_program_set_macs(program, r->macs, r->error)))
    return 0;
  if (r->line >= 0 && !check(r, pp_program_set_line(program, r->line, r->error)))
    return 0;
  return check(r, pp_program_set_pure(program, r->pure, r->error));
}

/* ---- Storages, order, program ---- */

static int end_storage(struct reader *r) {
  if (!(r->seen & 1u << KEY_BYTES))
    return fail_at(r, r->object_end - 1, "the storage has no \"bytes\"");
  if (r->known) /* the second time */
    return 1;
  if (__builtin_add_overflow(r->total, r->size_of_storage, &r->total))
    return fail_at(r, token_begin(r->bytes, r->storage_size_end),
                   "the storages up to this one exceed 2^63-1 bytes");
  if (!PP_ROOM(&r->sizes))
    return fail_memory(r);
  r->sizes.items[r->sizes.count++] = r->size_of_storage;
  return check(r, pp_program_add_storage(r->program, name_of(r), r->size_of_storage, r->flags, NULL,
                                         r->error));
}

static int end_range(struct reader *r) {
  if (r->fields != 3)
    return FAIL("an access is [storage, from, to], not %zu integers", r->fields);
  if (r->field[1] >= r->field[2])
    return fail_at(r, token_begin(r->bytes, r->field_end),
                   "bytes %" PRId64 " to %" PRId64 " are no range: it is empty", r->field[1],
                   r->field[2]);
  unsigned flags = r->list == &r->reads ? PP_READ : PP_WRITE;
  return add_entry(r, r->field[0], r->field[1], r->field[2], flags, r->field_end);
}

static int end_pair(struct reader *r) {
  int64_t before = r->field[0], after = r->field[1];
  size_t at = token_begin(r->bytes, r->field_end);
  if (r->fields != 2)
    return FAIL("a pair of \"order\" is [before, after], not %zu integers", r->fields);
  if (before >= after)
    return fail_at(r, at, "order [%" PRId64 ", %" PRId64 "] does not go forward", before, after);
  if (after >= r->all_statements)
    return fail_at(r, at, "order [%" PRId64 ", %" PRId64 "] names a statement that does not exist",
                   before, after);
  if (!r->program)
    return 1;
  r->object_end = r->field_end;
  return check(r, pp_program_add_order(r->program, (pp_index)before, (pp_index)after, r->error));
}

static int end_root(struct reader *r) {
  for (const struct key *key = root_keys; key->name; key++)
    if (key->id != KEY_NAME && key->id != KEY_ORDER && !(r->root_seen & 1u << key->id))
      return FAIL("the program has no \"%s\"", key->name);
  return 1;
}

/* ---- Values ---- */

static int read_integer(struct reader *r, const char *text, size_t length, int64_t *value) {
  *value = 0;
  bool good = true;
  for (size_t i = 0; i < length && good; i++)
    good = text[i] >= '0' && text[i] <= '9' && !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, text[i] - '0', value);
  if (!good)
    return FAIL("%.*s is not an integer from 0 to 2^63-1, written with digits only",
                length < 40 ? (int)length : 40, text);
  return 1;
}

static int root_integer(struct reader *r, int64_t value) {
  return value == 1 ? 1 : FAIL("version %" PRId64 " of program JSON is not known, only 1", value);
}

static int keyed_integer(struct reader *r, int64_t value) {
  switch (r->key->id) {
  case KEY_VERSION:
    return root_integer(r, value);
  case KEY_LINE:
    r->line = value;
    return 1;
  case KEY_MACS:
    r->macs = value;
    return 1;
  case KEY_BYTES:
    r->size_of_storage = value;
    r->storage_size_end = here(r);
    return 1;
  default: /* KEY_WORK */
    if (!PP_ROOM(&r->requests))
      return fail_memory(r);
    r->requests.items[r->requests.count++] = value;
    return 1;
  }
}

static int keyed_array(struct reader *r) {
  switch (r->key->id) {
  case KEY_STATEMENTS:
    r->where = STATEMENTS;
    return 1;
  case KEY_STORAGES:
    r->where = STORAGES;
    return 1;
  case KEY_ORDER:
    r->where = ORDERS;
    return 1;
  case KEY_WORK:
    r->where = WORK;
    return 1;
  default:
    r->list = r->key->id == KEY_READS    ? &r->reads
              : r->key->id == KEY_WRITES ? &r->writes
                                         : &r->overwrites;
    r->where = ACCESSES;
    return 1;
  }
}

static bool is_keyed(enum where where) {
  return where == ROOT || where == STATEMENT || where == STORAGE;
}

/* The value of a key, or an element: has it the right type? */
static int check_kind(struct reader *r, enum kind kind) {
  if (is_keyed(r->where)) {
    bool list = r->key->id == KEY_WORK && kind == KIND_ARRAY;
    if (kind == r->key->kind || list)
      return 1;
    return FAIL("\"%s\" must be %s%s, not %s", r->key->name, kind_names[r->key->kind],
                r->key->id == KEY_WORK ? " or an array of integers" : "", kind_names[kind]);
  }
  bool good = false;
  switch (r->where) {
  case DOCUMENT:
  case STATEMENTS:
  case STORAGES:
    good = kind == KIND_OBJECT;
    break;
  case ORDERS:
    good = kind == KIND_ARRAY;
    break;
  case ACCESSES:
    good = kind == KIND_INTEGER || kind == KIND_ARRAY;
    break;
  default: /* WORK, RANGE, PAIR */
    good = kind == KIND_INTEGER;
  }
  return good ? 1
              : FAIL("%s holds %s, not %s", places[r->where].called, places[r->where].holds,
                     kind_names[kind]);
}

static bool skipping(const struct reader *r) {
  return r->skip || (is_keyed(r->where) && !r->key);
}

static int on_null(void *context) {
  struct reader *r = context;
  return skipping(r) ? 1 : check_kind(r, KIND_NULL);
}

static int on_boolean(void *context, int value) {
  struct reader *r = context;
  if (skipping(r))
    return 1;
  if (!check_kind(r, KIND_BOOL))
    return 0;
  if (r->key->id == KEY_PURE)
    r->pure = value;
  else if (value)
    r->flags |= r->key->id == KEY_LIVE_IN ? PP_LIVE_IN : PP_LIVE_OUT;
  return 1;
}

static int on_number(void *context, const char *text, size_t length) {
  struct reader *r = context;
  int64_t value;
  if (skipping(r))
    return 1;
  if (!check_kind(r, KIND_INTEGER) || !read_integer(r, text, length, &value))
    return 0;
  switch (r->where) {
  case ACCESSES:
    return add_entry(r, value, PP_WHOLE, PP_WHOLE, r->list == &r->reads ? PP_READ : PP_WRITE,
                     here(r));
  case WORK:
    if (!PP_ROOM(&r->requests))
      return fail_memory(r);
    r->requests.items[r->requests.count++] = value;
    return 1;
  case RANGE:
  case PAIR:
    if (r->fields < 3)
      r->field[r->fields] = value;
    if (!r->fields++)
      r->field_end = here(r);
    return 1;
  default:
    return keyed_integer(r, value);
  }
}

static int on_string(void *context, const unsigned char *string, size_t length) {
  struct reader *r = context;
  if (skipping(r))
    return 1;
  if (!check_kind(r, KIND_STRING) || !keep_name(r, string, length))
    return 0;
  if (r->where == ROOT && r->program)
    return check(r, pp_program_set_name(r->program, name_of(r), r->error));
  return 1;
}

static int on_open(struct reader *r, enum kind kind) {
  if (skipping(r)) {
    r->skip++;
    return 1;
  }
  if (!check_kind(r, kind))
    return 0;
  switch (r->where) {
  case DOCUMENT:
    r->where = ROOT;
    r->object_end = here(r);
    return 1;
  case STATEMENTS:
    return begin_object(r, STATEMENT);
  case STORAGES:
    return begin_object(r, STORAGE);
  case ACCESSES:
  case ORDERS:
    r->where = r->where == ORDERS ? PAIR : RANGE;
    r->fields = 0;
    r->field_end = here(r);
    return 1;
  default:
    return keyed_array(r);
  }
}

static int on_open_object(void *context) {
  return on_open(context, KIND_OBJECT);
}

static int on_open_array(void *context) {
  return on_open(context, KIND_ARRAY);
}

static int on_close(void *context) {
  struct reader *r = context;
  if (r->skip) {
    r->skip--;
    return 1;
  }
  enum where closed = r->where;
  r->where = places[closed].parent;
  switch (closed) {
  case ROOT:
    return end_root(r);
  case STATEMENT:
    return end_statement(r);
  case STORAGE:
    return end_storage(r);
  case STATEMENTS:
    r->all_statements = (int64_t)r->statements;
    return 1;
  case STORAGES:
    r->known = true;
    return 1;
  case RANGE:
    return end_range(r);
  case PAIR:
    return end_pair(r);
  default:
    return 1;
  }
}

/* ---- The whole ---- */

static int check_utf8(struct reader *r) {
  for (size_t i = 0; i < r->size;) {
    uint64_t word;
    if (i + sizeof word <= r->size) {
      memcpy(&word, r->bytes + i, sizeof word);
      if (!(word & 0x8080808080808080u)) {
        i += sizeof word;
        continue;
      }
    }
    size_t length = pp_utf8_length(r->bytes + i);
    if (!length)
      return fail_at(r, i, "byte 0x%02x is not UTF-8 here", r->bytes[i]);
    i += length;
  }
  return 1;
}

/* What yajl found wrong, on one line, without its own prefixes. */
static void fail_syntax(struct reader *r) {
  unsigned char *text = yajl_get_error(r->yajl, 0, r->bytes, r->size);
  const char *message = text ? (const char *)text : "not JSON";
  size_t end = here(r);
  bool lexical = !strncmp(message, "lexical error: ", 15);
  if (r->completing || end > r->size)
    end = r->size;
  size_t at = lexical || r->completing ? end : token_begin(r->bytes, end);
  if (lexical && !strncmp(message + 15, "invalid char in", 15))
    at--; /* here yajl stands behind what it did not like */
  message += lexical ? 15 : !strncmp(message, "parse error: ", 13) ? 13 : 0;
  if (r->completing)
    message = "the file ends in the middle";
  fail_at(r, at, "not JSON: %.*s", (int)strcspn(message, "\n"), message);
  if (text)
    yajl_free_error(r->yajl, text);
}

static pp_status read_once(struct reader *r) {
  static const yajl_callbacks callbacks = {on_null,   on_boolean,    NULL,           NULL,
                                           on_number, on_string,     on_open_object, on_key,
                                           on_close,  on_open_array, on_close};
  r->yajl = yajl_alloc(&callbacks, NULL, r);
  if (!r->yajl)
    return pp_fail_memory(r->error);
  yajl_config(r->yajl, yajl_dont_validate_strings, 1); /* check_utf8 did, and more strictly */
  yajl_status status = yajl_parse(r->yajl, r->bytes, r->size);
  if (status == yajl_status_ok) {
    r->completing = true;
    status = yajl_complete_parse(r->yajl);
  }
  if (status == yajl_status_error)
    fail_syntax(r);
  yajl_free(r->yajl);
  return r->status;
}

static void reader_free(struct reader *r) {
  for (size_t i = 0; i < r->unknown.count; i++)
    free(r->unknown.items[i].name);
  free(r->unknown.items);
  free(r->slot);
  free(r->sizes.items);
  free(r->name.items);
  free(r->requests.items);
  free(r->reads.items);
  free(r->writes.items);
  free(r->overwrites.items);
  free(r->sorted.items);
}

/* Reads again with the storages of the first reader known; what is wrong shows where it stands. */
static pp_status read_again(struct reader *first) {
  struct reader r = {.bytes = first->bytes,
                     .size = first->size,
                     .error = first->error,
                     .known = true,
                     .total = first->total,
                     .all_statements = first->all_statements};
  r.sizes.items = first->sizes.items;
  r.sizes.count = first->sizes.count;
  pp_status status = read_once(&r);
  r.sizes.items = NULL; /* the first reader's */
  reader_free(&r);
  return status;
}

static void report_unused(const pp_program *program, pp_notices *notices) {
  pp_index unused = 0, first = -1;
  for (pp_index s = 0; s < pp_program_storages(program); s++) {
    const pp_index *accessor;
    unsigned both = PP_LIVE_IN | PP_LIVE_OUT;
    if (pp_program_accessors(program, s, &accessor) ||
        (pp_program_storage(program, s).flags & both) == both)
      continue;
    first = unused++ ? first : s;
  }
  if (unused == 1)
    pp_notices_add(notices, "no statement accesses storage %d: not counted", first);
  else if (unused)
    pp_notices_add(notices,
                   "no statement accesses %d of the storages (%d is the first): not counted",
                   unused, first);
}

pp_status pp_program_parse(const uint8_t *bytes, size_t size, pp_notices *notices,
                           pp_program **program, pp_error *error) {
  struct reader r = {.bytes = bytes,
                     .size = size,
                     .notices = notices,
                     .error = error,
                     .all_statements = INT32_MAX};
  r.program = pp_program_new(error);
  if (!r.program)
    return PP_ERROR_MEMORY;
  pp_status status = check_utf8(&r) ? read_once(&r) : r.status;
  if (!status && r.uncertain)
    status = read_again(&r);
  if (!status && (status = pp_program_finish(r.program, error)) && status != PP_ERROR_MEMORY) {
    pp_status located = read_again(&r);
    status = located ? located : status;
  }
  if (!status && notices && r.unknown.count > KEYS_TOLD)
    pp_notices_add(notices, "ignored %zu more unknown keys", r.unknown.count - KEYS_TOLD);
  reader_free(&r);
  if (status) {
    pp_program_free(r.program);
    return status;
  }
  if (notices)
    report_unused(r.program, notices);
  *program = r.program;
  return PP_OK;
}
