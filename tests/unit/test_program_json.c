/* Program JSON: every rule of doc/program-json.md as a table, and round trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/collect.h"
#include "format/model.h"
#include "format/program_reader.h"

static pp_status parse(const char *text, pp_notices *notices, pp_program **program,
                       pp_error *error) {
  return pp_program_parse((const uint8_t *)text, strlen(text), notices, program, error);
}

static char *written(const pp_program *program) {
  pp_collected text = {0};
  assert_int_equal(pp_program_json_write(program, pp_collect, &text, NULL), PP_OK);
  return (char *)text.bytes;
}

/* ---- What is wrong, and where ---- */

struct wrong {
  const char *text;
  int64_t line, column;
  const char *message; /* part of it */
};

#define P "{\"peakproof\":1,"
#define S "\"statements\":[],"

static const struct wrong wrong[] = {
    {"{}", 1, 2, "has no \"peakproof\""},
    {P "\"storages\":[]}", 1, 29, "has no \"statements\""},
    {P "\"statements\":[]}", 1, 31, "has no \"storages\""},
    {"[]", 1, 1, "an object, not an array"},
    {"{\"peakproof\":2}", 1, 14, "version 2"},
    {"{\"peakproof\":\"1\"}", 1, 14, "must be an integer, not a string"},
    {"{\"peakproof\":1,\"peakproof\":1}", 1, 16, "given twice"},
    {P "\"x\":1,\n \"x\":2}", 2, 2, "\"x\" is given twice"},
    {P "\"name\":null}", 1, 23, "must be a string, not null"},
    {P "\"name\":\"\\u0000\"}", 1, 23, "U+0000"},
    {P "\"name\":\"\\ud800\"}", 1, 23, "surrogate"},
    {P "\"name\":\"\\udc00\\ud800\"}", 1, 23, "surrogate"},
    {P "\"name\":\"\xc0\x80\"}", 1, 24, "not UTF-8"},
    {P "\"name\":\"\xed\xa0\x80\"}", 1, 24, "not UTF-8"},
    {P "\"\\ud800\":1}", 1, 16, "surrogate"},
    {P "\"statements\":{}}", 1, 29, "must be an array, not an object"},
    {P "\"statements\":[1]}", 1, 30, "holds objects, not an integer"},
    {P "\"statements\":[[]]}", 1, 30, "holds objects, not an array"},
    {P "\"statements\":[{\"work\":-1}]}", 1, 38, "-1 is not an integer"},
    {P "\"statements\":[{\"work\":1.0}]}", 1, 38, "1.0 is not an integer"},
    {P "\"statements\":[{\"work\":1e3}]}", 1, 38, "1e3 is not an integer"},
    {P "\"statements\":[{\"work\":9223372036854775808}]}", 1, 38,
     "not an integer from 0 to 2^63-1"},
    {P "\"statements\":[{\"work\":[\n1,[]]}]}", 2, 3, "\"work\" holds integers, not an array"},
    {P "\"statements\":[{\"work\":true}]}", 1, 38, "an integer or an array of integers"},
    {P "\"statements\":[{\"work\":[9223372036854775807,1]}]}", 1, 30, "work exceeds"},
    {P "\"statements\":[{\"pure\":1}]}", 1, 38, "must be a boolean"},
    {P "\"statements\":[{\"macs\":-5}]}", 1, 38, "not an integer"},
    {P "\"statements\":[{\"line\":\"3\"}]}", 1, 38, "must be an integer"},
    {P "\"statements\":[{\"name\":\"a\",\"name\":\"b\"}]}", 1, 42, "given twice"},
    {P "\"statements\":[{\"q\":1,\"q\":1}]}", 1, 37, "given twice"},
    {P "\"statements\":[{\"reads\":0}]}", 1, 39, "must be an array"},
    {P "\"statements\":[{\"reads\":[\"0\"]}]}", 1, 40, "not a string"},
    {P "\"statements\":[{\"reads\":[[0]]}]}", 1, 42, "not 1 integers"},
    {P "\"statements\":[{\"reads\":[[0,0,1,2]]}]}", 1, 48, "not 4 integers"},
    {P "\"statements\":[{\"reads\":[[0,1,1]]}]}", 1, 41, "empty"},
    {P "\"statements\":[{\"reads\":[[0,2,1]]}]}", 1, 41, "empty"},
    {P "\"statements\":[{\"reads\":[0]}],\"storages\":[]}", 1, 40, "storage 0 does not exist"},
    {P "\"storages\":[],\"statements\":[{\"reads\":[0]}]}", 1, 54, "storage 0 does not exist"},
    {P "\"statements\":[{\"reads\":[4294967296]}],\"storages\":[]}", 1, 40, "does not exist"},
    {P "\"statements\":[{\"writes\":[[0,0,5]]}],\"storages\":[{\"bytes\":4}]}", 1, 42,
     "which has 4"},
    {P "\"storages\":[{\"bytes\":4}],\"statements\":[{\"writes\":[[0,0,5]]}]}", 1, 67,
     "which has 4"},
    {P "\"statements\":[{\"overwrites\":[0]}],\"storages\":[{\"bytes\":4}]}", 1, 45,
     "\"overwrites\" lists bytes of storage 0"},
    {P "\"statements\":[{\"overwrites\":[[0,0,3]],\"writes\":[[0,0,2]]}],\"storages\":[{\"bytes\":"
       "4}]}",
     1, 46, "\"overwrites\""},
    {P "\"statements\":[{\"overwrites\":[[0,0,4]],\"writes\":[[0,0,1],[0,2,4]]}],"
       "\"storages\":[{\"bytes\":4}]}",
     1, 46, "\"overwrites\""},
    {P "\"statements\":[{\"overwrites\":[0],\"writes\":[[0,0,3]]}],\"storages\":[{\"bytes\":4}]}",
     1, 45, "\"overwrites\""},
    {P S "\"storages\":[{}]}", 1, 44, "has no \"bytes\""},
    {P S "\"storages\":[{\"bytes\":9223372036854775807},{\"bytes\":1}]}", 1, 83, "exceed 2^63-1"},
    {P
     "\"statements\":[{\"name\":\"v\",\"work\":9223372036854775807}],\"storages\":[{\"bytes\":1}]}",
     1, 30, "exceed 2^63-1"},
    {P S "\"storages\":[],\"order\":[[0,1]]}", 1, 56, "does not exist"},
    {P "\"statements\":[{},{}],\"storages\":[],\"order\":[[1,0]]}", 1, 61, "does not go forward"},
    {P "\"statements\":[{},{}],\"storages\":[],\"order\":[[1,1]]}", 1, 61, "does not go forward"},
    {P "\"order\":[[0,2]],\"statements\":[{},{}],\"storages\":[]}", 1, 26, "does not exist"},
    {P S "\"storages\":[],\"order\":[[0]]}", 1, 57, "not 1 integers"},
    {P S "\"storages\":[],\"order\":[0]}", 1, 55, "holds pairs"},
    {P "\"statements\":[", 1, 30, "ends in the middle"},
    {P "}", 1, 16, "not JSON"},
    {P S "\"storages\":[]} x", 1, 47, "not JSON"},
    {P S "\"storages\":[],}", 1, 46, "not JSON"},
    {P "'statements':[]}", 1, 16, "not JSON"},
    {"// no comments\n{}", 1, 1, "not JSON"},
};

