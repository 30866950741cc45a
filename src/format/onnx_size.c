/* How many bytes the values take that are storages: everything in memory but initialisers and what
 * is folded. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/onnx_model.h"

/* Bits of an element of TensorProto.DataType; 0: text, which has no size, or unknown. */
static int64_t bits_of(int32_t type) {
  static const uint8_t bits[] = {
      0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, /* to BFLOAT16 */
      8, 8,  8, 8,                                                    /* four kinds of FLOAT8 */
      4, 4,  4, 8, /* U/INT4, FLOAT4, FLOAT8E8M0 */
      2, 2,        /* UINT2, INT2 */
      6, 6,        /* two kinds of FLOAT6 */
  };
  return type < 0 || (size_t)type >= sizeof bits ? 0 : bits[type];
}
enum { TYPE_STRING = 8 };

enum { TOLD = 8 }; /* dimensions, and values, that notices name; the rest is counted */

struct measure {
  pp_onnx *onnx;
  pp_notices *notices;
  const char *symbol[TOLD]; /* dimensions that count as 1 */
  size_t symbols, unnamed, unknown, missing;
  uint32_t first; /* the first value without a shape */
  pp_error *error;
};

/* ---- Notices ---- */

static void note_dimension(struct measure *measure, const char *symbol) {
  if (!*symbol) {
    measure->unnamed++;
    return;
  }
  for (size_t i = 0; i < measure->symbols && i < TOLD; i++)
    if (!strcmp(measure->symbol[i], symbol))
      return;
  if (measure->symbols < TOLD)
    measure->symbol[measure->symbols] = symbol;
  measure->symbols++; /* beyond TOLD one may be counted twice: it is "more" all the same */
}

static void note_unknown(struct measure *measure, const pp_onnx_value *value, const char *why) {
  char name[200];
  if (measure->unknown++ >= TOLD)
    return;
  pp_onnx_show(value->name, name, sizeof name);
  pp_notices_add(measure->notices, "value \"%s\" %s: counted as 0 bytes", name, why);
}

static void tell(const struct measure *measure) {
  for (size_t i = 0; i < measure->symbols && i < TOLD; i++) {
    char name[120];
    pp_onnx_show(measure->symbol[i], name, sizeof name);
    pp_notices_add(measure->notices,
                   "dimension \"%s\" is not set: counted as 1 (--dim NAME=SIZE sets it)", name);
  }
  if (measure->symbols > TOLD)
    pp_notices_add(measure->notices,
                   "more dimensions are not set: counted as 1 (--dim *=SIZE sets them all)");
  if (measure->unnamed)
    pp_notices_add(measure->notices,
                   "%zu dimensions are neither given nor named: counted as 1 (--dim *=SIZE)",
                   measure->unnamed);
  if (measure->unknown > TOLD)
    pp_notices_add(measure->notices, "%zu more values have an unknown size: counted as 0 bytes",
                   measure->unknown - TOLD);
}

/* A name in --dim that the model does not have is likely a slip. */
static void tell_unused(const struct measure *measure, const pp_read_options *options) {
  for (size_t i = 0; i < options->dimensions; i++) {
    bool used = !strcmp(options->dimension[i].name, "*");
    for (size_t d = 0; d < measure->onnx->dim.count && !used; d++)
      used = !strcmp(measure->onnx->dim.items[d].symbol, options->dimension[i].name);
    if (!used)
      pp_notices_add(measure->notices, "no value has a dimension \"%.100s\"",
                     options->dimension[i].name);
  }
}

/* ---- Sizes ---- */

static pp_status measure_tensor(struct measure *measure, pp_onnx_value *value) {
  int64_t elements = 1, bits = bits_of(value->type);
  bool overflow = false, empty = false;
  if (value->type == TYPE_STRING) {
    note_unknown(measure, value, "is text");
    return PP_OK;
  }
  if (!bits) {
    char name[120];
    pp_onnx_show(value->name, name, sizeof name);
    return pp_fail_at(measure->error, PP_ERROR_INPUT, value->at,
                      "value \"%s\" has the element type %" PRId32 ", which is unknown", name,
                      value->type);
  }
  for (uint32_t i = 0; i < value->dims; i++) {
    const pp_onnx_dimension *dim = measure->onnx->dim.items + value->dim + i;
    if (!dim->set)
      note_dimension(measure, dim->symbol);
    empty |= !dim->size;
    overflow |= __builtin_mul_overflow(elements, dim->size, &elements);
  }
  if (empty) /* whatever the other dimensions are */
    return PP_OK;
  /* Elements of less than a byte are packed. */
  overflow |= elements > (INT64_MAX - 7) / bits;
  if (!overflow) {
    value->bytes = (elements * bits + 7) / 8;
    return PP_OK;
  }
  char name[120];
  pp_onnx_show(value->name, name, sizeof name);
  return pp_fail_at(measure->error, PP_ERROR_OVERFLOW, value->at,
                    "value \"%s\" has more bytes than 2^60", name);
}

static pp_status measure_value(struct measure *measure, uint32_t index) {
  pp_onnx_value *value = measure->onnx->value.items + index;
  if (value->state == SHAPE_KNOWN && value->type)
    return measure_tensor(measure, value);
  if (value->state == SHAPE_OTHER)
    note_unknown(measure, value, "is no tensor");
  else if (measure->onnx->inferred)
    note_unknown(measure, value, "has no shape that onnx could infer");
  else if (!measure->missing++)
    measure->first = index;
  return PP_OK;
}

static pp_status fail_missing(const struct measure *measure) {
  const pp_onnx_value *value = measure->onnx->value.items + measure->first;
  char name[90], more[40] = "";
  pp_onnx_show(value->name, name, sizeof name);
  if (measure->missing > 1)
    snprintf(more, sizeof more, " (and %zu more)", measure->missing - 1);
  return pp_fail_at(measure->error, PP_ERROR_INPUT, value->at,
                    "value \"%s\" has no shape%s: infer shapes with python -m peakproof "
                    "onnx-shapes IN.onnx -o OUT.onnx",
                    name, more);
}

pp_status pp_onnx_measure(pp_onnx *onnx, pp_notices *notices, pp_error *error) {
  struct measure measure = {.onnx = onnx, .notices = notices, .error = error};
  for (uint32_t i = 0; i < onnx->value.count; i++) {
    pp_status status = PP_OK;
    if (!(onnx->value.items[i].flags & VALUE_CONSTANT))
      status = measure_value(&measure, i);
    if (status)
      return status;
  }
  tell(&measure);
  tell_unused(&measure, onnx->options);
  return measure.missing ? fail_missing(&measure) : PP_OK;
}
