/* Files that appear whole or not at all. */
#define _GNU_SOURCE /* O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "error.h"
#include "memory.h"

/* What is written has no name until it is whole, where the system can do that: a killed process
 * leaves nothing. Elsewhere it has a temporary name in the same directory. */
struct pp_output {
  FILE *file;
  bool direct;     /* to a device or a pipe */
  char *place;     /* what the path names, links followed */
  char *directory; /* of the place */
  char *temporary; /* a name of the file that is not yet the place's, or NULL */
};

static pp_status fail_errno(pp_error *error, pp_status status, const char *what) {
  return pp_fail(error, status, "%s: %s", what, strerror(errno));
}

static void output_free(pp_output *output) {
  if (!output)
    return;
  free(output->place);
  free(output->directory);
  free(output->temporary);
  free(output);
}

/* ---- Temporary files ---- */

enum { TRIES = 1000 };

/* A temporary name that is made of ours and a number; the place's own may be as long as can be. */
static char *temporary_name(const pp_output *output, int number) {
  static const char format[] = "%s/peakproof-%ld-%d.tmp";
  size_t size = strlen(output->directory) + sizeof format + 40;
  char *name = pp_alloc(size, 1);
  if (name)
    snprintf(name, size, format, output->directory, (long)getpid(), number);
  return name;
}

#ifdef O_TMPFILE
static void path_of_descriptor(int file, char path[40]) {
  snprintf(path, 40, "/proc/self/fd/%d", file);
}

/* A file without a name; -1 where there is none, or none that can get a name later. */
static int open_nameless(const pp_output *output) {
  char path[40];
  struct stat ours, seen;
  int file = open(output->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0)
    return -1;
  path_of_descriptor(file, path);
  if (!fstat(file, &ours) && !stat(path, &seen) && ours.st_dev == seen.st_dev &&
      ours.st_ino == seen.st_ino)
    return file;
  close(file);
  return -1;
}

/* Names the file: its place if that is free, else a temporary name, to be renamed at once. */
static bool give_name(pp_output *output) {
  char path[40];
  path_of_descriptor(fileno(output->file), path);
  if (!linkat(AT_FDCWD, path, AT_FDCWD, output->place, AT_SYMLINK_FOLLOW))
    return true;
  for (int number = 0; errno == EEXIST && number < TRIES; number++) {
    char *name = temporary_name(output, number);
    if (!name)
      return false;
    if (!linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW)) {
      output->temporary = name;
      return true;
    }
    int reason = errno;
    free(name);
    errno = reason;
  }
  return false;
}
#else
static int open_nameless(const pp_output *output) {
  (void)output;
  return -1;
}

static bool give_name(pp_output *output) {
  (void)output;
  return false;
}
#endif