static void errors_say_what_and_where(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    pp_program *program;
    pp_error error;
    pp_status status = parse(wrong[i].text, NULL, &program, &error);
    if (status != PP_ERROR_INPUT || error.line != wrong[i].line ||
        error.column != wrong[i].column || !strstr(error.message, wrong[i].message))
      fail_msg("%s: %s, %lld:%lld, \"%s\"", wrong[i].text, pp_status_name(status),
               (long long)error.line, (long long)error.column, error.message);
  }
}

/* ---- What is right ---- */

static void right_text_is_written_canonically(void **state) {
  (void)state;
  static const struct {
    const char *text, *canonical;
  } right[] = {
      {P S "\"storages\":[]}",
       "{\"peakproof\":1,\"name\":\"\",\n\"statements\":[\n],\n\"storages\":[\n]}\n"},
      {"\n{ \"storages\" : [ { \"live_out\":true, \"bytes\":4,\"live_in\":false,\"name\":\"s\\\"\" "
       "} ],\r\n"
       "\"order\":[],\t\"statements\":[{\"writes\":[0,[0,1,2]],\"work\":[0,3,0],\"macs\":0,"
       "\"pure\":true,"
       "\"reads\":[[0,0,1]],\"name\":\"\\u0041\\ud83d\\ude00\",\"overwrites\":[[0,1,2]],\"line\":7}"
       "],"
       "\"name\":\"p\",\"peakproof\":1}",
       "{\"peakproof\":1,\"name\":\"p\",\n\"statements\":[\n{\"name\":\"A\xf0\x9f\x98\x80\","
       "\"work\":3,"
       "\"reads\":[[0,0,1]],\"writes\":[0,[0,1,2]],\"overwrites\":[[0,1,2]],\"line\":7,\"macs\":0,"
       "\"pure\":true}\n],\n\"storages\":[\n{\"name\":\"s\\\"\",\"bytes\":4,\"live_out\":true}\n]}"
       "\n"},
      {P "\"order\":[[0,1]],\"statements\":[{\"writes\":[0],\"overwrites\":[[0,0,2]]},"
         "{\"work\":[1,2],\"writes\":[[0,0,1],[0,1,4]],\"overwrites\":[0,[0,0,3]]}],"
         "\"storages\":[{\"bytes\":4}]}",
       "{\"peakproof\":1,\"name\":\"\",\n\"statements\":[\n"
       "{\"name\":\"\",\"writes\":[0,[0,0,2]],\"overwrites\":[[0,0,2]]},\n"
       "{\"name\":\"\",\"work\":[1,2],\"writes\":[[0,0,1],[0,1,4],0,[0,0,3]],\"overwrites\":[0,[0,"
       "0,3]]}\n"
       "],\n\"storages\":[\n{\"name\":\"\",\"bytes\":4}\n],\n\"order\":[\n[0,1]\n]}\n"},
  };
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    pp_program *program;
    pp_error error;
    if (parse(right[i].text, NULL, &program, &error))
      fail_msg("%s: %s", right[i].text, error.message);
    char *text = written(program);
    assert_string_equal(text, right[i].canonical);
    pp_program_free(program);
    free(text);
  }
}

