/* Numbers on the command line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/cli.h"

static void sizes_are_read(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t bytes;
  } cases[] = {{"0", 0},
               {"65536", 65536},
               {"7B", 7},
               {"64KiB", 65536},
               {"1MiB", 1048576},
               {"2GiB", 2147483648},
               {"3kB", 3000},
               {"1MB", 1000000},
               {"1GB", 1000000000},
               {"9223372036854775807", INT64_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t bytes = -1;
    assert_true(pp_parse_bytes(cases[i].text, &bytes));
    assert_int_equal(bytes, cases[i].bytes);
  }
}

static void other_sizes_are_refused(void **state) {
  (void)state;
  static const char *const cases[] = {"",
                                      "KiB",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 KiB",
                                      "1.5MB",
                                      "64k",
                                      "64K",
                                      "1kib",
                                      "1e3",
                                      "0x10",
                                      "1KB",
                                      "1TiB",
                                      "9223372036854775808",
                                      "9223372036854775807KiB"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t bytes;
    assert_false(pp_parse_bytes(cases[i], &bytes));
  }
}

static void bytes_are_shown(void **state) {
  (void)state;
  char text[PP_BYTES_TEXT];
  assert_string_equal(pp_bytes_text(text, 0), "0 bytes");
  assert_string_equal(pp_bytes_text(text, 1023), "1023 bytes");
  assert_string_equal(pp_bytes_text(text, 1024), "1024 bytes (1.0 KiB)");
  assert_string_equal(pp_bytes_text(text, 4925896), "4925896 bytes (4.7 MiB)");
  assert_string_equal(pp_bytes_text(text, INT64_MAX), "9223372036854775807 bytes (8.0 EiB)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_are_read),
      cmocka_unit_test(other_sizes_are_refused),
      cmocka_unit_test(bytes_are_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
