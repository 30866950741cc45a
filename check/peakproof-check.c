/* peakproof-check.c - verifies a certificate of peakproof. SPDX-License-Identifier: Apache-2.0
 *
 * It shares no code with the solver and knows none of its algorithms: it reads the program, derives
 * the dependences again, follows the links of the chains that the certificate lists, and adds
 * integers. The rules are those of doc/certificate.md; why they suffice is THEORY.md sections 2, 3.
 * Both files may be hostile: numbers are range-checked, no sum can overflow, nothing is recursive,
 * and memory is linear in the program and, for a search, in its largest block of states. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: peakproof-check [--help | --version] PROGRAM.json PROOF.cert\n\n"
    "  s VERIFIED peak P bound L [optimal]   exit 0; the order is legal, its peak is P, none is < "
    "L\n"
    "  s REFUTED line N: reason              exit 1; well formed, but it lies\n"
    "  s MALFORMED line N: reason            exit 65; program or certificate cannot be read\n\n"
    "64: wrong usage, 66: cannot open, 71: out of memory, 74: cannot read or write.\n"
    "A certificate is text, one fact a line, its parts separated by single spaces:\n\n"
    "  p peakproof 1           format and version\n"
    "  h HEX                   SHA-256 of the program file\n"
    "  n STATEMENTS STORAGES   sizes of the program\n"
    "  o ID ...                the order\n"
    "  u PEAK                  its peak\n"
    "  l BOUND                 the bound, proved by nothing (if it is 0) or one of:\n"
    "  f [ID]                  floor: statement ID needs that much, or the start does\n"
    "  t f|r COUNT ID ...      trap: the first (f) or last (r) COUNT of the order, and these\n"
    "  b ID ...                anchors of a base, whose chains serve the exits below\n"
    "  c WEIGHT S U,..,U S ..  a chain: storages joined by runs of statements\n"
    "  e ID                    an exit of the trap; its own chains follow\n"
    "  x                       exact search:\n"
    "  y f|r ID                a statement comparable with all others divides it\n"
    "  k f|r ID ...            commits to one statement each\n"
    "  K f|r ID ...            a commit to all of these; its chains follow\n"
    "  m f|r                   what is left is explored, forward or backward, by\n"
    "  g ID ...                blocks; chains of one that needs no states follow\n"
    "  s STATE ID              declares the next state: that one, and statement ID\n"
    "  n STATE                 claims it: what leads on is claimed, or costs too much\n"
    "  d STATE STATE           claims it: it commits to the other; its chains follow\n"
    "  r STATE STATE ID ...    claims it: it is reached from the other by these\n"
    "  q                       the end\n\n"
    "Before t or x may stand any number of\n\n"
    "  a U V                   U runs before V in every order below the bound; chains follow\n\n"
    "doc/certificate.md gives the rules and says why they prove the bound.\n";

enum { VERIFIED = 0, REFUTED = 1, USAGE = 64, MALFORMED = 65 }; /* exit codes */
enum { NO_INPUT = 66, NO_MEMORY = 71, IO = 74 };
typedef int32_t id; /* of a statement, a storage or an access */
enum { NONE = -1, END = -1, ID_MAX = INT32_MAX - 2, MANY = ID_MAX / 4 };

/* ---- Verdicts and memory ---- */

struct context {
  jmp_buf end;
  int status; /* REFUTED already while the rest of a certificate that lied is read */
  char verdict[256];
  struct block *blocks;
};

struct block {
  struct block *next;
  int64_t memory[];
};

/* Settles the verdict. A lie does not end the check, for form comes first; the first one counts. */
static void say(struct context *x, int status, const char *format, ...) {
  va_list arguments;
  if (status == REFUTED && x->status == REFUTED)
    return;
  va_start(arguments, format);
  vsnprintf(x->verdict, sizeof x->verdict, format, arguments);
  va_end(arguments);
  x->status = status;
  if (status != REFUTED)
    longjmp(x->end, 1);
}

/* Zeroed memory, which lives as long as the context. */
static void *take(struct context *x, size_t count, size_t size) {
  bool fits = count < SIZE_MAX / 2 / size;
  struct block *block = fits ? calloc(1, sizeof *block + count * size) : NULL;
  if (!block)
    say(x, NO_MEMORY, "out of memory");
  block->next = x->blocks;
  x->blocks = block;
  return block->memory;
}

static void *grow(struct context *x, void *old, id count, size_t size) {
  if (count > 0 && (count < 64 || count & (count - 1)))
    return old;
  void *grown = take(x, count ? 2 * (size_t)count : 64, size);
  return count ? memcpy(grown, old, (size_t)count * size) : grown;
}

/* One more item of an array, which grows at powers of 2. */
#define PUSH(x, array, count)                                                                      \
  *((array) = grow(x, array, count, sizeof *(array)), (array) + (count)++)

/* ---- SHA-256 (FIPS 180-4) ---- */

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
  uint32_t w[64] = {0}, s[8];
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    for (int k = 0; i < 16 && k < 4; k++)
      w[i] = w[i] << 8 | b[4 * i + k];
    if (i >= 16)
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
static void sha256_end(uint32_t state[8], const void *rest, uint64_t length, char hex[65]) {
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

/* ---- Input ---- */

enum { BUFFER = 1 << 14 }; /* whole blocks of SHA-256 */
struct input {
  struct context *x;
  const char *name; /* for messages */
  FILE *file;
  unsigned char *buffer, *next, *end;
  int64_t before, line; /* bytes of the file before the buffer */
  uint32_t sha256[8];
  char hash[65]; /* once the end was read */
};

static struct input *open_input(struct context *x, const char *name, FILE *file) {
  struct input *in = take(x, 1, sizeof *in);
  *in = (struct input){.x = x, .name = name, .file = file, .line = 1};
  in->buffer = in->next = in->end = take(x, BUFFER, 1);
  memcpy(in->sha256, sha256_start, sizeof sha256_start);
  return in;
}

static bool refill(struct input *in) {
  if (*in->hash)
    return false;
  in->before += in->end - in->buffer;
  size_t got = fread(in->buffer, 1, BUFFER, in->file), done = 0;
  if (ferror(in->file))
    say(in->x, IO, "read error");
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
  int c = in->next < in->end || refill(in) ? *in->next++ : END;
  in->line += c == '\n';
  return c;
}

/* What is required is a matter of form. */
static void require(struct input *in, bool good, const char *what) {
  if (!good)
    say(in->x, MALFORMED, "s MALFORMED line %" PRId64 ": %sbyte %" PRId64 ": %s", in->line,
        in->name, in->before + (in->next - in->buffer), what);
}

/* A number of up to `limit`, without sign or leading zeros, as both files have them. */
static int64_t number(struct input *in, int64_t limit) {
  int64_t value = 0, digits = 0;
  for (int c; (c = peek(in)) >= '0' && c <= '9'; digits++) {
    require(in, digits == 0 || value > 0, "leading zero");
    require(in, value <= (INT64_MAX - (c - '0')) / 10, "the number exceeds 2^63-1");
    value = value * 10 + (get(in) - '0');
  }
  require(in, digits > 0, "a number expected");
  require(in, value <= limit, "the number is out of range");
  return value;
}

static void text(struct input *in, const char *expected) {
  for (; *expected; expected++, get(in))
    require(in, peek(in) == (unsigned char)*expected, "another text expected");
}

/* ---- Program JSON (doc/program-json.md) ---- */

struct range {
  int64_t from, to;
};

struct statement {
  int64_t work, line, own; /* own: work and the storages that it accesses */
  id access; /* its accesses: program.access from here to that of the next statement */
  id use;    /* the storages that it accesses, each once, ascending: likewise */
};

enum { LIVE_IN = 1, LIVE_OUT = 2, ACCESSED = 4 };

struct storage {
  int64_t size;
  unsigned flags;
  id entry; /* its accesses: program.entry from here to that of the next storage */
};

/* An access. A pair of `order` is a storage of its own, numbered from m, that both write. */
struct entry {
  id statement, storage;
  uint32_t how;     /* 2 * range + 1 if it writes; range 0: the whole storage */
  id before, after; /* the nearest accesses to the storage that write, or NONE */
  id since, until;  /* of them, the nearest that cover this one, or NONE and ID_MAX */
};

/* From probing: `from` runs first. Lists of those to a statement, and of those from one. */
struct edge {
  id from, to, next[2];
};

struct program {
  id n, m, pairs, ranges, accesses;
  int64_t at_start;             /* bytes that are live before the first statement */
  struct statement *statements; /* n, and one behind the last */
  struct storage *storages;     /* m, and the pairs, and one behind */
  struct range *range;          /* the first: the whole of any storage */
  struct entry *raw;            /* as read; storages of pairs: NONE, NONE - 1, ... */
  struct entry *entry;          /* by storage, then statement */
  id *access;                   /* by statement, then storage: index of an entry */
  id *use;
  struct edge *edge; /* by probing */
  id edges, *edge_at[2];
};

/* The next character that is not white space; it is not consumed. */
static int token(struct input *in) {
  int c;
  while ((c = peek(in)) == ' ' || c == '\n' || c == '\t' || c == '\r')
    get(in);
  return c;
}

static bool expect(struct input *in, int c) {
  require(in, token(in) == c, "unexpected character");
  in->next++;
  return true;
}

static int64_t json_number(struct input *in, int before, int64_t limit) { /* before: or 0 */
  if (before)
    expect(in, before);
  token(in);
  return number(in, limit);
}

/* Reads a string and stores its first bytes. No known key has escapes: they begin it with "\". */
static void json_string(struct input *in, char *out, size_t size) {
  size_t used = 0;
  bool escaped = false;
  expect(in, '"');
  for (int c; (c = get(in)) != '"';) {
    escaped |= c == '\\';
    if (c == '\\')
      c = get(in);
    require(in, c >= ' ', "a control character, or the end, inside a string");
    if (used + 1 < size)
      out[used++] = (char)c;
  }
  out[used] = 0;
  *out = escaped ? '\\' : *out;
}

/* Whether an array or object, whose opening was read, has another item; reads ',' or the end. */
static bool json_more(struct input *in, bool *first, int close) {
  bool was_first = *first, more = token(in) != close;
  *first = false;
  if (!more || !was_first)
    expect(in, more ? ',' : close);
  return more;
}

/* Skips a value that says nothing here. It need not be good JSON if it is clear where it ends. */
static void json_skip(struct input *in) {
  char ignored[2];
  for (int depth = 0; depth > 0 || (token(in) != ',' && token(in) != '}');) {
    int c = token(in);
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == '"')
      json_string(in, ignored, sizeof ignored);
    else
      require(in, get(in) != END, "the file ends too early");
  }
}

