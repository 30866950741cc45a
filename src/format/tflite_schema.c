#include "format/tflite_schema.h"

#include <inttypes.h>
#include <string.h>

#include "format/tflite_model.h"

/* ---- The schema ---- */

/* A table's fields in order, one sign each:
 *   1 2 4 8   a number of so many bytes
 *   s         a string
 *   b h i l   a vector of elements of 1, 2, 4, 8 bytes
 *   *T        a table of type T, an upper-case letter
 *   [T        a vector of tables of type T
 *   ?U        a table whose type the field before tells, by union U
 *   .         no longer used */
static const char *const types[128] = {
    ['M'] = "4[C[Gs[Bi[D[S[E[F", /* Model */
    ['C'] = "1s44",              /* OperatorCode */
    ['G'] = "[Tii[Os4",          /* SubGraph */
    ['B'] = "b88",               /* Buffer */
    ['D'] = "s4",                /* Metadata */
    ['S'] = "[N[Ns.4",           /* SignatureDef */
    ['N'] = "s4",                /* TensorMap */
    ['E'] = "s",                 /* ExternalBufferGroup */
    ['F'] = "4488s",             /* ExternalBuffer */
    ['T'] = "i14s*Q1*Pi1[V4",    /* Tensor */
    ['O'] = "4ii1?Ob1bi881?R4",  /* Operator */
    ['Q'] = "iiil1?Q4",          /* QuantizationParameters */
    ['P'] = "ii[A",              /* SparsityParameters */
    ['A'] = "141?A1?A",          /* DimensionMetadata */
    ['V'] = "i11",               /* VariantSubType */
};

