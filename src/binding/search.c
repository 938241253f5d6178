#include <Python.h>

#include "binding/search.h"

#include <stdlib.h>
#include <string.h>

#include "binding/trace_type.h"
#include "read/index.h"
#include "read/search.h"

#define KINDS_MAX 64

/* Borrowed from a bytes object, as long as that lives. */
static int text_of(PyObject *bytes, struct sp_text *ret_text)
{
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0)
        return -1;
    if (size > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a text that is too long to be searched for");
        return -1;
    }
    *ret_text = (struct sp_text){data, (uint32_t)size};
    return 0;
}

static int number_of(PyObject *from, bool *ret_has, int64_t *ret_number)
{
    *ret_has = from != Py_None;
    *ret_number = *ret_has ? PyLong_AsLongLong(from) : 0;
    return *ret_number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int kinds_of(PyObject *tuple, struct sp_text *ret_kinds, size_t *ret_count)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0)
        return -1;
    if (count > KINDS_MAX) {
        PyErr_Format(PyExc_ValueError, "at most %d kinds can be asked for", KINDS_MAX);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (text_of(PyTuple_GetItem(tuple, i), &ret_kinds[i]) < 0)
            return -1;
    *ret_count = (size_t)count;
    return 0;
}

int sp_positions_of(PyObject *from, uint64_t **ret_within, size_t *ret_count)
{
    char *data;
    Py_ssize_t size;
    *ret_within = NULL;
    *ret_count = 0;
    if (from == Py_None)
        return 0;
    if (PyBytes_AsStringAndSize(from, &data, &size) < 0)
        return -1;
    *ret_within = malloc((size_t)size + 1);
    if (*ret_within == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(*ret_within, data, (size_t)size);
    *ret_count = (size_t)size / sizeof **ret_within;
    return 0;
}

static PyObject *search(PyObject *trace, PyObject *within_bytes,
                        const struct sp_question *question)
{
    uint64_t *found = NULL;
    size_t count = 0;
    uint64_t *within;
    size_t within_count;
    struct sp_fault fault;
    int result;
    const struct sp_index *index = sp_trace_index(trace);
    if (index == NULL || sp_positions_of(within_bytes, &within, &within_count) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS result =
        sp_search(index, question, within, within_count, &found, &count, &fault);
    free(within);
    Py_END_ALLOW_THREADS if (result < 0) return sp_trace_fault(trace, &fault);
    PyObject *made = PyBytes_FromStringAndSize((const char *)found,
                                               (Py_ssize_t)(count * sizeof *found));
    free(found);
    return made;
}

PyObject *sp_trace_search(PyObject *trace, PyObject *args)
{
    struct sp_text kinds[KINDS_MAX];
    struct sp_question q = {.kinds = kinds};
    PyObject *within;
    PyObject *names;
    PyObject *pid;
    PyObject *tid;
    PyObject *layer;
    PyObject *text;
    unsigned long long start;
    unsigned long long stop;
    if (!PyArg_ParseTuple(args, "OOKKOOOO", &within, &names, &start, &stop, &pid, &tid,
                          &layer, &text) ||
        kinds_of(names, kinds, &q.kinds_count) < 0 ||
        number_of(pid, &q.has_pid, &q.pid) < 0 ||
        number_of(tid, &q.has_tid, &q.tid) < 0 || text_of(layer, &q.layer) < 0 ||
        text_of(text, &q.text) < 0)
        return NULL;
    q.from_ns = start;
    q.until_ns = stop;
    return search(trace, within, &q);
}
