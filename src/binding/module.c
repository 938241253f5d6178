/* The extension module `sandpit._native`: reading and verifying traces. */
#include <Python.h>

#include <unistd.h>

#include "binding/source.h"
#include "binding/trace_type.h"
#include "trace/verify.h"

static PyObject *verify(PyObject *module, PyObject *source)
{
    (void)module;
    PyObject *name;
    const int fd = sp_source_open(source, &name);
    if (fd < 0)
        return NULL;
    struct sp_verify result;
    Py_BEGIN_ALLOW_THREADS
        /* A duplicate shares its position with the caller's descriptor: put it back. */
        const off_t position = lseek(fd, 0, SEEK_CUR);
    lseek(fd, 0, SEEK_SET);
    sp_verify_fd(fd, &result);
    lseek(fd, position, SEEK_SET);
    close(fd);
    Py_END_ALLOW_THREADS Py_DECREF(name);
    return Py_BuildValue("(iKKs)", (int)result.code,
                         (unsigned long long)result.fault.line,
                         (unsigned long long)result.fault.byte, result.fault.message);
}

static PyMethodDef methods[] = {
    {"verify", verify, METH_O,
     "verify($module, source, /)\n--\n\n"
     "Check the trace at a path or open descriptor: (code, line, byte, message), where "
     "code is\n"
     "0 sound and complete, 1 altered, 2 unreadable, 3 without an end."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&sp_trace_type_spec);
    if (type == NULL)
        return -1;
    if (PyModule_AddObject(module, "Trace", type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "Reading and verifying traces.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
