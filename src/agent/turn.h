/* One at a time. The agent's buffers belong to whoever holds the interpreter's lock. From
 * CPython 3.12 on a subinterpreter may have a lock of its own, and then two threads may be
 * here at once: from before the first subinterpreter exists, a lock of ours is taken as
 * well. It may be held across nothing that runs Python code, which could switch threads
 * while another waits here (from 3.12 on, no allocation does).
 */
#ifndef SP_AGENT_TURN_H
#define SP_AGENT_TURN_H

#include <Python.h>
#include <stdbool.h>

/* The main interpreter is about to make another one. */
void sp_turn_expect_others(void);

#if PY_VERSION_HEX >= 0x030c0000
extern bool sp_turn_needed;
void sp_turn_take_slowly(void);
void sp_turn_leave_slowly(void);
#else
#define sp_turn_needed false
static inline void sp_turn_take_slowly(void)
{
}
static inline void sp_turn_leave_slowly(void)
{
}
#endif

/* Whether a turn was taken, to be given to sp_turn_leave(). Nests. */
static inline bool sp_turn_take(void)
{
    if (__builtin_expect(!sp_turn_needed, 1))
        return false;
    sp_turn_take_slowly();
    return true;
}

static inline void sp_turn_leave(bool taken)
{
    if (__builtin_expect(taken, 0))
        sp_turn_leave_slowly();
}

#endif
