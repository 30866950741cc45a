/* The models of a batch: which there are, and which have a line already. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/batch.h"
#include "memory.h"

void pp_batch_free(pp_batch_models *models) {
  for (size_t i = 0; i < models->count; i++)
    free(models->items[i].path);
  free(models->items);
  *models = (pp_batch_models){0};
}

/* A file that is not there is a model that will fail: its line says so. */
static int add_model(pp_batch_models *models, const char *path) {
  struct stat about = {0};
  if (stat(path, &about))
    memset(&about, 0, sizeof about);
  char *copy = strdup(path);
  if (!copy || !PP_ROOM(models)) {
    free(copy);
    return pp_say_memory();
  }
  models->items[models->count++] = (pp_batch_model){
      .path = copy,
      .size = about.st_size,
      .changed = (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec};
  return PP_EXIT_DONE;
}

/* Cuts the next line off the text; NULL behind the last one. */
static char *next_line(char **text) {
  char *line = *text;
  if (!line)
    return NULL;
  char *end = line + strcspn(line, "\r\n");
  *text = *end ? end + 1 : NULL;
  *end = 0;
  return line;
}

/* ---- A directory ---- */

typedef PP_VECTOR(char *) paths;

static void free_paths(paths *list) {
  for (size_t i = 0; i < list->count; i++)
    free(list->items[i]);
  free(list->items);
}

static char *join(const char *directory, const char *name) {
  size_t size = strlen(directory) + strlen(name) + 2;
  char *path = pp_alloc(size, 1);
  bool slash = *directory && directory[strlen(directory) - 1] == '/';
  if (path)
    snprintf(path, size, "%s%s%s", directory, slash ? "" : "/", name);
  return path;
}

static bool is_model(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && (!strcmp(dot, ".tflite") || !strcmp(dot, ".onnx") || !strcmp(dot, ".json"));
}

/* A saved session is one model: a directory with an index.json. */
static bool is_session(const char *directory) {
  char *index = join(directory, "index.json");
  bool there = index && !access(index, F_OK);
  free(index);
  return there;
}

static int enter(paths *folders, pp_batch_models *models, const char *folder) {
  DIR *directory = opendir(folder);
  int code = PP_EXIT_DONE;
  struct dirent *entry;
  if (!directory) {
    pp_say("%s: cannot read: %s", folder, strerror(errno));
    return EX_NOINPUT;
  }
  while (!code && (entry = readdir(directory))) {
    struct stat about;
    if (*entry->d_name == '.')
      continue;
    char *path = join(folder, entry->d_name);
    if (!path)
      code = pp_say_memory();
    else if (lstat(path, &about) || S_ISLNK(about.st_mode)) /* links may go round in circles */
      about.st_mode = 0;
    if (path && S_ISDIR(about.st_mode) && !is_session(path)) {
      if (PP_ROOM(folders)) {
        folders->items[folders->count++] = path;
        continue;
      }
      code = pp_say_memory();
    } else if (path && (S_ISDIR(about.st_mode) || (S_ISREG(about.st_mode) && is_model(path)))) {
      code = add_model(models, path);
    }
    free(path);
  }
  closedir(directory);
  return code;
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const pp_batch_model *)a)->path, ((const pp_batch_model *)b)->path);
}

static int find_below(const char *path, pp_batch_models *models) {
  paths folders = {0};
  char *first = strdup(path);
  int code = first && PP_ROOM(&folders) ? PP_EXIT_DONE : pp_say_memory();
  if (code)
    free(first);
  else
    folders.items[folders.count++] = first;
  while (!code && folders.count) {
    char *folder = folders.items[--folders.count];
    code = enter(&folders, models, folder);
    free(folder);
  }
  free_paths(&folders);
  if (models->count)
    qsort(models->items, models->count, sizeof *models->items, by_path);
  return code;
}

/* ---- A list ---- */

static int find_listed(const char *path, pp_batch_models *models) {
  uint8_t *bytes;
  size_t size;
  pp_error error;
  if (pp_read_file(path, &bytes, &size, &error))
    return pp_say_error(path, &error);
  int code = PP_EXIT_DONE;
  char *rest = (char *)bytes, *line;
  while (!code && (line = next_line(&rest)))
    if (*line && *line != '#')
      code = add_model(models, line);
  free(bytes);
  return code;
}

