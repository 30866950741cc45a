/* Writing JSON. */
#include "format/json.h"

#include <string.h>

#include "error.h"

void pp_json_begin(pp_json *json, pp_write *write, void *data) {
  json->write = write;
  json->data = data;
  json->failed = false;
  json->used = 0;
}

static void flush(pp_json *json) {
  if (!json->failed && json->used && !json->write(json->buffer, json->used, json->data))
    json->failed = true;
  json->used = 0;
}

pp_status pp_json_end(pp_json *json, pp_error *error) {
  flush(json);
  return json->failed ? pp_fail(error, PP_ERROR_IO, "writing failed") : PP_OK;
}

void pp_json_bytes(pp_json *json, const char *bytes, size_t size) {
  while (size > sizeof json->buffer - json->used) {
    size_t part = sizeof json->buffer - json->used;
    memcpy(json->buffer + json->used, bytes, part);
    json->used += part;
    bytes += part;
    size -= part;
    flush(json);
  }
  memcpy(json->buffer + json->used, bytes, size);
  json->used += size;
}

void pp_json_text(pp_json *json, const char *text) {
  pp_json_bytes(json, text, strlen(text));
}

void pp_json_bool(pp_json *json, bool value) {
  pp_json_text(json, value ? "true" : "false");
}

void pp_json_integer(pp_json *json, int64_t value) {
  char digits[24], *first = digits + sizeof digits;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  do
    *--first = (char)('0' + rest % 10);
  while (rest /= 10);
  if (value < 0)
    *--first = '-';
  pp_json_bytes(json, first, (size_t)(digits + sizeof digits - first));
}

size_t pp_utf8_length(const unsigned char *text) {
  /* Unicode 15, table 3-7: the first byte decides the length and the range of the second. */
  unsigned char first = text[0], low = 0x80, high = 0xbf;
  if (first < 0x80)
    return 1;
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  if (first == 0xe0)
    low = 0xa0;
  else if (first == 0xed)
    high = 0x9f;
  else if (first == 0xf0)
    low = 0x90;
  else if (first == 0xf4)
    high = 0x8f;
  for (size_t i = 1; i < length; i++, low = 0x80, high = 0xbf)
    if (text[i] < low || text[i] > high)
      return 0;
  return length;
}

static void escape(pp_json *json, unsigned char c) {
  static const char hex[] = "0123456789abcdef";
  char code[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};
  if (c == '"' || c == '\\') {
    code[1] = (char)c;
    code[2] = 0;
  }
  pp_json_text(json, code);
}

void pp_json_string(pp_json *json, const char *string) {
  pp_json_text(json, "\"");
  for (const unsigned char *s = (const unsigned char *)string; *s;) {
    size_t plain = 0;
    while (s[plain] >= 0x20 && s[plain] < 0x80 && s[plain] != '"' && s[plain] != '\\')
      plain++;
    pp_json_bytes(json, (const char *)s, plain);
    s += plain;
    if (!*s)
      break;
    size_t length = pp_utf8_length(s);
    if (*s < 0x80)
      escape(json, *s);
    else if (length)
      pp_json_bytes(json, (const char *)s, length);
    else
      pp_json_text(json, "\xef\xbf\xbd");
    s += length ? length : 1;
  }
  pp_json_text(json, "\"");
}

void pp_json_key_integer(pp_json *json, const char *text, int64_t value) {
  pp_json_text(json, text);
  pp_json_integer(json, value);
}

void pp_json_key_string(pp_json *json, const char *text, const char *value) {
  pp_json_text(json, text);
  pp_json_string(json, value);
}

void pp_json_key_bool(pp_json *json, const char *text, bool value) {
  pp_json_text(json, text);
  pp_json_bool(json, value);
}
