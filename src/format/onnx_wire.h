/* The wire format of protobuf: fields in bytes, and whether bytes are a message of a given type.
 * Internal to src/format/onnx*.c. */
#ifndef PP_FORMAT_ONNX_WIRE_H
#define PP_FORMAT_ONNX_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "error.h"
#include "peakproof.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* One occurrence of a field: its tag is at `at`, its payload at body <= b < end. */
typedef struct pp_wire_field {
  uint32_t number;
  unsigned type;
  size_t at, body, end;
  uint64_t varint; /* of WIRE_VARINT */
} pp_wire_field;

/* Reads the field at byte *at and moves *at behind it; no byte from `end` on is touched. */
pp_status pp_wire_next(const uint8_t *bytes, size_t end, size_t *at, pp_wire_field *field,
                       pp_error *error);
/* The same of bytes that pp_wire_check has accepted; false at the end. */
bool pp_wire_step(const uint8_t *bytes, size_t end, size_t *at, pp_wire_field *field);

/* Gets every field of a known name that is a message; returns false when out of memory. What is
 * inside it is not yet checked. */
typedef bool pp_wire_visit(const char *name, const pp_wire_field *field, void *data);

/* Checks that bytes are a message of a type, in all its depth: fields of the right wire types, none
 * longer than its message, no zero byte in a string, no more than 100 messages inside each other
 * (so that protobuf-c, which is recursive, can unpack them). `visit` may be NULL. */
pp_status pp_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                        pp_wire_visit *visit, void *data, pp_error *error);

#endif
