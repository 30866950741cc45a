/* Errors and notices on standard error, and the exit codes that go with them. */
#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"

void pp_tell(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pp_vprint(stdout, format, arguments);
  va_end(arguments);
  putchar('\n');
}

void pp_say(const char *format, ...) {
  va_list arguments;
  fputs("peakproof: ", stderr);
  va_start(arguments, format);
  pp_vprint(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

int pp_usage_error(const char *verb, const char *format, ...) {
  va_list arguments;
  fputs("peakproof: ", stderr);
  va_start(arguments, format);
  pp_vprint(stderr, format, arguments);
  va_end(arguments);
  fprintf(stderr, "\nTry \"peakproof %s%s--help\".\n", verb, *verb ? " " : "");
  return EX_USAGE;
}

int pp_exit_code(pp_status status) {
  switch (status) {
  case PP_OK:
    return PP_EXIT_DONE;
  case PP_ERROR_INPUT:
  case PP_ERROR_OVERFLOW:
    return EX_DATAERR;
  case PP_ERROR_READ:
    return EX_NOINPUT;
  case PP_ERROR_CREATE:
    return EX_CANTCREAT;
  case PP_ERROR_IO:
    return EX_IOERR;
  case PP_ERROR_MEMORY:
    return EX_OSERR;
  default:
    return EX_SOFTWARE;
  }
}

int pp_say_error(const char *path, const pp_error *error) {
  if (error->line >= 0)
    pp_say("%s:%" PRId64 ":%" PRId64 ": %s", path, error->line, error->column, error->message);
  else if (error->offset >= 0)
    pp_say("%s: byte %" PRId64 ": %s", path, error->offset, error->message);
  else
    pp_say("%s: %s", path, error->message);
  int code = pp_exit_code(error->status);
  if (code == EX_SOFTWARE)
    pp_say("this is a bug of peakproof; please report it");
  return code;
}

int pp_say_memory(void) {
  pp_say("out of memory");
  return EX_OSERR;
}

int pp_flush_output(int code) {
  if (!fflush(stdout) && !ferror(stdout))
    return code;
  pp_say("cannot write to standard output");
  return EX_IOERR;
}

void pp_say_notices(const pp_model *model) {
  for (size_t i = 0; i < model->notices.count; i++)
    pp_say("note: %s: %s", model->path, model->notices.text[i]);
}
