/* What the agent hangs on code objects (PEP 523), so that nobody else notices.
 *
 * The interpreter makes room for the values of everybody on a code object as soon as one hangs
 * something there, and at its end calls everybody's function to free theirs, with NULL where
 * they have none. Without us that concerns the few code objects that the program chose itself.
 */
#ifndef SP_AGENT_EXTRA_H
#define SP_AGENT_EXTRA_H

#include <Python.h>
#include <stdbool.h>

/* A place on each code object of this interpreter, whose value free() takes. Negative: none
 * to be had. */
Py_ssize_t sp_extra_request(void);

/* False, without an exception set: there is no memory. */
bool sp_extra_set(PyCodeObject *code, Py_ssize_t index, void *value);

/* NULL: nothing there. */
static inline void *sp_extra_get(PyCodeObject *code, Py_ssize_t index)
{
#if PY_VERSION_HEX < 0x030e0000
    /* As code objects keep it up to 3.13; asking the interpreter costs a call and checks. */
    const struct {
        Py_ssize_t size;
        void *values[];
    } *extra = code->co_extra;
    return __builtin_expect(extra != NULL && index < extra->size, 1)
               ? extra->values[index]
               : NULL;
#else
    void *value = NULL;
    return PyUnstable_Code_GetExtra((PyObject *)code, index, &value) == 0 ? value
                                                                          : NULL;
#endif
}

#endif
