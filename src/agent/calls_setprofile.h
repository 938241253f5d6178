/* sys.setprofile(), followed by a word to us: where all calls are traced, a callback that the
 * program sets would hear of the end of the very call that set it, as it does not under plain
 * Python. The function object stays; the C function behind it is ours.
 */
#ifndef SP_AGENT_CALLS_SETPROFILE_H
#define SP_AGENT_CALLS_SETPROFILE_H

#include <Python.h>
#include <stdbool.h>

void sp_setprofile_install(void);

/* Whether the callable is sys.setprofile (up to 3.11). */
bool sp_setprofile_is(PyObject *callable);

/* By calls_profile.c or calls_monitor.c: it is about to set a callback; it has. */
void sp_setprofile_begins(PyThreadState *state);
void sp_setprofile_done(PyThreadState *state);

#endif
