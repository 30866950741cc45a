/* Which files a call reads and writes: no output may hit another one, or an input. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "error.h"
#include "memory.h"

static bool is_output(const pp_place *place) {
  return place->kind == PP_PLACE_OUTPUT || place->kind == PP_PLACE_DIRECTORY;
}

/* Appends the components of a path that is not there, without empty ones and ".". */
static void append(char *place, const char *rest) {
  char *end = place + strlen(place);
  while (*rest) {
    size_t length = strcspn(rest, "/");
    if (length && !(length == 1 && *rest == '.')) {
      *end++ = '/';
      memcpy(end, rest, length);
      end += length;
    }
    rest += length + (rest[length] == '/');
  }
  *end = 0;
}

/* The real path, also of what is not there yet: then that of the nearest directory that is there,
 * and the rest of the path. malloc'ed; NULL when out of memory. */
static char *real_place(const char *path) {
  char *head = strdup(path), *real = NULL;
  size_t rest = strlen(path); /* where the part that is not there begins */
  while (head && !(real = realpath(head, NULL)) && errno != ENOMEM && rest) {
    while (rest && path[rest - 1] == '/')
      rest--;
    while (rest && path[rest - 1] != '/')
      rest--;
    memcpy(head, rest ? path : ".", rest ? rest : 1);
    head[rest ? rest : 1] = 0;
  }
  free(head);
  size_t size = (real ? strlen(real) : 0) + strlen(path + rest) + 2;
  char *place = real ? pp_alloc(size, 1) : NULL;
  if (place) {
    memcpy(place, real, strlen(real) + 1);
    append(place, path + rest);
  }
  free(real);
  return place;
}

/* Do both name one file, there or not? What is written to a device or a terminal does no harm. */
static bool same_place(const char *a, const char *b) {
  struct stat about;
  if (!stat(a, &about) && S_ISCHR(about.st_mode))
    return false;
  if (pp_same_file(a, b))
    return true;
  char *x = real_place(a), *y = real_place(b);
  bool same = x && y && !strcmp(x, y);
  free(x);
  free(y);
  return same;
}

static int refuse(const pp_place *output, const pp_place *other, const char *path) {
  if (is_output(other))
    pp_say("%s: both %s and %s would write there", path, other->option, output->option);
  else
    pp_say("%s: %s would overwrite an input, %s", path, output->option, other->option);
  return EX_CANTCREAT;
}

/* A saved session is a directory of .json files: is the path one that is there? */
static bool is_inside(const char *path, const char *directory) {
  struct stat about;
  size_t length = strlen(path);
  if (stat(directory, &about) || !S_ISDIR(about.st_mode) || length < 5 ||
      strcmp(path + length - 5, ".json") || stat(path, &about))
    return false;
  char *x = real_place(path), *y = real_place(directory);
  bool inside = x && y && !strncmp(x, y, strlen(y)) && x[strlen(y)] == '/';
  free(x);
  free(y);
  return inside;
}

/* `path` is what the output writes: its own path or a file in its directory. */
static int check_path(const pp_place *output, const char *path, const pp_place *place,
                      size_t count) {
  for (size_t i = 0; i < count; i++) {
    const pp_place *other = place + i;
    if (other == output || !other->path)
      continue;
    bool replaces = other->kind == PP_PLACE_MODEL && !strcmp(output->option, "-o");
    bool standard = !is_output(other) && !strcmp(other->path, "-");
    if (replaces || standard)
      continue;
    if (same_place(path, other->path) || (!is_output(other) && is_inside(path, other->path)))
      return refuse(output, other, path);
  }
  return PP_EXIT_DONE;
}

static int check_directory(const pp_place *output, const pp_place *place, size_t count) {
  struct stat about;
  if (stat(output->path, &about)) /* will be made: no file may be made in its place */
    return check_path(output, output->path, place, count);
  if (S_ISDIR(about.st_mode))
    return PP_EXIT_DONE;
  int code = check_path(output, output->path, place, count);
  if (!code)
    pp_say("%s: %s wants a directory, and this is none", output->path, output->option);
  return EX_CANTCREAT;
}

