/* The JSON emitter and UTF-8. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "format/json.h"

struct sink {
  char text[1 << 17];
  size_t used, refuse_at;
};

static bool sink_write(const void *bytes, size_t size, void *data) {
  struct sink *sink = data;
  if (sink->refuse_at && sink->used + size > sink->refuse_at)
    return false;
  assert_true(sink->used + size < sizeof sink->text);
  memcpy(sink->text + sink->used, bytes, size);
  sink->used += size;
  sink->text[sink->used] = 0;
  return true;
}

static void strings_are_escaped(void **state) {
  (void)state;
  static struct sink sink;
  pp_json json;
  pp_json_begin(&json, sink_write, &sink);
  pp_json_string(&json, "a\"b\\c\n\x01\x7f \xc3\xa9 \xff\xed\xa0\x80 \xf0\x9f\x98\x80");
  assert_int_equal(pp_json_end(&json, NULL), PP_OK);
  assert_string_equal(sink.text, "\"a\\\"b\\\\c\\u000a\\u0001\x7f \xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd"
                                 "\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80\"");
}

static void integers_reach_both_ends(void **state) {
  (void)state;
  static struct sink sink;
  pp_json json;
  pp_json_begin(&json, sink_write, &sink);
  pp_json_key_integer(&json, "[", INT64_MIN);
  pp_json_key_integer(&json, ",", INT64_MAX);
  pp_json_key_integer(&json, ",", 0);
  pp_json_key_bool(&json, ",", true);
  pp_json_text(&json, "]");
  assert_int_equal(pp_json_end(&json, NULL), PP_OK);
  assert_string_equal(sink.text, "[-9223372036854775808,9223372036854775807,0,true]");
}

static void long_text_passes_the_buffer(void **state) {
  (void)state;
  static struct sink sink;
  static char text[50001];
  pp_json json;
  memset(text, 'x', sizeof text - 1);
  pp_json_begin(&json, sink_write, &sink);
  pp_json_string(&json, text);
  assert_int_equal(pp_json_end(&json, NULL), PP_OK);
  assert_int_equal(sink.used, sizeof text + 1);
  assert_memory_equal(sink.text + 1, text, sizeof text - 1);
}

static void a_refused_write_is_an_error(void **state) {
  (void)state;
  static struct sink sink = {.refuse_at = 20000};
  pp_error error;
  pp_json json;
  pp_json_begin(&json, sink_write, &sink);
  for (int i = 0; i < 20000; i++)
    pp_json_integer(&json, i);
  assert_int_equal(pp_json_end(&json, &error), PP_ERROR_IO);
  assert_int_equal(error.status, PP_ERROR_IO);
}

static void utf8_is_strict(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t length;
  } cases[] = {{"a", 1},
               {"\xc2\x80", 2},
               {"\xdf\xbf", 2},
               {"\xe0\xa0\x80", 3},
               {"\xed\x9f\xbf", 3},
               {"\xee\x80\x80", 3},
               {"\xef\xbf\xbf", 3},
               {"\xf0\x90\x80\x80", 4},
               {"\x80", 0},
               {"\xc0\xaf", 0},
               {"\xc1\xbf", 0},
               {"\xe0\x9f\xbf", 0},
               {"\xed\xa0\x80", 0},
               {"\xf0\x8f\xbf\xbf", 0},
               {"\xf4\x90\x80\x80", 0},
               {"\xf5\x80\x80\x80", 0},
               {"\xc3", 0},
               {"\xe2\x82", 0},
               {"\xc3(", 0},
               {"\xff", 0},
               {"\xf4\x8f\xbf\xbf", 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(pp_utf8_length((const unsigned char *)cases[i].text), cases[i].length);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings_are_escaped),
      cmocka_unit_test(integers_reach_both_ends),
      cmocka_unit_test(long_text_passes_the_buffer),
      cmocka_unit_test(a_refused_write_is_an_error),
      cmocka_unit_test(utf8_is_strict),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
