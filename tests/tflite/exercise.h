/* Does to a file's bytes all that peakproof does to a .tflite file, and aborts when a promise
 * breaks. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include "format/model.h"

/* A generator of numbers that is the same everywhere (splitmix64). */
uint64_t next_random(uint64_t *state);

/* A legal order of a program, malloc'ed; picks among the statements that are ready with *state, or
 * always the last one if state is NULL. */
pp_index *legal_order(const pp_program *program, uint64_t *state);

/* Reads the bytes; if they are a model, builds and simulates all programs, writes it with legal
 * orders, and reads and compares what was written (if !thorough, most of the time only the first
 * half of this: then many files with the same structure cost less). Aborts with a message if
 * anything but a clean refusal or success happens. Returns PP_OK, or the status of the refusal. */
pp_status exercise(const uint8_t *bytes, size_t size, uint64_t seed, bool thorough);

#endif
