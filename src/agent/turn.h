/* One at a time. The agent's buffers belong to whoever holds the interpreter's lock. From
 * CPython 3.12 on an interpreter may have a lock of its own, and then two threads may be here at
 * once: a lock of ours is taken as well. Nothing tells of such an interpreter before it does
 * something (3.13 raises no event when it is made), so that it is taken always. It may be held
 * across nothing that runs Python code, which could switch threads while another waits here (from
 * 3.12 on, no allocation does).
 */
#ifndef SP_AGENT_TURN_H
#define SP_AGENT_TURN_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030c0000
/* Once, before the first turn. */
void sp_turn_start(void);

/* Nests. */
void sp_turn_take(void);
void sp_turn_leave(void);
#else
static inline void sp_turn_start(void)
{
}
static inline void sp_turn_take(void)
{
}
static inline void sp_turn_leave(void)
{
}
#endif

#endif