/* Reads an object: for each key of `keys` (NULL ends them) calls `value` with its index. The first
 * `required` ones must be there. */
static void json_object(struct input *in, struct program *p, const char *const *keys, int required,
                        void (*value)(struct input *, struct program *, int)) {
  char key[16];
  unsigned seen = 0, all = (1u << required) - 1;
  for (bool first = expect(in, '{'); json_more(in, &first, '}');) {
    int i = 0;
    json_string(in, key, sizeof key);
    expect(in, ':');
    while (keys[i] && strcmp(keys[i], key))
      i++;
    require(in, *key != '\\', "a key has an escape");
    require(in, !keys[i] || !(seen & 1u << i), "a key stands twice");
    seen |= 1u << i;
    if (keys[i])
      value(in, p, i);
    else
      json_skip(in);
  }
  require(in, (seen & all) == all, "a key is missing");
}

static void json_access(struct input *in, struct program *p, bool write) {
  struct entry access = {.statement = p->n - 1, .how = write};
  if (token(in) != '[') {
    access.storage = (id)json_number(in, 0, ID_MAX);
  } else {
    access.storage = (id)json_number(in, '[', ID_MAX);
    int64_t from = json_number(in, ',', INT64_MAX), to = json_number(in, ',', INT64_MAX);
    expect(in, ']');
    require(in, from < to, "the range is empty");
    access.how |= (uint32_t)p->ranges << 1;
    PUSH(in->x, p->range, p->ranges) = (struct range){from, to};
  }
  PUSH(in->x, p->raw, p->accesses) = access;
}

static void json_statement(struct input *in, struct program *p, int k) {
  struct statement *v = &p->statements[p->n - 1];
  if (k < 3)
    for (bool first = expect(in, '['); json_more(in, &first, ']');)
      json_access(in, p, k > 0);
  else if (token(in) != '[')
    v->work = json_number(in, 0, INT64_MAX);
  else
    for (bool first = expect(in, '['); json_more(in, &first, ']');)
      v->work += json_number(in, 0, INT64_MAX - v->work);
}

static void json_storage(struct input *in, struct program *p, int k) {
  struct storage *s = &p->storages[p->m - 1];
  bool yes = k > 0 && token(in) == 't';
  if (k == 0)
    s->size = json_number(in, 0, INT64_MAX);
  else
    text(in, yes ? "true" : "false");
  s->flags |= !yes ? 0 : k == 1 ? LIVE_IN : LIVE_OUT;
}

static void json_part(struct input *in, struct program *p, int k) {
  static const char *const statement[] = {"reads", "writes", "overwrites", "work", NULL};
  static const char *const storage[] = {"bytes", "live_in", "live_out", NULL};
  require(in, k > 0 || json_number(in, 0, INT64_MAX) == 1, "not version 1");
  for (bool first = k > 0 && expect(in, '['); k > 0 && json_more(in, &first, ']');) {
    require(in, p->n < MANY && p->m < MANY && p->accesses < MANY, "it is too large");
    if (k == 1) {
      token(in);
      PUSH(in->x, p->statements, p->n) = (struct statement){.line = in->line};
      json_object(in, p, statement, 0, json_statement);
    } else if (k == 2) {
      PUSH(in->x, p->storages, p->m) = (struct storage){0};
      json_object(in, p, storage, 1, json_storage);
    } else {
      id before = (id)json_number(in, '[', ID_MAX), after = (id)json_number(in, ',', ID_MAX);
      expect(in, ']');
      require(in, before < after, "the order does not go forward");
      PUSH(in->x, p->raw, p->accesses) = (struct entry){before, NONE - p->pairs, .how = 1};
      PUSH(in->x, p->raw, p->accesses) = (struct entry){after, NONE - p->pairs, .how = 1};
      p->pairs++;
    }
  }
}

static void check_program(struct input *in, struct program *p) {
  int64_t sum = 0;
  for (id s = 0; s < p->m; sum += p->storages[s++].size)
    require(in, p->storages[s].size <= INT64_MAX - sum, "the storages exceed 2^63-1 bytes");
  for (id v = 0; v < p->n; v++)
    require(in, p->statements[v].work <= INT64_MAX - sum, "storages and work exceed 2^63-1 bytes");
  for (id i = 0; i < p->accesses; i++) {
    struct entry *e = p->raw + i;
    bool pair = e->storage < 0;
    e->storage = pair ? p->m + (NONE - e->storage) : e->storage;
    require(in, e->statement < p->n, "the order names a statement that does not exist");
    in->line = p->statements[e->statement].line; /* for messages */
    require(in, pair || e->storage < p->m, "the statement accesses a storage that does not exist");
    int64_t end = e->how > 1 ? p->range[e->how >> 1].to : 0;
    require(in, end <= p->storages[e->storage].size, "the statement accesses bytes beyond the end");
    p->storages[e->storage].flags |= ACCESSED;
  }
  for (struct storage *s = p->storages; s < p->storages + p->m; s++)
    p->at_start += (s->flags & LIVE_IN) && (s->flags & (ACCESSED | LIVE_OUT)) ? s->size : 0;
}

static bool overlap(const struct program *p, uint32_t a, uint32_t b) {
  struct range r = p->range[a >> 1], s = p->range[b >> 1];
  return r.from < s.to && s.from < r.to;
}

static bool covers(const struct program *p, uint32_t a, uint32_t b) {
  struct range r = p->range[a >> 1], s = p->range[b >> 1];
  return r.from <= s.from && s.to <= r.to;
}

/* Finds the writes around each access to the storage whose entries are [from, to). */
static void link_accesses(const struct program *p, struct entry *e, id from, id to) {
  id write = NONE;
  for (id i = from, k; i < to; i++) {
    k = e[i].before = write;
    write = e[i].how & 1 ? i : write;
    while (k != NONE && !covers(p, e[k].how, e[i].how))
      k = e[k].before;
    e[i].since = k;
  }
  write = NONE;
  for (id i = to - 1, k; i >= from; i--) {
    k = e[i].after = write;
    write = e[i].how & 1 ? i : write;
    while (k != NONE && !covers(p, e[k].how, e[i].how))
      k = e[k].after;
    e[i].until = k == NONE ? ID_MAX : k;
  }
}

