#include "agent/denial.h"

#include <string.h>

#include "agent/lane.h"

/* Made when it is needed for the first time, so that a run without a denial has no class
 * that it would not have otherwise. NULL with an exception set. */
static PyObject *import_denied(void)
{
    static PyObject *class;
    if (class && sp_lane_owned())
        return class;
    PyObject *made = PyErr_NewExceptionWithDoc(
        "sandpit.ImportDenied", "The policy of this run denies the import.",
        PyExc_ModuleNotFoundError, NULL);
    if (made && sp_lane_owned())
        class = made;
    return made;
}

void sp_denial_import(const char *module, size_t module_size, const char *message)
{
    PyObject *class = import_denied();
    PyObject *name = PyUnicode_DecodeUTF8(module, (Py_ssize_t)module_size, "replace");
    PyObject *text =
        PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    if (class && name && text)
        PyErr_SetImportErrorSubclass(class, text, name, NULL);
    Py_XDECREF(name);
    Py_XDECREF(text);
}

int sp_denial_permission(int err, const char *message)
{
    PyObject *text =
        PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *error =
        text ? PyObject_CallFunction(PyExc_PermissionError, "iO", err, text) : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(text);
    return -1;
}
