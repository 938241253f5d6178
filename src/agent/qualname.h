/* Qualified names of code: kept by code objects from 3.11 on; before, worked out from the
 * nesting of a module's code when its body runs.
 */
#ifndef SP_AGENT_QUALNAME_H
#define SP_AGENT_QUALNAME_H

#include <Python.h>

/* Points into the object or to `buffer`; cut to `room`. The plain name where no qualified one
 * is known. */
const char *sp_qualname(PyCodeObject *code, char *buffer, size_t room,
                        size_t *ret_size);

/* A module's body is about to run: learns the names of what is nested in it. Does nothing
 * from 3.11 on. */
void sp_qualname_learn(PyCodeObject *code);

#endif