/* Sorts the accesses, by counting: for each storage, then for each statement. */
static void sort_accesses(struct context *x, struct program *p) {
  struct statement *v = p->statements;
  struct storage *s = p->storages;
  const struct entry *raw = p->raw;
  id count = p->accesses, uses = 0, all = p->m + p->pairs;
  struct entry *entry = p->entry = take(x, (size_t)count, sizeof *entry);
  p->access = take(x, (size_t)count, sizeof *p->access);
  p->use = take(x, (size_t)count, sizeof *p->use);
  for (id i = 0; i < count; i++) {
    s[raw[i].storage].entry++;
    v[raw[i].statement].access++;
  }
  for (id i = 1; i <= all; i++) /* the ends, for now */
    s[i].entry += s[i - 1].entry;
  for (id i = 1; i <= p->n; i++)
    v[i].access += v[i - 1].access;
  for (id i = count - 1; i >= 0; i--)
    entry[--s[raw[i].storage].entry] = raw[i];
  for (id i = count - 1; i >= 0; i--)
    p->access[--v[entry[i].statement].access] = i;
  for (id i = 0; i < all; i++)
    link_accesses(p, entry, s[i].entry, s[i + 1].entry);
  for (id i = 0; i < p->n; i++) {
    for (id k = v[i].access; k < v[i + 1].access; k++) {
      id used = entry[p->access[k]].storage;
      if (used < p->m && (uses == v[i].use || p->use[uses - 1] != used)) {
        p->use[uses++] = used;
        v[i].own += s[used].size;
      }
    }
    v[i].own += v[i].work;
    v[i + 1].use = uses;
  }
}

static void read_program(struct input *in, struct program *p) {
  static const char *const keys[] = {"peakproof", "statements", "storages", "order", NULL};
  PUSH(in->x, p->range, p->ranges) = (struct range){-1, INT64_MAX};
  json_object(in, p, keys, 3, json_part);
  require(in, token(in) == END, "something behind the program");
  id n = p->n, m = p->m;
  PUSH(in->x, p->statements, n) = (struct statement){0};
  for (id i = 0; i <= p->pairs; i++)
    PUSH(in->x, p->storages, m) = (struct storage){0};
  check_program(in, p);
  sort_accesses(in->x, p);
}

/* ---- Dependences (THEORY.md section 1) ---- */

/* The first access of v to storage s or a later one. */
static id find_access(const struct program *p, id v, id s) {
  id from = p->statements[v].access, to = p->statements[v + 1].access;
  while (from < to) {
    id middle = from + (to - from) / 2;
    bool later = p->entry[p->access[middle]].storage < s;
    from = later ? middle + 1 : from;
    to = later ? to : middle;
  }
  return from;
}

static bool accesses(const struct program *p, id v, id s) {
  id i = find_access(p, v, s);
  return i < p->statements[v + 1].access && p->entry[p->access[i]].storage == s;
}

/* Whether u is a direct predecessor of v, by the definition. */
static bool directly_before(const struct program *p, id u, id v) {
  const struct statement *at = p->statements;
  bool swap = at[u + 1].access - at[u].access > at[v + 1].access - at[v].access;
  id few = swap ? v : u, many = swap ? u : v, end = at[many + 1].access;
  for (id i = at[few].access; u < v && i < at[few + 1].access; i++) {
    const struct entry *a = p->entry + p->access[i], *b;
    for (id j = find_access(p, many, a->storage);
         j < end && (b = p->entry + p->access[j])->storage == a->storage; j++)
      if (((a->how | b->how) & 1) && overlap(p, a->how, b->how))
        return true;
  }
  for (id i = p->edges ? p->edge_at[0][v] : NONE; i != NONE; i = p->edge[i].next[0])
    if (p->edge[i].from == u)
      return true;
  return false;
}

/* Goes through direct predecessors of v (successors, if `reverse`), through enough of them that all
 * ancestors are reached over them: not through those of which a write between both covers one. So u
 * is met as often from v as v is from u. */
struct near {
  const struct program *p;
  bool reverse;
  id access, end; /* of v */
  id at;          /* the entry where the search has come to; NONE: before the first */
  id edge;
};

static struct near near(const struct program *p, bool reverse, id v) {
  id edge = p->edges ? p->edge_at[reverse][v] : NONE;
  return (struct near){p,    reverse, p->statements[v].access, p->statements[v + 1].access,
                       NONE, edge};
}

/* The next access to the storage that may matter to access `own`, behind `at`. */
static id step(const struct near *w, id own, id at) {
  const struct entry *e = w->p->entry;
  const struct storage *s = w->p->storages + e[own].storage;
  if (at == (w->reverse ? e[own].until : e[own].since))
    return NONE;
  if (!(e[own].how & 1)) /* only those that write */
    return w->reverse ? e[at].after : e[at].before;
  at += w->reverse ? 1 : -1;
  return at >= s[0].entry && at < s[1].entry ? at : NONE;
}

static id next(struct near *w) {
  const struct entry *e = w->p->entry;
  while (w->access < w->end) {
    id own = w->p->access[w->access], at = step(w, own, w->at == NONE ? own : w->at);
    w->at = at;
    w->access += at == NONE;
    if (at != NONE && e[at].statement != e[own].statement && overlap(w->p, e[at].how, e[own].how) &&
        (w->reverse ? e[at].since <= own : e[at].until >= own))
      return e[at].statement;
  }
  if (w->edge == NONE)
    return NONE;
  const struct edge *edge = w->p->edge + w->edge;
  w->edge = edge->next[w->reverse];
  return w->reverse ? edge->to : edge->from;
}

/* ---- Certificate ---- */

/* All that is known while a certificate is read. After the first lie the rest is still read, but
 * what it says is not looked at: where it would be, `lied` is asked. */
struct proof {
  struct context *x;
  struct input *in;
  struct program *p;
  int64_t n, m; /* as line n says: the program's, or a lie */
  id *order;    /* p->n statements */
  int64_t peak, bound;
  bool circle; /* the last probing edge closed one: no order is below the bound */
};

static bool lied(const struct proof *c) {
  return c->x->status == REFUTED;
}

/* What is demanded is a matter of truth: else `line` lies. A format and its arguments follow. */
#define LIE "s REFUTED line %" PRId64 ": "
#define DEMAND(c, line, good, format, ...)                                                         \
  (void)(lied(c) || (good) || (say((c)->x, REFUTED, LIE format, (int64_t)(line), __VA_ARGS__), 0))

static int letter(struct input *in) {
  int c = peek(in);
  require(in, c > 0 && strchr("phnoulftbceqaxykKmgsndr", c),
          c == END ? "no end" : "unknown kind of line");
  return get(in);
}

/* Whether the line has another argument; reads its space, or the end of the line. */
static bool more(struct input *in) {
  int c = peek(in);
  require(in, (c == ' ' || c == '\n') && in->line < ID_MAX,
          "a space or the end of the line expected");
  return get(in) == ' ';
}

static id argument(struct input *in, int64_t limit) {
  text(in, " ");
  return (id)number(in, limit - 1);
}

static bool is_reverse(struct input *in) {
  text(in, " ");
  bool reverse = peek(in) == 'r';
  text(in, reverse ? "r" : "f");
  return reverse;
}

/* Such lines are few enough that their numbers are IDs. */
static void end_line(struct input *in) {
  require(in, !more(in), "the end of the line expected");
}

static void read_order(struct proof *c) {
  id line = (id)c->in->line, count = 0;
  id *position = take(c->x, (size_t)c->p->n, sizeof *position); /* from 1 */
  c->order = take(c->x, (size_t)c->p->n, sizeof *c->order);
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, line, !position[v], "statement %" PRId32 " stands twice in the order", v);
    if (lied(c))
      continue;
    c->order[count++] = v;
    position[v] = count;
  }
  DEMAND(c, line, count == c->p->n, "the order has only %" PRId32 " statements", count);
  for (id v = 0, u; v < c->p->n && !lied(c); v++)
    for (struct near w = near(c->p, false, v); (u = next(&w)) != NONE;)
      DEMAND(c, line, position[u] < position[v], "%" PRId32 " must not run before %" PRId32, v, u);
}

/* THEORY.md section 1. No sum overflows: check_program. */
static int64_t simulate(struct context *x, const struct program *p, const id *order) {
  int64_t live = p->at_start, peak = live;
  int64_t *change = take(x, (size_t)p->n + 1, sizeof *change); /* of `live`, before each step */
  id *last = take(x, (size_t)p->m, sizeof *last);              /* step, from 1 */
  for (id k = 0; k < p->n; k++)
    for (id i = p->statements[order[k]].use; i < p->statements[order[k] + 1].use; i++) {
      const struct storage *s = p->storages + p->use[i];
      change[k] += last[p->use[i]] || (s->flags & LIVE_IN) ? 0 : s->size;
      last[p->use[i]] = k + 1;
    }
  for (id s = 0; s < p->m; s++)
    change[last[s]] -= last[s] && !(p->storages[s].flags & LIVE_OUT) ? p->storages[s].size : 0;
  for (id k = 0; k < p->n; k++) {
    int64_t step = (live += change[k]) + p->statements[order[k]].work;
    peak = step > peak ? step : peak;
  }
  return peak;
}

