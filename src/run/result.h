/* The result of a run as one JSON object, and an error as one. */
#ifndef SP_RUN_RESULT_H
#define SP_RUN_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct sp_run;
struct sp_outcome;
struct sp_problems;

/* Writes `{...}` to fd, without a newline. exit_code stands in it in place of the outcome's.
 * What was captured is streamed, however long. 0, or -errno when fd cannot be written. */
int sp_result_write(int fd, const struct sp_run *run, const struct sp_outcome *outcome,
                    int exit_code);

/* Writes `{"slug":...,"message":...}` likewise, with all that is wrong with a policy (NULL: nothing). */
int sp_error_write(int fd, const struct sp_error *error,
                   const struct sp_problems *problems);

#endif
