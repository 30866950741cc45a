/* peakproof-check.c - verifies a certificate of peakproof. SPDX-License-Identifier: Apache-2.0
 *
 * It shares no code with the solver and knows none of its algorithms: it reads the program, derives
 * the dependences again, follows the links of the chains that the certificate lists, and adds
 * integers. The rules are those of doc/certificate.md; why they suffice is THEORY.md section 2.
 *
 * Both files are read as streams. Memory is linear in the program (times a logarithm for storages
 * that are accessed by ranges). Both may be hostile: every number is range-checked, no sum can
 * overflow, nothing is recursive. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char version[] = "peakproof-check 0.1.0, certificates version 1\n";

static const char usage[] =
    "usage: peakproof-check [--help | --version] PROGRAM.json PROOF.cert\n\n"
    "Verifies that the order in PROOF.cert is a legal order of the program, that its peak\n"
    "memory is P bytes, and that no legal order has a peak below L bytes.\n\n"
    "  s VERIFIED peak P bound L [optimal]   exit 0; optimal: P = L\n"
    "  s REFUTED line N: reason              exit 1; well formed, but it lies\n"
    "  s MALFORMED line N: reason            exit 65; program or certificate cannot be read\n\n"
    "Other exits: 64 wrong usage, 66 cannot open, 71 out of memory, 74 cannot read or write.\n\n"
    "A certificate is text, one fact a line, its parts separated by single spaces:\n\n"
    "  p peakproof 1           format and version\n"
    "  h HEX                   SHA-256 of the program file\n"
    "  n STATEMENTS STORAGES   sizes of the program\n"
    "  o ID ...                the order\n"
    "  u PEAK                  its peak\n"
    "  l BOUND                 the bound, proved by nothing (if it is 0) or one of:\n"
    "  f [ID]                  floor: statement ID needs that much, or the start does\n"
    "  t f|r COUNT ID ...      trap: the first (f) or last (r) COUNT of the order, and these;\n"
    "                          then for each of its exits\n"
    "  b ID ...                anchors of a base, whose chains serve all exits below\n"
    "  c WEIGHT S U,..,U S ..  a chain: storages joined by runs of statements\n"
    "  e ID                    an exit; its own chains follow\n"
    "  q                       the end\n\n"
    "doc/certificate.md gives the rules and says why they prove the bound.\n";

enum {
  VERIFIED = 0,
  REFUTED = 1,
  USAGE = 64,
  MALFORMED = 65,
  NO_INPUT = 66,
  NO_MEMORY = 71,
  IO = 74
};

typedef int32_t id; /* of a statement, a storage or a node of the dependence graph */
enum { NONE = -1, END = -1, ID_MAX = INT32_MAX - 2 };

/* ---- Ending early, and memory ------------------------------------------------------------------
 */

/* What one check owns. Whatever ends it jumps to `end`. */
struct context {
  jmp_buf end;
  int status;
  char verdict[256];
  struct block *blocks;
  int64_t lie_line; /* of the first lie of the certificate; 0: none so far */
  char lie[128];
};

struct block {
  struct block *next;
  max_align_t memory[];
};

static void finish(struct context *x, int status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(x->verdict, sizeof x->verdict, format, arguments);
  va_end(arguments);
  x->status = status;
  longjmp(x->end, 1);
}

/* Zeroed memory, which lives as long as the context. */
static void *take(struct context *x, size_t count, size_t size) {
  struct block *block =
      count < SIZE_MAX / 2 / size ? calloc(1, sizeof *block + count * size) : NULL;
  if (!block)
    finish(x, NO_MEMORY, "out of memory");
  block->next = x->blocks;
  x->blocks = block;
  return block->memory;
}

static void *grow(struct context *x, void *old, size_t *room, size_t size) {
  size_t count = *room;
  *room = count ? 2 * count : 64;
  void *grown = take(x, *room, size);
  return count ? memcpy(grown, old, count * size) : grown;
}

/* An array that grows. PUSH gives the new, zeroed item. */
#define LIST(type)                                                                                 \
  struct {                                                                                         \
    type *at;                                                                                      \
    size_t count, room;                                                                            \
  }
#define PUSH(x, list)                                                                              \
  (((list)->count < (list)->room                                                                   \
        ? (void)0                                                                                  \
        : (void)((list)->at = grow(x, (list)->at, &(list)->room, sizeof *(list)->at))),            \
   &(list)->at[(list)->count++])

static void free_blocks(struct context *x) {
  for (struct block *block; (block = x->blocks);) {
    x->blocks = block->next;
    free(block);
  }
}

/* ---- SHA-256 (FIPS 180-4) ----------------------------------------------------------------------
 */

static const uint32_t sha256_start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint32_t sha256_round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int by) {
  return value >> by | value << (32 - by);
}