static void read_head(struct proof *c, const char *hash) {
  struct input *in = c->in;
  bool same = true;
  text(in, "p peakproof 1\nh ");
  for (int i = 0, digit; i < 64; i++) {
    digit = peek(in);
    require(in, digit > 0 && strchr("0123456789abcdef", digit), "64 hexadecimal digits expected");
    same &= get(in) == hash[i];
  }
  DEMAND(c, in->line, same, "the hash of the program is %s", hash);
  text(in, "\nn");
  c->n = argument(in, ID_MAX);
  c->m = argument(in, ID_MAX);
  DEMAND(c, in->line, c->n == c->p->n && c->m == c->p->m,
         "the program has %" PRId32 " statements, %" PRId32 " storages", c->p->n, c->p->m);
  text(in, "\no");
  read_order(c);
  text(in, "u ");
  c->peak = number(in, INT64_MAX);
  int64_t peak = lied(c) ? 0 : simulate(c->x, c->p, c->order);
  DEMAND(c, in->line, peak == c->peak, "the peak of the order is %" PRId64, peak);
  text(in, "\nl ");
  c->bound = number(in, INT64_MAX);
  DEMAND(c, in->line, c->bound <= c->peak, "a legal order has a peak of %" PRId64, c->peak);
  text(in, "\n");
}

/* ---- Proofs: each reads its lines, the first letter has been read; returns the letter behind ----
 */

static int proof_floor(struct proof *c) {
  const struct program *p = c->p;
  id line = (id)c->in->line;
  int64_t sum = p->at_start;
  if (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    text(c->in, "\n");
    sum = lied(c) ? 0 : p->statements[v].own;
    for (id s = 0; s < p->m && !lied(c); s++)
      if (!(~p->storages[s].flags & (LIVE_IN | LIVE_OUT)) && !accesses(p, v, s))
        sum += p->storages[s].size;
  }
  DEMAND(c, line, sum >= c->bound, "only %" PRId64 " bytes are needed there", sum);
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
  id run, touched; /* search: by how many statements of T; the commit that changed it */
};

struct base_chain {
  int64_t weight; /* 0: counts for no exit */
  id not_for;     /* the last exit for which it does not count */
};

/* A reverse trap is a forward trap of the reversed program, and is treated as one. The chains
 * behind a probing edge and those of a search are read as those of an exit are. */
struct trap {
  bool reverse;
  struct trap_statement *v;
  struct trap_storage *s;
  id *stack;                /* room for all statements */
  id exits;                 /* that are not listed yet */
  unsigned begins, ends;    /* the flags of storages that exist at the start, at the end */
  int64_t constants;        /* storages that exist at the start and cannot have ended */
  id base, anchors, chains; /* its line; how many there are */
  struct base_chain *chain;
  id exit, line;         /* statement and line; NONE while the base is read */
  int64_t sum, base_sum; /* constants and weights; for an exit, all that it is shown to cost */
  int64_t live;          /* search: M(T) */
};

/* With an empty T. */
static void init_trap(struct proof *c, struct trap *t, bool reverse) {
  const struct program *p = c->p;
  *t = (struct trap){.reverse = reverse, .exit = NONE, .line = NONE};
  t->begins = reverse ? LIVE_OUT : LIVE_IN;
  t->ends = reverse ? LIVE_IN : LIVE_OUT;
  t->v = take(c->x, (size_t)p->n, sizeof *t->v);
  t->s = take(c->x, (size_t)p->m, sizeof *t->s);
  t->stack = take(c->x, (size_t)p->n, sizeof *t->stack);
  t->chain = take(c->x, (size_t)p->m + 1, sizeof *t->chain);
  for (id s = 0; s < p->m; s++)
    t->s[s].lasts = p->storages[s].flags & t->ends;
}

/* Checks that T is closed and not everything; finds its exits and what cannot have ended. */
static void open_trap(struct proof *c, struct trap *t, id line) {
  const struct program *p = c->p;
  id outside = 0;
  for (id v = 0, u; v < p->n; v++) {
    struct near w = near(p, t->reverse, v);
    while ((u = next(&w)) != NONE && t->v[u].in)
      ;
    DEMAND(c, line, !t->v[v].in || u == NONE, "not closed at %" PRId32, v);
    if (t->v[v].in)
      continue;
    outside++;
    t->v[v].exit = u == NONE ? EXIT : NO_EXIT;
    t->exits += u == NONE;
    for (id i = p->statements[v].use; i < p->statements[v + 1].use; i++)
      t->s[p->use[i]].lasts = true;
  }
  DEMAND(c, line, outside > 0, "the trap is all %" PRId32 " statements", p->n);
  for (id s = 0; s < p->m; s++)
    t->constants += t->s[s].lasts && p->storages[s].flags & t->begins ? p->storages[s].size : 0;
}

static void open_base(struct trap *t, id line) {
  t->base = line;
  t->exit = t->line = NONE;
  t->anchors = t->chains = 0;
  t->sum = t->constants;
}

static void trap_line(struct proof *c, struct trap *t) {
  const struct program *p = c->p;
  id line = (id)c->in->line;
  init_trap(c, t, is_reverse(c->in));
  id count = argument(c->in, c->n + 1);
  for (id i = 0; i < count && !lied(c); i++)
    t->v[c->order[t->reverse ? p->n - 1 - i : i]].in = true;
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, line, !t->v[v].in, "statement %" PRId32 " stands twice in the trap", v);
    if (!lied(c))
      t->v[v].in = true;
  }
  if (!lied(c))
    open_trap(c, t, line);
  open_base(t, line); /* A is empty */
}

/* Whether a storage that the exit does not access has begun before it (rule 2). */
static bool begun(const struct proof *c, const struct trap *t, id s) {
  return (c->p->storages[s].flags & t->begins) || t->s[s].base_begun == t->base ||
         t->s[s].exit_begun == t->line;
}

/* The chain of the base that goes through s, unless it does not count for the exit. */
static struct base_chain *chain_of_base(const struct trap *t, id s) {
  struct base_chain *chain = t->s[s].base == t->base ? t->chain + t->s[s].chain : NULL;
  return chain && chain->not_for != t->line ? chain : NULL;
}

static void exclude_chain(struct trap *t, id s) {
  struct base_chain *chain = chain_of_base(t, s);
  t->sum -= chain ? chain->weight : 0;
  if (chain)
    chain->not_for = t->line;
}

/* What u, in A or an ancestor of the exit, accesses has begun. */
static void begin_storages(const struct proof *c, struct trap *t, id u) {
  for (id i = c->p->statements[u].use; i < c->p->statements[u + 1].use; i++) {
    struct trap_storage *s = t->s + c->p->use[i];
    if (s->own == t->line || begun(c, t, c->p->use[i]))
      continue;
    *(t->exit == NONE ? &s->base_begun : &s->exit_begun) = t->exit == NONE ? t->base : t->line;
    if (s->lasts) {
      exclude_chain(t, c->p->use[i]);
      t->sum += c->p->storages[c->p->use[i]].size;
    }
  }
}

/* Walks from the `count` statements on the stack to their ancestors: from the anchors, to mark A;
 * from the exit, as far as A. No anchor is an ancestor of another one; so the walk from the exit
 * meets an anchor if and only if it is an ancestor. */
static void walk(struct proof *c, struct trap *t, id count) {
  bool base = t->exit == NONE;
  id met = 0, now = base ? t->base : t->line;
  while (count > 0) {
    id v = t->stack[--count], u;
    if (v != t->exit)
      begin_storages(c, t, v);
    for (struct near w = near(c->p, t->reverse, v); (u = next(&w)) != NONE;) {
      struct trap_statement *at = t->v + u;
      id *mark = base ? &at->base : &at->seen;
      DEMAND(c, now, !base || at->anchor != now, "anchor %" PRId32 " is an ancestor of another", u);
      if (*mark == now)
        continue;
      *mark = now;
      if (!base && at->base == t->base)
        met += at->anchor == t->base;
      else
        t->stack[count++] = u;
    }
  }
  DEMAND(c, now, base || met == t->anchors, "only %" PRId32 " anchors are ancestors of it", met);
}

