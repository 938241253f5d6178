/* What threads may write that do not hold the main interpreter's GIL: the side ring and the
 * slots. One lock guards both; it lies in the wiped page, so that a forked child finds it
 * open. A thread that finds it held by itself (a signal handler in the middle of things)
 * gives up at once.
 */
#ifndef SP_AGENT_SIDE_H
#define SP_AGENT_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/lane.h"

bool sp_side_lock(void); /* false: not taken */
void sp_side_unlock(void);

bool sp_side_event(const struct sp_lane_record *r, size_t size);

/* The same for a caller that holds the lock already. */
bool sp_side_event_locked(const struct sp_lane_record *r, size_t size);

#endif
