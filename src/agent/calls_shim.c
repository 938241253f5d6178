#include "agent/calls_shim.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <stddef.h>

#include "agent/calls.h"
#include "agent/calls_watch.h"

#define TOOLS 6 /* what programs may use, 0 to 5 */

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);

enum {
    USE,
    FREE,
    CLEAR,
    GET_TOOL,
    REGISTER,
    GET_EVENTS,
    SET_EVENTS,
    GET_LOCAL,
    SET_LOCAL,
    ALL_EVENTS,
    FUNCTIONS
};

static PyObject *shim_use(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *shim_free(PyObject *, PyObject *);
static PyObject *shim_clear(PyObject *, PyObject *);
static PyObject *shim_get_tool(PyObject *, PyObject *);
static PyObject *shim_register(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *shim_get_events(PyObject *, PyObject *);
static PyObject *shim_set_events(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *shim_get_local(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *shim_set_local(PyObject *, PyObject *const *, Py_ssize_t);
static PyObject *shim_all_events(PyObject *, PyObject *);

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static struct {
    const char *name;
    int flags;
    PyCFunction ours;
    bool optional;
    PyMethodDef *def;
    PyCFunction own; /* the interpreter's */
} functions[FUNCTIONS] = {
    [USE] = {"use_tool_id", METH_FASTCALL, FAST(shim_use), false},
    [FREE] = {"free_tool_id", METH_O, shim_free, false},
    [CLEAR] = {"clear_tool_id", METH_O, shim_clear, true},
    [GET_TOOL] = {"get_tool", METH_O, shim_get_tool, false},
    [REGISTER] = {"register_callback", METH_FASTCALL, FAST(shim_register), false},
    [GET_EVENTS] = {"get_events", METH_O, shim_get_events, false},
    [SET_EVENTS] = {"set_events", METH_FASTCALL, FAST(shim_set_events), false},
    [GET_LOCAL] = {"get_local_events", METH_FASTCALL, FAST(shim_get_local), false},
    [SET_LOCAL] = {"set_local_events", METH_FASTCALL, FAST(shim_set_local), false},
    [ALL_EVENTS] = {"_all_events", METH_NOARGS, shim_all_events, true},
};

static int hidden = -1; /* our tool, as the interpreter numbers it */

/* The program's numbers, each with the interpreter's number for it. One has none, because one
 * of the six is ours; which one that is changes when the program wants to use just it. */
static int tools[TOOLS];
static int without;

static PyObject *call_fast(int f, PyObject *module, PyObject *const *args,
                           Py_ssize_t count)
{
    return ((fast_function)(void (*)(void))functions[f].own)(module, args, count);
}

static PyObject *call_one(int f, PyObject *module, PyObject *arg)
{
    return functions[f].own(module, arg);
}

/* ---- for ourselves -------------------------------------------------------------------------- */

/* The first argument is the tool; the others are borrowed. */
static PyObject *call_tool(int f, PyObject *module, int tool, PyObject *second,
                           PyObject *third)
{
    PyObject *number = PyLong_FromLong(tool);
    if (!number)
        return NULL;
    PyObject *const args[] = {number, second, third};
    PyObject *result = call_fast(f, module, args, third ? 3 : 2);
    Py_DECREF(number);
    return result;
}

PyObject *sp_monitoring_use(PyObject *module, int tool, const char *name)
{
    PyObject *text = PyUnicode_FromString(name);
    PyObject *result = text ? call_tool(USE, module, tool, text, NULL) : NULL;
    Py_XDECREF(text);
    return result;
}

PyObject *sp_monitoring_register(PyObject *module, int tool, long event,
                                 PyObject *callback)
{
    PyObject *number = PyLong_FromLong(event);
    PyObject *result =
        number ? call_tool(REGISTER, module, tool, number, callback) : NULL;
    Py_XDECREF(number);
    return result;
}

PyObject *sp_monitoring_events(PyObject *module, int tool, long events)
{
    PyObject *number = PyLong_FromLong(events);
    PyObject *result =
        number ? call_tool(SET_EVENTS, module, tool, number, NULL) : NULL;
    Py_XDECREF(number);
    return result;
}

PyObject *sp_monitoring_local(PyObject *module, int tool, PyCodeObject *code,
                              long events)
{
    PyObject *number = PyLong_FromLong(events);
    PyObject *result =
        number ? call_tool(SET_LOCAL, module, tool, (PyObject *)code, number) : NULL;
    Py_XDECREF(number);
    return result;
}

bool sp_shim_open(PyObject *module)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        if (functions[i].own)
            continue;
        PyObject *function = PyObject_GetAttrString(module, functions[i].name);
        PyErr_Clear();
        bool good =
            function && PyCFunction_CheckExact(function) &&
            ((PyCFunctionObject *)function)->m_ml->ml_flags == functions[i].flags;
        if (good) {
            functions[i].def = ((PyCFunctionObject *)function)->m_ml;
            functions[i].own = functions[i].def->ml_meth;
        }
        Py_XDECREF(function);
        if (!good && !functions[i].optional)
            return false;
    }
    return true;
}

void sp_shim_install(int tool)
{
    hidden = without = tool;
    for (int i = 0; i < TOOLS; i++)
        tools[i] = i == tool ? -1 : i;
    for (int i = 0; i < FUNCTIONS; i++)
        if (functions[i].def)
            functions[i].def->ml_meth = functions[i].ours;
}

/* ---- in front ---------------------------------------------------------------------------------- */

/* The tool an argument names; -1: not one of the six, the interpreter will say so. */
static int tool_of(PyObject *number)
{
    if (!PyLong_CheckExact(number))
        return -1;
    int overflow;
    long tool = PyLong_AsLongAndOverflow(number, &overflow);
    return tool >= 0 && tool < TOOLS && !overflow ? (int)tool : -1;
}

static PyObject *fail_taken(int tool)
{
    PyErr_Format(PyExc_ValueError, "tool %d is already in use", tool);
    return NULL;
}

static PyObject *fail_unused(int tool)
{
    PyErr_Format(PyExc_ValueError, "tool %d is not in use", tool);
    return NULL;
}

static bool tool_free(PyObject *module, int tool)
{
    PyObject *number = PyLong_FromLong(tool);
    PyObject *name = number ? call_one(GET_TOOL, module, number) : NULL;
    bool unused = name == Py_None;
    if (!name)
        PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(number);
    return unused;
}

/* Gives the program's number that has none the number of one that is not in use. */
static bool exchange(PyObject *module)
{
    static const int order[] = {3, 4, 5, 1, 0, 2}; /* the least asked for come first */
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int other = order[i];
        if (other == without || !tool_free(module, tools[other]))
            continue;
        tools[without] = tools[other];
        tools[other] = -1;
        without = other;
        return true;
    }
    return false;
}

static PyObject *shim_use(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    int tool = count == 2 ? tool_of(args[0]) : -1;
    if (tool < 0)
        return call_fast(USE, module, args, count);
    bool had = tool != without;
    if (had ? !tool_free(module, tools[tool]) : !exchange(module))
        return fail_taken(tool);
    return call_tool(USE, module, tools[tool], args[1], NULL);
}

/* For a function of one argument: the tool's number as the interpreter knows it. New
 * reference; NULL without an exception: it has none, nothing uses the tool. */
static PyObject *number_of(PyObject *number)
{
    int tool = tool_of(number);
    if (tool < 0)
        return Py_NewRef(number);
    return tool != without ? PyLong_FromLong(tools[tool]) : NULL;
}

static PyObject *shim_free(PyObject *module, PyObject *arg)
{
    PyObject *number = number_of(arg);
    if (!number) {
        sp_calls_tamper("sys.monitoring.free_tool_id of the tracer's tool");
        Py_RETURN_NONE;
    }
    PyObject *result = call_one(FREE, module, number);
    Py_DECREF(number);
    return result;
}

static PyObject *shim_clear(PyObject *module, PyObject *arg)
{
    PyObject *number = number_of(arg);
    if (!number) {
        sp_calls_tamper("sys.monitoring.clear_tool_id of the tracer's tool");
        Py_RETURN_NONE;
    }
    PyObject *result = call_one(CLEAR, module, number);
    Py_DECREF(number);
    return result;
}

static PyObject *shim_get_tool(PyObject *module, PyObject *arg)
{
    PyObject *number = number_of(arg);
    if (!number)
        Py_RETURN_NONE;
    PyObject *result = call_one(GET_TOOL, module, number);
    Py_DECREF(number);
    return result;
}

static PyObject *shim_get_events(PyObject *module, PyObject *arg)
{
    PyObject *number = number_of(arg);
    if (!number)
        return PyLong_FromLong(0);
    PyObject *result = call_one(GET_EVENTS, module, number);
    Py_DECREF(number);
    return result;
}

/* A function whose first argument is the tool. */
static PyObject *call_first(int f, PyObject *module, PyObject *const *args,
                            Py_ssize_t count, Py_ssize_t wanted)
{
    int tool = count == wanted ? tool_of(args[0]) : -1;
    if (tool < 0)
        return call_fast(f, module, args, count);
    return call_tool(f, module, tools[tool], args[1], wanted == 3 ? args[2] : NULL);
}

static bool names_ours(PyObject *const *args, Py_ssize_t count, Py_ssize_t wanted)
{
    return count == wanted && without == hidden && tool_of(args[0]) == hidden;
}

/* Whether the first argument names a tool that is not in use: the interpreter would say so
 * with its own number. */
static bool names_unused(PyObject *module, PyObject *const *args, Py_ssize_t count,
                         Py_ssize_t wanted)
{
    int tool = count == wanted ? tool_of(args[0]) : -1;
    return tool >= 0 && (tool == without || tool_free(module, tools[tool]));
}

/* For the functions that want a tool in use. */
static PyObject *call_used(int f, PyObject *module, PyObject *const *args,
                           Py_ssize_t count, Py_ssize_t wanted)
{
    if (!names_unused(module, args, count, wanted))
        return call_first(f, module, args, count, wanted);
    return fail_unused(tool_of(args[0]));
}

static PyObject *shim_register(PyObject *module, PyObject *const *args,
                               Py_ssize_t count)
{
    if (names_ours(args, count, 3)) {
        sp_calls_tamper("sys.monitoring.register_callback for the tracer's tool");
        Py_RETURN_NONE;
    }
    if (count == 3)
        sp_calls_callback(args[2],
                          "sys.monitoring: calls within its callbacks are not seen");
    return call_first(REGISTER, module, args, count, 3);
}

static PyObject *shim_set_events(PyObject *module, PyObject *const *args,
                                 Py_ssize_t count)
{
    if (names_ours(args, count, 2))
        sp_calls_tamper("sys.monitoring.set_events for the tracer's tool");
    return call_used(SET_EVENTS, module, args, count, 2);
}

static PyObject *shim_get_local(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    if (names_ours(args, count, 2))
        return PyLong_FromLong(0);
    return call_first(GET_LOCAL, module, args, count, 2);
}

static PyObject *shim_set_local(PyObject *module, PyObject *const *args,
                                Py_ssize_t count)
{
    if (names_ours(args, count, 3))
        sp_calls_tamper("sys.monitoring.set_local_events for the tracer's tool");
    return call_used(SET_LOCAL, module, args, count, 3);
}

/* A set of tools, bit by bit, in the program's numbers. */
static long renumber(long set)
{
    long renumbered = set & ~((1L << TOOLS) - 1);
    for (int i = 0; i < TOOLS; i++)
        if (tools[i] >= 0 && (set & 1L << tools[i]))
            renumbered |= 1L << i;
    return renumbered;
}

/* Event by event the set of tools that listen; what remains of a set without ours. */
static PyObject *shim_all_events(PyObject *module, PyObject *unused)
{
    PyObject *all = call_one(ALL_EVENTS, module, unused);
    if (!all || !PyDict_CheckExact(all))
        return all;
    PyObject *seen = PyDict_New();
    PyObject *event, *set;
    Py_ssize_t at = 0;
    while (seen && PyDict_Next(all, &at, &event, &set)) {
        long ones = renumber(PyLong_AsLong(set));
        PyObject *rest = ones > 0 ? PyLong_FromLong(ones) : NULL;
        if ((ones > 0 && !rest) || (rest && PyDict_SetItem(seen, event, rest) < 0))
            Py_CLEAR(seen);
        Py_XDECREF(rest);
    }
    Py_DECREF(all);
    return seen;
}

#endif
