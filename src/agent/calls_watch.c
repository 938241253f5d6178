/* Whether what sees the calls is still in place, and what hides from it. */
#define Py_BUILD_CORE 1
#include "agent/calls_watch.h"

#include <string.h>

#include "agent/calls.h"
#include "agent/lane.h"

static bool over; /* the interpreter takes everything down by itself */

/* Frames in which the interpreter tells nobody of calls: it does not trace the tracers. The
 * frame evaluation hook sees them all the same. */
static bool blind_in_callbacks(void)
{
    if (sp_functions_index < 0)
        return false;
#if PY_VERSION_HEX < 0x030e0000
    return !sp_frame_serves(sp_agent.main);
#else
    return true;
#endif
}

/* The code that a callable runs, where it is a function of Python or a method; NULL. */
static PyCodeObject *code_of(PyObject *callable)
{
    if (PyMethod_Check(callable))
        callable = PyMethod_GET_FUNCTION(callable);
    if (!PyFunction_Check(callable)) {
        PyObject *call =
            Py_TYPE(callable)->tp_dict && PyDict_CheckExact(Py_TYPE(callable)->tp_dict)
                ? PyDict_GetItemString(Py_TYPE(callable)->tp_dict, "__call__")
                : NULL;
        if (!call || !PyFunction_Check(call))
            return NULL;
        callable = call;
    }
    return (PyCodeObject *)PyFunction_GET_CODE(callable);
}

/* A library's own (a debugger's, a coverage tool's) is not what is reviewed. */
void sp_calls_callback(PyObject *callable, const char *what)
{
    PyCodeObject *code = callable && callable != Py_None && blind_in_callbacks()
                             ? code_of(callable)
                             : NULL;
    if (!code)
        return;
    enum sp_origin origin = sp_code_origin(code);
    if (origin == SP_ORIGIN_REVIEWED || origin == SP_ORIGIN_TEXT)
        sp_calls_tamper(what);
}

void sp_calls_hook_added(void)
{
    if (blind_in_callbacks())
        sp_calls_tamper("sys.addaudithook: calls within its function are not seen");
}

void sp_calls_check(PyThreadState *state)
{
    if (sp_functions_index < 0 || over || state->interp != sp_agent.main)
        return;
#if PY_VERSION_HEX < 0x030e0000
    sp_frame_check(state->interp);
#endif
#if PY_VERSION_HEX < 0x030c0000
    sp_profile_check(state);
#else
    sp_monitor_check(state->interp);
#endif
}

void sp_calls_check_last(PyThreadState *state)
{
    sp_calls_check(state);
    over = true;
}