static void sha256_block(uint32_t state[8], const unsigned char *b) {
  uint32_t w[64], s[8];
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    if (i < 16)
      w[i] = (uint32_t)b[4 * i] << 24 | (uint32_t)b[4 * i + 1] << 16 | (uint32_t)b[4 * i + 2] << 8 |
             b[4 * i + 3];
    else
      w[i] = w[i - 16] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
             w[i - 7] + (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    uint32_t t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                  ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha256_round[i] + w[i];
    uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                  ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    state[i] += s[i];
}

/* The end of a file of `length` bytes: those behind its last whole block, of 64. */
static void sha256_end(uint32_t state[8], const unsigned char *rest, uint64_t length,
                       char hex[65]) {
  unsigned char tail[128] = {0};
  size_t count = length % 64, size = count < 56 ? 64 : 128;
  memcpy(tail, rest, count);
  tail[count] = 0x80;
  for (size_t i = 0; i < 8; i++)
    tail[size - 1 - i] = (unsigned char)(length * 8 >> 8 * i);
  for (size_t i = 0; i < size; i += 64)
    sha256_block(state, tail + i);
  for (int i = 0; i < 8; i++)
    snprintf(hex + 8 * i, 9, "%08" PRIx32, state[i]);
}

/* ---- Input -------------------------------------------------------------------------------------
 */

enum { BUFFER = 1 << 14 }; /* whole blocks of SHA-256 */

struct input {
  struct context *x;
  const char *what; /* how messages call it */
  FILE *file;
  unsigned char buffer[BUFFER], *next, *end;
  int64_t before; /* bytes of the file before the buffer */
  int64_t line, line_start;
  uint32_t sha256[8];
  char hash[65]; /* once the end was read */
};

static struct input *open_input(struct context *x, const char *what, FILE *file) {
  struct input *in = take(x, 1, sizeof *in);
  in->x = x;
  in->what = what;
  in->file = file;
  in->line = 1;
  in->next = in->end = in->buffer;
  memcpy(in->sha256, sha256_start, sizeof sha256_start);
  return in;
}

static bool refill(struct input *in) {
  if (*in->hash)
    return false;
  in->before += in->end - in->buffer;
  size_t got = fread(in->buffer, 1, BUFFER, in->file), done = 0;
  if (ferror(in->file))
    finish(in->x, IO, "read error");
  in->next = in->buffer;
  in->end = in->buffer + got;
  for (; got - done >= 64; done += 64)
    sha256_block(in->sha256, in->buffer + done);
  if (got < BUFFER)
    sha256_end(in->sha256, in->buffer + done, (uint64_t)in->before + got, in->hash);
  return got > 0;
}

static inline int peek(struct input *in) {
  return in->next < in->end || refill(in) ? *in->next : END;
}

static inline int get(struct input *in) {
  return in->next < in->end || refill(in) ? *in->next++ : END;
}

static void malformed(struct input *in, const char *reason) {
  int64_t column = in->before + (in->next - in->buffer) - in->line_start + 1;
  finish(in->x, MALFORMED, "s MALFORMED line %" PRId64 ": %s, column %" PRId64 ": %s", in->line,
         in->what, column, reason);
}

static void end_of_line(struct input *in) { /* has just been read */
  if (++in->line > ID_MAX)
    malformed(in, "too many lines");
  in->line_start = in->before + (in->next - in->buffer);
}

/* A number of up to 2^63-1, without sign or leading zeros, as both files have them. */
static int64_t number(struct input *in) {
  int64_t value = 0;
  int c = peek(in), digits = 0;
  for (; c >= '0' && c <= '9'; digits++, c = peek(in)) {
    if (digits > 0 && value == 0)
      malformed(in, "leading zero");
    if (value > (INT64_MAX - (c - '0')) / 10)
      malformed(in, "the number exceeds 2^63-1");
    value = value * 10 + (c - '0');
    in->next++;
  }
  if (digits == 0)
    malformed(in, "a number expected");
  return value;
}

static id below(struct input *in, int64_t limit) {
  int64_t value = number(in);
  if (value >= limit)
    malformed(in, "the number is out of range");
  return (id)value;
}

static void text(struct input *in, const char *expected) {
  for (; *expected; expected++)
    if (get(in) != (unsigned char)*expected)
      malformed(in, "unexpected text");
}

struct program;

/* ---- Program JSON (doc/program-json.md) --------------------------------------------------------
 */

/* The next character that is not white space; it is not consumed. */
static int token(struct input *in) {
  for (int c;; in->next++) {
    c = peek(in);
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
      return c;
    if (c == '\n')
      end_of_line(in);
  }
}

static void expect(struct input *in, int c) {
  if (token(in) != c)
    malformed(in, "unexpected character");
  in->next++;
}

/* Reads `before`, unless it is 0, and an integer without fraction or exponent. */
static int64_t json_number(struct input *in, int before, int64_t limit) {
  if (before)
    expect(in, before);
  token(in);
  int64_t value = number(in);
  if (value > limit)
    malformed(in, "the number is too large");
  if (peek(in) == '.' || peek(in) == 'e' || peek(in) == 'E')
    malformed(in, "an integer expected");
  return value;
}

static bool json_bool(struct input *in) {
  bool value = token(in) == 't';
  text(in, value ? "true" : "false");
  return value;
}

/* Reads a string and stores its first bytes. One with escapes is stored as "\": no key has any. */
static void json_string(struct input *in, char *out, size_t size) {
  size_t used = 0;
  bool escaped = false;
  expect(in, '"');
  for (int c; (c = get(in)) != '"';) {
    if (c < ' ')
      malformed(in, "a control character, or the end, inside a string");
    if (used + 1 < size)
      out[used++] = (char)c;
    if (c != '\\')
      continue;
    escaped = true;
    if (get(in) < ' ')
      malformed(in, "a control character, or the end, inside a string");
  }
  out[escaped ? 1 : used] = 0;
  if (escaped)
    *out = '\\';
}

/* Opens an array or object: for (bool first = json_open(in, '['); json_more(in, &first, ']');) */
static bool json_open(struct input *in, int open) {
  expect(in, open);
  return true;
}

/* Whether another item follows; reads its ',' or the end. */
static bool json_more(struct input *in, bool *first, int close) {
  bool was_first = *first, more = token(in) != close;
  *first = false;
  if (!more || !was_first)
    expect(in, more ? ',' : close);
  return more;
}

/* Values that say nothing here need not be good JSON, as long as it is clear where they end. */
static bool is_word(int c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c > 0 && strchr("E+-.", c));
}

static void json_scalar(struct input *in) {
  char ignored[2];
  if (token(in) == '"') {
    json_string(in, ignored, sizeof ignored);
    return;
  }
  if (!is_word(peek(in)))
    malformed(in, "a value expected");
  while (is_word(peek(in)))
    in->next++;
}

