/* The extension module `sandpit._native`: reading and verifying traces. */
#include <Python.h>

#include <stdbool.h>
#include <unistd.h>

#include "binding/calls_type.h"
#include "binding/errors.h"
#include "binding/feed_type.h"
#include "binding/source.h"
#include "binding/trace_type.h"
#include "trace/key_file.h"
#include "trace/recode.h"
#include "trace/verify.h"

/* A key's file by its path. false: an exception. */
static bool read_key(PyObject *source, struct sp_public_key *ret_key)
{
    PyObject *bytes;
    struct sp_error error;
    if (!PyUnicode_FSConverter(source, &bytes))
        return false;
    const int code = sp_key_file_public(PyBytes_AsString(bytes), ret_key, &error);
    Py_DECREF(bytes);
    if (code != 0)
        sp_raise_error(&error);
    return code == 0;
}

static PyObject *verify(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *source;
    PyObject *key_source = Py_None;
    PyObject *name;
    struct sp_public_key key;
    if (!PyArg_ParseTuple(args, "O|O:verify", &source, &key_source) ||
        (key_source != Py_None && !read_key(key_source, &key)))
        return NULL;
    const int fd = sp_source_open(source, &name);
    if (fd < 0)
        return NULL;
    struct sp_verify result;
    Py_BEGIN_ALLOW_THREADS
        /* A duplicate shares its position with the caller's descriptor: put it back. */
        const off_t position = lseek(fd, 0, SEEK_CUR);
    lseek(fd, 0, SEEK_SET);
    sp_verify_fd(fd, key_source != Py_None ? &key : NULL, &result);
    lseek(fd, position, SEEK_SET);
    close(fd);
    Py_END_ALLOW_THREADS Py_DECREF(name);
    char signer[SP_FINGERPRINT_TEXT + 1];
    sp_key_fingerprint(&result.signer, signer);
    return Py_BuildValue("(iKKssz)", (int)result.code,
                         (unsigned long long)result.fault.line,
                         (unsigned long long)result.fault.byte, result.fault.message,
                         sp_signed_word(result.signature),
                         result.signature == SP_SIGNED_NOT ? NULL : signer);
}

static PyObject *is_packed(PyObject *module, PyObject *source)
{
    (void)module;
    const long fd = PyLong_AsLong(source);
    if (fd == -1 && PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(sp_recode_is_packed((int)fd));
}

static PyObject *recode(PyObject *module, PyObject *args)
{
    (void)module;
    int from;
    int to;
    int packed;
    int result;
    if (!PyArg_ParseTuple(args, "iip:recode", &from, &to, &packed))
        return NULL;
    Py_BEGIN_ALLOW_THREADS result = sp_recode(from, to, packed != 0);
    Py_END_ALLOW_THREADS if (result < 0) return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"is_packed", is_packed, METH_O,
     "is_packed($module, fd, /)\n--\n\n"
     "Whether the trace behind a descriptor is compressed."},
    {"recode", recode, METH_VARARGS,
     "recode($module, source, target, packed, /)\n--\n\n"
     "Copy a trace from descriptor to descriptor, compressed there or not."},
    {"verify", verify, METH_VARARGS,
     "verify($module, source, key=None, /)\n--\n\n"
     "Check the trace at a path or open descriptor: (code, line, byte, message, "
     "signature,\n"
     "signer), where code is 0 sound and complete, 1 altered, 2 unreadable, 3 without "
     "an "
     "end.\n"
     "`key` is the path of the public key that must have signed it."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type == NULL)
        return -1;
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        return -1;
    }
    return 0;
}

static int execute(PyObject *module)
{
    PyType_Spec *const types[] = {&sp_trace_type_spec, &sp_feed_type_spec,
                                  &sp_calls_type_spec};
    static const char *const names[] = {"Trace", "Feed", "Calls"};
    for (size_t i = 0; i < sizeof names / sizeof(const char *); i++)
        if (add_type(module, names[i], types[i]) < 0)
            return -1;
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
