#include "agent/extra.h"

#include <stdlib.h>

#if PY_VERSION_HEX < 0x030c0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_SetExtra              _PyCode_SetExtra
#endif

Py_ssize_t sp_extra_request(void)
{
    return PyUnstable_Eval_RequestCodeExtraIndex(free);
}

#if PY_VERSION_HEX < 0x030e0000
/* The size comes first in what a code object keeps. */
static Py_ssize_t size_of(PyCodeObject *code)
{
    return code->co_extra ? *(const Py_ssize_t *)code->co_extra : 0;
}

/* Takes back the room that was made for others: it is empty, the interpreter makes it again
 * when they ask, and their functions are not called for it. */
static void shrink(PyCodeObject *code, Py_ssize_t before, Py_ssize_t needed)
{
    Py_ssize_t size = before > needed ? before : needed;
    if (size_of(code) > size)
        *(Py_ssize_t *)code->co_extra = size;
}
#else
static Py_ssize_t size_of(PyCodeObject *code)
{
    (void)code;
    return 0;
}

static void shrink(PyCodeObject *code, Py_ssize_t before, Py_ssize_t needed)
{
    (void)code, (void)before, (void)needed;
}
#endif

bool sp_extra_set(PyCodeObject *code, Py_ssize_t index, void *value)
{
    Py_ssize_t before = size_of(code);
    if (PyUnstable_Code_SetExtra((PyObject *)code, index, value) < 0) {
        PyErr_Clear();
        return false;
    }
    shrink(code, before, index + 1);
    return true;
}
