/* Runs peakproof-check. */
#include "cli/checker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"

extern char **environ;

/* DIRECTORY (`length` bytes of it) / NAME if that is an executable file; else NULL. */
static char *executable(const char *directory, size_t length, const char *name) {
  size_t size = length + strlen(name) + 2;
  char *path = pp_alloc(size, 1);
  if (!path)
    return NULL;
  snprintf(path, size, "%.*s/%s", (int)length, length ? directory : ".", name);
  if (!access(path, X_OK))
    return path;
  free(path);
  return NULL;
}

static char *beside_us(void) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0)
    return NULL;
  self[length] = 0;
  char *slash = strrchr(self, '/');
  size_t directory = slash ? (size_t)(slash - self) : 0;
  char *path = executable(self, directory, "peakproof-check");
  return path ? path : executable(self, directory, "../check/peakproof-check");
}

static char *in_path(void) {
  const char *path = getenv("PATH");
  while (path) {
    size_t length = strcspn(path, ":");
    char *found = executable(path, length, "peakproof-check");
    if (found)
      return found;
    path = path[length] ? path + length + 1 : NULL;
  }
  return NULL;
}

char *pp_checker_find(const char *given, pp_error *error) {
  char *path = given ? strdup(given) : beside_us();
  if (!path && !given)
    path = in_path();
  if (!path)
    pp_fail(error, PP_ERROR_READ, "cannot find peakproof-check: name it with --checker");
  return path;
}

static pp_status start(char *const arguments[], pid_t *child, int *output, pp_error *error) {
  int ends[2];
  posix_spawn_file_actions_t actions;
  if (pipe(ends))
    return pp_fail(error, PP_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
  int failed = posix_spawn_file_actions_init(&actions);
  if (!failed) {
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    failed = posix_spawn(child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
  }
  close(ends[1]);
  *output = ends[0];
  if (!failed)
    return PP_OK;
  close(ends[0]);
  return pp_fail(error, PP_ERROR_READ, "cannot run: %s", strerror(failed));
}

/* The first line; the rest is read too, so that the child can write it. */
static void read_verdict(int output, char verdict[PP_VERDICT_SIZE]) {
  char block[4096];
  size_t used = 0;
  ssize_t got;
  while ((got = read(output, block, sizeof block)) > 0 || (got < 0 && errno == EINTR))
    for (ssize_t i = 0; i < got && used < PP_VERDICT_SIZE - 1; i++)
      verdict[used++] = block[i];
  verdict[used] = 0;
  verdict[strcspn(verdict, "\n")] = 0;
}

pp_status pp_checker_run(const char *checker, const char *program, const char *certificate,
                         char verdict[PP_VERDICT_SIZE], bool *verified, pp_error *error) {
  char *const arguments[] = {(char *)checker, (char *)program, (char *)certificate, NULL};
  pid_t child;
  int output = -1, result;
  pp_status status = start(arguments, &child, &output, error);
  if (status)
    return status;
  read_verdict(output, verdict);
  close(output);
  while (waitpid(child, &result, 0) < 0)
    if (errno != EINTR)
      return pp_fail(error, PP_ERROR_INTERNAL, "cannot wait for the checker: %s", strerror(errno));
  int code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
  bool accepts = !strncmp(verdict, "s VERIFIED", 10);
  bool refuses = !strncmp(verdict, "s REFUTED", 9) || !strncmp(verdict, "s MALFORMED", 11);
  if ((code == 0) != accepts || !(accepts || (code > 0 && refuses)))
    return pp_fail(error, PP_ERROR_READ, "exit code %d and no verdict that goes with it", code);
  *verified = accepts;
  return PP_OK;
}
