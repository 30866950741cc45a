/* Runs peakproof-check: a program of its own, so that nothing here can vouch for itself. */
#ifndef PP_CLI_CHECKER_H
#define PP_CLI_CHECKER_H

#include "peakproof.h"

#define PP_VERDICT_SIZE 512

/* The path of peakproof-check, malloc'ed: `given`, or beside this executable, or in ../check beside
 * it (a build tree), or in PATH. NULL after an error. */
char *pp_checker_find(const char *given, pp_error *error);

/* Runs it; its first line of output, without the newline, goes to `verdict`. *verified is whether
 * it accepted the certificate. A checker that cannot run or does not keep to its interface is an
 * error. */
pp_status pp_checker_run(const char *checker, const char *program, const char *certificate,
                         char verdict[PP_VERDICT_SIZE], bool *verified, pp_error *error);

#endif