int pp_batch_find(const char *path, pp_batch_models *models) {
  struct stat about;
  if (!stat(path, &about) && S_ISDIR(about.st_mode))
    return find_below(path, models);
  return find_listed(path, models);
}

/* ---- What is done already ---- */

/* Cuts off what stands behind the last end of line. */
static bool mend(int file, const uint8_t *bytes, size_t *size) {
  while (*size && bytes[*size - 1] != '\n')
    --*size;
  return !ftruncate(file, (off_t)*size);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The line that begins with the key, or NULL. Lines are sorted: it would stand where the key would.
 */
static const char *find_line(char *const *lines, size_t count, const char *key, size_t length) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strncmp(lines[middle], key, length) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && !strncmp(lines[low], key, length) ? lines[low] + length : NULL;
}

static void mark(pp_batch_model *model, const char *rest) {
  static const char good[] = "\"code\": 0,";
  model->done = rest;
  model->failed = rest && strncmp(rest, good, sizeof good - 1) != 0;
}

static bool mark_done(char *text, pp_batch_models *models) {
  PP_VECTOR(char *) lines = {0};
  pp_collected key = {0};
  bool good = true;
  for (char *line; good && (line = next_line(&text));)
    if ((good = PP_ROOM(&lines)))
      lines.items[lines.count++] = line;
  if (good)
    qsort(lines.items, lines.count, sizeof *lines.items, by_text);
  for (size_t i = 0; good && i < models->count; i++)
    if ((good = pp_batch_key(models->items + i, &key)))
      mark(models->items + i,
           find_line(lines.items, lines.count, (const char *)key.bytes, key.size));
  free(lines.items);
  free(key.bytes);
  return good;
}

static int open_lines(const char *path, int *file) {
  struct stat about;
  *file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (*file < 0 || fstat(*file, &about)) {
    pp_say("%s: cannot create: %s", path, strerror(errno));
    return EX_CANTCREAT;
  }
  if (!S_ISREG(about.st_mode)) {
    pp_say("%s: --jsonl wants a regular file", path);
    return EX_CANTCREAT;
  }
  if (!lockf(*file, F_TLOCK, 0))
    return PP_EXIT_DONE;
  pp_say("%s: another batch writes to it", path);
  return EX_CANTCREAT;
}

/* Through the file that is open: to close another one would give up the lock. */
static bool read_lines(int file, uint8_t **bytes, size_t *size) {
  struct stat about;
  *size = 0;
  *bytes = NULL;
  if (fstat(file, &about) || !(*bytes = pp_alloc((size_t)about.st_size + 1, 1)))
    return false;
  while (*size < (size_t)about.st_size) {
    ssize_t part = pread(file, *bytes + *size, (size_t)about.st_size - *size, (off_t)*size);
    if (part <= 0)
      return false;
    *size += (size_t)part;
  }
  return true;
}

/* Lines that a batch wrote, but for the end of the last one: anything else is not ours to change.
 */
static bool are_ours(const uint8_t *bytes, size_t size) {
  static const char begin[] = "{\"model\": ";
  for (size_t at = 0; at < size;) {
    const uint8_t *newline = memchr(bytes + at, '\n', size - at);
    size_t length = newline ? (size_t)(newline - bytes) - at : size - at;
    size_t known = length < sizeof begin - 1 ? length : sizeof begin - 1;
    if (memcmp(bytes + at, begin, known) || (newline && known < sizeof begin - 1) ||
        memchr(bytes + at, 0, length))
      return false;
    at += length + (newline != NULL);
  }
  return true;
}

int pp_batch_resume(const char *path, pp_batch_models *models, int *file) {
  uint8_t *bytes;
  size_t size;
  int code = open_lines(path, file);
  if (code)
    return code;
  bool good = read_lines(*file, &bytes, &size);
  if (good && !are_ours(bytes, size)) {
    free(bytes);
    pp_say("%s: --jsonl would change a file that holds something else than its lines", path);
    return EX_CANTCREAT;
  }
  good = good && mend(*file, bytes, &size);
  if (good) {
    bytes[size] = 0;
    good = mark_done((char *)bytes, models);
  }
  free(bytes);
  if (good)
    return PP_EXIT_DONE;
  pp_say("%s: cannot read: %s", path, strerror(errno));
  return EX_IOERR;
}
