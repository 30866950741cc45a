/* Writing JSON: buffered, deterministic, always valid UTF-8. */
#ifndef PP_FORMAT_JSON_H
#define PP_FORMAT_JSON_H

#include "peakproof.h"

typedef struct pp_json {
  pp_write *write;
  void *data;
  bool failed;
  size_t used;
  char buffer[1 << 14];
} pp_json;

void pp_json_begin(pp_json *json, pp_write *write, void *data);
/* Passes on what is buffered; PP_ERROR_IO if anything could not be written. */
pp_status pp_json_end(pp_json *json, pp_error *error);

/* Text as it is: punctuation, literals, keys. */
void pp_json_text(pp_json *json, const char *text);
void pp_json_bytes(pp_json *json, const char *bytes, size_t size);
/* A quoted string. Bytes that are not UTF-8 become U+FFFD. */
void pp_json_string(pp_json *json, const char *string);
void pp_json_integer(pp_json *json, int64_t value);
void pp_json_bool(pp_json *json, bool value);
/* Text (a comma, a key, a colon) and the value behind it. */
void pp_json_key_integer(pp_json *json, const char *text, int64_t value);
void pp_json_key_string(pp_json *json, const char *text, const char *value);
void pp_json_key_bool(pp_json *json, const char *text, bool value);

/* The length of the UTF-8 character at `text` (which ends with a 0), or 0 if there is none: neither
 * overlong forms nor surrogates are UTF-8. */
size_t pp_utf8_length(const unsigned char *text);

#endif