/* Skips a value that says nothing here. */
static void json_skip(struct input *in) {
  char close[64], ignored[2]; /* what ends the lists around */
  int depth = 0;
  bool first = false, value = true;
  do {
    if (value && (token(in) == '[' || token(in) == '{')) {
      if (depth == (int)sizeof close)
        malformed(in, "nested too deeply");
      close[depth++] = get(in) == '[' ? ']' : '}';
      first = true;
    } else if (value) {
      json_scalar(in);
    }
    if (depth == 0)
      return;
    value = json_more(in, &first, close[depth - 1]);
    if (value && close[depth - 1] == '}') {
      json_string(in, ignored, sizeof ignored);
      expect(in, ':');
    }
    depth -= !value;
  } while (depth > 0);
}

/* Reads an object: for each key of `keys` (NULL ends them) calls `value` with its index; skips all
 * other keys. The first `required` ones must be there. */
static void json_object(struct input *in, struct program *p, const char *const *keys, int required,
                        void (*value)(struct input *, struct program *, int)) {
  char key[16];
  unsigned seen = 0, all = (1u << required) - 1;
  for (bool first = json_open(in, '{'); json_more(in, &first, '}');) {
    int i = 0;
    json_string(in, key, sizeof key);
    expect(in, ':');
    while (keys[i] && strcmp(keys[i], key))
      i++;
    if (*key == '\\' || (keys[i] && seen & 1u << i))
      malformed(in, "a key stands twice, or has an escape");
    seen |= 1u << i;
    if (keys[i])
      value(in, p, i);
    else
      json_skip(in);
  }
  if ((seen & all) != all)
    malformed(in, "a key is missing");
}

struct range {
  int64_t from, to;
};

struct statement {
  int64_t work, line;
  size_t access; /* its accesses: program.access from here to that of the next statement */
  size_t use;    /* the storages that it accesses, each once, ascending: likewise */
};

enum { LIVE_IN = 1, LIVE_OUT = 2, ACCESSED = 4 };

struct storage {
  int64_t size;
  unsigned flags;
  id access; /* its accesses: program.entry from here to that of the next storage */
};

/* An access. A pair of `order` is a storage of its own, numbered from m, that both write. */
struct entry {
  id statement, storage;
  uint32_t how;     /* 2 * range + 1 if it writes; range 0: the whole storage */
  id before, after; /* the nearest accesses to the storage that write, or NONE */
};

struct program {
  id n, m;                           /* statements, storages */
  LIST(struct statement) statements; /* and one behind the last */
  LIST(struct storage) storages;     /* and the pairs, and one behind */
  LIST(struct range) range;
  LIST(struct entry) raw, pair; /* as read */
  struct entry *entry;          /* by storage, then statement */
  id *access;                   /* by statement, then storage: index of an entry */
  id *use;
};

static void json_access(struct input *in, struct program *p, bool write) {
  struct entry access = {.statement = (id)p->statements.count - 1, .how = write};
  if (token(in) != '[') {
    access.storage = (id)json_number(in, 0, ID_MAX);
  } else {
    struct range r;
    access.storage = (id)json_number(in, '[', ID_MAX);
    r.from = json_number(in, ',', INT64_MAX);
    r.to = json_number(in, ',', INT64_MAX);
    expect(in, ']');
    if (r.from >= r.to)
      malformed(in, "the range is empty");
    access.how |= (uint32_t)p->range.count << 1;
    *PUSH(in->x, &p->range) = r;
  }
  *PUSH(in->x, &p->raw) = access;
}

static void json_statement(struct input *in, struct program *p, int k) {
  struct statement *v = &p->statements.at[p->statements.count - 1];
  if (k < 3)
    for (bool first = json_open(in, '['); json_more(in, &first, ']');)
      json_access(in, p, k > 0);
  else if (token(in) != '[')
    v->work = json_number(in, 0, INT64_MAX);
  else
    for (bool first = json_open(in, '['); json_more(in, &first, ']');)
      v->work += json_number(in, 0, INT64_MAX - v->work);
}

static void json_storage(struct input *in, struct program *p, int k) {
  struct storage *s = &p->storages.at[p->storages.count - 1];
  if (k == 0)
    s->size = json_number(in, 0, INT64_MAX);
  else if (json_bool(in))
    s->flags |= k == 1 ? LIVE_IN : LIVE_OUT;
}

static void json_part(struct input *in, struct program *p, int k) {
  static const char *const statement[] = {"reads", "writes", "overwrites", "work", NULL};
  static const char *const storage[] = {"bytes", "live_in", "live_out", NULL};
  if (k == 0 && json_number(in, 0, INT64_MAX) != 1)
    malformed(in, "not version 1");
  for (bool first = k > 0 && json_open(in, '['); k > 0 && json_more(in, &first, ']');) {
    if (k == 1) {
      token(in);
      *PUSH(in->x, &p->statements) = (struct statement){.line = in->line};
      json_object(in, p, statement, 0, json_statement);
    } else if (k == 2) {
      *PUSH(in->x, &p->storages) = (struct storage){0};
      json_object(in, p, storage, 1, json_storage);
    } else {
      int64_t before = json_number(in, '[', ID_MAX), after = json_number(in, ',', ID_MAX);
      expect(in, ']');
      if (before >= after)
        malformed(in, "the order does not go forward");
      *PUSH(in->x, &p->pair) = (struct entry){.statement = (id)before, .how = 1};
      *PUSH(in->x, &p->pair) = (struct entry){.statement = (id)after, .how = 1};
    }
    if (p->statements.count + p->storages.count + p->pair.count + p->raw.count > ID_MAX)
      malformed(in, "the program is too large");
  }
}

