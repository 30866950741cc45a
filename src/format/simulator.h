/* The JSON that Inductor writes for memory simulators (doc/simulator.md). */
#ifndef PP_FORMAT_SIMULATOR_H
#define PP_FORMAT_SIMULATOR_H

#include "format/model.h"

/* Whether bytes are a JSON object whose first key is "nodes" or "buffers". */
bool pp_simulator_test(const uint8_t *bytes, size_t size);

#endif