static void base_line(struct proof *c, struct trap *t) {
  open_base(t, (id)c->in->line);
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, t->base, t->v[v].in, "anchor %" PRId32 " is not in the trap", v);
    DEMAND(c, t->base, t->v[v].anchor != t->base, "anchor %" PRId32 " stands twice", v);
    if (lied(c))
      continue;
    t->v[v].anchor = t->v[v].base = t->base;
    t->stack[t->anchors++] = v;
  }
  if (!lied(c))
    walk(c, t, t->anchors);
}

/* What v costs before its own chains are read. */
static void open_exit(struct proof *c, struct trap *t, id line, id v) {
  t->base_sum = t->exit == NONE ? t->sum : t->base_sum;
  t->sum = t->base_sum;
  t->exit = v;
  t->line = line;
  for (id i = c->p->statements[v].use; i < c->p->statements[v + 1].use; i++) {
    id s = c->p->use[i]; /* may be a constant of the base, but is not one of v */
    t->sum -= t->s[s].lasts && begun(c, t, s) ? c->p->storages[s].size : 0;
    exclude_chain(t, s);
    t->s[s].own = line;
  }
  t->sum += c->p->statements[v].own;
  t->stack[0] = v;
  walk(c, t, 1);
}

static void exit_line(struct proof *c, struct trap *t) {
  id line = (id)c->in->line, v = argument(c->in, c->n);
  end_line(c->in);
  DEMAND(c, line, t->v[v].exit != NO_EXIT, "%" PRId32 " is not an exit", v);
  DEMAND(c, line, t->v[v].exit != LISTED, "exit %" PRId32 " is listed twice", v);
  if (lied(c))
    return;
  t->v[v].exit = LISTED;
  t->exits--;
  open_exit(c, t, line, v);
}

/* Rules 1, 2 (of the first), 4, and that there is room for the weight. */
static void chain_storage(struct proof *c, struct trap *t, id s, bool first, int64_t weight) {
  struct trap_storage *at = t->s + s;
  id line = (id)c->in->line;
  bool own = t->exit != NONE, has_begun = begun(c, t, s);
  const struct base_chain *chain = chain_of_base(t, s);
  int64_t load = own && at->loaded == t->line ? at->load : 0; /* the base's comes on top */
  int64_t room = c->p->storages[s].size - load - (chain ? chain->weight : 0);
  DEMAND(c, line, at->last_chain != line, "storage %" PRId32 " stands twice in the chain", s);
  DEMAND(c, line, own || at->base != t->base, "storage %" PRId32 " stands twice in the base", s);
  DEMAND(c, line, !own || at->own != t->line, "the exit accesses storage %" PRId32, s);
  DEMAND(c, line, !own || !has_begun || !at->lasts, "storage %" PRId32 " is constant", s);
  DEMAND(c, line, !first || has_begun, "storage %" PRId32 " may not have begun", s);
  DEMAND(c, line, weight <= room, "storage %" PRId32 " is overloaded", s);
  at->last_chain = line;
  at->load = load + (weight <= room ? weight : 0);
  at->loaded = t->line;
  if (own)
    return;
  at->base = t->base;
  at->chain = t->chains - 1;
  if (has_begun && at->lasts) /* constant for every exit that does not access it */
    t->chain[at->chain].weight = 0;
}

/* Rule 5, but for the access of the last statement of the run, which is returned. */
static id chain_run(struct proof *c, const struct trap *t, id s) {
  id line = (id)c->in->line, last = NONE;
  do {
    id u = (id)number(c->in, c->n - 1), first = t->reverse ? last : u,
       second = t->reverse ? u : last;
    DEMAND(c, line, t->v[u].in, "statement %" PRId32 " is not in the trap", u);
    DEMAND(c, line, last != NONE || accesses(c->p, u, s), "%" PRId32 " does not access it", u);
    DEMAND(c, line, last == NONE || directly_before(c->p, first, second), "no link to %" PRId32, u);
    last = u;
  } while (peek(c->in) == ',' && get(c->in));
  return last;
}

static void chain_line(struct proof *c, struct trap *t) {
  id line = (id)c->in->line;
  text(c->in, " ");
  int64_t weight = number(c->in, INT64_MAX);
  require(c->in, weight > 0, "a weight above 0 expected");
  if (t->exit == NONE && !lied(c))
    t->chain[t->chains++] = (struct base_chain){weight, NONE};
  id s = argument(c->in, c->m);
  if (!lied(c))
    chain_storage(c, t, s, true, weight);
  while (more(c->in)) {
    id last = chain_run(c, t, s);
    s = argument(c->in, c->m);
    DEMAND(c, line, accesses(c->p, last, s), "%" PRId32 " does not access %" PRId32, last, s);
    if (!lied(c))
      chain_storage(c, t, s, false, weight);
  }
  DEMAND(c, line, t->s[s].lasts, "storage %" PRId32 " may have ended", s);
  if (!lied(c))
    t->sum += t->exit == NONE ? t->chain[t->chains - 1].weight : weight;
}

static int proof_trap(struct proof *c) {
  struct trap *t = take(c->x, 1, sizeof *t);
  trap_line(c, t);
  for (int kind, before = 't';; before = kind) {
    kind = letter(c->in);
    require(c->in, kind != 'c' || before != 't', "a chain before any base or exit");
    if (kind != 'c') /* all chains of the exit are known */
      DEMAND(c, t->line, t->exit == NONE || t->sum >= c->bound,
             "exit %" PRId32 " is shown to cost only %" PRId64, t->exit, t->sum);
    if (kind != 'b' && kind != 'e' && kind != 'c') {
      DEMAND(c, c->in->line, t->exits == 0, "exits that are not listed: %" PRId32, t->exits);
      return kind;
    }
    (kind == 'b' ? base_line : kind == 'e' ? exit_line : chain_line)(c, t);
  }
}

/* ---- Probing edges ---- */

/* Takes statement v and its descendants out of T = all but the `count` of `list`; returns how many
 * are out now. The storages that they access cannot have ended. */
static id take_out(struct proof *c, struct trap *t, id *list, id count, id v) {
  id from = count;
  if (t->v[v].in)
    list[count++] = v;
  t->v[v].in = false;
  for (id x; from < count; from++) {
    const struct statement *at = c->p->statements + list[from];
    for (id i = at[0].use; i < at[1].use; i++) {
      struct trap_storage *s = t->s + c->p->use[i];
      bool new = !s->lasts && (c->p->storages[c->p->use[i]].flags & t->begins);
      t->constants += new ? c->p->storages[c->p->use[i]].size : 0;
      s->lasts = true;
    }
    for (struct near w = near(c->p, true, list[from]); (x = next(&w)) != NONE;) {
      if (t->v[x].in)
        list[count++] = x;
      t->v[x].in = false;
    }
  }
  return count;
}

/* T is everything again. */
static void put_back(struct proof *c, struct trap *t, const id *list, id count) {
  for (id k = 0; k < count; k++) {
    t->v[list[k]].in = true;
    for (id i = c->p->statements[list[k]].use; i < c->p->statements[list[k] + 1].use; i++)
      t->s[c->p->use[i]].lasts = c->p->storages[c->p->use[i]].flags & t->ends;
  }
}

static void add_edge(struct context *x, struct program *p, id u, id v) {
  struct edge edge = {u, v, {NONE, NONE}};
  for (int k = 0; k < 2; k++) {
    id at = k ? u : v;
    if (p->edges == 0) {
      p->edge_at[k] = take(x, (size_t)p->n, sizeof(id));
      for (id i = 0; i < p->n; i++)
        p->edge_at[k][i] = NONE;
    }
    edge.next[k] = p->edge_at[k][at];
  }
  p->edge_at[0][v] = p->edge_at[1][u] = p->edges;
  PUSH(x, p->edge, p->edges) = edge;
}

static int proof_probes(struct proof *c) {
  struct trap *t = take(c->x, 1, sizeof *t);
  init_trap(c, t, false);
  id *out = take(c->x, (size_t)c->p->n, sizeof *out), count = 0;
  int64_t constants = 0;
  int kind = 'a';
  for (id v = 0; v < c->p->n; v++)
    t->v[v].in = true;
  for (id s = 0; s < c->p->m; s++)
    constants += ~c->p->storages[s].flags & (LIVE_IN | LIVE_OUT) ? 0 : c->p->storages[s].size;
  while (kind == 'a') {
    id line = (id)c->in->line, u = argument(c->in, c->n), v = argument(c->in, c->n);
    end_line(c->in);
    DEMAND(c, line, !c->circle, "behind the edge to %" PRId32 " that closes a circle", v);
    DEMAND(c, line, u != v, "an edge from %" PRId32 " to itself", u);
    if (!lied(c)) {
      t->constants = constants;
      count = take_out(c, t, out, 0, v);
      c->circle = !t->v[u].in;
      count = take_out(c, t, out, count, u);
      open_base(t, line);
      open_exit(c, t, line, v);
    }
    while ((kind = letter(c->in)) == 'c')
      chain_line(c, t);
    DEMAND(c, line, t->sum >= c->bound, "shown is only a cost of %" PRId64, t->sum);
    if (lied(c))
      continue;
    put_back(c, t, out, count);
    add_edge(c->x, c->p, u, v);
  }
  return kind;
}

