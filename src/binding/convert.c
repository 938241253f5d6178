#include "binding/convert.h"

#define NAMES_MAX 256

static PyObject *text(const char *data, size_t size)
{
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, "surrogateescape");
}

/* A key: the one that was made before, where there is one. */
static PyObject *name(const char *data, size_t size, PyObject *names)
{
    PyObject *made = text(data, size);
    if (made == NULL)
        return NULL;
    PyObject *known = PyDict_GetItemWithError(names, made);
    if (known != NULL) {
        Py_INCREF(known);
        Py_DECREF(made);
        return known;
    }
    if (PyErr_Occurred() ||
        (PyDict_Size(names) < NAMES_MAX && PyDict_SetItem(names, made, made) < 0)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

static PyObject *value(const struct sp_tape *tape, uint32_t i, PyObject *names);

static PyObject *list(const struct sp_tape *tape, uint32_t i, PyObject *names)
{
    PyObject *made = PyList_New(0);
    if (made == NULL)
        return NULL;
    for (uint32_t at = i + 1; at < tape->nodes[i].next; at = tape->nodes[at].next) {
        PyObject *item = value(tape, at, names);
        const int failed = item == NULL || PyList_Append(made, item) < 0;
        Py_XDECREF(item);
        if (failed) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

static PyObject *dict(const struct sp_tape *tape, uint32_t i, PyObject *names)
{
    const struct sp_json_node *nodes = tape->nodes;
    PyObject *made = PyDict_New();
    if (made == NULL)
        return NULL;
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at + 1].next) {
        PyObject *key = name(nodes[at].text, nodes[at].size, names);
        PyObject *item = key == NULL ? NULL : value(tape, at + 1, names);
        const int failed = item == NULL || PyDict_SetItem(made, key, item) < 0;
        Py_XDECREF(key);
        Py_XDECREF(item);
        if (failed) {
            Py_DECREF(made);
            return NULL;
        }
    }
    return made;
}

/* Depth is bounded by the tape (SP_TAPE_DEPTH_MAX). */
static PyObject *value(const struct sp_tape *tape, uint32_t i, PyObject *names)
{
    const struct sp_json_node *node = &tape->nodes[i];
    switch (node->type) {
    case SP_JSON_BOOL:
        return PyBool_FromLong(node->boolean);
    case SP_JSON_INT:
        return PyLong_FromLongLong(node->integer);
    case SP_JSON_UINT:
        return PyLong_FromUnsignedLongLong(node->natural);
    case SP_JSON_REAL:
        return PyFloat_FromDouble(node->real);
    case SP_JSON_STRING:
        return text(node->text, node->size);
    case SP_JSON_ARRAY:
        return list(tape, i, names);
    case SP_JSON_OBJECT:
        return dict(tape, i, names);
    default:
        Py_RETURN_NONE;
    }
}

/* Adds a member whose value (a new reference, NULL after an error) is given up. */
static int add(PyObject *to, const char *key, PyObject *item, PyObject *names)
{
    PyObject *made = item == NULL ? NULL : name(key, strlen(key), names);
    const int result = made == NULL ? -1 : PyDict_SetItem(to, made, item);
    Py_XDECREF(made);
    Py_XDECREF(item);
    return result;
}

static int add_text(PyObject *to, const char *key, struct sp_text from, PyObject *names)
{
    return add(to, key, text(from.data, from.size), names);
}

static int add_function(PyObject *to, const struct sp_function *f, PyObject *names)
{
    if (f == NULL)
        return 0;
    if (add_text(to, "function", f->name, names) < 0 ||
        (f->module.size > 0 && add_text(to, "module", f->module, names) < 0) ||
        (f->file.size > 0 && add_text(to, "file", f->file, names) < 0) ||
        (f->line > 0 && add(to, "line", PyLong_FromLongLong(f->line), names) < 0))
        return -1;
    return f->native ? add(to, "native", PyBool_FromLong(1), names) : 0;
}

/* One call or return out of a run: the members that sp_read_event_json() gives it. */
static PyObject *dict_of_run(const struct sp_read_event *e, PyObject *names)
{
    PyObject *made = PyDict_New();
    if (made == NULL)
        return NULL;
    if (add(made, "seq", PyLong_FromUnsignedLongLong(e->seq), names) < 0 ||
        add(made, "t", PyLong_FromUnsignedLongLong(e->t_ns), names) < 0 ||
        add_text(made, "kind", e->kind_name, names) < 0 ||
        add_text(made, "layer", e->layer, names) < 0 ||
        add(made, "pid", PyLong_FromLongLong(e->pid), names) < 0 ||
        add(made, "tid", PyLong_FromLongLong(e->tid), names) < 0 ||
        add(made, "id", PyLong_FromLong(e->function_id), names) < 0 ||
        add_function(made, e->function, names) < 0 ||
        (e->raised && add(made, "raised", PyBool_FromLong(1), names) < 0) ||
        (e->resumed && add(made, "resumed", PyBool_FromLong(1), names) < 0)) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

PyObject *sp_event_to_dict(const struct sp_read_event *event, PyObject *names)
{
    return event->function_id != 0 ? dict_of_run(event, names)
                                   : dict(event->tape, 0, names);
}