static void unknown_keys_are_noticed_once(void **state) {
  (void)state;
  pp_notices notices = {0};
  pp_program *program;
  assert_int_equal(
      parse(P "\"x\":{\"statements\":[{\"a\":1,\"a\":2}]},\"statements\":[{\"x\":[]},{\"x\":null}],"
              "\"storages\":[{\"bytes\":1,\"x\":1},{\"bytes\":1}]}",
            &notices, &program, NULL),
      PP_OK);
  pp_program_free(program);
  assert_int_equal(notices.count, 4);
  assert_string_equal(notices.text[0], "1:16: ignored the unknown key \"x\" of the program");
  assert_string_equal(notices.text[1], "1:66: ignored the unknown key \"x\" of a statement");
  assert_string_equal(notices.text[2], "1:109: ignored the unknown key \"x\" of a storage");
  assert_non_null(
      strstr(notices.text[3], "no statement accesses 2 of the storages (0 is the first)"));
  pp_notices_free(&notices);
}

/* Sixteen are told by name, the others as a number. */
static void many_unknown_keys_do_not_slow_down(void **state) {
  (void)state;
  pp_collected text = {0};
  pp_notices notices = {0};
  pp_program *program;
  pp_collect(P, strlen(P), &text);
  for (int i = 0; i < 100000; i++) {
    char key[32];
    int length = snprintf(key, sizeof key, "\"k%d\":0,", i);
    pp_collect(key, (size_t)length, &text);
  }
  pp_collect(S "\"storages\":[]}", strlen(S "\"storages\":[]}"), &text);
  assert_int_equal(parse((char *)text.bytes, &notices, &program, NULL), PP_OK);
  pp_program_free(program);
  assert_int_equal(notices.count, 17);
  assert_non_null(strstr(notices.text[15], "ignored the unknown key \"k15\""));
  assert_string_equal(notices.text[16], "ignored 99984 more unknown keys");
  pp_notices_free(&notices);
  free(text.bytes);
}

