/* Files that appear whole or not at all. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/cli.h"

static char folder[] = "/tmp/peakproof-test-XXXXXX";

static char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static size_t entries(void) {
  size_t count = 0;
  DIR *directory = opendir(folder);
  for (struct dirent *entry; (entry = readdir(directory));)
    count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static void expect(const char *path, const char *text) {
  char found[64] = "";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
  fclose(file);
  assert_string_equal(found, text);
}

static int clean(void **state) {
  (void)state;
  DIR *directory = opendir(folder);
  for (struct dirent *entry; (entry = readdir(directory));)
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
      remove(in_folder(entry->d_name));
  closedir(directory);
  return 0;
}

static void a_file_appears_at_commit(void **state) {
  (void)state;
  pp_output *output;
  assert_int_equal(pp_output_open(in_folder("a"), &output, NULL), PP_OK);
  assert_true(pp_output_write("hello", 5, output));
  assert_int_equal(access(in_folder("a"), F_OK), -1);
  assert_int_equal(pp_output_commit(output, NULL), PP_OK);
  expect(in_folder("a"), "hello");
  assert_int_equal(entries(), 1);
}

static void abort_leaves_the_old_file(void **state) {
  (void)state;
  pp_output *output;
  FILE *old = fopen(in_folder("a"), "wb");
  fputs("old", old);
  fclose(old);
  assert_int_equal(pp_output_open(in_folder("a"), &output, NULL), PP_OK);
  assert_true(pp_output_write("new", 3, output));
  pp_output_abort(output);
  expect(in_folder("a"), "old");
  assert_int_equal(entries(), 1);
}

static void links_and_modes_stay(void **state) {
  (void)state;
  pp_output *output;
  struct stat about;
  char target[512];
  FILE *old = fopen(in_folder("a"), "wb");
  fclose(old);
  assert_int_equal(chmod(in_folder("a"), 0640), 0);
  snprintf(target, sizeof target, "%s", in_folder("a"));
  assert_int_equal(symlink(target, in_folder("link")), 0);
  assert_int_equal(pp_output_open(in_folder("link"), &output, NULL), PP_OK);
  assert_true(pp_output_write("new", 3, output));
  assert_int_equal(pp_output_commit(output, NULL), PP_OK);
  expect(in_folder("a"), "new");
  assert_int_equal(lstat(in_folder("link"), &about), 0);
  assert_true(S_ISLNK(about.st_mode));
  assert_int_equal(stat(in_folder("a"), &about), 0);
  assert_int_equal(about.st_mode & 0777, 0640);
}

static void what_cannot_be_created_says_so(void **state) {
  (void)state;
  pp_output *output;
  pp_error error;
  assert_int_equal(pp_output_open(in_folder("no/file"), &output, &error), PP_ERROR_CREATE);
  assert_int_equal(pp_output_open(folder, &output, &error), PP_ERROR_CREATE);
}

static void a_full_disk_is_an_error(void **state) {
  (void)state;
  pp_output *output;
  pp_error error;
  assert_int_equal(pp_output_open("/dev/full", &output, &error), PP_OK);
  assert_true(pp_output_write("x", 1, output)); /* buffered */
  assert_int_equal(pp_output_commit(output, &error), PP_ERROR_IO);
  assert_int_equal(pp_output_open("/dev/null", &output, &error), PP_OK);
  assert_true(pp_output_write("x", 1, output));
  assert_int_equal(pp_output_commit(output, &error), PP_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_file_appears_at_commit, clean),
      cmocka_unit_test_teardown(abort_leaves_the_old_file, clean),
      cmocka_unit_test_teardown(links_and_modes_stay, clean),
      cmocka_unit_test_teardown(what_cannot_be_created_says_so, clean),
      cmocka_unit_test_teardown(a_full_disk_is_an_error, clean),
  };
  if (!mkdtemp(folder))
    return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(folder);
  return failed;
}
