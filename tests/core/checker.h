/* peakproof-check in this process. */
#ifndef TESTS_CORE_CHECKER_H
#define TESTS_CORE_CHECKER_H

#include <stddef.h>

/* Returns the exit code of peakproof-check for these texts; `verdict` receives its line. */
int core_check(const char *program, size_t program_size, const char *certificate,
               size_t certificate_size, char verdict[512]);

#endif
