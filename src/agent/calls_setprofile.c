#include "agent/calls_setprofile.h"

#include "agent/calls_watch.h"

static PyMethodDef *def;
static PyCFunction own; /* the interpreter's */
static PyCFunction own_settrace;

static PyObject *setprofile(PyObject *module, PyObject *callback)
{
    PyThreadState *state = PyThreadState_Get();
    sp_setprofile_begins(state);
    PyObject *result = own(module, callback);
    sp_setprofile_done(state);
    if (result)
        sp_calls_callback(callback,
                          "sys.setprofile: calls within its function are not seen");
    return result;
}

static PyObject *settrace(PyObject *module, PyObject *callback)
{
    PyObject *result = own_settrace(module, callback);
    if (result)
        sp_calls_callback(callback,
                          "sys.settrace: calls within its function are not seen");
    return result;
}

/* The definition behind a function of sys; NULL: it is not the interpreter's any more. */
static PyMethodDef *definition(const char *name)
{
    PyObject *function = PySys_GetObject(name); /* borrowed */
    if (!function || !PyCFunction_CheckExact(function) ||
        ((PyCFunctionObject *)function)->m_ml->ml_flags != METH_O)
        return NULL;
    return ((PyCFunctionObject *)function)->m_ml;
}

void sp_setprofile_install(void)
{
    if (own)
        return;
    PyMethodDef *tracing = own_settrace ? NULL : definition("settrace");
    if (tracing) {
        own_settrace = tracing->ml_meth;
        tracing->ml_meth = settrace;
    }
    def = definition("setprofile");
    if (!def)
        return;
    own = def->ml_meth;
    def->ml_meth = setprofile;
}

bool sp_setprofile_is(PyObject *callable)
{
    return PyCFunction_Check(callable) && ((PyCFunctionObject *)callable)->m_ml == def;
}
