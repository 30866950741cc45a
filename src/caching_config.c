/* Presets and settings of the caching allocator. */
#include "caching.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define MIB ((int64_t)1 << 20)

static const struct {
  const char *name;
  bool rest_overwrites, fixed_rounding;
} presets[] = {{"torch-2.13", false, false}, {"torch-2.5", true, true}};

const char *pp_caching_preset_name(size_t index) {
  return index < sizeof presets / sizeof *presets ? presets[index].name : NULL;
}

bool pp_caching_preset(const char *name, pp_caching_config *config) {
  for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
    if (!name || !strcmp(name, presets[i].name)) {
      *config = (pp_caching_config){.min_block = 512,
                                    .small_size = MIB,
                                    .small_buffer = 2 * MIB,
                                    .large_buffer = 20 * MIB,
                                    .min_large = 10 * MIB,
                                    .round_large = 2 * MIB,
                                    .max_split_size = INT64_MAX,
                                    .max_non_split_rounding = 20 * MIB,
                                    .rest_overwrites = presets[i].rest_overwrites,
                                    .fixed_rounding = presets[i].fixed_rounding};
      return true;
    }
  return false;
}

static bool power_of_2(int64_t x) {
  return x > 0 && !(x & (x - 1));
}

/* Sizes up to 2^60 are rounded and added: far from int64_t's end with constants like these. */
pp_status pp_caching_check(const pp_caching_config *config, pp_error *error) {
  const int64_t most = (int64_t)1 << 50;
  const int64_t sizes[] = {config->min_block,    config->small_size, config->small_buffer,
                           config->large_buffer, config->min_large,  config->round_large};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] <= 0 || sizes[i] > most)
      return pp_fail(error, PP_ERROR_USAGE, "a constant of the allocator is out of range");
  bool fits = config->small_size <= config->small_buffer &&
              config->min_block <= config->small_size &&
              config->min_large <= config->large_buffer && config->min_large > config->small_size;
  for (int i = 0; i < PP_CACHING_DIVISIONS; i++)
    fits = fits && (!config->divisions[i] || power_of_2(config->divisions[i])) &&
           config->divisions[i] <= most;
  if (!fits || config->capacity < 0 || config->max_split_size <= 0 ||
      config->max_non_split_rounding < 0 || !(config->memory_fraction >= 0) ||
      config->memory_fraction > 1 || !(config->garbage_collection_threshold >= 0) ||
      config->garbage_collection_threshold >= 1)
    return pp_fail(error, PP_ERROR_USAGE, "the allocator's configuration contradicts itself");
  if (config->memory_fraction > 0 && !config->capacity)
    return pp_fail(error, PP_ERROR_USAGE, "a memory fraction needs the capacity of the device");
  return PP_OK;
}

/* ---- Settings: KEY:VALUE, KEY:VALUE; blanks count for nothing ---- */

struct reader {
  const char *at;
  char token[64]; /* a word or one of :,[] ; empty at the end */
  pp_error *error;
};

static bool special(char c) {
  return c == ':' || c == ',' || c == '[' || c == ']';
}

static pp_status advance(struct reader *r) {
  size_t length = 0;
  for (; *r->at; r->at++) {
    if (isspace((unsigned char)*r->at))
      continue;
    if (special(*r->at) && length)
      break;
    if (length + 1 == sizeof r->token)
      return pp_fail(r->error, PP_ERROR_USAGE, "a word of the settings is too long");
    r->token[length++] = *r->at;
    if (special(r->token[0])) {
      r->at++;
      break;
    }
  }
  r->token[length] = 0;
  return PP_OK;
}

static pp_status expect(struct reader *r, const char *token) {
  if (strcmp(r->token, token) != 0)
    return pp_fail(r->error, PP_ERROR_USAGE, "\"%s\" is expected, not \"%.40s\"", token, r->token);
  return advance(r);
}

static pp_status read_integer(struct reader *r, int64_t most, int64_t *value) {
  *value = 0;
  for (const char *c = r->token; *c; c++)
    if (*c < '0' || *c > '9' || (*value = *value * 10 + (*c - '0')) > most)
      return pp_fail(r->error, PP_ERROR_USAGE,
                     "a whole number up to %lld is expected, not \"%.40s\"", (long long)most,
                     r->token);
  if (!*r->token)
    return pp_fail(r->error, PP_ERROR_USAGE, "a number is missing");
  return advance(r);
}

static pp_status read_fraction(struct reader *r, bool closed, double *value) {
  char *end;
  bool digit = r->token[0] == '.' || (r->token[0] >= '0' && r->token[0] <= '9');
  *value = strtod(r->token, &end);
  if (!digit || *end || *value < 0 || *value > 1 || (!closed && (*value == 0 || *value == 1)))
    return pp_fail(r->error, PP_ERROR_USAGE, "a number between 0 and 1 is expected, not \"%.40s\"",
                   r->token);
  return advance(r);
}

static pp_status read_bool(struct reader *r, bool *value) {
  *value = !strcmp(r->token, "True");
  if (!*value && strcmp(r->token, "False") != 0)
    return pp_fail(r->error, PP_ERROR_USAGE, "True or False is expected, not \"%.40s\"", r->token);
  return advance(r);
}

static pp_status read_megabytes(struct reader *r, int64_t least, int64_t *bytes) {
  int64_t value;
  pp_status status = read_integer(r, INT64_MAX >> 21, &value);
  if (status)
    return status;
  if (value < least / MIB)
    return pp_fail(r->error, PP_ERROR_USAGE, "%lld MB is too small: at least %lld are allowed",
                   (long long)value, (long long)(least / MIB));
  *bytes = value * MIB;
  return PP_OK;
}

