/* Names and paths on a terminal. */
#include <stdarg.h>
#include <stdlib.h>

#include "memory.h"
#include "report/report.h"

/* C0, DEL, and in UTF-8 C1 (0xc2 0x80 to 0xc2 0x9f), which terminals obey as well. */
static size_t control(const unsigned char *c) {
  if (*c < 0x20 || *c == 0x7f)
    return 1;
  return *c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

static void print_escaped(FILE *file, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c;) {
    size_t escaped = control(c);
    if (!escaped)
      putc(*c++, file);
    for (; escaped; escaped--)
      fprintf(file, "\\x%02x", *c++);
  }
}

void pp_print(FILE *file, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pp_vprint(file, format, arguments);
  va_end(arguments);
}

void pp_vprint(FILE *file, const char *format, va_list arguments) {
  char brief[512]; /* what does not fit needs memory; without any, its beginning must do */
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(brief, sizeof brief, format, arguments);
  char *text = length >= (int)sizeof brief ? pp_alloc((size_t)length + 1, 1) : NULL;
  if (text)
    vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  print_escaped(file, text ? text : brief);
  free(text);
}
