/* peakproof-check in this process: its file is compiled in, not linked to. */
#define PEAKPROOF_CHECK_NO_MAIN
#pragma GCC diagnostic ignored "-Wunused-function"
#include "../../check/peakproof-check.c"

#include "checker.h"

int core_check(const char *program, size_t program_size, const char *certificate,
               size_t certificate_size, char verdict[512]) {
  static struct context x;
  FILE *files[] = {fmemopen((void *)program, program_size, "rb"),
                   fmemopen((void *)certificate, certificate_size, "rb")};
  x = (struct context){.status = VERIFIED};
  if (!setjmp(x.end)) {
    struct input *in = open_input(&x, "program, ", files[0]);
    struct program *p = take(&x, 1, sizeof *p);
    read_program(in, p);
    check_certificate(open_input(&x, "", files[1]), p, in->hash);
  }
  free_blocks(&x);
  fclose(files[0]);
  fclose(files[1]);
  snprintf(verdict, 512, "%s", x.verdict);
  return x.status;
}
