#include <Python.h>

#include "binding/feed_type.h"

#include "binding/convert.h"
#include "binding/errors.h"
#include "read/feed.h"

typedef struct {
    PyObject_HEAD struct sp_feed *feed; /* owned */
    PyObject *names;                    /* owned: keys of events, see convert.h */
} Feed;

static PyObject *feed_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *const words[] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, ":Feed", (char **)words))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Feed *self = (Feed *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    self->names = PyDict_New();
    self->feed = sp_feed_new();
    if (self->names == NULL || self->feed == NULL) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void feed_dealloc(PyObject *object)
{
    Feed *self = (Feed *)object;
    PyTypeObject *type = Py_TYPE(self);
    sp_feed_free(self->feed);
    Py_XDECREF(self->names);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *feed_put(PyObject *object, PyObject *data)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(data, &bytes, &size) < 0)
        return NULL;
    if (!sp_feed_put(((Feed *)object)->feed, bytes, (size_t)size))
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Holds the GIL throughout: nobody else uses the feed's state. */
static PyObject *feed_next(PyObject *object)
{
    Feed *self = (Feed *)object;
    struct sp_read_event event;
    struct sp_fault fault;
    const int got = sp_feed_next(self->feed, &event, &fault);
    if (got > 0)
        return sp_event_to_dict(&event, self->names);
    if (got == 0)
        return NULL; /* for now: once more was put in, it goes on */
    PyObject *name = PyUnicode_FromString("the event stream");
    if (name != NULL)
        sp_raise_fault(name, &fault);
    Py_XDECREF(name);
    return NULL;
}

static PyMethodDef feed_methods[] = {
    {"put", feed_put, METH_O,
     "put($self, data, /)\n--\n\nTake in bytes of the stream; what is there is to be "
     "taken "
     "out first."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot feed_slots[] = {
    {Py_tp_doc,
     "Feed()\n--\n\n"
     "The events of a stream as dicts, as far as their lines were put in; runs\n"
     "are given as the calls and returns in them."},
    {Py_tp_new, feed_new},
    {Py_tp_dealloc, feed_dealloc},
    {Py_tp_methods, feed_methods},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, feed_next},
    {0, NULL},
};

PyType_Spec sp_feed_type_spec = {
    .name = "sandpit._native.Feed",
    .basicsize = sizeof(Feed),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = feed_slots,
};
