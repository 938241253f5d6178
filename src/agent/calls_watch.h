/* The tracer looks after itself: whatever is told to the audit hook is also the moment to see
 * whether calls are still seen. GIL held by every caller.
 */
#ifndef SP_AGENT_CALLS_WATCH_H
#define SP_AGENT_CALLS_WATCH_H

#include <Python.h>

/* Puts back what was taken away behind our back, and tells of it. */
void sp_calls_check(PyThreadState *state);

/* The interpreter is about to end, and its tables with it. */
void sp_calls_check_last(PyThreadState *state);

/* The program gave the interpreter a function to call back, in which calls are not traced:
 * told as `what` (a constant of ours), if the function is the program's own. */
void sp_calls_callback(PyObject *callable, const char *what);

/* sys.addaudithook is about to add one; which, its event does not say. */
void sp_calls_hook_added(void);

#endif