/* Judges what only the whole file shows. */
static void check_program(struct input *in, struct program *p) {
  int64_t sum = 0;
  for (id s = 0; s < p->m; s++) {
    if (p->storages.at[s].size > INT64_MAX - sum)
      malformed(in, "the storages together exceed 2^63-1 bytes");
    sum += p->storages.at[s].size;
  }
  for (size_t i = 0; i < p->pair.count; i++) {
    struct entry *e = PUSH(in->x, &p->raw);
    *e = p->pair.at[i];
    e->storage = p->m + (id)i / 2;
    if (e->statement >= p->n)
      malformed(in, "the order names a statement that does not exist");
  }
  for (id v = 0; v < p->n; v++) {
    in->line = p->statements.at[v].line; /* for messages */
    if (p->statements.at[v].work > INT64_MAX - sum)
      malformed(in, "storages and work together exceed 2^63-1 bytes");
  }
  for (size_t i = 0; i < p->raw.count; i++) {
    struct entry *e = p->raw.at + i;
    in->line = p->statements.at[e->statement].line;
    if (i < p->raw.count - p->pair.count &&
        (e->storage >= p->m || p->range.at[e->how >> 1].to > p->storages.at[e->storage].size))
      malformed(in, "the statement accesses a storage, or bytes, that do not exist");
  }
}

/* Sorts the accesses, by counting: for each storage, then for each statement. */
static void sort_accesses(struct context *x, struct program *p) {
  struct statement *v = p->statements.at;
  struct storage *s = p->storages.at;
  size_t count = p->raw.count, uses = 0;
  id all = p->m + (id)p->pair.count / 2;
  p->entry = take(x, count, sizeof *p->entry);
  p->access = take(x, count, sizeof *p->access);
  p->use = take(x, count, sizeof *p->use);
  for (size_t i = 0; i < count; i++) {
    s[p->raw.at[i].storage].access++;
    v[p->raw.at[i].statement].access++;
  }
  for (id i = 1; i <= all; i++) /* the ends, for now */
    s[i].access += s[i - 1].access;
  for (id i = 1; i <= p->n; i++)
    v[i].access += v[i - 1].access;
  for (size_t i = count; i-- > 0;)
    p->entry[--s[p->raw.at[i].storage].access] = p->raw.at[i];
  for (size_t i = count; i-- > 0;)
    p->access[--v[p->entry[i].statement].access] = (id)i;
  for (id i = 0; i < all; i++) {
    for (id e = s[i].access, write = NONE; e < s[i + 1].access; e++) {
      p->entry[e].before = write;
      write = p->entry[e].how & 1 ? e : write;
    }
    for (id e = s[i + 1].access - 1, write = NONE; e >= s[i].access; e--) {
      p->entry[e].after = write;
      write = p->entry[e].how & 1 ? e : write;
    }
    s[i].flags |= s[i].access < s[i + 1].access ? ACCESSED : 0;
  }
  for (id i = 0; i <= p->n; i++) {
    v[i].use = uses;
    for (size_t k = v[i].access; i < p->n && k < v[i + 1].access; k++) {
      id used = p->entry[p->access[k]].storage;
      if (used < p->m && (uses == v[i].use || p->use[uses - 1] != used))
        p->use[uses++] = used;
    }
  }
}

static void read_program(struct input *in, struct program *p) {
  static const char *const keys[] = {"peakproof", "statements", "storages", "order", NULL};
  *p = (struct program){0};
  *PUSH(in->x, &p->range) = (struct range){0, 0};
  json_object(in, p, keys, 3, json_part);
  if (token(in) != END)
    malformed(in, "something behind the program");
  p->n = (id)p->statements.count;
  p->m = (id)p->storages.count;
  *PUSH(in->x, &p->statements) = (struct statement){0};
  for (size_t i = 0; i <= p->pair.count / 2; i++)
    *PUSH(in->x, &p->storages) = (struct storage){0};
  check_program(in, p);
  sort_accesses(in->x, p);
}

/* ---- Dependences (THEORY.md section 1) ---------------------------------------------------------
 */

static bool overlap(const struct program *p, uint32_t a, uint32_t b) {
  const struct range *r = p->range.at + (a >> 1), *s = p->range.at + (b >> 1);
  return a <= 1 || b <= 1 || (r->from < s->to && s->from < r->to);
}

static bool covers(const struct program *p, uint32_t a, uint32_t b) {
  const struct range *r = p->range.at + (a >> 1), *s = p->range.at + (b >> 1);
  return a <= 1 || (b > 1 && r->from <= s->from && s->to <= r->to);
}

