/* Walks protobuf messages without unpacking them:
 * https://protobuf.dev/programming-guides/encoding/ has the format. */
#include "format/onnx_wire.h"

#include <inttypes.h>
#include <string.h>

#include "memory.h"

/* ---- Fields ---- */

/* A varint at *at, of at most ten bytes; false if it does not end before `end` or has more. */
static bool read_varint(const uint8_t *bytes, size_t end, size_t *at, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
    uint8_t byte = bytes[(*at)++];
    if (shift < 64)
      *value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

static pp_status read_payload(const uint8_t *bytes, size_t end, size_t *at, pp_wire_field *field,
                              pp_error *error) {
  uint64_t length = 0;
  switch (field->type) {
  case WIRE_VARINT:
    if (!read_varint(bytes, end, at, &field->varint))
      return pp_fail_at(error, PP_ERROR_INPUT, field->body, "a number does not end");
    break;
  case WIRE_BYTES:
    if (!read_varint(bytes, end, at, &length))
      return pp_fail_at(error, PP_ERROR_INPUT, field->body, "a length does not end");
    field->body = *at;
    break;
  case WIRE_FIXED64:
    length = 8;
    break;
  case WIRE_FIXED32:
    length = 4;
    break;
  default: /* groups, which ONNX never had, or none at all */
    return pp_fail_at(error, PP_ERROR_INPUT, field->at, "wire type %u in field %" PRIu32,
                      field->type, field->number);
  }
  if (length > end - *at)
    return pp_fail_at(error, PP_ERROR_INPUT, field->at,
                      "field %" PRIu32 " of %" PRIu64 " bytes in a message that has %zu left",
                      field->number, length, end - *at);
  *at += length;
  field->end = *at;
  return PP_OK;
}

pp_status pp_wire_next(const uint8_t *bytes, size_t end, size_t *at, pp_wire_field *field,
                       pp_error *error) {
  uint64_t tag;
  *field = (pp_wire_field){.at = *at};
  if (!read_varint(bytes, end, at, &tag) || *at - field->at > 5)
    return pp_fail_at(error, PP_ERROR_INPUT, field->at, "the tag of a field does not end");
  field->number = (uint32_t)(tag >> 3);
  field->type = (unsigned)(tag & 7);
  field->body = *at;
  if (tag >> 32 || !field->number)
    return pp_fail_at(error, PP_ERROR_INPUT, field->at, "a field has number %" PRIu64, tag >> 3);
  return read_payload(bytes, end, at, field, error);
}

bool pp_wire_step(const uint8_t *bytes, size_t end, size_t *at, pp_wire_field *field) {
  return *at < end && !pp_wire_next(bytes, end, at, field, NULL);
}

/* ---- Messages ---- */

/* The wire type that values of a type are written in. */
static unsigned wire_type(ProtobufCType type) {
  switch (type) {
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_FLOAT:
    return WIRE_FIXED32;
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE:
    return WIRE_FIXED64;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return WIRE_BYTES;
  default:
    return WIRE_VARINT;
  }
}

/* Repeated numbers may be packed: one after the other in one field. */
static pp_status check_packed(const uint8_t *bytes, const pp_wire_field *field, unsigned type,
                              pp_error *error) {
  size_t at = field->body, width = type == WIRE_FIXED64 ? 8 : 4;
  uint64_t ignored;
  if (type != WIRE_VARINT)
    return (field->end - at) % width == 0
               ? PP_OK
               : pp_fail_at(error, PP_ERROR_INPUT, field->at,
                            "packed numbers of %zu bytes fill %zu", width, field->end - at);
  while (at < field->end)
    if (!read_varint(bytes, field->end, &at, &ignored))
      return pp_fail_at(error, PP_ERROR_INPUT, at, "a packed number does not end");
  return PP_OK;
}

static pp_status check_field(const ProtobufCFieldDescriptor *known, const uint8_t *bytes,
                             const pp_wire_field *field, pp_error *error) {
  unsigned type = wire_type(known->type);
  if (known->label == PROTOBUF_C_LABEL_REPEATED && type != WIRE_BYTES && field->type == WIRE_BYTES)
    return check_packed(bytes, field, type, error);
  if (field->type != type)
    return pp_fail_at(error, PP_ERROR_INPUT, field->at, "\"%s\" has wire type %u instead of %u",
                      known->name, field->type, type);
  if (known->type == PROTOBUF_C_TYPE_STRING &&
      memchr(bytes + field->body, 0, field->end - field->body))
    return pp_fail_at(error, PP_ERROR_INPUT, field->body, "a zero byte in \"%s\"", known->name);
  return PP_OK;
}

enum { DEPTH = 100 }; /* as protobuf's own parsers have it */

pp_status pp_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                        pp_wire_visit *visit, void *data, pp_error *error) {
  struct {
    const ProtobufCMessageDescriptor *type;
    size_t end;
  } stack[DEPTH] = {{type, size}};
  size_t at = 0, depth = 1;
  while (depth) {
    if (at == stack[depth - 1].end) {
      depth--;
      continue;
    }
    pp_wire_field field;
    pp_status status = pp_wire_next(bytes, stack[depth - 1].end, &at, &field, error);
    if (status)
      return status;
    const ProtobufCFieldDescriptor *known =
        protobuf_c_message_descriptor_get_field(stack[depth - 1].type, field.number);
    if (!known) /* newer than our schema */
      continue;
    if ((status = check_field(known, bytes, &field, error)))
      return status;
    if (known->type != PROTOBUF_C_TYPE_MESSAGE)
      continue;
    if (visit && !visit(known->name, &field, data))
      return pp_fail_memory(error);
    if (depth == DEPTH)
      return pp_fail_at(error, PP_ERROR_INPUT, field.at, "more than %d messages inside each other",
                        DEPTH);
    at = field.body;
    stack[depth].type = known->descriptor;
    stack[depth++].end = field.end;
  }
  return PP_OK;
}