/* ---- Exact search (THEORY.md section 3) ---- */

/* A state of a block: what its parent has, and one statement more. State 0 is empty. */
struct state {
  uint64_t hash; /* the sum of hash_of() */
  id parent, statement, size;
  bool claimed;
};

/* What has run is the T of a trap; storages have begun by it as by a base. Chains lie between a
 * lower and an upper set: T is the upper one, and what has begun stays that of the lower. */
struct search {
  struct trap side[2]; /* run from the start; from the end backwards */
  struct trap *t;      /* that of the line, or of the exploration */
  id *total;           /* of a storage: the statements that access it */
  id middle, covered;  /* how many statements are in neither side; in a block */
  id *order, *place;   /* one in which all runs before its successors; its inverse */
  bool *pivot;         /* comparable with all */
  id next[2], last[2]; /* of each side: before it, and none behind it, is in, from its own end */

  bool bounded; /* chains between two sets: the upper one is T, `low` that of the lower in bytes */
  int64_t low;
  id *changed, changes; /* the storages that change in between */

  id *block;              /* of a statement: the line of its block */
  id *list, line;         /* the statements of this block; its line */
  id count, *used;        /* how many; of a storage, by how many of them */
  id *pending;            /* how many dependences it waits for */
  id *ready, *slot, many; /* those that may run next; where each stands there, from 1 */
  bool complete, stuck;   /* the whole block is claimed; a block cannot be completed */
  int64_t start;          /* bytes of state 0 */
  struct state *state;
  id states, room, at; /* at: what has run is this one */
  id *table;           /* by hash: states, from 1; a power of 2 */
  size_t mask;
};

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t hash_of(id v) {
  uint64_t z = ((uint64_t)v + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/* Puts v into T, or takes it out. Between bounds it notes what was live in the lower set, or had
 * not begun there, when that changes first: what had ended does so again. */
static void put(struct proof *c, struct search *x, struct trap *t, id v, bool in) {
  t->v[v].in = in;
  for (id i = c->p->statements[v].use; i < c->p->statements[v + 1].use; i++) {
    const struct storage *s = c->p->storages + c->p->use[i];
    struct trap_storage *at = t->s + c->p->use[i];
    bool begins = s->flags & t->begins, was = (begins || at->run > 0) && at->lasts;
    if (x->bounded && at->touched != t->line && at->lasts)
      x->changed[x->changes++] = c->p->use[i];
    at->touched = x->bounded ? t->line : at->touched;
    at->run += in ? 1 : -1;
    at->lasts = (s->flags & t->ends) || at->run < x->total[c->p->use[i]];
    bool is = (begins || at->run > 0) && at->lasts;
    t->live += (is ? s->size : 0) - (was ? s->size : 0);
    if (!x->bounded)
      at->base_begun = at->run > 0 ? t->base : 0;
  }
}

/* T is the lower set; what is put into it now makes the upper one. */
static void open_bounds(struct search *x, struct trap *t, id line) {
  t->line = line;
  x->low = t->live;
  x->changes = 0;
  x->bounded = true;
}

/* Reads the chains that show that no set between the bounds, `steps` statements apart, has less
 * than `goal` bytes; `kind` is the letter read, and the one behind is returned. */
static int read_bounds(struct proof *c, struct search *x, struct trap *t, id steps, int64_t goal,
                       int kind) {
  t->sum = x->low;
  for (id k = 0; k < x->changes && !lied(c); k++) {
    id s = x->changed[k];
    t->sum -= begun(c, t, s) && !t->s[s].lasts ? c->p->storages[s].size : 0;
  }
  DEMAND(c, t->line, steps != 1 || t->live <= x->low, "memory grows to %" PRId64, t->live);
  DEMAND(c, t->line, steps != 1 || kind != 'c', "%s", "its chains are not needed");
  for (; kind == 'c'; kind = letter(c->in))
    chain_line(c, t);
  DEMAND(c, t->line, steps == 1 || t->sum >= goal, "shown are only %" PRId64 " bytes of %" PRId64,
         t->sum, goal);
  return kind;
}

/* T, as it is now, is what has run. */
static void close_bounds(struct search *x, struct trap *t) {
  x->bounded = false;
  for (id k = 0; k < x->changes; k++)
    t->s[x->changed[k]].base_begun = t->s[x->changed[k]].run > 0 ? t->base : 0;
}

/* ---- Search: commits ---- */

static bool in_middle(const struct search *x, id v) {
  return !x->side[0].v[v].in && !x->side[1].v[v].in;
}

static bool is_ready(const struct proof *c, const struct trap *t, id v) {
  id u;
  for (struct near w = near(c->p, t->reverse, v); (u = next(&w)) != NONE;)
    if (!t->v[u].in)
      return false;
  return true;
}

static void commit(struct proof *c, struct search *x, struct trap *t, id v) {
  id place = (t->reverse ? c->p->n - 1 - x->place[v] : x->place[v]) + 1, *last = x->last;
  put(c, x, t, v, true);
  last[t->reverse] = place > last[t->reverse] ? place : last[t->reverse];
  x->middle--;
}

/* Orders the statements; all run before their successors, as in the program unless probing edges
 * say otherwise. */
static void order_statements(struct proof *c, struct search *x) {
  id n = c->p->n, from = 0, to = 0;
  id *waits = take(c->x, (size_t)n, sizeof *waits);
  for (id v = 0; v < n; v++) {
    struct near w = near(c->p, false, v);
    while (next(&w) != NONE)
      waits[v]++;
    if (!waits[v])
      x->order[to++] = v;
  }
  for (id u; from < to; from++) {
    x->place[x->order[from]] = from;
    for (struct near w = near(c->p, true, x->order[from]); (u = next(&w)) != NONE;)
      if (!--waits[u])
        x->order[to++] = u;
  }
}

/* A statement is comparable with all if each before it has a successor up to it, and each behind it
 * a predecessor down to it: then the walk from any of them ends there. */
static void find_pivots(struct proof *c, struct search *x) {
  id n = c->p->n, u;
  for (id reverse = 0; reverse < 2; reverse++)
    for (id k = 0, reach = 0; k < n; k++) { /* reach: in which place all before have a successor */
      id place = reverse ? n - 1 - k : k, v = x->order[place], first = n;
      x->pivot[v] = reach <= k && (!reverse || x->pivot[v]);
      for (struct near w = near(c->p, !reverse, v); (u = next(&w)) != NONE;) {
        id at = reverse ? n - 1 - x->place[u] : x->place[u];
        first = at < first ? at : first;
      }
      reach = first > reach ? first : reach;
    }
}

static void open_search(struct proof *c, struct search *x) {
  const struct program *p = c->p;
  id **statements[] = {&x->order, &x->place, &x->block, &x->list, &x->pending, &x->ready, &x->slot};
  id **storages[] = {&x->total, &x->changed, &x->used};
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
    *statements[i] = take(c->x, (size_t)p->n, sizeof(id));
  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
    *storages[i] = take(c->x, (size_t)p->m, sizeof(id));
  x->pivot = take(c->x, (size_t)p->n, sizeof *x->pivot);
  x->middle = p->n;
  for (id i = 0; i < p->statements[p->n].use; i++)
    x->total[p->use[i]]++;
  for (int k = 0; k < 2; k++) {
    struct trap *t = x->side + k;
    init_trap(c, t, k);
    t->base = 1; /* any: in a search it marks what has begun */
    t->exit = 0; /* likewise: chains are those of an exit that accesses nothing */
    for (id s = 0; s < p->m; s++) {
      t->s[s].lasts |= x->total[s] > 0;
      t->live += (p->storages[s].flags & t->begins) && t->s[s].lasts ? p->storages[s].size : 0;
    }
  }
  order_statements(c, x);
  find_pivots(c, x);
}

static void pivot_line(struct proof *c, struct search *x, struct trap *t) {
  id line = (id)c->in->line, v = argument(c->in, c->n), *next = x->next + t->reverse;
  end_line(c->in);
  DEMAND(c, line, x->pivot[v], "%" PRId32 " is not comparable with all", v);
  if (lied(c))
    return;
  id count = (t->reverse ? c->p->n - 1 - x->place[v] : x->place[v]) + 1;
  DEMAND(c, line, x->last[t->reverse] <= count, "more than what comes up to %" PRId32 " has run",
         v);
  DEMAND(c, line, count <= c->p->n - x->last[!t->reverse], "%" PRId32 " is not in the middle", v);
  for (; *next < count && !lied(c); (*next)++) {
    id u = x->order[t->reverse ? c->p->n - 1 - *next : *next];
    if (!t->v[u].in)
      commit(c, x, t, u);
  }
}

static void single_commits(struct proof *c, struct search *x, struct trap *t) {
  id line = (id)c->in->line;
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    int64_t before = t->live;
    DEMAND(c, line, in_middle(x, v), "%" PRId32 " is not in the middle", v);
    DEMAND(c, line, is_ready(c, t, v), "%" PRId32 " is not ready", v);
    if (!lied(c))
      commit(c, x, t, v);
    DEMAND(c, line, t->live <= before, "memory grows by %" PRId32, v);
  }
}

/* Returns the letter behind its chains. */
static int joint_commit(struct proof *c, struct search *x, struct trap *t) {
  id count = 0;
  open_bounds(x, t, (id)c->in->line);
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, t->line, in_middle(x, v), "%" PRId32 " is not in the middle, or stands twice", v);
    if (lied(c))
      continue;
    t->stack[count++] = v;
    commit(c, x, t, v);
  }
  for (id k = 0; k < count; k++)
    DEMAND(c, t->line, is_ready(c, t, t->stack[k]), "%" PRId32 " is not ready", t->stack[k]);
  int kind = read_bounds(c, x, t, count, t->live, letter(c->in));
  close_bounds(x, t);
  return kind;
}

