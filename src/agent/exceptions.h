/* Exceptions that nobody caught: the one that ends the program, those that end a thread, and
 * those that could not be raised. */
#ifndef SP_AGENT_EXCEPTIONS_H
#define SP_AGENT_EXCEPTIONS_H

#include <Python.h>

/* When the program starts: threads' hook is watched by a shim, it raises no audit event. */
void sp_exceptions_start(void);

/* From the audit hook; always 0. */
int sp_exceptions_hook(const char *operation,
                       PyObject *args); /* (hook, type, value, tb) */
int sp_exceptions_unraisable(const char *operation,
                             PyObject *args); /* (hook, arguments) */

#endif
