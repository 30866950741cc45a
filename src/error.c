#include "error.h"

#include <stdarg.h>
#include <stdio.h>

const char *pp_version(void) {
  return PP_VERSION;
}

const char *pp_status_name(pp_status status) {
  switch (status) {
  case PP_OK:
    return "PP_OK";
  case PP_ERROR_USAGE:
    return "PP_ERROR_USAGE";
  case PP_ERROR_INPUT:
    return "PP_ERROR_INPUT";
  case PP_ERROR_OVERFLOW:
    return "PP_ERROR_OVERFLOW";
  case PP_ERROR_READ:
    return "PP_ERROR_READ";
  case PP_ERROR_CREATE:
    return "PP_ERROR_CREATE";
  case PP_ERROR_IO:
    return "PP_ERROR_IO";
  case PP_ERROR_MEMORY:
    return "PP_ERROR_MEMORY";
  case PP_ERROR_INTERNAL:
    return "PP_ERROR_INTERNAL";
  }
  return "PP_ERROR_UNKNOWN";
}

__attribute__((format(printf, 4, 0))) static void
fill(pp_error *error, pp_status status, int64_t offset, const char *format, va_list arguments) {
  if (!error)
    return;
  error->status = status;
  error->line = error->column = -1;
  error->offset = offset;
  vsnprintf(error->message, sizeof error->message, format, arguments);
}

pp_status pp_fail(pp_error *error, pp_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, status, -1, format, arguments);
  va_end(arguments);
  return status;
}

pp_status pp_fail_at(pp_error *error, pp_status status, size_t offset, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, status, (int64_t)offset, format, arguments);
  va_end(arguments);
  return status;
}

pp_status pp_fail_memory(pp_error *error) {
  return pp_fail(error, PP_ERROR_MEMORY, "out of memory");
}
