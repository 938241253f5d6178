#include "binding/errors.h"

static PyObject *message_of(PyObject *name, const struct sp_fault *fault)
{
    if (fault->line == 0)
        return PyUnicode_FromFormat("%S: %s", name, fault->message);
    return PyUnicode_FromFormat("%S: line %llu, byte %llu: %s", name,
                                (unsigned long long)fault->line,
                                (unsigned long long)fault->byte, fault->message);
}

PyObject *sp_raise_error(const struct sp_error *error)
{
    PyObject *module = PyImport_ImportModule("sandpit._errors");
    PyObject *class =
        module == NULL ? NULL : PyObject_GetAttrString(module, "UsageError");
    if (class != NULL)
        PyErr_SetString(class, error->message);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return NULL;
}

PyObject *sp_raise_fault(PyObject *name, const struct sp_fault *fault)
{
    PyObject *module = PyImport_ImportModule("sandpit._errors");
    PyObject *class =
        module == NULL ? NULL : PyObject_GetAttrString(module, "TraceError");
    PyObject *message = class == NULL ? NULL : message_of(name, fault);
    PyObject *args = message == NULL ? NULL : PyTuple_Pack(1, message);
    PyObject *places =
        args == NULL ? NULL
                     : Py_BuildValue("{sKsK}", "line", (unsigned long long)fault->line,
                                     "byte", (unsigned long long)fault->byte);
    PyObject *error = places == NULL ? NULL : PyObject_Call(class, args, places);
    if (error != NULL)
        PyErr_SetObject(class, error);
    Py_XDECREF(error);
    Py_XDECREF(places);
    Py_XDECREF(args);
    Py_XDECREF(message);
    Py_XDECREF(class);
    Py_XDECREF(module);
    return NULL;
}
