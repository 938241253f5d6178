#include "agent/exceptions.h"

#include <frameobject.h>
#include <stdbool.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/code.h"
#include "agent/lane.h"
#include "agent/shims.h"
#include "agent/turn.h"

#define TRACEBACK_MAX 100000
#define CHAIN_MAX     16 /* and no ring is followed for ever */

/* ---- its text -------------------------------------------------------------------------- */

static bool plain(PyObject *value)
{
    return PyUnicode_CheckExact(value) || PyLong_CheckExact(value) ||
           PyBytes_CheckExact(value) || PyFloat_CheckExact(value) || value == Py_None ||
           PyBool_Check(value);
}

/* Whether str() of it runs none of the program's code, which would then run once more than
 * without us: neither its class nor what it was made from brings a __str__. */
static bool str_is_ours(PyObject *value)
{
    PyTypeObject *builtin = Py_TYPE(value);
    while (builtin->tp_base && (builtin->tp_flags & Py_TPFLAGS_HEAPTYPE))
        builtin = builtin->tp_base;
    if (Py_TYPE(value)->tp_str != builtin->tp_str)
        return false;
    PyObject *args = ((PyBaseExceptionObject *)value)->args;
    if (!args || !PyTuple_Check(args))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (!plain(PyTuple_GET_ITEM(args, i)))
            return false;
    return true;
}

static void add_message(struct sp_lane_record *r, PyObject *value)
{
    size_t size;
    const char *text = "";
    PyObject *made = NULL;
    if (PyUnicode_CheckExact(value)) {
        text = sp_text_view(value, &size);
    } else if (PyExceptionInstance_Check(value)) {
        PyObject *args = ((PyBaseExceptionObject *)value)->args;
        if (str_is_ours(value)) {
            made = PyObject_Str(value);
            text = sp_text_view(made, &size);
        } else if (args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) > 0) {
            text = sp_text_view(PyTuple_GET_ITEM(args, 0), &size);
        } else {
            size = 0;
        }
    } else {
        size = 0;
    }
    if (size > 0)
        sp_record_text(r, SP_FIELD_MESSAGE, text, size);
    Py_XDECREF(made);
}

static void add_type(struct sp_lane_record *r, PyObject *type)
{
    if (!type || !PyType_Check(type))
        return;
    const char *name = ((PyTypeObject *)type)->tp_name;
    char full[256];
    PyObject *dict = ((PyTypeObject *)type)->tp_dict;
    size_t size = 0;
    const char *module = "";
    if ((((PyTypeObject *)type)->tp_flags & Py_TPFLAGS_HEAPTYPE) && dict &&
        !strchr(name, '.'))
        module = sp_text_view(PyDict_GetItemString(dict, "__module__"), &size);
    if (size > 0 && !(size == 8 && memcmp(module, "builtins", 8) == 0))
        snprintf(full, sizeof full, "%.*s.%s", (int)size, module, name);
    else
        snprintf(full, sizeof full, "%s", name);
    sp_record_string(r, SP_FIELD_TYPE, full);
}

/* ---- its place --------------------------------------------------------------------------- */

/* Code and line of one entry; the code is borrowed from the frame, which the entry holds. */
static PyCodeObject *entry_place(PyTracebackObject *entry, int *ret_line)
{
    PyCodeObject *code = PyFrame_GetCode(entry->tb_frame);
    Py_DECREF(code);
    int at = entry->tb_lasti;
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030b0000
    at *= 2; /* instructions there, bytes elsewhere */
#endif
    *ret_line = entry->tb_lineno > 0 ? entry->tb_lineno : PyCode_Addr2Line(code, at);
    return code;
}

static void add_place(struct sp_lane_record *r, PyCodeObject *code, int line,
                      enum sp_field file_field, enum sp_field line_field)
{
    size_t size;
    const char *file = sp_text_view(code->co_filename, &size);
    sp_record_text(r, file_field, file, size);
    sp_record_int(r, line_field, line);
}