static pp_status read_divisor(struct reader *r, bool zero, int64_t *value) {
  pp_status status = read_integer(r, (int64_t)1 << 40, value);
  if (!status && !power_of_2(*value) && !(zero && !*value))
    return pp_fail(r->error, PP_ERROR_USAGE, "divisions are powers of 2, not %lld",
                   (long long)*value);
  return status;
}

/* INTERVAL:DIVISIONS of a list; interval i is of sizes from 2^i MiB. Below the first one its
 * divisions hold as well; ">" is the rest. */
static pp_status read_interval(struct reader *r, pp_caching_config *config, int *last) {
  int64_t boundary = 0, value;
  bool rest = !strcmp(r->token, ">"), first = *last < 0;
  pp_status status = rest ? advance(r) : read_integer(r, (int64_t)1 << 40, &boundary);
  if (!status && !rest && !power_of_2(boundary))
    status = pp_fail(r->error, PP_ERROR_USAGE, "intervals are powers of 2, not %lld",
                     (long long)boundary);
  if (!status)
    status = expect(r, ":");
  if (!status)
    status = read_divisor(r, true, &value);
  if (status)
    return status;
  int begin = first ? 0 : *last;
  if (rest) {
    for (int i = begin + !config->rest_overwrites; i < PP_CACHING_DIVISIONS; i++)
      config->divisions[i] = value;
    return PP_OK;
  }
  int at = 63 - __builtin_clzll((unsigned long long)boundary);
  at = at < PP_CACHING_DIVISIONS ? at : PP_CACHING_DIVISIONS - 1;
  for (int i = first ? 0 : at; i <= at; i++)
    config->divisions[i] = value;
  *last = at;
  return PP_OK;
}

static pp_status read_divisions(struct reader *r, pp_caching_config *config) {
  int64_t value;
  int last = -1;
  if (strcmp(r->token, "[") != 0) {
    pp_status status = read_divisor(r, false, &value);
    for (int i = 0; i < PP_CACHING_DIVISIONS && !status; i++)
      config->divisions[i] = value;
    return status;
  }
  pp_status status = advance(r);
  while (!status && strcmp(r->token, "]") != 0) {
    status = read_interval(r, config, &last);
    if (!status && strcmp(r->token, "]") != 0)
      status = expect(r, ",");
  }
  return status ? status : advance(r);
}

/* Settings that change neither sizes nor places. */
static pp_status skip(struct reader *r, const char *key) {
  static const char *const known[] = {
      "release_lock_on_cudamalloc",     "release_lock_on_hipmalloc",
      "pinned_use_cuda_host_register",  "pinned_use_hip_host_register",
      "pinned_use_background_threads",  "pinned_num_register_threads",
      "pinned_reserve_segment_size_mb", "pinned_max_round_threshold_mb",
      "pinned_max_cached_size_mb",      "pinned_free_catch_all",
      "throw_on_cudamalloc_oom",        "graph_capture_record_stream_reuse"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(key, known[i]))
      return *r->token && !special(*r->token)
                 ? advance(r)
                 : pp_fail(r->error, PP_ERROR_USAGE, "%s wants a value", key);
  return pp_fail(r->error, PP_ERROR_USAGE, "unknown setting \"%.40s\"", key);
}

static pp_status read_backend(struct reader *r) {
  if (strcmp(r->token, "native") != 0)
    return pp_fail(r->error, PP_ERROR_USAGE, "only the native backend is modelled, not \"%.40s\"",
                   r->token);
  return advance(r);
}

static pp_status read_setting(struct reader *r, pp_caching_config *config, bool segments) {
  char key[sizeof r->token];
  memcpy(key, r->token, sizeof key);
  pp_status status = advance(r);
  if (!status)
    status = expect(r, ":");
  if (status)
    return status;
  if (!strcmp(key, "large_segment_size_mb"))
    return read_megabytes(r, config->min_large + MIB, &config->large_buffer);
  if (segments) { /* the first pass reads that only: others depend on it */
    for (int depth = 0; *r->token && (depth || strcmp(r->token, ",") != 0) && !status;
         status = advance(r))
      depth += !strcmp(r->token, "[") - !strcmp(r->token, "]");
    return status;
  }
  if (!strcmp(key, "max_split_size_mb"))
    return read_megabytes(r, config->large_buffer, &config->max_split_size);
  if (!strcmp(key, "max_non_split_rounding_mb"))
    return read_megabytes(r, config->large_buffer, &config->max_non_split_rounding);
  if (!strcmp(key, "garbage_collection_threshold"))
    return read_fraction(r, false, &config->garbage_collection_threshold);
  if (!strcmp(key, "per_process_memory_fraction"))
    return read_fraction(r, true, &config->memory_fraction);
  if (!strcmp(key, "expandable_segments"))
    return read_bool(r, &config->expandable_segments);
  if (!strcmp(key, "roundup_power2_divisions"))
    return read_divisions(r, config);
  return !strcmp(key, "backend") ? read_backend(r) : skip(r, key);
}

static pp_status read_settings(const char *settings, pp_caching_config *config, bool segments,
                               pp_error *error) {
  struct reader r = {.at = settings, .error = error};
  pp_status status = advance(&r);
  while (!status && *r.token) {
    status = read_setting(&r, config, segments);
    if (!status && *r.token)
      status = expect(&r, ",");
  }
  return status;
}

pp_status pp_caching_configure(pp_caching_config *config, const char *settings, pp_error *error) {
  pp_caching_config read = *config;
  int64_t before = read.large_buffer;
  pp_status status = read_settings(settings, &read, true, error);
  if (!status && read.large_buffer != before)
    read.max_non_split_rounding = read.large_buffer;
  if (!status)
    status = read_settings(settings, &read, false, error);
  if (!status)
    *config = read;
  return status;
}
