#define Py_BUILD_CORE 1
#include "agent/calls_init.h"

#if SP_INITS_ESCAPE

#include <internal/pycore_frame.h>

#include "agent/calls.h"

static PyObject *init_name; /* interned, ours for good */

/* The interpreter specialises no other. */
static bool is_simple(const PyCodeObject *code)
{
    return (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0 &&
           (code->co_flags & CO_OPTIMIZED) != 0 && code->co_kwonlyargcount == 0 &&
           code->co_argcount > 0;
}

bool sp_init_named(const PyCodeObject *code)
{
    return is_simple(code) && code->co_name == init_name;
}

bool sp_init_called(const sp_frame *frame, const PyCodeObject *code)
{
    if (!is_simple(code) || !frame->localsplus[0])
        return false;
    PyTypeObject *type = Py_TYPE(frame->localsplus[0]);
    return (PyType_GetFlags(type) & Py_TPFLAGS_INLINE_VALUES) != 0 &&
           _PyType_Lookup(type, init_name) == frame->f_funcobj;
}

bool sp_init_inlined(const PyThreadState *state)
{
    const sp_frame *frame = state->current_frame;
    return frame && frame->previous && frame->previous->owner != FRAME_OWNED_BY_CSTACK;
}

static int code_made(PyCodeEvent event, PyCodeObject *code)
{
    if (event == PY_CODE_EVENT_CREATE && sp_init_named(code))
        sp_monitor_init(NULL, code);
    return 0;
}

bool sp_inits_start(void)
{
    if (!init_name)
        init_name = PyUnicode_InternFromString("__init__");
    bool good = init_name && PyCode_AddWatcher(code_made) >= 0;
    PyErr_Clear();
    return good;
}

#endif
