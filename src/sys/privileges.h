/* Giving up what the supervisor and the guest must not have. */
#ifndef SP_SYS_PRIVILEGES_H
#define SP_SYS_PRIVILEGES_H

#include "base/error.h"

/* Drops every capability, the bounding and ambient sets too, and forbids to gain any by exec.
 * What the process's user may do stays. Nothing happens for a process that has none. */
int sp_privileges_drop(struct sp_error *reterr) SP_MUST_CHECK;

#endif
