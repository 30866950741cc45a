/* Program JSON (doc/program-json.md) into a program. */
#ifndef PP_FORMAT_PROGRAM_READER_H
#define PP_FORMAT_PROGRAM_READER_H

#include "format/model.h"

/* Parses and finishes a program. bytes[size] must be 0. Errors carry line and column. Notices (may
 * be NULL) get what was ignored. Works in one pass; a second one happens only to find the position
 * of an error that showed at the end. */
pp_status pp_program_parse(const uint8_t *bytes, size_t size, pp_notices *notices,
                           pp_program **program, pp_error *error);

#endif
