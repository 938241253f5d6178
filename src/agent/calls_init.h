/* 3.13 with the frame hook: a call of a class, once the interpreter has specialised it, enters the class's
 * __init__ without asking the hook. So code that may be entered like that tells of its begin and end by
 * events of sys.monitoring of its own, and what the hook has seen already is told apart by its frame.
 *
 * Which code that is: what is called __init__, from when it is made or first runs; and any other function
 * from when it is first counted as what its object's class has for one. (Missed is what has another name,
 * is library code, ran as a plain function before it became a class's __init__.)
 *
 * GIL held by every caller.
 */
#ifndef SP_AGENT_CALLS_INIT_H
#define SP_AGENT_CALLS_INIT_H

#include <Python.h>
#include <stdbool.h>

#include "agent/code.h"

#if PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030e0000
#define SP_INITS_ESCAPE 1

/* Watches code being made in the current interpreter. False: no watcher is to be had. */
bool sp_inits_start(void);
/* Whether code is such as a specialised call enters, and is called __init__. */
bool sp_init_named(const PyCodeObject *code);
/* Whether the frame, which is about to run, is that of its first argument's class's __init__. */
bool sp_init_called(const sp_frame *frame, const PyCodeObject *code);
/* Whether the frame that runs was entered in the interpreter's loop, so that no hook was asked. */
bool sp_init_inlined(const PyThreadState *state);

#else
#define SP_INITS_ESCAPE 0
#endif

#endif
