/* The models of a batch: which there are, and which have a line already. */
#ifndef PP_CLI_BATCH_H
#define PP_CLI_BATCH_H

#include "cli/cli.h"
#include "format/collect.h"

typedef struct pp_batch_model {
  char *path;
  int64_t size, changed; /* bytes; nanoseconds since 1970 */
  bool done, failed;     /* its line is in the file already, and says that it failed */
} pp_batch_model;

typedef struct pp_batch_models {
  pp_batch_model *items;
  size_t count, capacity;
} pp_batch_models;

/* The beginning of the model's line, which says which file it is about; false: out of memory. */
bool pp_batch_key(const pp_batch_model *model, pp_collected *line);

/* All of these return an exit code. Free the models also after a failure. */
int pp_batch_find(const char *path, pp_batch_models *models);
/* Opens the file for more lines, cuts off what a kill left of the last one, locks it, and marks the
 * models that are done. */
int pp_batch_resume(const char *path, pp_batch_models *models, int *file);
void pp_batch_free(pp_batch_models *models);

#endif
