/* Call tracing, each interpreter version's way: what calls.c switches on.
 *
 *               to 3.11             3.12, 3.13                                from 3.14
 *     all       profile callback    sys.monitoring                            sys.monitoring
 *     folded    frame hook          frame hook; C functions by sys.monitoring sys.monitoring
 *     first     frame hook          sys.monitoring                            sys.monitoring
 *
 * In 3.13 some calls do not ask the hook (calls_init.h). Deep in the C stack, or when another tool has taken the frame evaluation hook, what serves
 * `all` takes over from it.
 *
 * GIL held by every caller.
 */
#ifndef SP_AGENT_CALLS_H
#define SP_AGENT_CALLS_H

#include <Python.h>
#include <stdbool.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/functions.h"

/* An attempt on the tracer, told once for each text (a constant of ours). */
void sp_calls_tamper(const char *text);

/* Level `first`: tells the call of `function`, whose frame is `frame`. */
void sp_calls_tell_first(struct sp_function *function, sp_frame *frame);

#if PY_VERSION_HEX < 0x030e0000
/* Puts the frame evaluation hook in place, if it is free. */
void sp_frame_start(PyInterpreterState *interpreter);
/* Goes over to the other means if another tool has taken the hook, puts it back if it was
 * taken out. */
void sp_frame_check(PyInterpreterState *interpreter);
/* Whether it is the hook that sees the calls there. */
bool sp_frame_serves(PyInterpreterState *interpreter);
#endif

#if PY_VERSION_HEX >= 0x030c0000

/* Switches on for the current interpreter; at `folded` only what sp_monitor_natives() needs, until
 * the take-over. False: no tool id, or no sys.monitoring. */
bool sp_monitor_start(void);
/* At `folded`: counts from now on; to 3.13 in place of the hook. */
void sp_monitor_take_over(void);
/* Puts back what was taken out of the main interpreter's own tables. */
void sp_monitor_check(PyInterpreterState *interpreter);
/* At `folded`, when the function first runs: if it is reviewed code, each place in it tells
 * the first C function that it calls. */
void sp_monitor_natives(struct sp_function *function, PyCodeObject *code);
/* At `folded`: code tells of its begin and end itself (calls_init.h). `function`: NULL if it has not run. */
void sp_monitor_init(struct sp_function *function, PyCodeObject *code);

#else

/* Puts the callback on every thread of the interpreter that lacks it, in front of one of the
 * program's (`all`: each event is a word; else calls are counted). */
void sp_profile_start(PyInterpreterState *interpreter);
void sp_profile_stop(PyInterpreterState *interpreter);
/* Whether the callback is in use. */
bool sp_profile_used(void);
/* Puts it back if it was taken out of this thread's state. */
void sp_profile_check(PyThreadState *state);
/* The program is about to set a callback of its own on this thread: ours goes in front of it
 * again when the thread next runs a function. */
void sp_profile_expect(PyThreadState *state);

#endif

#endif