/* ---- Round trips of random programs ---- */

static uint64_t seed = 1;

static unsigned pick(unsigned below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % below;
}

static void add_random_access(pp_program *program, pp_index storage, int64_t bytes) {
  static const unsigned flags[] = {PP_READ, PP_WRITE, PP_READ | PP_WRITE, PP_WRITE | PP_OVERWRITE,
                                   PP_READ | PP_WRITE | PP_OVERWRITE};
  int64_t from = PP_WHOLE, to = PP_WHOLE;
  if (bytes && pick(2)) {
    from = pick((unsigned)bytes);
    to = from + 1 + pick((unsigned)(bytes - from));
  }
  /* The same access twice with other flags is legal, but has no text of its own. */
  pp_statement_info info = pp_program_statement(program, pp_program_statements(program) - 1);
  for (size_t i = 0; i < info.accesses; i++)
    if (info.access[i].storage == storage && info.access[i].from == from && info.access[i].to == to)
      return;
  assert_int_equal(pp_program_add_access(program, storage, from, to, flags[pick(5)], NULL), PP_OK);
}

static pp_program *random_program(void) {
  static const char *const names[] = {NULL, "", "a", "\"\\\n", "\xc3\xa9", "\xff\xfe"};
  pp_program *program = pp_program_new(NULL);
  unsigned storages = pick(6), statements = pick(6);
  int64_t bytes[6];
  pp_program_set_name(program, names[pick(6)], NULL);
  for (unsigned s = 0; s < storages; s++)
    pp_program_add_storage(program, names[pick(6)], bytes[s] = pick(50), pick(4), NULL, NULL);
  for (unsigned v = 0; v < statements; v++) {
    pp_program_add_statement(program, names[pick(6)], NULL);
    for (unsigned i = pick(4); i; i--)
      pp_program_add_work(program, pick(3), NULL);
    for (unsigned i = pick(5); storages && i; i--) {
      unsigned s = pick(storages);
      add_random_access(program, (pp_index)s, bytes[s]);
    }
    if (pick(2))
      pp_program_set_macs(program, pick(9), NULL);
    if (pick(2))
      pp_program_set_line(program, pick(9), NULL);
    pp_program_set_pure(program, pick(2), NULL);
    if (v)
      pp_program_add_order(program, (pp_index)pick(v), (pp_index)v, NULL);
  }
  assert_int_equal(pp_program_finish(program, NULL), PP_OK);
  return program;
}

/* Bit u of the result: statement u is an ancestor of v. */
static unsigned ancestors(const pp_program *program, pp_index v) {
  const pp_index *predecessor;
  size_t count = pp_program_predecessors(program, v, &predecessor);
  unsigned set = 0;
  for (size_t i = 0; i < count; i++)
    set |= 1u << predecessor[i] | ancestors(program, predecessor[i]);
  return set;
}

static void expect_same_meaning(const pp_program *a, const pp_program *b) {
  pp_index n = pp_program_statements(a);
  int64_t peak_a, peak_b;
  assert_int_equal(n, pp_program_statements(b));
  assert_int_equal(pp_program_storages(a), pp_program_storages(b));
  assert_int_equal(pp_simulate(a, NULL, &peak_a, NULL, NULL, NULL), PP_OK);
  assert_int_equal(pp_simulate(b, NULL, &peak_b, NULL, NULL, NULL), PP_OK);
  assert_int_equal(peak_a, peak_b);
  for (pp_index v = 0; v < n; v++)
    assert_int_equal(ancestors(a, v), ancestors(b, v));
}