/* Where it was raised, the innermost reviewed place on the way, and the whole way. */
static void add_traceback(struct sp_lane_record *r, PyObject *traceback)
{
    enum { WAY_MAX = 16 };
    PyTracebackObject *way[WAY_MAX];
    size_t length = 0;
    PyTracebackObject *reviewed = NULL;
    PyTracebackObject *last = NULL;
    bool in_file = false; /* a place in a file is better than one in a text */
    PyTracebackObject *entry = traceback && PyTraceBack_Check(traceback)
                                   ? (PyTracebackObject *)traceback
                                   : NULL;
    for (int i = 0; entry && i < TRACEBACK_MAX; entry = entry->tb_next, i++) {
        int line;
        enum sp_origin origin = sp_code_origin(entry_place(entry, &line));
        if (origin == SP_ORIGIN_REVIEWED || (origin == SP_ORIGIN_TEXT && !in_file))
            reviewed = entry;
        in_file |= origin == SP_ORIGIN_REVIEWED;
        last = entry;
        way[length++ % WAY_MAX] = entry;
    }
    if (!last)
        return;
    int line;
    PyCodeObject *code = entry_place(last, &line);
    add_place(r, code, line, SP_FIELD_FILE, SP_FIELD_LINE);
    if (reviewed) {
        code = entry_place(reviewed, &line);
        add_place(r, code, line, SP_FIELD_AT_FILE, SP_FIELD_AT_LINE);
    }
    static struct sp_stack_text stack;
    stack.size = 0;
    for (size_t i = 0; i < length && i < WAY_MAX; i++) {
        code = entry_place(way[(length - 1 - i) % WAY_MAX], &line);
        sp_stack_line(&stack, code, line);
    }
    if (stack.size > 0)
        sp_record_text(r, SP_FIELD_STACK, stack.bytes, stack.size - 1);
}

static void write_one(const char *operation, const char *link, PyObject *type,
                      PyObject *value, PyObject *traceback, bool ended)
{
    struct sp_lane_record *r = &sp_lane_scratch;
    sp_record_begin(r, SP_KIND_EXCEPTION);
    sp_record_string(r, SP_FIELD_OP, operation);
    if (link)
        sp_record_string(r, SP_FIELD_LINK, link);
    add_type(r, type);
    if (value)
        add_message(r, value);
    sp_record_int(r, SP_FIELD_ENDED, ended);
    add_traceback(r, traceback);
    sp_lane_event(r);
    PyErr_Clear();
}

/* What a traceback names above it: what it was raised from, or while. */
static PyObject *linked(PyObject *value, const char **ret_link)
{
    const PyBaseExceptionObject *e = (const PyBaseExceptionObject *)value;
    *ret_link = e->cause ? "cause" : "context";
    return e->cause ? e->cause : e->suppress_context ? NULL : e->context;
}

static void write_exception(const char *operation, PyObject *type, PyObject *value,
                            PyObject *traceback, bool ended)
{
    const char *link;
    write_one(operation, NULL, type, value, traceback, ended);
    for (int i = 0; i < CHAIN_MAX && value && PyExceptionInstance_Check(value); i++) {
        value = linked(value, &link);
        if (value && PyExceptionInstance_Check(value))
            write_one(operation, link, (PyObject *)Py_TYPE(value), value,
                      ((PyBaseExceptionObject *)value)->traceback, false);
    }
}

/* ---- who tells ------------------------------------------------------------------------------ */

static PyObject *item(PyObject *sequence, Py_ssize_t index)
{
    return index < PyTuple_GET_SIZE(sequence) ? PyTuple_GET_ITEM(sequence, index)
                                              : NULL;
}

int sp_exceptions_hook(const char *operation, PyObject *args)
{
    /* Native code may print any exception this way; with no frame left, it was the program's. */
    bool ended = !sp_frame_top(_PyThreadState_UncheckedGet());
    write_exception(operation, item(args, 1), item(args, 2), item(args, 3), ended);
    return 0;
}

/* Arguments of the hooks are named tuples: (type, value, traceback, ...). */
static void write_arguments(const char *operation, PyObject *arguments)
{
    if (arguments && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) >= 3)
        write_exception(operation, item(arguments, 0), item(arguments, 1),
                        item(arguments, 2), false);
}

int sp_exceptions_unraisable(const char *operation, PyObject *args)
{
    write_arguments(operation, item(args, 1));
    return 0;
}

static PyObject *real_excepthook;

static PyObject *excepthook_shim(PyObject *self, PyObject *const *args,
                                 Py_ssize_t count, PyObject *names)
{
    (void)self;
    PyObject *arguments = count == 1 ? args[0] : NULL;
    bool exits = arguments && PyTuple_Check(arguments) &&
                 PyTuple_GET_SIZE(arguments) > 0 &&
                 PyTuple_GET_ITEM(arguments, 0) == PyExc_SystemExit;
    if (!exits && !sp_agent.ended && sp_lane_owned()) {
        sp_turn_take();
        write_arguments("thread", arguments);
        sp_turn_leave();
    }
    return PyObject_Vectorcall(real_excepthook, args, (size_t)count, names);
}

void sp_exceptions_start(void)
{
    sp_shim_builtin("_thread", "_excepthook", excepthook_shim, &real_excepthook);
    /* Imported by a start-up file already: it has the function under names of its own. */
    sp_shim_builtin("threading", "excepthook", excepthook_shim, &real_excepthook);
    sp_shim_builtin("threading", "__excepthook__", excepthook_shim, &real_excepthook);
}
