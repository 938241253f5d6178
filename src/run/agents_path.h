/* Where the stub and the agents are installed. */
#ifndef SP_RUN_AGENTS_PATH_H
#define SP_RUN_AGENTS_PATH_H

#include <stddef.h>

#include "base/error.h"

/* Writes the absolute path of the agents' folder. $SANDPIT_AGENTS names it when set (a build
 * tree); else it is found from where the running program lies: the place it was installed
 * with, then any Python's package folder under the same prefix. SP_E_HOST ("agent") when there
 * is none, SP_E_USAGE when $SANDPIT_AGENTS is no folder. */
int sp_agents_path(char *ret_path, size_t size, struct sp_error *reterr) SP_MUST_CHECK;

#endif
