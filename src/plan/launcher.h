/* Launchers in an interpreter's place: scripts of version managers that start one. */
#ifndef SP_PLAN_LAUNCHER_H
#define SP_PLAN_LAUNCHER_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* The interpreter that `launcher` starts in the current folder, by asking it (`-c`) once and
 * remembering. `ret_path` may be the buffer of `launcher`. */
int sp_launcher_resolve(const char *launcher, char ret_path[PATH_MAX],
                        struct sp_error *reterr) SP_MUST_CHECK;

/* The folder where it is remembered; canonical as far as it exists. false: nowhere. */
bool sp_launcher_cache(char to[PATH_MAX]);

#endif
