/* What the supervisor said about a call of this thread that it denied; see struct
 * sp_ring_denied. Any thread, with or without the GIL; leaves errno alone. In a forked child
 * there is nothing until it has a lane of its own. */
#ifndef SP_AGENT_SAID_H
#define SP_AGENT_SAID_H

#include "agent/lane.h"
#include "agent/stub.h"

void sp_said_install(struct sp_stub *stub);

/* Something else begins in this thread: what was said and not used is out of date. */
void sp_said_forget_slowly(struct sp_ring *ring);
static inline void sp_said_forget(void)
{
    struct sp_ring *ring = sp_lane.ring;
    if (ring &&
        __builtin_expect(__atomic_load_n(&ring->denied_set, __ATOMIC_RELAXED) != 0, 0))
        sp_said_forget_slowly(ring);
}

#endif
