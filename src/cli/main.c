/* peakproof: one verb a file; this is their table. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
  const char *name;
  pp_verb *run;
  const char *summary;
} verbs[] = {
    {"plan", pp_verb_plan, "find the order of lowest peak memory, and prove it"},
    {"why", pp_verb_why, "say what sets the peak, and what can still lower it"},
    {"remat", pp_verb_remat, "lower the peak below any order's by running statements again"},
    {"arena", pp_verb_arena, "place the tensors in the smallest arena"},
    {"cuda", pp_verb_cuda, "say what the CUDA caching allocator makes of an order"},
    {"batch", pp_verb_batch, "plan many models, one line each"},
    {"convert", pp_verb_convert, "write a model's program as program JSON"},
    {"verify", pp_verb_verify, "tie a planned model to its original and its proof"},
};

static int show_help(void) {
  puts("Usage: peakproof VERB [OPTION]... ARGUMENT...\n");
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    printf("  %-8s  %s\n", verbs[i].name, verbs[i].summary);
  puts(
      "\n  --help     show this text; \"peakproof VERB --help\" says more\n"
      "  --version  show the version\n"
      "\nExit codes: 0 done; 1 the answer is no; 64 usage; 65 the input is wrong; 66 cannot read;\n"
      "70 our bug; 71 out of memory; 73 cannot create; 74 cannot write; 130 interrupted.");
  return pp_flush_output(PP_EXIT_DONE);
}

static int show_version(void) {
  printf("peakproof %s\n", pp_version());
  return pp_flush_output(PP_EXIT_DONE);
}

/* A closed standard stream would give its number to the next file that is opened, and a report
 * would end up in a model. Opened for reading only, it fails as it should when written to. */
static void hold_standard_streams(void) {
  for (int file = 0; file <= 2; file++)
    if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
      return;
}

int main(int argc, char **argv) {
  hold_standard_streams();
  if (argc < 2)
    return pp_usage_error("", "no verb");
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
    return show_help();
  if (!strcmp(argv[1], "--version"))
    return show_version();
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
    if (!strcmp(argv[1], verbs[i].name))
      return verbs[i].run(argc - 1, argv + 1);
  return pp_usage_error("", "unknown verb \"%s\"", argv[1]);
}
