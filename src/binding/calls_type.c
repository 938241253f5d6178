#include <Python.h>

#include "binding/calls_type.h"

#include <stdlib.h>

#include "binding/tables.h"
#include "binding/trace_type.h"
#include "read/calls.h"
#include "read/each.h"
#include "read/index.h"

typedef struct {
    PyObject_HEAD PyObject *trace; /* owned: has the functions that the calls are of */
    struct sp_calls calls;         /* owned; does not change once it is made */
} Calls;

static int take(void *to, const struct sp_read_event *event, struct sp_fault *ret_fault)
{
    return sp_calls_add(to, event, ret_fault);
}

static int fill(Calls *self, PyObject *within)
{
    static const bool kinds[SP_READ_RETURN + 1] = {
        [SP_KIND_CALL] = true, [SP_READ_RETURN] = true, [SP_KIND_EXIT] = true,
        [SP_KIND_EXEC] = true, [SP_KIND_THREAD] = true, [SP_KIND_LOST] = true};
    struct sp_each each = {.kinds = kinds, .take = take, .to = &self->calls};
    struct sp_fault fault;
    if (sp_trace_each(self->trace, within, &each) < 0)
        return -1;
    const struct sp_index *index = sp_trace_index(self->trace);
    if (index == NULL)
        return -1;
    if (sp_calls_finish(&self->calls, sp_index_functions(index), &fault) == 0)
        return 0;
    sp_trace_fault(self->trace, &fault);
    return -1;
}

static PyObject *calls_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *const words[] = {"trace", "within", NULL};
    PyObject *trace;
    PyObject *within;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO:Calls", (char **)words, &trace,
                                     &within))
        return NULL;
    if (!sp_trace_check(trace))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Calls *self = (Calls *)allocate(type, 0);
    if (self == NULL)
        return NULL;
    sp_calls_init(&self->calls);
    Py_INCREF(trace);
    self->trace = trace;
    if (fill(self, within) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void calls_dealloc(PyObject *object)
{
    Calls *self = (Calls *)object;
    PyTypeObject *type = Py_TYPE(self);
    sp_calls_release(&self->calls);
    Py_XDECREF(self->trace);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static Py_ssize_t calls_length(PyObject *object)
{
    return (Py_ssize_t)((Calls *)object)->calls.count;
}

static PyObject *text(struct sp_text from)
{
    return PyUnicode_DecodeUTF8(from.data, (Py_ssize_t)from.size, "surrogateescape");
}

/* The node of a number that Python gives. NULL with an exception. */
static const struct sp_call_node *node_at(const Calls *self, PyObject *number)
{
    const unsigned long i = PyLong_AsUnsignedLong(number);
    if (i == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    if (i >= self->calls.count) {
        PyErr_SetString(PyExc_IndexError, "there is no such node");
        return NULL;
    }
    return &self->calls.nodes[i];
}

/* (function, module, file, line, native, caller, count, resumes, total, self) */
static PyObject *calls_node(PyObject *object, PyObject *number)
{
    const Calls *self = (const Calls *)object;
    const struct sp_call_node *node = node_at(self, number);
    if (node == NULL)
        return NULL;
    const struct sp_function f = sp_calls_function(&self->calls, node);
    const struct sp_text caller = sp_calls_caller(&self->calls, node);
    PyObject *texts[4] = {text(f.name), text(f.module), text(f.file), text(caller)};
    for (size_t i = 0; i < 4; i++)
        if (texts[i] == NULL) {
            for (size_t k = 0; k < 4; k++)
                Py_XDECREF(texts[k]);
            return NULL;
        }
    return Py_BuildValue(
        "(NNNLiNKKKK)", texts[0], texts[1], texts[2], (long long)f.line, (int)f.native,
        texts[3], (unsigned long long)node->count, (unsigned long long)node->resumes,
        (unsigned long long)node->total_ns, (unsigned long long)node->self_ns);
}

static int append(PyObject *list, unsigned long number)
{
    PyObject *made = PyLong_FromUnsignedLong(number);
    const int result = made == NULL ? -1 : PyList_Append(list, made);
    Py_XDECREF(made);
    return result;
}

static PyObject *calls_children(PyObject *object, PyObject *number)
{
    const Calls *self = (const Calls *)object;
    const struct sp_call_node *node = node_at(self, number);
    PyObject *made = node == NULL ? NULL : PyList_New(0);
    for (uint32_t i = node == NULL ? SP_CALLS_NONE : node->child;
         made != NULL && i != SP_CALLS_NONE; i = self->calls.nodes[i].next)
        if (append(made, i) < 0) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

static PyObject *roots_of(const Calls *self, const struct sp_call_top *top)
{
    PyObject *made = PyList_New(0);
    for (uint32_t i = 0; made != NULL && i < top->roots_count; i++)
        if (append(made, self->calls.roots[top->roots_at + i]) < 0) {
            Py_DECREF(made);
            return NULL;
        }
    return made;
}

/* [(pid, tid, [roots])] */
static PyObject *calls_tops(PyObject *object, PyObject *unused)
{
    const Calls *self = (const Calls *)object;
    (void)unused;
    PyObject *made = PyList_New(0);
    for (uint32_t i = 0; made != NULL && i < self->calls.tops_count; i++) {
        const struct sp_call_top *top = &self->calls.tops[i];
        PyObject *roots = roots_of(self, top);
        PyObject *item = roots == NULL ? NULL
                                       : Py_BuildValue("(LLN)", (long long)top->pid,
                                                       (long long)top->tid, roots);
        const int failed = item == NULL || PyList_Append(made, item) < 0;
        Py_XDECREF(item);
        if (failed) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

/* (tree, exact, calls without room, lost events) */
static PyObject *calls_state(PyObject *object, PyObject *unused)
{
    const struct sp_calls *c = &((const Calls *)object)->calls;
    (void)unused;
    return Py_BuildValue("(iiKK)", c->form != SP_CALLS_GRAPH, sp_calls_exact(c),
                         (unsigned long long)c->unlisted + c->stacks.hidden,
                         (unsigned long long)c->lost);
}

static PyMethodDef calls_methods[] = {
    {"node", calls_node, METH_O,
     "node($self, number, /)\n--\n\nWhat a node says, as a tuple."},
    {"children", calls_children, METH_O,
     "children($self, number, /)\n--\n\nThe numbers of a node's children."},
    {"tops", calls_tops, METH_NOARGS,
     "tops($self, /)\n--\n\nThreads or processes, each with the numbers of its roots."},
    {"state", calls_state, METH_NOARGS,
     "state($self, /)\n--\n\nWhether it is a tree, is exact, and what is missing."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot calls_slots[] = {
    {Py_tp_doc,
     "Calls(trace, within)\n--\n\n"
     "Who called what: a tree for each thread, or a graph for each process."},
    {Py_tp_new, calls_new},
    {Py_tp_dealloc, calls_dealloc},
    {Py_tp_methods, calls_methods},
    {Py_sq_length, calls_length},
    {0, NULL},
};

PyType_Spec sp_calls_type_spec = {
    .name = "sandpit._native.Calls",
    .basicsize = sizeof(Calls),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = calls_slots,
};