static int open_named(pp_output *output) {
  int file = -1;
  errno = EEXIST;
  for (int number = 0; file < 0 && errno == EEXIST && number < TRIES; number++) {
    free(output->temporary);
    output->temporary = temporary_name(output, number);
    if (!output->temporary)
      return -1;
    file = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  if (file < 0) {
    free(output->temporary);
    output->temporary = NULL;
  }
  return file;
}

/* Owner and mode of the file that is replaced, or the mode that a new file gets. Only the old
 * owner's file may have more than permissions. */
static bool set_mode(int file, const struct stat *old) {
  if (!old) {
    mode_t mask = umask(0);
    umask(mask);
    return !fchmod(file, 0666 & ~mask);
  }
  struct stat made;
  (void)!fchown(file, old->st_uid, old->st_gid);
  bool same = !fstat(file, &made) && made.st_uid == old->st_uid && made.st_gid == old->st_gid;
  return !fchmod(file, old->st_mode & (same ? 07777 : 0777));
}

static pp_status open_temporary(pp_output *output, const struct stat *old, pp_error *error) {
  int file = open_nameless(output);
  if (file < 0)
    file = open_named(output);
  if (file >= 0 && set_mode(file, old) && (output->file = fdopen(file, "wb")))
    return PP_OK;
  pp_status status = fail_errno(error, PP_ERROR_CREATE, "cannot create");
  if (file >= 0)
    close(file);
  if (output->temporary)
    unlink(output->temporary);
  return status;
}

/* ---- Outputs ---- */

static pp_status open_directly(pp_output *output, const char *path, pp_error *error) {
  output->direct = true;
  output->file = fopen(path, "wb");
  return output->file ? PP_OK : fail_errno(error, PP_ERROR_CREATE, "cannot create");
}

static char *directory_of(const char *place) {
  const char *slash = strrchr(place, '/');
  if (!slash)
    return strdup(".");
  return strndup(place, slash == place ? 1 : (size_t)(slash - place));
}

/* What is there already, if anything; fails if there is something that no file can be in place of.
 */
static pp_status look(const char *path, struct stat *old, bool *exists, pp_error *error) {
  struct stat link;
  *exists = !stat(path, old);
  if (!*exists && errno != ENOENT)
    return fail_errno(error, PP_ERROR_CREATE, "cannot create");
  if (!*exists && !lstat(path, &link))
    return pp_fail(error, PP_ERROR_CREATE, "is a link to what is not there");
  if (*exists && S_ISDIR(old->st_mode))
    return pp_fail(error, PP_ERROR_CREATE, "is a directory");
  return PP_OK;
}

pp_status pp_output_open(const char *path, pp_output **output, pp_error *error) {
  struct stat old;
  bool exists;
  pp_status status = look(path, &old, &exists, error);
  if (status)
    return status;
  pp_output *made = pp_zalloc(1, sizeof *made);
  if (made) /* a pipe behind /dev/stdout has no real path */
    made->place = exists && S_ISREG(old.st_mode) ? realpath(path, NULL) : strdup(path);
  if (made && made->place)
    made->directory = directory_of(made->place);
  if (!made || !made->directory)
    status = pp_fail_memory(error);
  else if (exists && !S_ISREG(old.st_mode))
    status = open_directly(made, path, error);
  else
    status = open_temporary(made, exists ? &old : NULL, error);
  if (status)
    output_free(made);
  else
    *output = made;
  return status;
}

bool pp_stream_write(const void *bytes, size_t size, void *file) {
  return fwrite(bytes, 1, size, file) == size;
}

bool pp_output_write(const void *bytes, size_t size, void *output) {
  return pp_stream_write(bytes, size, ((pp_output *)output)->file);
}

/* So that the new name survives a crash of the machine. Some file systems cannot: no error. */
static void sync_directory(const pp_output *output) {
  int directory = open(output->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  (void)!fsync(directory);
  close(directory);
}

void pp_output_abort(pp_output *output) {
  if (output->file)
    fclose(output->file);
  if (output->temporary)
    unlink(output->temporary);
  output_free(output);
}

static bool close_directly(pp_output *output) {
  bool written = !ferror(output->file) && !fflush(output->file);
  written &= !fclose(output->file);
  output->file = NULL;
  return written;
}

/* Gives the place the file, once that is whole and on disk. */
static bool publish(pp_output *output) {
  if (ferror(output->file) || fflush(output->file) || fsync(fileno(output->file)) ||
      (!output->temporary && !give_name(output)))
    return false;
  fclose(output->file); /* nothing is left to fail */
  output->file = NULL;
  if (output->temporary && rename(output->temporary, output->place))
    return false;
  free(output->temporary);
  output->temporary = NULL;
  sync_directory(output);
  return true;
}

pp_status pp_output_commit(pp_output *output, pp_error *error) {
  errno = 0;
  if (!(output->direct ? close_directly(output) : publish(output))) {
    pp_status status = errno ? fail_errno(error, PP_ERROR_IO, "cannot write")
                             : pp_fail(error, PP_ERROR_IO, "cannot write");
    pp_output_abort(output);
    return status;
  }
  output_free(output);
  return PP_OK;
}

pp_status pp_output_close(pp_output *output, pp_status status, pp_error *error) {
  if (!status)
    return pp_output_commit(output, error);
  pp_output_abort(output);
  return status;
}

bool pp_same_file(const char *a, const char *b) {
  struct stat x, y;
  return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *pp_path_in(const char *directory, const char *name, const char *extension) {
  size_t size = strlen(directory) + strlen(name) + strlen(extension) + 3;
  char *path = pp_alloc(size, 1);
  bool slash = *directory && directory[strlen(directory) - 1] == '/';
  if (path)
    snprintf(path, size, "%s%s%s.%s", directory, slash ? "" : "/", name, extension);
  return path;
}

pp_status pp_make_directory(const char *path, pp_error *error) {
  struct stat about;
  if (!mkdir(path, 0777))
    return PP_OK;
  if (errno == EEXIST && !stat(path, &about) && S_ISDIR(about.st_mode))
    return PP_OK;
  return fail_errno(error, PP_ERROR_CREATE, "cannot create the directory");
}