static void round_trips_are_identical(void **state) {
  (void)state;
  for (int i = 0; i < 20000; i++) {
    pp_program *program = random_program(), *again;
    char *first = written(program);
    pp_error error;
    if (parse(first, NULL, &again, &error))
      fail_msg("%s: %s", first, error.message);
    char *second = written(again);
    assert_string_equal(first, second);
    expect_same_meaning(program, again);
    pp_program_free(program);
    pp_program_free(again);
    free(first);
    free(second);
  }
}

/* ---- As a model ---- */

static pp_model *model_of(const char *path, const char *text, pp_error *error) {
  pp_model *model = NULL;
  uint8_t *bytes = malloc(strlen(text) + 1);
  strcpy((char *)bytes, text);
  return pp_model_read_bytes(path, bytes, strlen(text), NULL, &model, error) ? NULL : model;
}

static void names_become_file_names(void **state) {
  (void)state;
  static const struct {
    const char *path, *name, *file;
  } cases[] = {{"a/b.json", "", "b"},
               {"a/b.json", "main", "main"},
               {"x", "../../etc/passwd", "_._.._etc_passwd"},
               {"x", "-o", "_o"},
               {".json", "", "_json"},
               {"-", "", "_"},
               {"x", "\xc3\xa9 b", "___b"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[200];
    snprintf(text, sizeof text, P "\"name\":\"%s\"," S "\"storages\":[]}", cases[i].name);
    pp_model *model = model_of(cases[i].path, text, NULL);
    assert_non_null(model);
    assert_string_equal(model->name[0], cases[i].file);
    pp_model_free(model);
  }
}

static void other_files_are_refused(void **state) {
  (void)state;
  pp_error error;
  pp_model *model;
  assert_null(model_of("x", "", &error));
  assert_int_equal(error.offset, 0);
  assert_null(model_of("x", "hello", &error));
  assert_int_equal(error.status, PP_ERROR_INPUT);
  assert_int_equal(pp_model_read("/no/such/file", NULL, &model, &error), PP_ERROR_READ);
  assert_int_equal(pp_model_read("/tmp", NULL, &model, &error), PP_ERROR_READ);
}

static void a_model_can_be_built_twice_and_permuted(void **state) {
  (void)state;
  static const char text[] =
      P "\"statements\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}],"
        "\"storages\":[],\"order\":[[0,2]]}";
  static const pp_index order[] = {1, 0, 2}, illegal[] = {2, 1, 0};
  const pp_index *orders[] = {order}, *illegals[] = {illegal};
  pp_model *model = model_of("x", text, NULL);
  pp_program *first, *second;
  pp_collected out = {0};
  pp_error error;
  assert_int_equal(pp_model_build(model, 0, NULL, &first, NULL), PP_OK);
  assert_int_equal(pp_model_build(model, 0, NULL, &second, NULL), PP_OK);
  pp_program_free(first);
  pp_program_free(second);
  assert_int_equal(pp_model_write(model, orders, pp_collect, &out, &error), PP_OK);
  assert_string_equal(out.bytes,
                      "{\"peakproof\":1,\"name\":\"\",\n\"statements\":[\n{\"name\":\"b\"},\n"
                      "{\"name\":\"a\"},\n{\"name\":\"c\"}\n],\n\"storages\":[\n],\n"
                      "\"order\":[\n[1,2]\n]}\n");
  assert_int_equal(pp_model_write(model, illegals, pp_collect, &out, &error), PP_ERROR_INPUT);
  free(out.bytes);
  pp_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_say_what_and_where),
      cmocka_unit_test(right_text_is_written_canonically),
      cmocka_unit_test(unknown_keys_are_noticed_once),
      cmocka_unit_test(many_unknown_keys_do_not_slow_down),
      cmocka_unit_test(round_trips_are_identical),
      cmocka_unit_test(names_become_file_names),
      cmocka_unit_test(other_files_are_refused),
      cmocka_unit_test(a_model_can_be_built_twice_and_permuted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
