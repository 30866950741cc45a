/* Options that several verbs share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static bool parse_integer(const char *text, int64_t *value, const char **end) {
  const char *c = text;
  for (*value = 0; *c >= '0' && *c <= '9'; c++)
    if (__builtin_mul_overflow(*value, 10, value) ||
        __builtin_add_overflow(*value, *c - '0', value))
      return false;
  *end = c;
  return c > text;
}

bool pp_parse_bytes(const char *text, int64_t *bytes) {
  static const struct {
    const char *name;
    int64_t factor;
  } units[] = {{"", 1},
               {"B", 1},
               {"KiB", 1024},
               {"MiB", 1024 * 1024},
               {"GiB", 1024 * 1024 * 1024},
               {"kB", 1000},
               {"MB", 1000 * 1000},
               {"GB", 1000 * 1000 * 1000}};
  const char *unit;
  if (!parse_integer(text, bytes, &unit))
    return false;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (!strcmp(unit, units[i].name))
      return !__builtin_mul_overflow(*bytes, units[i].factor, bytes);
  return false;
}

static bool parse_seconds(const char *text, double *seconds) {
  char *end;
  errno = 0;
  if (*text < '0' || *text > '9')
    return false;
  *seconds = strtod(text, &end);
  return !*end && !errno && *seconds > 0 && *seconds < 1e9;
}

static bool parse_count(const char *text, int64_t limit, int64_t *count) {
  const char *end;
  return parse_integer(text, count, &end) && !*end && *count > 0 && *count <= limit;
}

/* NAME=N; the name is cut out of the argument. */
static bool parse_dimension(char *text, pp_common *common) {
  char *equals = strrchr(text, '=');
  const char *end;
  int64_t value;
  if (!equals || equals == text || !parse_integer(equals + 1, &value, &end) || *end)
    return false;
  *equals = 0;
  common->dimension[common->dimensions++] = (pp_dimension){text, value};
  return true;
}

int pp_common_option(const char *verb, int option, char **argv, pp_common *common) {
  int64_t value;
  switch (option) {
  case 'h':
    common->help = true;
    return -1;
  case 'q':
    common->quiet = true;
    return -1;
  case PP_OPTION_DIM:
    if (common->dimensions == PP_DIMENSIONS)
      return pp_usage_error(verb, "--dim is given more than %d times", PP_DIMENSIONS);
    if (parse_dimension(optarg, common))
      return -1;
    return pp_usage_error(verb, "--dim wants NAME=NUMBER, not \"%s\"", optarg);
  case PP_OPTION_TIME:
    if (parse_seconds(optarg, &common->plan.solve.time_limit))
      return -1;
    return pp_usage_error(verb, "--time-limit wants a number of seconds above 0, not \"%s\"",
                          optarg);
  case PP_OPTION_STATES:
    if (parse_count(optarg, INT64_MAX, &common->plan.solve.state_limit))
      return -1;
    return pp_usage_error(verb, "--state-limit wants a number from 1, not \"%s\"", optarg);
  case PP_OPTION_THREADS:
    if (!parse_count(optarg, 1024, &value))
      return pp_usage_error(verb, "--threads wants a number from 1 to 1024, not \"%s\"", optarg);
    common->plan.solve.threads = (int)value;
    return -1;
  case ':':
    return pp_usage_error(verb, "option %s wants an argument", argv[optind - 1]);
  case '?':
    if (optopt > 0 && optopt < 256)
      return pp_usage_error(verb, "unknown option -%c", optopt);
    return pp_usage_error(verb, "unknown or ambiguous option %s", argv[optind - 1]);
  default:
    return -2;
  }
}

int pp_parse(const pp_syntax *syntax, int argc, char **argv, pp_common *common, void *data) {
  int option, code = -1;
  while (code == -1 &&
         (option = getopt_long(argc, argv, syntax->letters, syntax->options, NULL)) != -1) {
    code = pp_common_option(syntax->verb, option, argv, common);
    if (code == -2)
      code = syntax->own(option, data);
  }
  if (code != -1)
    return code;
  if (common->help) {
    fputs(syntax->help, stdout);
    return pp_flush_output(PP_EXIT_DONE);
  }
  if (optind + syntax->arguments != argc)
    return pp_usage_error(syntax->verb, "%s wants %s, not %d argument%s", syntax->verb,
                          syntax->wants, argc - optind, argc - optind == 1 ? "" : "s");
  return -1;
}
