/* What the verbs share: errors and exit codes, options, files that appear whole, the terminal. */
#ifndef PP_CLI_CLI_H
#define PP_CLI_CLI_H

#include <getopt.h>
#include <stdarg.h>

#include "report/planned.h"
#include "report/report.h"

/* Exit codes besides those of sysexits.h (doc/cli.md). */
enum { PP_EXIT_DONE = 0, PP_EXIT_NO = 1, PP_EXIT_INTERRUPTED = 130 };

/* ---- Verbs: one file each; main.c has the table ---- */

typedef int pp_verb(int argc, char **argv);
pp_verb pp_verb_plan, pp_verb_why, pp_verb_convert, pp_verb_verify, pp_verb_remat, pp_verb_arena,
    pp_verb_batch, pp_verb_cuda;

/* ---- Errors (message.c) ---- */

/* A line on standard output, escaped (pp_print). */
void pp_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "peakproof: ..." on standard error, escaped, too. */
void pp_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says what is wrong with the command line and where help is; returns EX_USAGE. */
int pp_usage_error(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says the error, with the file and the position if there are any; returns the exit code. */
int pp_say_error(const char *path, const pp_error *error);
int pp_say_memory(void); /* that there is no more */
int pp_exit_code(pp_status status);
/* What standard output still holds; returns the exit code, `code` if all went well. */
int pp_flush_output(int code);
void pp_say_notices(const pp_model *model);

/* ---- Options (options.c) ---- */

/* The options of every verb that plans. */
enum { PP_DIMENSIONS = 64 }; /* so often --dim may be given */
typedef struct pp_common {
  pp_planned_options plan;
  bool quiet, json, help;
  size_t dimensions; /* --dim */
  pp_dimension dimension[PP_DIMENSIONS];
} pp_common;
enum {
  PP_OPTION_DIM = 256,
  PP_OPTION_TIME,
  PP_OPTION_STATES,
  PP_OPTION_THREADS,
  PP_OPTION_SVG,
  PP_OPTION_TRACE,
  PP_OPTION_HTML,
  PP_OPTION_OWN /* the first value free for a verb's own options */
};
/* clang-format off */
#define PP_COMMON_OPTIONS                                                                          \
  {"help", no_argument, NULL, 'h'},                                                                \
  {"quiet", no_argument, NULL, 'q'},                                                               \
  {"dim", required_argument, NULL, PP_OPTION_DIM},                                                 \
  {"time-limit", required_argument, NULL, PP_OPTION_TIME},                                         \
  {"state-limit", required_argument, NULL, PP_OPTION_STATES},                                      \
  {"threads", required_argument, NULL, PP_OPTION_THREADS}
/* clang-format on */
#define PP_COMMON_HELP                                                                             \
  "      --dim NAME=N          the size of a dimension that an ONNX model only names\n"            \
  "      --time-limit SECONDS  stop planning then, with the best order and bound so far\n"         \
  "      --state-limit N       let the exact search hold at most N states\n"                       \
  "      --threads N           use N threads\n"                                                    \
  "  -q, --quiet               say nothing but errors\n"                                           \
  "  -h, --help                show this text\n"
/* Handles what getopt_long returned if it is a common option, a missing argument or an unknown
 * option. Returns -1 if the option was a common one, the exit code after an error, -2 if it is the
 * verb's own. */
int pp_common_option(const char *verb, int option, char **argv, pp_common *common);

/* A verb's command line. */
typedef struct pp_syntax {
  const char *verb, *help;
  const char *letters;                /* the short options, for getopt_long; ":" first */
  const struct option *options;       /* the long ones */
  int (*own)(int option, void *data); /* takes one of the verb's own; -1, or an exit code */
  int arguments;                      /* how many there must be besides */
  const char *wants;                  /* which: "one model" */
} pp_syntax;
/* Reads a command line. Returns -1 if the verb is to run, with its arguments from argv[optind] on;
 * else the exit code, of a mistake or of --help. `data` is for syntax->own. */
int pp_parse(const pp_syntax *syntax, int argc, char **argv, pp_common *common, void *data);

/* "65536", "64KiB", "1MB" as bytes; false if it is none. */
bool pp_parse_bytes(const char *text, int64_t *bytes);

/* ---- Files (output.c) ---- */

/* A file that appears whole or not at all: written without a name or beside its place, synced, and
 * put there. What is no regular file (a terminal, a pipe, /dev/null) is written directly. */
typedef struct pp_output pp_output;
pp_status pp_output_open(const char *path, pp_output **output, pp_error *error);
bool pp_output_write(const void *bytes, size_t size, void *output); /* a pp_write */
/* All close and free it. After a failure of commit, or abort, the place is as it was. */
pp_status pp_output_commit(pp_output *output, pp_error *error);
void pp_output_abort(pp_output *output);
/* Commits if `status` (of the writing) is PP_OK, else aborts; returns what went wrong first. */
pp_status pp_output_close(pp_output *output, pp_status status, pp_error *error);

/* A pp_write to a stdio stream. */
bool pp_stream_write(const void *bytes, size_t size, void *file);

/* Do both paths name one existing file? */
bool pp_same_file(const char *a, const char *b);
/* DIR/NAME.EXTENSION, malloc'ed; NULL when out of memory. */
char *pp_path_in(const char *directory, const char *name, const char *extension);
pp_status pp_make_directory(const char *path, pp_error *error);

/* ---- Where a call reads and writes (places.c) ---- */

typedef enum pp_place_kind {
  PP_PLACE_MODEL, /* the input that -o may replace */
  PP_PLACE_INPUT,
  PP_PLACE_OUTPUT,
  PP_PLACE_DIRECTORY, /* an output's, of several files */
} pp_place_kind;
typedef struct pp_place {
  const char *option; /* which one names it, for messages */
  const char *path;   /* NULL: it is not given */
  pp_place_kind kind;
} pp_place;
/* Before anything is read or written: refuses two outputs in one place, and outputs over inputs.
 * Returns an exit code. */
int pp_check_places(const char *verb, const pp_place *place, size_t count);
/* Once the model is read: refuses outputs over its other files, and says, unless `quiet`, that a
 * model written elsewhere will not find them. */
int pp_check_companions(const pp_model *model, bool quiet, const pp_place *place, size_t count);
/* The same of the NAME.EXTENSION that a directory (one of the places) will get, once the names of
 * the programs are known. */
int pp_check_names(const pp_model *model, const pp_place *directory, const char *extension,
                   const pp_place *place, size_t count);
/* The same of the proofs that go to --certificate, the only directory among the places. */
int pp_check_proofs(const pp_model *model, const pp_place *place, size_t count);

/* ---- Terminal (terminal.c) ---- */

bool pp_color(FILE *file);
int pp_terminal_width(FILE *file); /* 80 if it is none */
bool pp_unicode(void);             /* does the locale's character set have it? */
/* From here on Ctrl-C makes planning stop with the best so far; a second one ends the process. */
void pp_catch_interrupts(void);
bool pp_interrupted(void);
/* Shows progress on a terminal once work takes over a second, and stops it at an interrupt. */
typedef struct pp_meter {
  bool show, shown;
  const char *name;
  double last;
} pp_meter;
void pp_meter_attach(pp_meter *meter, pp_common *common);
void pp_meter_clear(pp_meter *meter);

/* ---- Pictures (pictures.c) ---- */

/* Files that show one program: the one asked for, or else the one of the highest peak. */
typedef struct pp_pictures {
  const char *svg, *trace, *html;
} pp_pictures;
/* clang-format off */
#define PP_PICTURE_OPTIONS                                                                         \
  {"svg", required_argument, NULL, PP_OPTION_SVG},                                                 \
  {"trace", required_argument, NULL, PP_OPTION_TRACE},                                             \
  {"html", required_argument, NULL, PP_OPTION_HTML}
/* clang-format on */
#define PP_PICTURE_HELP                                                                            \
  "      --svg FILE            draw live bytes before and after, and the bound\n"                  \
  "      --trace FILE          write the storages' lifetimes for Perfetto or Chrome's tracing\n"   \
  "      --html FILE           write a page that shows all of it\n"
/* Is it one of theirs? Then it is stored. */
bool pp_picture_option(int option, pp_pictures *pictures);
/* Writes them; returns the exit code. `original`: the trace shows the original order. */
int pp_write_pictures(const pp_pictures *pictures, const pp_planned *planned, const char *only,
                      bool original);

/* ---- Planning (work.c) ---- */

/* These deal with notices, progress, interrupts and errors, and return PP_EXIT_DONE, or the exit
 * code after an error, with nothing to free. */
int pp_read_model(const char *path, const pp_common *common, pp_model **model);
int pp_plan_model(const pp_model *model, pp_common *common, pp_planned *planned);
int pp_read_and_plan(const char *path, pp_common *common, pp_model **model, pp_planned *planned);

/* ---- Proofs (proof.c) ---- */

/* Writes DIRECTORY/NAME.json and NAME.cert for every program; never over `input` or `output`. */
int pp_write_proofs(const pp_planned *planned, const char *directory, const char *input,
                    const char *output);

#endif
