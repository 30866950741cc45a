/* Read-after-write, write-after-read and write-after-write on common bytes, and the order pairs. */
#ifndef PP_DEPENDENCE_H
#define PP_DEPENDENCE_H

#include "program.h"

/* Fills program->predecessors from accesses and orders; accessed and accessors must be there. */
pp_status pp_dependences(pp_program *program, pp_error *error);

/* out := the rows of columns of `rows` (count rows, entries < columns). False when out of memory.
 */
bool pp_rows_transpose(const struct pp_rows *rows, pp_index count, pp_index columns,
                       struct pp_rows *out);

#endif