/* The first access of v to storage s or a later one. */
static size_t find_access(const struct program *p, id v, id s) {
  size_t from = p->statements.at[v].access, to = p->statements.at[v + 1].access;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (p->entry[p->access[middle]].storage < s)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

static bool accesses(const struct program *p, id v, id s) {
  size_t i = find_access(p, v, s);
  return i < p->statements.at[v + 1].access && p->entry[p->access[i]].storage == s;
}

/* Whether u is a direct predecessor of v, by the definition. */
static bool directly_before(const struct program *p, id u, id v) {
  const struct statement *at = p->statements.at;
  bool swap = at[u + 1].access - at[u].access > at[v + 1].access - at[v].access;
  id few = swap ? v : u, many = swap ? u : v;
  for (size_t i = at[few].access; u < v && i < at[few + 1].access; i++) {
    const struct entry *a = p->entry + p->access[i], *b;
    for (size_t j = find_access(p, many, a->storage); j < at[many + 1].access; j++) {
      b = p->entry + p->access[j];
      if (b->storage != a->storage)
        break;
      if (((a->how | b->how) & 1) && overlap(p, a->how, b->how))
        return true;
    }
  }
  return false;
}

/* Goes through direct predecessors of v (successors, if `reverse`), through enough of them that all
 * ancestors are reached over them: it looks no further than a write that covers the access. */
struct near {
  const struct program *p;
  bool reverse;
  size_t access, end; /* of v */
  id at;              /* the entry where the search has come to; NONE: before the first */
};

static struct near near(const struct program *p, bool reverse, id v) {
  return (struct near){p, reverse, p->statements.at[v].access, p->statements.at[v + 1].access,
                       NONE};
}

/* The next access to the storage that may matter to access `own`, behind `at`. */
static id step(const struct near *w, id own, id at) {
  const struct entry *e = w->p->entry;
  if (!(e[own].how & 1)) /* only those that write */
    return w->reverse ? e[at].after : e[at].before;
  const struct storage *s = w->p->storages.at + e[own].storage;
  if (w->reverse)
    return at + 1 < s[1].access ? at + 1 : NONE;
  return at > s->access ? at - 1 : NONE;
}

static id next(struct near *w) {
  const struct entry *e = w->p->entry;
  while (w->access < w->end) {
    id own = w->p->access[w->access], at = step(w, own, w->at == NONE ? own : w->at);
    w->at = at;
    if (at == NONE || ((e[at].how & 1) && covers(w->p, e[at].how, e[own].how))) {
      w->access++;
      w->at = NONE;
    }
    if (at != NONE && e[at].statement != e[own].statement && overlap(w->p, e[at].how, e[own].how))
      return e[at].statement;
  }
  return NONE;
}

/* ---- Certificate: form -------------------------------------------------------------------------
 */

/* All that is known while a certificate is read. Form is judged by itself: after the first lie the
 * rest is still read, so that "refuted" means well formed, but what it says is not looked at: where
 * it would be, `lied` is asked. */
struct proof {
  struct context *x;
  struct input *in;
  const struct program *p;
  int64_t n, m; /* as line n says: the program's, or a lie */
  id *order;    /* p->n statements */
  int64_t peak, bound;
  id bound_line;
};

static bool lied(const struct proof *c) {
  return c->x->lie_line > 0;
}

static void lie(struct proof *c, int64_t line, const char *format, ...) {
  va_list arguments;
  if (lied(c))
    return;
  va_start(arguments, format);
  vsnprintf(c->x->lie, sizeof c->x->lie, format, arguments);
  va_end(arguments);
  c->x->lie_line = line;
}

/* The letter of the next line. */
static int letter(struct input *in) {
  int c = get(in);
  if (c <= 0 || !strchr("phnoulftbceq", c))
    malformed(in, c == END ? "the end is missing" : "unknown kind of line");
  return c;
}

/* Whether the line has another argument; reads its space, or the end of the line. */
static bool more(struct input *in) {
  int c = get(in);
  if (c != ' ' && c != '\n')
    malformed(in, "a space or the end of the line expected");
  if (c == '\n')
    end_of_line(in);
  return c == ' ';
}

static void argument(struct input *in) {
  if (!more(in))
    malformed(in, "an argument is missing");
}

static void no_more(struct input *in) {
  if (more(in))
    malformed(in, "the end of the line expected");
}

static void begin_line(struct input *in, int expected) {
  if (letter(in) != expected)
    malformed(in, "another kind of line expected");
  if (expected != 'o')
    argument(in);
}

/* ---- Certificate: order and peak ---------------------------------------------------------------
 */

static void check_legal(struct proof *c, const id *position, id line) {
  for (id v = 0, u; v < c->p->n && !lied(c); v++)
    for (struct near w = near(c->p, false, v); (u = next(&w)) != NONE;)
      if (position[u] > position[v])
        lie(c, line, "statement %" PRId32 " runs before %" PRId32 ", on which it depends", v, u);
}

static void read_order(struct proof *c) {
  id line = (id)c->in->line, count = 0;
  id *position = take(c->x, (size_t)c->p->n, sizeof *position);
  c->order = take(c->x, (size_t)c->p->n, sizeof *c->order);
  memset(position, 0xff, (size_t)c->p->n * sizeof *position); /* NONE */
  while (more(c->in)) {
    id v = below(c->in, c->n);
    if (!lied(c) && position[v] != NONE)
      lie(c, line, "statement %" PRId32 " stands twice in the order", v);
    if (lied(c))
      continue;
    position[v] = count;
    c->order[count++] = v;
  }
  if (count < c->p->n)
    lie(c, line, "statements are missing from the order");
  check_legal(c, position, line);
}

static int64_t live_at_start(const struct program *p) {
  int64_t live = 0;
  for (const struct storage *s = p->storages.at; s < p->storages.at + p->m; s++)
    if ((s->flags & LIVE_IN) && (s->flags & (ACCESSED | LIVE_OUT)))
      live += s->size;
  return live;
}

/* THEORY.md section 1. No sum overflows: check_program. */
static int64_t simulate(struct context *x, const struct program *p, const id *order) {
  const struct statement *at = p->statements.at;
  int64_t live = live_at_start(p), peak = live;
  bool *begun = take(x, (size_t)p->m, sizeof *begun);
  id *last = take(x, (size_t)p->m, sizeof *last);
  for (id k = 0; k < p->n; k++)
    for (size_t i = at[order[k]].use; i < at[order[k] + 1].use; i++)
      last[p->use[i]] = k;
  for (id k = 0; k < p->n; k++) {
    const struct statement *v = at + order[k];
    for (size_t i = v->use; i < v[1].use; i++) {
      const struct storage *s = p->storages.at + p->use[i];
      if (!begun[p->use[i]] && !(s->flags & LIVE_IN))
        live += s->size;
      begun[p->use[i]] = true;
    }
    if (live + v->work > peak)
      peak = live + v->work;
    for (size_t i = v->use; i < v[1].use; i++)
      if (last[p->use[i]] == k && !(p->storages.at[p->use[i]].flags & LIVE_OUT))
        live -= p->storages.at[p->use[i]].size;
  }
  return peak;
}

static void read_head(struct proof *c, const char *program_hash) {
  struct input *in = c->in;
  char hash[65] = "";
  text(in, "p peakproof 1");
  no_more(in);
  begin_line(in, 'h');
  for (int i = 0, digit; i < 64; i++) {
    digit = get(in);
    if (digit <= 0 || !strchr("0123456789abcdef", digit))
      malformed(in, "64 lower-case hexadecimal digits expected");
    hash[i] = (char)digit;
  }
  if (strcmp(hash, program_hash))
    lie(c, in->line, "the SHA-256 of the program file is another, %.16s...", program_hash);
  no_more(in);
  begin_line(in, 'n');
  c->n = below(in, ID_MAX);
  argument(in);
  c->m = below(in, ID_MAX);
  if (c->n != c->p->n || c->m != c->p->m)
    lie(c, in->line, "the program has %" PRId32 " statements, %" PRId32 " storages", c->p->n,
        c->p->m);
  no_more(in);
  begin_line(in, 'o');
  read_order(c);
  begin_line(in, 'u');
  c->peak = number(in);
  int64_t peak = lied(c) ? 0 : simulate(c->x, c->p, c->order);
  if (peak != c->peak)
    lie(c, in->line, "the peak of the order is %" PRId64, peak);
  no_more(in);
  begin_line(in, 'l');
  c->bound = number(in);
  c->bound_line = (id)in->line;
  if (c->bound > c->peak)
    lie(c, in->line, "the bound is above the peak of a legal order");
  no_more(in);
}

/* ---- Proofs ------------------------------------------------------------------------------------
 */

/* A proof function reads the lines of a proof whose first letter has been read, and returns the
 * letter behind it. A new kind of proof is one more of them, listed in `proofs`. */

/* The work of v and the storages that it accesses. */
static int64_t own_bytes(const struct program *p, id v) {
  int64_t sum = p->statements.at[v].work;
  for (size_t i = p->statements.at[v].use; i < p->statements.at[v + 1].use; i++)
    sum += p->storages.at[p->use[i]].size;
  return sum;
}

static int proof_floor(struct proof *c) {
  const struct program *p = c->p;
  id line = (id)c->in->line;
  int64_t sum = live_at_start(p);
  if (more(c->in)) {
    id v = below(c->in, c->n);
    no_more(c->in);
    sum = lied(c) ? 0 : own_bytes(p, v);
    for (id s = 0; s < p->m && !lied(c); s++)
      if (!(~p->storages.at[s].flags & (LIVE_IN | LIVE_OUT)) && !accesses(p, v, s))
        sum += p->storages.at[s].size;
  }
  if (sum < c->bound)
    lie(c, line, "only %" PRId64 " bytes are needed there", sum);
  return letter(c->in);
}

/* What a trap knows of a statement and of a storage. Marks are numbers of lines, of a base or an
 * exit that put them there; so nothing needs to be cleared. */
struct trap_statement {
  bool in; /* T */
  enum { NO_EXIT, EXIT, LISTED } exit;
  id anchor, base; /* the base of which it is an anchor; whose A it is in */
  id seen;         /* the exit of which it is an ancestor */
};

struct trap_storage {
  bool lasts;                /* it cannot have ended (rule 3) */
  id base_begun, exit_begun; /* accessed in A; by an ancestor of the exit outside A */
  id own;                    /* accessed by the exit */
  id base, chain;            /* of the base: which chain goes through it */
  id last_chain;             /* the last chain (line) that went through it */
  id loaded;                 /* the exit for which `load` holds: the weights of its own chains */
  int64_t load;
};

struct base_chain {
  int64_t weight; /* 0: counts for no exit */
  id not_for;     /* the last exit for which it does not count */
};

/* A reverse trap is a forward trap of the reversed program, and is treated as one. */
struct trap {
  bool reverse;
  struct trap_statement *v;
  struct trap_storage *s;
  id *stack;         /* room for all statements */
  id exits;          /* that are not listed yet */
  unsigned begins;   /* the flag of storages that exist at the start */
  int64_t constants; /* storages that exist at the start and cannot have ended */
  id base, anchors;  /* the line of the base, and how many anchors it has */
  LIST(struct base_chain) chain;
  id exit, line; /* statement and line; NONE while the base is read */
  int64_t sum;   /* constants and weights of chains; for an exit, all that it is shown to cost */
  int64_t base_sum;
};

/* Checks that T is closed and not everything; finds its exits and what cannot have ended. */
static void open_trap(struct proof *c, struct trap *t, id line) {
  const struct program *p = c->p;
  id outside = 0;
  t->begins = t->reverse ? LIVE_OUT : LIVE_IN;
  for (id s = 0; s < p->m; s++)
    t->s[s].lasts = p->storages.at[s].flags & (t->reverse ? LIVE_IN : LIVE_OUT);
  for (id v = 0; v < p->n; v++) {
    struct near w = near(p, t->reverse, v);
    id u = next(&w);
    while (u != NONE && t->v[u].in)
      u = next(&w);
    if (t->v[v].in && u != NONE)
      lie(c, line, "not closed: statement %" PRId32 " is in the trap, %" PRId32 " is not", v, u);
    if (t->v[v].in)
      continue;
    outside++;
    t->v[v].exit = u == NONE ? EXIT : NO_EXIT;
    t->exits += u == NONE;
    for (size_t i = p->statements.at[v].use; i < p->statements.at[v + 1].use; i++)
      t->s[p->use[i]].lasts = true;
  }
  if (outside == 0)
    lie(c, line, "the trap is all statements");
  for (id s = 0; s < p->m; s++)
    if ((p->storages.at[s].flags & t->begins) && t->s[s].lasts)
      t->constants += p->storages.at[s].size;
}

static void open_base(struct trap *t, id line) {
  t->base = line;
  t->exit = t->line = NONE;
  t->anchors = 0;
  t->chain.count = 0;
  t->sum = t->constants;
}

static void trap_line(struct proof *c, struct trap *t) {
  const struct program *p = c->p;
  id line = (id)c->in->line;
  argument(c->in);
  int direction = get(c->in);
  if (direction != 'f' && direction != 'r')
    malformed(c->in, "f or r expected");
  t->reverse = direction == 'r';
  argument(c->in);
  id count = below(c->in, c->n + 1);
  t->v = take(c->x, (size_t)p->n, sizeof *t->v);
  t->s = take(c->x, (size_t)p->m, sizeof *t->s);
  t->stack = take(c->x, (size_t)p->n, sizeof *t->stack);
  for (id i = 0; i < count && !lied(c); i++)
    t->v[c->order[t->reverse ? p->n - 1 - i : i]].in = true;
  while (more(c->in)) {
    id v = below(c->in, c->n);
    if (!lied(c) && t->v[v].in)
      lie(c, line, "statement %" PRId32 " stands twice in the trap", v);
    if (!lied(c))
      t->v[v].in = true;
  }
  if (!lied(c))
    open_trap(c, t, line);
  open_base(t, line); /* A is empty */
}

/* Whether a storage that the exit does not access has begun before it (rule 2). */
static bool begun(const struct proof *c, const struct trap *t, id s) {
  return (c->p->storages.at[s].flags & t->begins) || t->s[s].base_begun == t->base ||
         t->s[s].exit_begun == t->line;
}

/* The chain of the base that goes through s, unless it does not count for the exit. */
static struct base_chain *chain_of_base(const struct trap *t, id s) {
  struct base_chain *chain = t->s[s].base == t->base ? t->chain.at + t->s[s].chain : NULL;
  return chain && chain->not_for != t->line ? chain : NULL;
}

static void exclude_chain(struct trap *t, id s) {
  struct base_chain *chain = chain_of_base(t, s);
  if (!chain)
    return;
  t->sum -= chain->weight;
  chain->not_for = t->line;
}

/* What u, in A or an ancestor of the exit, accesses has begun. */
static void begin_storages(const struct proof *c, struct trap *t, id u) {
  for (size_t i = c->p->statements.at[u].use; i < c->p->statements.at[u + 1].use; i++) {
    id s = c->p->use[i];
    if (t->s[s].own == t->line || begun(c, t, s))
      continue;
    *(t->exit == NONE ? &t->s[s].base_begun : &t->s[s].exit_begun) =
        t->exit == NONE ? t->base : t->line;
    if (t->s[s].lasts) {
      exclude_chain(t, s);
      t->sum += c->p->storages.at[s].size;
    }
  }
}

/* Walks from the `count` statements on the stack to their ancestors: from the anchors, to mark A;
 * from the exit, as far as A. No anchor is an ancestor of another one; so the walk from the exit
 * meets an anchor if and only if it is an ancestor. */
static void walk(struct proof *c, struct trap *t, id count) {
  id met = 0;
  while (count > 0) {
    id v = t->stack[--count], u;
    if (v != t->exit)
      begin_storages(c, t, v);
    for (struct near w = near(c->p, t->reverse, v); (u = next(&w)) != NONE;) {
      struct trap_statement *at = t->v + u;
      id *mark = t->exit == NONE ? &at->base : &at->seen, now = t->exit == NONE ? t->base : t->line;
      if (t->exit == NONE && at->anchor == t->base)
        lie(c, t->base, "anchor %" PRId32 " is an ancestor of another", u);
      if (*mark == now)
        continue;
      *mark = now;
      if (t->exit != NONE && at->base == t->base)
        met += at->anchor == t->base;
      else
        t->stack[count++] = u;
    }
  }
  if (t->exit != NONE && met < t->anchors)
    lie(c, t->line, "an anchor of the base is no ancestor of exit %" PRId32, t->exit);
}

static void base_line(struct proof *c, struct trap *t) {
  open_base(t, (id)c->in->line);
  while (more(c->in)) {
    id v = below(c->in, c->n);
    if (lied(c))
      continue;
    if (!t->v[v].in || t->v[v].anchor == t->base)
      lie(c, t->base, "anchor %" PRId32 " %s", v,
          t->v[v].in ? "stands twice" : "is not in the trap");
    t->v[v].anchor = t->v[v].base = t->base;
    t->stack[t->anchors++] = v;
  }
  if (!lied(c))
    walk(c, t, t->anchors);
}

static void exit_line(struct proof *c, struct trap *t) {
  id line = (id)c->in->line;
  argument(c->in);
  id v = below(c->in, c->n);
  no_more(c->in);
  if (!lied(c) && t->v[v].exit != EXIT)
    lie(c, line, "%" PRId32 " %s", v, t->v[v].exit == LISTED ? "is listed twice" : "is no exit");
  if (lied(c))
    return;
  t->v[v].exit = LISTED;
  t->exits--;
  if (t->exit == NONE)
    t->base_sum = t->sum;
  t->sum = t->base_sum;
  t->exit = v;
  t->line = line;
  for (size_t i = c->p->statements.at[v].use; i < c->p->statements.at[v + 1].use; i++) {
    id s = c->p->use[i];
    if (t->s[s].lasts && begun(c, t, s)) /* a constant of the base, but not of v */
      t->sum -= c->p->storages.at[s].size;
    exclude_chain(t, s);
    t->s[s].own = line;
  }
  t->sum += own_bytes(c->p, v);
  t->stack[0] = v;
  walk(c, t, 1);
}

static void close_exit(struct proof *c, struct trap *t) {
  if (!lied(c) && t->exit != NONE && t->sum < c->bound)
    lie(c, t->line, "exit %" PRId32 " is shown to cost only %" PRId64, t->exit, t->sum);
}

/* Rules 1, 2 (of the first), 4, and that there is room for the weight. */
static void chain_storage(struct proof *c, struct trap *t, id s, bool first, int64_t weight) {
  struct trap_storage *at = t->s + s;
  id line = (id)c->in->line;
  bool own = t->exit != NONE, has_begun = begun(c, t, s);
  const struct base_chain *chain = chain_of_base(t, s);
  int64_t load = chain ? chain->weight : 0;
  if (at->last_chain == line || (!own && at->base == t->base))
    lie(c, line, "storage %" PRId32 " stands twice in the %s", s, own ? "chain" : "base");
  if (own && at->own == t->line)
    lie(c, line, "the exit accesses storage %" PRId32, s);
  if (own && has_begun && at->lasts)
    lie(c, line, "storage %" PRId32 " is constant", s);
  if (first && !has_begun)
    lie(c, line, "storage %" PRId32 " may not have begun", s);
  at->last_chain = line;
  if (own && at->loaded == t->line)
    load += at->load;
  if (weight > c->p->storages.at[s].size - load)
    lie(c, line, "storage %" PRId32 " is overloaded", s);
  at->last_chain = line;
  if (!own) {
    at->base = t->base;
    at->chain = (id)t->chain.count - 1;
    return;
  }
  at->load = (at->loaded == t->line ? at->load : 0) + (lied(c) ? 0 : weight);
  at->loaded = t->line;
}

/* Rule 5, but for the access of the last statement of the run, which is returned. */
static id chain_run(struct proof *c, const struct trap *t, id s) {
  id line = (id)c->in->line, last = NONE;
  do {
    id u = below(c->in, c->n);
    if (lied(c))
      continue;
    if (!t->v[u].in)
      lie(c, line, "statement %" PRId32 " is not in the trap", u);
    if (last == NONE && !accesses(c->p, u, s))
      lie(c, line, "statement %" PRId32 " does not access storage %" PRId32, u, s);
    if (last != NONE && !directly_before(c->p, t->reverse ? last : u, t->reverse ? u : last))
      lie(c, line, "statements %" PRId32 " and %" PRId32 " are not linked", last, u);
    last = u;
  } while (peek(c->in) == ',' && get(c->in));
  return last;
}

static void chain_line(struct proof *c, struct trap *t) {
  id line = (id)c->in->line, s = NONE, last = NONE;
  bool never = false;
  argument(c->in);
  int64_t weight = number(c->in);
  if (weight == 0)
    malformed(c->in, "a weight above 0 expected");
  argument(c->in);
  if (t->exit == NONE && !lied(c))
    *PUSH(c->x, &t->chain) = (struct base_chain){weight, NONE};
  do {
    if (s != NONE) {
      last = chain_run(c, t, s);
      argument(c->in);
    }
    bool first = s == NONE;
    s = below(c->in, c->m);
    if (!first && !lied(c) && !accesses(c->p, last, s))
      lie(c, line, "statement %" PRId32 " does not access storage %" PRId32, last, s);
    if (!lied(c))
      chain_storage(c, t, s, first, weight);
    never |= !lied(c) && t->s[s].lasts && begun(c, t, s);
  } while (more(c->in));
  if (!lied(c) && !t->s[s].lasts)
    lie(c, line, "storage %" PRId32 " may have ended", s);
  if (lied(c))
    return;
  if (never) /* in the base: constant for every exit that does not access it */
    t->chain.at[t->chain.count - 1].weight = weight = 0;
  t->sum += weight;
}

static int proof_trap(struct proof *c) {
  struct trap *t = take(c->x, 1, sizeof *t);
  int before = 't', kind;
  for (trap_line(c, t); strchr("bec", kind = letter(c->in)); before = kind) {
    if (kind == 'c' && before == 't')
      malformed(c->in, "a chain before any base or exit");
    if (kind != 'c')
      close_exit(c, t);
    (kind == 'b' ? base_line : kind == 'e' ? exit_line : chain_line)(c, t);
  }
  close_exit(c, t);
  if (t->exits > 0)
    lie(c, c->in->line, "exits that are not listed: %" PRId32, t->exits);
  return kind;
}

static const struct {
  char letter;
  int (*read)(struct proof *c);
} proofs[] = {{'f', proof_floor}, {'t', proof_trap}};

static void check_certificate(struct input *in, const struct program *p, const char *hash) {
  struct proof *c = take(in->x, 1, sizeof *c);
  *c = (struct proof){.x = in->x, .in = in, .p = p};
  read_head(c, hash);
  int kind = letter(in);
  if (kind == 'q' && c->bound > 0)
    lie(c, c->bound_line, "no proof of this bound");
  for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++)
    if (proofs[i].letter == kind) {
      kind = proofs[i].read(c);
      break;
    }
  if (kind != 'q')
    malformed(in, "another kind of line expected");
  no_more(in);
  if (peek(in) != END)
    malformed(in, "something behind q");
  if (lied(c))
    finish(in->x, REFUTED, "s REFUTED line %" PRId64 ": %s", c->x->lie_line, c->x->lie);
  finish(in->x, VERIFIED, "s VERIFIED peak %" PRId64 " bound %" PRId64 "%s", c->peak, c->bound,
         c->peak == c->bound ? " optimal" : "");
}

