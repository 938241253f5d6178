/* Call tracing, each interpreter version's way: what calls.c switches on.
 *
 * From 3.12 on sys.monitoring serves every level (calls_monitor.c). Up to 3.11 the frame
 * evaluation hook serves `first` and `folded` (calls_frame.c), and the profile callback serves
 * `all`, and takes over from the hook deep in the C stack or when another tool has taken the
 * hook (calls_profile.c).
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

#if PY_VERSION_HEX >= 0x030c0000

/* Switches on for the current interpreter. False: no tool id, or no sys.monitoring. */
bool sp_monitor_start(void);

#else

/* Puts the hook in place, for `first` and `folded`. */
void sp_frame_start(PyInterpreterState *interpreter);
/* Goes over to the profile callback if another tool has taken the hook. */
void sp_frame_check(PyInterpreterState *interpreter);

/* Puts the callback on every thread of the interpreter that lacks it, in front of one of the
 * program's (`all`: each event is a word; else calls are counted). */
void sp_profile_start(PyInterpreterState *interpreter);
void sp_profile_stop(PyInterpreterState *interpreter);
/* Whether the callback is in use. */
bool sp_profile_used(void);
/* The program is about to set a callback of its own on this thread: ours goes in front of it
 * again when the thread next runs a function. */
void sp_profile_expect(PyThreadState *state);

#endif

#endif
