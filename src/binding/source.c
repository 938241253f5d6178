#include "binding/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "binding/errors.h"
#include "trace/lines.h"

static int fail(PyObject *name, int err)
{
    struct sp_fault fault;
    sp_fault_set(&fault, 0, 0, "%s",
                 err == EINVAL ? "not a regular file" : strerror(err));
    sp_raise_fault(name, &fault);
    Py_DECREF(name);
    return -1;
}

static int duplicate(PyObject *source, PyObject **ret_name)
{
    const long number = PyLong_AsLong(source);
    if (number == -1 && PyErr_Occurred())
        return -1;
    PyObject *name = PyUnicode_FromFormat("descriptor %ld", number);
    if (name == NULL)
        return -1;
    const int fd =
        number < 0 || number > INT_MAX ? -1 : fcntl((int)number, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return fail(name, EBADF);
    *ret_name = name;
    return fd;
}

/* "-" is an ordinary name here: only the command line means standard input by it. */
static int open_path(const char *path)
{
    return strcmp(path, "-") == 0 ? sp_lines_open("./-") : sp_lines_open(path);
}

int sp_source_open(PyObject *source, PyObject **ret_name)
{
    if (PyLong_Check(source))
        return duplicate(source, ret_name);
    PyObject *bytes;
    if (!PyUnicode_FSConverter(source, &bytes))
        return -1;
    const char *path = PyBytes_AsString(bytes);
    PyObject *name = PyUnicode_DecodeFSDefault(path);
    int fd = -1;
    int err = 0;
    if (name != NULL) {
        Py_BEGIN_ALLOW_THREADS fd = open_path(path);
        err = errno;
        Py_END_ALLOW_THREADS
    }
    Py_DECREF(bytes);
    if (name == NULL)
        return -1;
    if (fd < 0)
        return fail(name, err);
    *ret_name = name;
    return fd;
}
