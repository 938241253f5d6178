/* C functions and other callables without Python code, by what they are: a PyMethodDef, a
 * wrapped slot, a class, or the class of a callable object.
 *
 * Main GIL held. Holds no reference, runs no Python code, leaves no exception set.
 */
#ifndef SP_AGENT_NATIVES_H
#define SP_AGENT_NATIVES_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* Once, before the first id. */
void sp_natives_start(void);

/* Whether calling it runs Python code directly, so that the call shows by itself. */
static inline bool sp_native_not(PyObject *callable)
{
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    return PyFunction_Check(callable);
}

/* Id in the lane; 0 when it holds no more. */
uint32_t sp_native_id(PyObject *callable);

#endif