/* ---- Search: the states of a block ---- */

/* Whether v, of the block, may run next. */
static void set_ready(struct search *x, id v, bool ready) {
  id last = ready ? v : x->ready[--x->many];
  if (ready)
    x->slot[v] = ++x->many;
  x->ready[x->slot[v] - 1] = last;
  x->slot[last] = x->slot[v];
  x->slot[v] = ready ? x->slot[v] : 0;
}

/* Runs v, of the block, or undoes it. */
static void run(struct proof *c, struct search *x, id v, bool forward) {
  id u;
  put(c, x, x->t, v, forward);
  set_ready(x, v, !forward);
  for (struct near w = near(c->p, !x->t->reverse, v); (u = next(&w)) != NONE;) {
    if (x->block[u] != x->line)
      continue;
    x->pending[u] += forward ? -1 : 1;
    if (x->pending[u] == !forward)
      set_ready(x, u, forward);
  }
}

/* Makes state `to` what has run: back to where the two part, and on from there. */
static void go_to(struct proof *c, struct search *x, id to) {
  id count = 0, from = x->at, down = to;
  while (from != down && !lied(c)) {
    if (x->state[down].size >= x->state[from].size) {
      x->t->stack[count++] = x->state[down].statement;
      down = x->state[down].parent;
    } else {
      run(c, x, x->state[from].statement, false);
      from = x->state[from].parent;
    }
  }
  while (count > 0)
    run(c, x, x->t->stack[--count], true);
  x->at = lied(c) ? x->at : to;
}

/* Whether what has run, state `at` and more, or `extra`, holds all that state i has. */
static bool holds(const struct search *x, id i, id extra) {
  const struct state *state = x->state;
  for (id from = x->at; i != from;)
    if (state[i].size < state[from].size)
      from = state[from].parent;
    else if (x->t->v[state[i].statement].in || state[i].statement == extra)
      i = state[i].parent;
    else
      return false;
  return true;
}

/* The state that `at` leads to by v, or NONE. */
static id find_state(const struct search *x, id v) {
  uint64_t hash = x->state[x->at].hash + hash_of(v);
  for (size_t k = hash & x->mask; x->table[k]; k = (k + 1) & x->mask) {
    id i = x->table[k] - 1;
    if (x->state[i].hash == hash && x->state[i].size == x->state[x->at].size + 1 && holds(x, i, v))
      return i;
  }
  return NONE;
}

static void file_state(struct search *x, id i) {
  size_t k = x->state[i].hash & x->mask;
  while (x->table[k])
    k = (k + 1) & x->mask;
  x->table[k] = i + 1;
}

static void add_state(struct proof *c, struct search *x, struct state state) {
  if (x->states == x->room) {
    require(c->in, x->room < MANY, "too many states");
    struct state *old = x->state;
    x->room = x->room ? 2 * x->room : 64;
    x->state = take(c->x, (size_t)x->room, sizeof *x->state);
    x->table = take(c->x, 2 * (size_t)x->room, sizeof *x->table);
    x->mask = 2 * (size_t)x->room - 1;
    if (x->states > 0)
      memcpy(x->state, old, (size_t)x->states * sizeof *old);
    for (id i = 0; i < x->states; i++)
      file_state(x, i);
  }
  x->state[x->states] = state;
  file_state(x, x->states++);
}

static void open_states(struct proof *c, struct search *x) {
  id u;
  for (id k = 0; k < x->count; k++) {
    id v = x->list[k];
    for (struct near w = near(c->p, x->t->reverse, v); (u = next(&w)) != NONE;)
      x->pending[v] += !x->t->v[u].in;
    if (!x->pending[v])
      set_ready(x, v, true);
  }
  x->start = x->t->live;
  x->complete = false;
  x->at = 0;
  add_state(c, x, (struct state){.parent = NONE, .statement = NONE});
}

/* Time for this is that of the block, not of the largest one before. */
static void close_states(struct proof *c, struct search *x) {
  DEMAND(c, x->line, x->state[0].claimed, "%s", "state 0 of the block is not claimed");
  if (lied(c))
    return;
  x->stuck |= !x->complete;
  go_to(c, x, 0);
  while (x->many > 0)
    set_ready(x, x->ready[0], false);
  for (id i = 0; i < x->states; i++)
    for (size_t k = x->state[i].hash & x->mask; x->table[k]; k = (k + 1) & x->mask)
      x->table[k] = 0;
  x->states = 0;
}

static id state_number(struct proof *c, const struct search *x) {
  text(c->in, " ");
  int64_t i = number(c->in, INT64_MAX);
  DEMAND(c, c->in->line, i < x->states, "no state %" PRId64, i);
  return lied(c) ? 0 : (id)i;
}

static void claim(struct proof *c, struct search *x, id i) {
  if (lied(c))
    return;
  x->state[i].claimed = true;
  x->complete |= x->state[i].size == x->count;
}

/* The state that is to be claimed; it is made what has run. */
static id claimed_state(struct proof *c, struct search *x) {
  id line = (id)c->in->line, i = state_number(c, x);
  DEMAND(c, line, !x->state[i].claimed, "state %" PRId32 " is claimed already", i);
  go_to(c, x, i);
  DEMAND(c, line, x->t->live >= x->start, "state %" PRId32 " is below the start", i);
  return i;
}

/* c(what has run, v) */
static int64_t cost(const struct proof *c, const struct search *x, id v) {
  int64_t sum = x->t->live + c->p->statements[v].work;
  for (id i = c->p->statements[v].use; i < c->p->statements[v + 1].use; i++)
    sum += begun(c, x->t, c->p->use[i]) ? 0 : c->p->storages[c->p->use[i]].size;
  return sum;
}

static void declare_line(struct proof *c, struct search *x) {
  id line = (id)c->in->line, i = state_number(c, x), v = argument(c->in, c->n);
  end_line(c->in);
  go_to(c, x, i);
  DEMAND(c, line, x->block[v] == x->line && x->slot[v], "%" PRId32 " is not ready there", v);
  DEMAND(c, line, find_state(x, v) == NONE, "it is state %" PRId32, find_state(x, v));
  if (!lied(c))
    add_state(c, x,
              (struct state){x->state[i].hash + hash_of(v), i, v, x->state[i].size + 1, false});
}

static void next_line(struct proof *c, struct search *x) {
  id line = (id)c->in->line, i = claimed_state(c, x);
  end_line(c->in);
  for (id k = 0; k < x->many && !lied(c); k++) {
    id v = x->ready[k], to = cost(c, x, v) < c->bound ? find_state(x, v) : i;
    DEMAND(c, line, to == i || (to != NONE && x->state[to].claimed),
           "what %" PRId32 " leads to is not claimed", v);
  }
  claim(c, x, i);
}

