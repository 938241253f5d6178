#include <Python.h>

#include "binding/trace_type.h"

#include <pthread.h>
#include <unistd.h>

#include "binding/convert.h"
#include "binding/errors.h"
#include "binding/search.h"
#include "binding/source.h"
#include "binding/tables.h"
#include "read/index.h"
#include "trace/verify.h"

typedef struct {
    PyObject_HEAD struct sp_index *index; /* owned; NULL until __init__ */
    pthread_mutex_t build; /* held, without the GIL, while the index is made */
    PyObject *name;        /* owned: for messages */
    PyObject *names;       /* owned: keys of events, see convert.h */
} Trace;

static PyObject *trace_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *const words[] = {"source", NULL};
    PyObject *source;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:Trace", (char **)words,
                                     &source))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Trace *self = (Trace *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    pthread_mutex_init(&self->build, NULL);
    self->names = PyDict_New();
    const int fd = self->names == NULL ? -1 : sp_source_open(source, &self->name);
    if (fd < 0) {
        Py_DECREF(self);
        return NULL;
    }
    struct sp_fault fault;
    int result;
    Py_BEGIN_ALLOW_THREADS result = sp_index_open_fd(fd, &self->index, &fault);
    if (result < 0)
        close(fd);
    Py_END_ALLOW_THREADS if (result < 0)
    {
        sp_raise_fault(self->name, &fault);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void trace_dealloc(PyObject *object)
{
    Trace *self = (Trace *)object;
    PyTypeObject *type = Py_TYPE(self);
    sp_index_free(self->index);
    pthread_mutex_destroy(&self->build);
    Py_XDECREF(self->name);
    Py_XDECREF(self->names);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

/* Makes the index on first need. 0, or -1 with an exception. */
static int build(Trace *self)
{
    struct sp_fault fault;
    int result;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->build);
    result = sp_index_build(self->index, &fault);
    pthread_mutex_unlock(&self->build);
    Py_END_ALLOW_THREADS if (result < 0) sp_raise_fault(self->name, &fault);
    return result;
}

struct sp_index *sp_trace_index(PyObject *trace)
{
    Trace *self = (Trace *)trace;
    return build(self) < 0 ? NULL : self->index;
}

/* No subclass can be made, and another type has another destructor. */
bool sp_trace_check(PyObject *object)
{
    if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void *)trace_dealloc)
        return true;
    PyErr_SetString(PyExc_TypeError, "not a trace");
    return false;
}

PyObject *sp_trace_fault(PyObject *trace, const struct sp_fault *fault)
{
    return sp_raise_fault(((Trace *)trace)->name, fault);
}

static Py_ssize_t trace_length(PyObject *object)
{
    Trace *self = (Trace *)object;
    if (build(self) < 0)
        return -1;
    const uint64_t count = sp_index_count(self->index);
    return count > PY_SSIZE_T_MAX ? PY_SSIZE_T_MAX : (Py_ssize_t)count;
}

/* The index must be made. Holds the GIL throughout: nobody else uses the reader's state. */
static PyObject *event_at(Trace *self, Py_ssize_t i)
{
    struct sp_read_event event;
    struct sp_fault fault;
    if (sp_index_get(self->index, (uint64_t)i, &event, &fault) < 0)
        return sp_raise_fault(self->name, &fault);
    return sp_event_to_dict(&event, self->names);
}

static PyObject *trace_item(PyObject *object, Py_ssize_t i)
{
    const Py_ssize_t length = trace_length(object);
    if (length < 0)
        return NULL;
    if (i < 0 || i >= length) {
        PyErr_SetString(PyExc_IndexError, "trace index out of range");
        return NULL;
    }
    return event_at((Trace *)object, i);
}

static PyObject *trace_subscript(PyObject *object, PyObject *key)
{
    const Py_ssize_t length = trace_length(object);
    if (length < 0)
        return NULL;
    if (!PyIndex_Check(key))
        return PyErr_Format(PyExc_TypeError, "trace indices must be integers");
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred())
        return NULL;
    return trace_item(object, i < 0 ? i + length : i);
}

static PyObject *trace_fileno(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(sp_index_fd(((Trace *)object)->index));
}

static PyMethodDef trace_methods[] = {
    {"search", sp_trace_search, METH_VARARGS,
     "search($self, within, kinds, start, stop, pid, tid, layer, text, /)\n--\n\n"
     "Positions of the events that answer a question, ascending: native 64-bit numbers "
     "in a\nbytes object."},
    {"files", sp_trace_files, METH_O,
     "files($self, within, /)\n--\n\nWhat was done to each file, as tuples."},
    {"network", sp_trace_network, METH_O,
     "network($self, within, /)\n--\n\nWhat was done with each name and address, as "
     "tuples."},
    {"processes", sp_trace_processes, METH_O,
     "processes($self, within, /)\n--\n\nThe processes in the order of their tree, as "
     "tuples."},
    {"fileno", trace_fileno, METH_NOARGS,
     "fileno($self, /)\n--\n\nThe descriptor that the trace is read from; it stays the "
     "trace's."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot trace_slots[] = {
    {Py_tp_doc,
     "Trace(source)\n--\n\n"
     "The events of a trace as dicts, by position; runs are given as the calls and\n"
     "returns in them. `source` is a path or an open descriptor. Nothing but the\n"
     "first line is read before an event or the length is asked for."},
    {Py_tp_new, trace_new},
    {Py_tp_dealloc, trace_dealloc},
    {Py_tp_methods, trace_methods},
    {Py_sq_length, trace_length},
    {Py_sq_item, trace_item},
    {Py_mp_length, trace_length},
    {Py_mp_subscript, trace_subscript},
    {0, NULL},
};

PyType_Spec sp_trace_type_spec = {
    .name = "sandpit._native.Trace",
    .basicsize = sizeof(Trace),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = trace_slots,
};