/* Checks the two files; x->status and x->verdict are the answer. Frees all memory. */
static void check(struct context *x, FILE *program, FILE *certificate) {
  x->blocks = NULL;
  x->lie_line = 0;
  if (!setjmp(x->end)) {
    struct input *in = open_input(x, "program, ", program);
    struct program *p = take(x, 1, sizeof *p);
    read_program(in, p);
    check_certificate(open_input(x, "", certificate), p, in->hash);
  }
  free_blocks(x);
}

#ifndef PEAKPROOF_CHECK_NO_MAIN
int main(int count, char **argument) {
  struct context x;
  if (count == 2 && (!strcmp(argument[1], "--help") || !strcmp(argument[1], "--version"))) {
    fputs(argument[1][2] == 'h' ? usage : version, stdout);
    return fflush(stdout) ? IO : 0;
  }
  if (count != 3 || argument[1][0] == '-') {
    fputs(usage, stderr);
    return USAGE;
  }
  FILE *file[2];
  for (int i = 0; i < 2; i++)
    if (!(file[i] = i && !strcmp(argument[2], "-") ? stdin : fopen(argument[i + 1], "rb"))) {
      perror(argument[i + 1]);
      return NO_INPUT;
    }
  check(&x, file[0], file[1]);
  fprintf(x.verdict[0] == 's' ? stdout : stderr, "%s\n", x.verdict);
  return fflush(stdout) ? IO : x.status;
}
#endif