int pp_check_places(const char *verb, const pp_place *place, size_t count) {
  int code = PP_EXIT_DONE;
  for (size_t i = 0; !code && i < count; i++) {
    if (!place[i].path || !is_output(place + i))
      continue;
    if (!*place[i].path)
      return pp_usage_error(verb, "%s wants the name of a file, not \"\"", place[i].option);
    if (!strcmp(place[i].path, "-"))
      return pp_usage_error(verb, "%s -: output to standard output is not supported; name a file",
                            place[i].option);
  }
  for (size_t i = 0; !code && i < count; i++)
    if (place[i].path && place[i].kind == PP_PLACE_DIRECTORY)
      code = check_directory(place + i, place, count);
    else if (place[i].path && place[i].kind == PP_PLACE_OUTPUT)
      code = check_path(place + i, place[i].path, place, count);
  return code;
}

/* ---- Once the model is read ---- */

/* The other files of a model are relative to where it is (an absolute name stays what it is). */
static char *companion_path(const pp_model *model, const char *name) {
  const char *slash = *name == '/' ? NULL : strrchr(model->path, '/');
  size_t length = slash ? (size_t)(slash - model->path) + 1 : 0;
  char *path = pp_alloc(length + strlen(name) + 1, 1);
  if (!path)
    return NULL;
  memcpy(path, model->path, length);
  memcpy(path + length, name, strlen(name) + 1);
  return path;
}

static int check_companions(const pp_model *model, const pp_place *output, const char *path) {
  int code = PP_EXIT_DONE;
  for (size_t i = 0; !code && i < model->companions; i++) {
    char *companion = companion_path(model, model->companion[i]);
    if (!companion)
      code = pp_say_memory();
    else if (same_place(path, companion)) {
      pp_say("%s: %s would overwrite the data of the model's tensors", path, output->option);
      code = EX_CANTCREAT;
    }
    free(companion);
  }
  return code;
}

/* Are both in one directory? */
static bool same_directory(const char *a, const char *b) {
  char *x = real_place(a), *y = real_place(b);
  bool same = x && y && strrchr(x, '/') - x == strrchr(y, '/') - y &&
              !strncmp(x, y, (size_t)(strrchr(x, '/') - x));
  free(x);
  free(y);
  return same;
}

int pp_check_companions(const pp_model *model, bool quiet, const pp_place *place, size_t count) {
  int code = PP_EXIT_DONE;
  for (size_t i = 0; !code && i < count; i++) {
    if (!place[i].path || place[i].kind != PP_PLACE_OUTPUT)
      continue;
    code = check_companions(model, place + i, place[i].path);
    bool model_too = !strcmp(place[i].option, "-o") && model->operations->write;
    if (!code && model->companions && model_too && !quiet &&
        !same_directory(place[i].path, model->path))
      pp_say("note: %s: it names %s%s, which it has to find beside it", place[i].path,
             model->companion[0], model->companions > 1 ? " and other files" : "");
  }
  return code;
}

int pp_check_names(const pp_model *model, const pp_place *directory, const char *extension,
                   const pp_place *place, size_t count) {
  int code = PP_EXIT_DONE;
  for (size_t i = 0; directory->path && !code && i < model->programs; i++) {
    char *path = pp_path_in(directory->path, model->name[i], extension);
    code = path ? check_path(directory, path, place, count) : pp_say_memory();
    if (!code)
      code = check_companions(model, directory, path);
    free(path);
  }
  return code;
}

int pp_check_proofs(const pp_model *model, const pp_place *place, size_t count) {
  const pp_place *directory = place;
  while (directory < place + count && directory->kind != PP_PLACE_DIRECTORY)
    directory++;
  if (directory == place + count)
    return PP_EXIT_DONE;
  int code = pp_check_names(model, directory, "json", place, count);
  return code ? code : pp_check_names(model, directory, "cert", place, count);
}