static const char *const quantization_details[] = {
    "",
    "b",
    "444i",
    "444i",
};
static const char *const sparse_index_vectors[] = {
    "",
    "i",
    "h",
    "b",
};
static const char *const builtin_options[] = {
    "",     "1441441", "1444144", "4ii",  "1",     "144441", "411",      "11",  "11111b", "4",
    "41",   "11",      "1",       "4444", "14411", "..11",   "4",        "i",   "441",    "4",
    "1",    "1",       "",        "44",   "",      "",       "",         "1",   "11",     "1",
    "i",    "111",     "444441",  "",     "",      "4",      "",         "11",  "",       "",
    "1",    "",        "",        "",     "",      "",       "",         "",    "",       "14411",
    "1",    "",        "",        "",     "",      "1",      "",         "1",   "4441",   "44",
    "",     "4",       "",        "",     "44",    "",       "",         "",    "",       "144111",
    "1111", "144111",  "",        "",     "11",    "4",      "",         "1",   "",       "4",
    "1",    "",        "",        "",     "",      "",       "",         "44",  "",       "",
    "",     "",        "44",      "44",   "4",     "",       "",         "",    "",       "",
    "",     "111",     "11",      "4",    "",      "",       "14441444", "411", "",       "",
    "",     "ss",      "",        "",     "88",    "i",      "1",        "",    "",       "",
    "",     "",        "",        "",     "",      "",       "",
};
static const char *const builtin_options_2[] = {
    "",       "8",      "l",       "lll",    "llllb88l88l88l88i",
    "s1s4ib", "l4",     "1lll814", "44",     "l",
    "lll",    "8",      "lllli",   "lllll4", "814",
    "44",     "lll8l1", "l",       "",       "1",
    "4",      "s4b14",  "",        "i",
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The fields of a union's member; none of a member that we do not know. */
static const char *member(char name, unsigned tag) {
  switch (name) {
  case 'Q':
    return tag < COUNT(quantization_details) ? quantization_details[tag] : "";
  case 'A':
    return tag < COUNT(sparse_index_vectors) ? sparse_index_vectors[tag] : "";
  case 'O':
    return tag < COUNT(builtin_options) ? builtin_options[tag] : "";
  case 'R':
    return tag < COUNT(builtin_options_2) ? builtin_options_2[tag] : "";
  }
  return "";
}

/* ---- The walk ---- */

/* `count` offsets at byte `at`, each to a table with these fields. */
struct run {
  size_t at;
  uint32_t count;
  const char *fields;
};

struct walk {
  const pp_flat *flat;
  pp_claims *claims;
  PP_VECTOR(struct run) runs;
  pp_error *error;
};

static pp_status claim(struct walk *walk, size_t at, size_t length, const char *what) {
  switch (pp_claims_add(walk->claims, at, length)) {
  case PP_CLAIMED:
    break;
  case PP_CLAIM_OVERLAPS:
    return pp_fail_at(walk->error, PP_ERROR_INPUT, at, "%s overlaps another object", what);
  case PP_CLAIM_BUDGET:
    return pp_fail_at(walk->error, PP_ERROR_INPUT, at, "%s: the file shares its objects too often",
                      what);
  case PP_CLAIM_MEMORY:
    return pp_fail(walk->error, PP_ERROR_MEMORY, "out of memory");
  }
  return PP_OK;
}

static pp_status follow(struct walk *walk, size_t at, size_t *target, const char *what) {
  *target = pp_flat_target(walk->flat, at);
  if (*target == at || *target > walk->flat->size - 4)
    return pp_fail_at(walk->error, PP_ERROR_INPUT, at, "the offset of %s leaves the file", what);
  return PP_OK;
}

static pp_status verify_vector(struct walk *walk, size_t at, size_t width, const char *what,
                               pp_flat_vector *vector) {
  size_t target;
  pp_status status = follow(walk, at, &target, what);
  if (status)
    return status;
  uint32_t count = pp_flat_u32(walk->flat, target);
  if (count > (walk->flat->size - target - 4) / width)
    return pp_fail_at(walk->error, PP_ERROR_INPUT, target,
                      "%s of %" PRIu32 " elements leaves the file", what, count);
  *vector = (pp_flat_vector){target + 4, count};
  return claim(walk, target, 4 + count * width, what);
}

static pp_status push(struct walk *walk, size_t at, uint32_t count, const char *fields) {
  if (!count)
    return PP_OK;
  if (!PP_ROOM(&walk->runs))
    return pp_fail(walk->error, PP_ERROR_MEMORY, "out of memory");
  walk->runs.items[walk->runs.count++] = (struct run){at, count, fields};
  return PP_OK;
}

/* The bytes that a field takes in its table. */
static size_t width_of(char sign) {
  return sign == '1' ? 1 : sign == '2' ? 2 : sign == '8' ? 8 : 4;
}

/* A field at byte `at`; tag: the value of the byte field before it, or 0. */
static pp_status verify_field(struct walk *walk, const char *sign, size_t at, unsigned tag) {
  pp_flat_vector vector;
  pp_status status;
  switch (*sign) {
  case 's':
    return verify_vector(walk, at, 1, "a string", &vector);
  case 'b':
    return verify_vector(walk, at, 1, "a vector", &vector);
  case 'h':
    return verify_vector(walk, at, 2, "a vector", &vector);
  case 'i':
    return verify_vector(walk, at, 4, "a vector", &vector);
  case 'l':
    return verify_vector(walk, at, 8, "a vector", &vector);
  case '*':
    return push(walk, at, 1, types[(unsigned char)sign[1]]);
  case '?':
    return push(walk, at, 1, member(sign[1], tag));
  case '[':
    status = verify_vector(walk, at, 4, "a vector of tables", &vector);
    return status ? status : push(walk, vector.at, vector.count, types[(unsigned char)sign[1]]);
  }
  return PP_OK; /* a number */
}

/* Table and vtable as they are found in the file. */
struct found {
  size_t table, vtable;
  size_t length; /* of the vtable */
  size_t inside; /* bytes of the table, as the vtable says */
  size_t used;   /* bytes up to the end of the last field */
};

/* Some writers (FlatBuffers' own for Python and Go) let tables of the same fields share a vtable
 * even if one is padded and the other is not. So a table may be shorter than its vtable says; what
 * belongs to it for certain are its fields. */
static pp_status verify_fields(struct walk *walk, struct found *found, const char *sign) {
  unsigned tag = 0;
  for (size_t entry = 4; entry < found->length; entry += 2) {
    size_t offset = pp_flat_u16(walk->flat, found->vtable + entry);
    size_t width = *sign ? width_of(*sign) : 1; /* a field of a newer schema: one byte at least */
    unsigned before = tag;
    tag = 0;
    if (offset && (offset < 4 || offset + width > found->inside))
      return pp_fail_at(walk->error, PP_ERROR_INPUT, found->vtable + entry,
                        "field %zu leaves its table at byte %zu", (entry - 4) / 2, found->table);
    if (offset && offset + width > walk->flat->size - found->table)
      return pp_fail_at(walk->error, PP_ERROR_INPUT, found->vtable + entry,
                        "field %zu of the table at byte %zu leaves the file", (entry - 4) / 2,
                        found->table);
    if (offset && *sign && *sign != '.') {
      pp_status status = verify_field(walk, sign, found->table + offset, before);
      if (status)
        return status;
      tag = *sign == '1' ? walk->flat->bytes[found->table + offset] : 0;
    }
    if (offset && offset + width > found->used)
      found->used = offset + width;
    if (*sign)
      sign += strchr("*[?", *sign) ? 2 : 1;
  }
  return PP_OK;
}

static pp_status verify_table(struct walk *walk, size_t at, const char *fields) {
  struct found found = {.used = 4};
  size_t size = walk->flat->size;
  pp_status status = follow(walk, at, &found.table, "a table");
  if (status)
    return status;
  int64_t vtable = (int64_t)found.table - pp_flat_i32(walk->flat, found.table);
  if (vtable < 0 || vtable > (int64_t)size - 4)
    return pp_fail_at(walk->error, PP_ERROR_INPUT, found.table,
                      "a vtable lies outside of the file");
  found.vtable = (size_t)vtable;
  found.length = pp_flat_u16(walk->flat, found.vtable);
  found.inside = pp_flat_u16(walk->flat, found.vtable + 2);
  if (found.length < 4 || found.length % 2 || found.length > size - found.vtable)
    return pp_fail_at(walk->error, PP_ERROR_INPUT, found.vtable, "a vtable of %zu bytes",
                      found.length);
  if (found.inside < 4)
    return pp_fail_at(walk->error, PP_ERROR_INPUT, found.vtable + 2, "a table of %zu bytes",
                      found.inside);
  if ((status = claim(walk, found.vtable, found.length, "a vtable")) ||
      (status = verify_fields(walk, &found, fields)))
    return status;
  return claim(walk, found.table, found.used, "a table");
}

pp_status pp_tflite_verify(const pp_flat *flat, size_t root, pp_claims *claims, pp_error *error) {
  struct walk walk = {.flat = flat, .claims = claims, .error = error};
  pp_status status = push(&walk, root, 1, types['M']);
  while (!status && walk.runs.count) {
    struct run *run = walk.runs.items + walk.runs.count - 1;
    struct run next = *run;
    run->at += 4;
    if (!--run->count)
      walk.runs.count--;
    status = verify_table(&walk, next.at, next.fields);
  }
  free(walk.runs.items);
  return status;
}