/* Returns the letter behind its chains. */
static int larger_line(struct proof *c, struct search *x) {
  id line = (id)c->in->line, i = claimed_state(c, x), to = state_number(c, x);
  end_line(c->in);
  DEMAND(c, line, x->state[to].claimed, "state %" PRId32 " is not claimed", to);
  open_bounds(x, x->t, line);
  go_to(c, x, to);
  id steps = lied(c) ? 0 : x->state[to].size - x->state[i].size;
  DEMAND(c, line, steps > 0 && holds(x, i, NONE), "state %" PRId32 " is not larger", to);
  int kind = read_bounds(c, x, x->t, steps, x->t->live, letter(c->in));
  close_bounds(x, x->t);
  claim(c, x, i);
  return kind;
}

static void reach_line(struct proof *c, struct search *x) {
  id line = (id)c->in->line, i = claimed_state(c, x), from = state_number(c, x), count = 0;
  DEMAND(c, line, x->state[from].claimed, "state %" PRId32 " is not claimed", from);
  go_to(c, x, from);
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, line, x->block[v] == x->line && x->slot[v], "%" PRId32 " is not ready there", v);
    DEMAND(c, line, cost(c, x, v) < c->bound, "the step to %" PRId32 " is not below the bound", v);
    if (lied(c))
      continue;
    x->t->stack[count++] = v;
    run(c, x, v, true);
  }
  DEMAND(c, line, x->state[i].size == x->state[from].size + count && holds(x, i, NONE),
         "they lead to another state than %" PRId32, i);
  while (count > 0 && !lied(c))
    run(c, x, x->t->stack[--count], false);
  claim(c, x, i);
}

/* ---- Search: the middle ---- */

/* Nothing that matters joins the block with the rest of the middle. */
static void check_block(struct proof *c, struct search *x) {
  const struct program *p = c->p;
  struct trap *t = x->t, *other = x->side + !t->reverse;
  id u;
  for (id k = 0; k < x->count; k++) {
    id v = x->list[k];
    for (int reverse = 0; reverse < 2; reverse++)
      for (struct near w = near(p, reverse, v); (u = next(&w)) != NONE;)
        DEMAND(c, x->line, !in_middle(x, u) || x->block[u] == x->line,
               "a dependence joins %" PRId32 " to another block", v);
    for (id i = p->statements[v].use; i < p->statements[v + 1].use; i++)
      x->used[p->use[i]]++;
  }
  for (id k = 0; k < x->count; k++)
    for (id i = p->statements[x->list[k]].use; i < p->statements[x->list[k] + 1].use; i++) {
      id s = p->use[i];
      bool constant = begun(c, t, s) && begun(c, other, s);
      DEMAND(c, x->line, constant || x->used[s] == x->total[s] - t->s[s].run - other->s[s].run,
             "storage %" PRId32 " joins it to another block", s);
    }
  for (id k = 0; k < x->count; k++)
    for (id i = p->statements[x->list[k]].use; i < p->statements[x->list[k] + 1].use; i++)
      x->used[p->use[i]] = 0;
}

/* Shows that the block is quiet: does not go below its start. */
static int quiet_block(struct proof *c, struct search *x, int kind) {
  int64_t start = x->t->live;
  open_bounds(x, x->t, x->line);
  for (id k = 0; k < x->count && !lied(c); k++)
    put(c, x, x->t, x->list[k], true);
  kind = read_bounds(c, x, x->t, 0, start, kind);
  for (id k = 0; k < x->count && !lied(c); k++)
    put(c, x, x->t, x->list[k], false);
  close_bounds(x, x->t);
  return kind;
}

static bool is_state_line(int kind) {
  return kind == 's' || kind == 'n' || kind == 'd' || kind == 'r';
}

static int block_lines(struct proof *c, struct search *x) {
  x->line = (id)c->in->line;
  x->count = 0;
  while (more(c->in)) {
    id v = (id)number(c->in, c->n - 1);
    DEMAND(c, x->line, in_middle(x, v), "%" PRId32 " is not in the middle", v);
    DEMAND(c, x->line, !x->block[v], "%" PRId32 " is in a block already", v);
    if (lied(c))
      continue;
    x->block[v] = x->line;
    x->list[x->count++] = v;
  }
  DEMAND(c, x->line, x->count > 0, "%s", "the block is empty");
  x->covered += x->count;
  if (!lied(c))
    check_block(c, x);
  int kind = letter(c->in);
  if (!is_state_line(kind))
    kind = quiet_block(c, x, kind);
  else if (!lied(c))
    open_states(c, x);
  DEMAND(c, x->line, !is_state_line(kind) || x->states, "%s",
         "states behind the chains of the block");
  if (!is_state_line(kind))
    return kind;
  while (is_state_line(kind)) {
    if (kind == 'd') {
      kind = larger_line(c, x);
      continue;
    }
    (kind == 's' ? declare_line : kind == 'n' ? next_line : reach_line)(c, x);
    kind = letter(c->in);
  }
  close_states(c, x);
  return kind;
}

static int proof_search(struct proof *c) {
  struct search *x = take(c->x, 1, sizeof *x);
  end_line(c->in);
  if (!lied(c))
    open_search(c, x);
  int kind = letter(c->in);
  while (kind == 'y' || kind == 'k' || kind == 'K') {
    struct trap *t = x->side + is_reverse(c->in);
    if (kind == 'K') {
      kind = joint_commit(c, x, t);
      continue;
    }
    (kind == 'y' ? pivot_line : single_commits)(c, x, t);
    kind = letter(c->in);
  }
  require(c->in, kind == 'm', "y, k, K or m expected");
  x->t = x->side + is_reverse(c->in);
  end_line(c->in);
  for (kind = letter(c->in); kind == 'g';)
    kind = block_lines(c, x);
  DEMAND(c, c->in->line, x->covered == x->middle, "%s", "statements that are in no block");
  DEMAND(c, c->in->line, x->stuck, "%s", "all blocks can be completed");
  return kind;
}

static void check_certificate(struct input *in, const struct program *program, const char *hash) {
  struct proof *c = take(in->x, 1, sizeof *c);
  struct program *p = take(in->x, 1, sizeof *p); /* a copy, for its edges */
  *p = *program;
  *c = (struct proof){.x = in->x, .in = in, .p = p};
  read_head(c, hash);
  int kind = letter(in);
  bool probes = kind == 'a';
  if (probes)
    kind = proof_probes(c);
  if (kind == 't' || kind == 'x')
    DEMAND(c, in->line, !c->circle, "%s", "behind an edge that closes a circle");
  if (kind == 'f' && !probes)
    kind = proof_floor(c);
  else if (kind == 't' || kind == 'x')
    kind = kind == 't' ? proof_trap(c) : proof_search(c);
  else
    DEMAND(c, in->line, c->circle || c->bound == 0, "no proof of %" PRId64, c->bound);
  require(in, kind == 'q', "another kind of line expected");
  text(in, "\n");
  require(in, peek(in) == END, "something behind q");
  if (!lied(c))
    say(in->x, VERIFIED, "s VERIFIED peak %" PRId64 " bound %" PRId64 "%s", c->peak, c->bound,
        c->peak == c->bound ? " optimal" : "");
}

static void free_blocks(struct context *x) {
  for (struct block *block; (block = x->blocks); free(block))
    x->blocks = block->next;
}

#ifndef PEAKPROOF_CHECK_NO_MAIN /* tests include this file */
int main(int count, char **argument) {
  static struct context x; /* static, for longjmp */
  if (count == 2 && (!strcmp(argument[1], "--help") || !strcmp(argument[1], "--version"))) {
    fputs(argument[1][2] == 'h' ? usage : "peakproof-check 0.1.0, format 1\n", stdout);
    return fflush(stdout) ? IO : 0;
  }
  if (count != 3) {
    fputs(usage, stderr);
    return USAGE;
  }
  FILE *program = fopen(argument[1], "rb"), *certificate = fopen(argument[2], "rb");
  if (!program || !certificate) {
    perror(argument[program ? 2 : 1]);
    return NO_INPUT;
  }
  if (!setjmp(x.end)) {
    struct input *in = open_input(&x, "program, ", program);
    struct program *p = take(&x, 1, sizeof *p);
    read_program(in, p);
    check_certificate(open_input(&x, "", certificate), p, in->hash);
  }
  free_blocks(&x);
  fprintf(x.verdict[0] == 's' ? stdout : stderr, "%s\n", x.verdict);
  return fflush(stdout) ? IO : x.status;
}
#endif
