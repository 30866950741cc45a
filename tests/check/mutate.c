/* mutate - attacks the checker with mutated certificates, in process.
 *
 *   mutate SEED MUTATIONS [SAMPLE] < corpus
 *
 * The corpus (mutate.py makes it) is a sequence of records: a line "PROGRAM STATEMENTS BYTES", then
 * BYTES bytes of a valid certificate for oracle_random(PROGRAM, STATEMENTS). MUTATIONS are spread
 * evenly over the records. An accepted certificate fails if its bound exceeds the optimum by brute
 * force, or if its peak is not that of its order. Prints how many mutations were accepted, refuted
 * and malformed. With SAMPLE, every SAMPLE-th one is written to standard output, for comparison
 * with the second checker: a line "PROGRAM_BYTES CERTIFICATE_BYTES VERDICT", and both texts. */
#define PEAKPROOF_CHECK_NO_MAIN
#include "../../check/peakproof-check.c"

#include "../oracle/oracle.h"

static uint64_t random_state;

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(void) {
  uint64_t z = random_state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static size_t pick(size_t limit) {
  return limit ? draw() % limit : 0;
}

static void *need(void *memory) {
  if (!memory) {
    fputs("mutate: out of memory\n", stderr);
    exit(71);
  }
  return memory;
}

/* ---- A certificate as tokens ---- */

enum { TEXT_MAX = 1 << 16, TOKEN_MAX = 1 << 13 };

struct token {
  char text[72];
  char before; /* '\n': begins a line; ' ' or ',' */
};

struct certificate {
  struct token token[TOKEN_MAX];
  size_t count;
};

static bool parse(const char *text, size_t size, struct certificate *out) {
  out->count = 0;
  char before = '\n';
  for (size_t i = 0; i < size; i++) {
    size_t used = 0;
    if (out->count == TOKEN_MAX)
      return false;
    struct token *t = &out->token[out->count++];
    t->before = before;
    for (; i < size && !strchr(" ,\n", text[i]); i++)
      if (used + 1 < sizeof t->text)
        t->text[used++] = text[i];
    t->text[used] = 0;
    before = i < size ? text[i] : '\n';
  }
  return true;
}

static size_t print(const struct certificate *c, char *out) {
  size_t used = 0;
  for (size_t i = 0; i < c->count; i++) {
    size_t length = strlen(c->token[i].text);
    if (used + length + 2 > TEXT_MAX)
      break;
    if (i > 0)
      out[used++] = c->token[i].before;
    memcpy(out + used, c->token[i].text, length);
    used += length;
  }
  out[used++] = '\n';
  return used;
}

static void erase(struct certificate *c, size_t from, size_t to) {
  memmove(c->token + from, c->token + to, (c->count - to) * sizeof *c->token);
  c->count -= to - from;
}

/* Copies tokens [from, to) in front of `at`. */
static void insert(struct certificate *c, size_t at, size_t from, size_t to) {
  static struct token copy[TOKEN_MAX];
  size_t size = to - from;
  if (c->count + size > TOKEN_MAX)
    return;
  memcpy(copy, c->token + from, size * sizeof *copy);
  memmove(c->token + at + size, c->token + at, (c->count - at) * sizeof *copy);
  memcpy(c->token + at, copy, size * sizeof *copy);
  c->count += size;
}

static size_t line_start(const struct certificate *c, size_t i) {
  while (i > 0 && c->token[i].before != '\n')
    i--;
  return i;
}

static size_t line_end(const struct certificate *c, size_t i) {
  do
    i++;
  while (i < c->count && c->token[i].before != '\n');
  return i;
}

static bool is_number(const struct token *t) {
  return *t->text >= '0' && *t->text <= '9' && strlen(t->text) < 20;
}

static void add(struct token *t, int64_t change) {
  if (!is_number(t))
    return;
  uint64_t value = strtoull(t->text, NULL, 10) + (uint64_t)change;
  snprintf(t->text, sizeof t->text, "%" PRIu64, value);
}

/* ---- Mutations ---- */

static void change_number(struct certificate *c, size_t i) {
  if (!strcmp(c->token[i].text, "f") || !strcmp(c->token[i].text, "r"))
    *c->token[i].text ^= 'f' ^ 'r';
  static const int64_t by[] = {1, -1, 2, -2, 3, -3, 5, 10, -10, 100, INT64_MAX, INT64_MIN};
  if (pick(4) == 0)
    snprintf(c->token[i].text, sizeof c->token[i].text, "%zu", pick(12));
  else
    add(&c->token[i], by[pick(pick(4) ? 6 : sizeof by / sizeof *by)]);
}

/* A line becomes one of another kind that takes such arguments. */
static void change_kind(struct certificate *c, size_t start) {
  static const char *const kinds[] = {"ykK", "snd", "dr", "nge", "sa", "bkg", "tx"};
  const char *kind = kinds[pick(sizeof kinds / sizeof *kinds)];
  for (int tries = 0; tries < 20 && !strchr(kind, *c->token[start].text); tries++)
    kind = kinds[pick(sizeof kinds / sizeof *kinds)];
  *c->token[start].text = kind[pick(strlen(kind))];
}

/* Moves lines [start, end) to a later or earlier place, mostly a near one. */
static void move_lines(struct certificate *c, size_t start, size_t end) {
  size_t size = end - start, to = end;
  for (size_t lines = 1 + pick(4); lines > 0 && to < c->count; lines--)
    to = line_end(c, to);
  if (pick(4) == 0)
    to = line_start(c, pick(c->count));
  if (to > start && to < end)
    return;
  insert(c, to, start, end);
  start += to <= start ? size : 0;
  erase(c, start, start + size);
}

/* Every `a` becomes `b` and the reverse, in lines that begin with one of `letters`. */
static void exchange(struct certificate *c, const char *letters) {
  char a[24], b[24], kind = 0;
  snprintf(a, sizeof a, "%zu", pick(8));
  snprintf(b, sizeof b, "%zu", pick(8));
  for (size_t i = 0; i < c->count; i++) {
    struct token *t = &c->token[i];
    if (t->before == '\n')
      kind = *t->text;
    else if (strchr(letters, kind) && (!strcmp(t->text, a) || !strcmp(t->text, b)))
      strcpy(t->text, strcmp(t->text, a) ? a : b);
  }
}

/* Claims more: a higher bound, and some heavier chains to show it. */
static void raise(struct certificate *c) {
  int64_t more = 1 + (int64_t)pick(pick(3) ? 3 : 50);
  size_t some = 1 + pick(3);
  for (size_t i = 0; i + 1 < c->count; i++)
    if (c->token[i].before == '\n' &&
        ((*c->token[i].text == 'c' && pick(some) == 0) || *c->token[i].text == 'l' ||
         (*c->token[i].text == 'u' && pick(4) == 0)))
      add(&c->token[i + 1], more);
}

/* A chain of weight `weight` that would be good if the order, T and the flow were other ones: each
 * run begins and, most often, ends at accessors of the storages beside it. Returns the length. */
static size_t make_chain(const oracle_program *p, int64_t weight, char *out, size_t size) {
  size_t used = (size_t)snprintf(out, size, "c %" PRId64, weight);
  int s = (int)pick((size_t)p->m);
  for (size_t links = pick(4);; links--) {
    used += (size_t)snprintf(out + used, size - used, " %d", s);
    const oracle_access *first = &p->access[pick(p->accesses)], *last;
    for (int tries = 0; first->storage != s && tries < 100; tries++)
      first = &p->access[pick(p->accesses)];
    if (links == 0 || first->storage != s)
      return used;
    used += (size_t)snprintf(out + used, size - used, " %d", first->statement);
    last = first;
    if (pick(2)) {
      last = &p->access[pick(p->accesses)];
      used += (size_t)snprintf(out + used, size - used, ",%d", last->statement);
    }
    for (int tries = 0; tries < 100; tries++) {
      const oracle_access *next = &p->access[pick(p->accesses)];
      s = next->storage;
      if (next->statement == last->statement && (s != first->storage || pick(9) == 0))
        break;
    }
  }
}

/* Claims more, and adds an invented chain to every line of one kind to show it. */
static void inflate(struct certificate *c, const oracle_program *p) {
  static struct certificate chain;
  static char text[512];
  char to = "eeeebaaKdg"[pick(10)];
  int64_t more = 1 + (int64_t)pick(3);
  if (p->accesses == 0)
    return;
  for (size_t i = c->count; i-- > 0;) {
    if (c->token[i].before != '\n')
      continue;
    if (*c->token[i].text == 'l' && i + 1 < c->count)
      add(&c->token[i + 1], more);
    if (*c->token[i].text != to)
      continue;
    parse(text, make_chain(p, more, text, sizeof text), &chain);
    size_t end = line_end(c, i);
    if (c->count + chain.count > TOKEN_MAX)
      return;
    memmove(c->token + end + chain.count, c->token + end, (c->count - end) * sizeof *c->token);
    memcpy(c->token + end, chain.token, chain.count * sizeof *c->token);
    c->count += chain.count;
  }
}

static void mutate(struct certificate *c, const oracle_program *p) {
  size_t i = pick(c->count), j = pick(c->count);
  if (c->count < 2)
    return;
  if (pick(4) == 0) { /* the proof is the part that matters */
    size_t proof = 0;
    while (proof + 1 < c->count &&
           !(c->token[proof].before == '\n' && *c->token[proof].text == 'l'))
      proof++;
    i = proof + pick(c->count - proof);
  }
  size_t start = line_start(c, i), end = line_end(c, i);
  struct token swap;
  if ((c->token[i].before == '\n' || pick(2)) && pick(4)) /* most often a number */
    i = start + (end > start + 1) + pick(end > start + 1 ? end - start - 1 : 1);
  switch (pick(30)) {
  case 16:
  case 17:
  case 18:
  case 0:
  case 1:
  case 2:
  case 3:
    change_number(c, i);
    break;
  case 4:
  case 5:
    if (pick(4))
      j = start + pick(end - start);
    if (is_number(&c->token[i]) != is_number(&c->token[j]) && pick(4))
      break;
    swap = c->token[i];
    memmove(c->token[i].text, c->token[j].text, sizeof swap.text);
    if (pick(2))
      memmove(c->token[j].text, swap.text, sizeof swap.text);
    break;
  case 6:
    erase(c, i, i + 1);
    break;
  case 7:
    insert(c, i, i, i + 1);
    if (pick(2))
      change_number(c, i);
    break;
  case 8:
    erase(c, start, end);
    break;
  case 9:
    insert(c, line_start(c, j), start, end);
    break;
  case 10:
    insert(c, end, start, end);
    break;
  case 11:
    exchange(c, pick(3) == 0 ? "c" : pick(2) ? "otbe" : "aykKgsndr");
    break;
  case 12:
    if (c->token[i].before != '\n')
      c->token[i].before = " ,\n"[pick(20) ? pick(2) : 2];
    break;
  case 13:
    raise(c);
    break;
  case 14: /* a storage, a run and a storage more, or fewer */
    if (i + 2 < end && pick(2))
      erase(c, i, i + 2);
    else if (i + 2 < c->count)
      insert(c, i, i, i + 2);
    break;
  case 15:
    while (end < c->count && *c->token[end].text == 'c')
      end = line_end(c, end);
    erase(c, start, end); /* an exit's line and all of its chains */
    break;
  case 26:
    change_kind(c, start);
    break;
  case 27:
  case 28:
    while (end < c->count && *c->token[end].text == 'c' && pick(4))
      end = line_end(c, end);
    move_lines(c, start, end);
    break;
  default:
    inflate(c, p);
  }
}

/* ---- Judging ---- */

struct tally {
  uint64_t accepted, refuted, malformed, failures;
};

/* The order and peak that an accepted certificate claims are read from its tokens. */
static bool is_false(const struct certificate *c, const oracle_program *p, int64_t optimum) {
  int order[ORACLE_MAX] = {0};
  int64_t peak = -1, bound = -1;
  for (size_t i = 0; i + 1 < c->count; i++) {
    if (c->token[i].before != '\n')
      continue;
    if (*c->token[i].text == 'o')
      for (int k = 0; k < p->n; k++)
        order[k] = atoi(c->token[i + 1 + (size_t)k].text);
    if (*c->token[i].text == 'u')
      peak = strtoll(c->token[i + 1].text, NULL, 10);
    if (*c->token[i].text == 'l')
      bound = strtoll(c->token[i + 1].text, NULL, 10);
  }
  return bound > optimum || bound < 0 || peak != oracle_peak(p, order);
}

static FILE *memory_file(const char *text, size_t size) {
  return need(fmemopen((void *)(uintptr_t)text, size, "rb"));
}

static int judge(const struct program *p, const char *hash, const char *text, size_t size,
                 struct context *x) {
  FILE *file = memory_file(text, size);
  *x = (struct context){0};
  if (!setjmp(x->end))
    check_certificate(open_input(x, "", file), p, hash);
  free_blocks(x);
  fclose(file);
  return x->status;
}

static void attack(const oracle_program *p, const char *text, size_t size, uint64_t mutations,
                   uint64_t sample, struct tally *tally) {
  static struct certificate original, c;
  static char mutated[TEXT_MAX];
  char *program = NULL;
  size_t program_size = 0;
  FILE *out = need(open_memstream(&program, &program_size));
  oracle_print(p, out);
  fclose(out);
  FILE *in = memory_file(program, program_size);
  static struct context x, y;
  x = (struct context){0};
  struct program *parsed = take(&x, 1, sizeof *parsed);
  struct input *input = open_input(&x, "program, ", in);
  if (!setjmp(x.end))
    read_program(input, parsed);
  int64_t optimum = oracle_optimum(p, NULL);
  if (x.status || !parse(text, size, &original) || judge(parsed, input->hash, text, size, &y) ||
      is_false(&original, p, optimum)) {
    fprintf(stderr, "the certificate of the corpus is not accepted: %s%s\n%s%s", x.verdict,
            y.verdict, program, text);
    exit(1);
  }
  for (uint64_t i = 0; i < mutations; i++) {
    c.count = original.count;
    memcpy(c.token, original.token, original.count * sizeof *c.token);
    for (size_t times = pick(3) ? 1 : 2 + pick(2); times > 0; times--)
      mutate(&c, p);
    size_t used = print(&c, mutated);
    if (pick(100) == 0)
      used = pick(used);
    int status = judge(parsed, input->hash, mutated, used, &y);
    *(status == VERIFIED  ? &tally->accepted
      : status == REFUTED ? &tally->refuted
                          : &tally->malformed) += 1;
    if ((status != VERIFIED && status != REFUTED && status != MALFORMED) ||
        (status == VERIFIED && is_false(&c, p, optimum))) {
      tally->failures++;
      fprintf(stderr, "FAILURE: %s, optimum %" PRId64 "\n%s%.*s", y.verdict, optimum, program,
              (int)used, mutated);
    }
    if (sample && draw() % sample == 0) {
      printf("%zu %zu %s\n%s", program_size, used, y.verdict, program);
      fwrite(mutated, 1, used, stdout);
    }
  }
  free_blocks(&x);
  fclose(in);
  free(program);
}

int main(int count, char **argument) {
  static char text[TEXT_MAX];
  struct tally tally = {0};
  struct record {
    uint64_t seed;
    int statements;
    size_t size, at;
  } *record = NULL;
  size_t records = 0, used = 0, room = 0;
  char *all = NULL;
  if (count < 3) {
    fprintf(stderr, "usage: %s SEED MUTATIONS [SAMPLE] < corpus\n", argument[0]);
    return 64;
  }
  uint64_t seed = strtoull(argument[1], NULL, 10), mutations = strtoull(argument[2], NULL, 10);
  uint64_t sample = count > 3 ? strtoull(argument[3], NULL, 10) : 0;
  for (struct record r; scanf("%" SCNu64 " %d %zu", &r.seed, &r.statements, &r.size) == 3;) {
    if (getchar() != '\n' || r.size >= TEXT_MAX || fread(text, 1, r.size, stdin) < r.size)
      return 65;
    if (used + r.size > room)
      all = need(realloc(all, room = 2 * (room + r.size)));
    record = need(realloc(record, (records + 1) * sizeof *record));
    memcpy(all + used, text, r.size);
    r.at = used;
    used += r.size;
    record[records++] = r;
  }
  for (size_t i = 0; i < records; i++) {
    oracle_program *p = oracle_random(record[i].seed, record[i].statements);
    random_state = seed * 0x2545f4914f6cdd1d + record[i].seed; /* a record can be replayed alone */
    uint64_t share = mutations * (i + 1) / records - mutations * i / records;
    attack(p, all + record[i].at, record[i].size, share, sample, &tally);
    oracle_free(p);
  }
  fprintf(stderr,
          "programs %zu accepted %" PRIu64 " refuted %" PRIu64 " malformed %" PRIu64
          " failures %" PRIu64 "\n",
          records, tally.accepted, tally.refuted, tally.malformed, tally.failures);
  free(all);
  free(record);
  return fflush(stdout) ? 74 : tally.failures > 0;
}
