/* Files that appear whole or not at all. */
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

struct pp_output {
  FILE *file;
  char *place;     /* what the path names, links followed */
  char *temporary; /* NULL: written directly */
};

static pp_status fail_errno(pp_error *error, pp_status status, const char *what) {
  return pp_fail(error, status, "%s: %s", what, strerror(errno));
}

static void output_free(pp_output *output) {
  if (!output)
    return;
  free(output->place);
  free(output->temporary);
  free(output);
}

/* The mode that a new file gets, or the old one's: mkstemp makes private files. */
static mode_t mode_of(const struct stat *old) {
  if (old)
    return old->st_mode & 07777;
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

static pp_status open_temporary(pp_output *output, const struct stat *old, pp_error *error) {
  static const char suffix[] = ".XXXXXX";
  size_t length = strlen(output->place);
  output->temporary = pp_alloc(length + sizeof suffix, 1);
  if (!output->temporary)
    return pp_fail_memory(error);
  memcpy(output->temporary, output->place, length);
  memcpy(output->temporary + length, suffix, sizeof suffix);
  int file = mkstemp(output->temporary);
  if (file < 0) {
    pp_status status = fail_errno(error, PP_ERROR_CREATE, "cannot create");
    free(output->temporary);
    output->temporary = NULL;
    return status;
  }
  if (!fchmod(file, mode_of(old)) && (output->file = fdopen(file, "wb")))
    return PP_OK;
  pp_status status = fail_errno(error, PP_ERROR_CREATE, "cannot create");
  close(file);
  unlink(output->temporary);
  return status;
}

static pp_status open_directly(pp_output *output, const char *path, pp_error *error) {
  output->file = fopen(path, "wb");
  return output->file ? PP_OK : fail_errno(error, PP_ERROR_CREATE, "cannot create");
}

pp_status pp_output_open(const char *path, pp_output **output, pp_error *error) {
  struct stat old;
  bool exists = !stat(path, &old);
  pp_output *made = pp_zalloc(1, sizeof *made);
  if (made) /* a pipe behind /dev/stdout has no real path */
    made->place = exists && S_ISREG(old.st_mode) ? realpath(path, NULL) : strdup(path);
  if (!made || !made->place) {
    output_free(made);
    return pp_fail_memory(error);
  }
  pp_status status;
  if (exists && S_ISDIR(old.st_mode))
    status = pp_fail(error, PP_ERROR_CREATE, "is a directory");
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
static void sync_directory(char *place) {
  char *slash = strrchr(place, '/');
  if (slash)
    slash[slash == place ? 1 : 0] = 0;
  int directory = open(slash ? place : ".", O_RDONLY);
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

pp_status pp_output_commit(pp_output *output, pp_error *error) {
  bool written = !fflush(output->file) && !ferror(output->file) &&
                 (!output->temporary || !fsync(fileno(output->file)));
  int reason = errno;
  written &= !fclose(output->file) || !written;
  output->file = NULL;
  if (written && output->temporary)
    written = !rename(output->temporary, output->place);
  if (!written) {
    errno = reason ? reason : errno;
    pp_status status = fail_errno(error, PP_ERROR_IO, "cannot write");
    pp_output_abort(output);
    return status;
  }
  if (output->temporary)
    sync_directory(output->place);
  output_free(output);
  return PP_OK;
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
