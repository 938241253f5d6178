#include "agent/calls_setprofile.h"

static PyMethodDef *def;
static PyCFunction own; /* the interpreter's */

static PyObject *setprofile(PyObject *module, PyObject *callback)
{
    PyThreadState *state = PyThreadState_Get();
    sp_setprofile_begins(state);
    PyObject *result = own(module, callback);
    sp_setprofile_done(state);
    return result;
}

void sp_setprofile_install(void)
{
    PyObject *function = PySys_GetObject("setprofile"); /* borrowed */
    if (own || !function || !PyCFunction_CheckExact(function) ||
        ((PyCFunctionObject *)function)->m_ml->ml_flags != METH_O)
        return;
    def = ((PyCFunctionObject *)function)->m_ml;
    own = def->ml_meth;
    def->ml_meth = setprofile;
}

bool sp_setprofile_is(PyObject *callable)
{
    return PyCFunction_Check(callable) && ((PyCFunctionObject *)callable)->m_ml == def;
}
