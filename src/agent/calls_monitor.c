/* Calls by sys.monitoring, from 3.12 on: `all` and `first`, and `folded`, to 3.13
 * in part.
 *
 * Callbacks are C functions that leave no exception behind and answer DISABLE to nothing but
 * events of a place in code: the interpreter takes a callback away for one slip. Events are
 * switched on once, before threads exist.
 */
#define Py_BUILD_CORE 1
#include "agent/calls.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <internal/pycore_interp.h>

#include "agent/calls_fold.h"
#include "agent/calls_init.h"
#include "agent/calls_setprofile.h"
#include "agent/calls_shim.h"
#include "agent/natives.h"

static int tool = -1;
static PyObject *monitoring; /* the module: a program may take it out of sys */
static PyObject *disable;    /* sys.monitoring.DISABLE, immortal by our reference */
static long event_call;
static long events_init;   /* the begin and the end of a call that does not raise */
static long events_folded; /* those that count, when it is not the hook that does */
static long armed;         /* those that are on in the main interpreter */

/* Libraries fire events of their own from 3.13 on (PyMonitoring_*), for what is their code but
 * no code object: those are not calls of Python. */
#define CALLBACK(name)                                                                 \
    static PyObject *name##_of_code(PyObject *const *args);                            \
    static PyObject *name(PyObject *self __attribute__((unused)),                      \
                          PyObject *const *args,                                       \
                          Py_ssize_t count __attribute__((unused)))                    \
    {                                                                                  \
        if (__builtin_expect(!PyCode_Check(args[0]), 0))                               \
            Py_RETURN_NONE;                                                            \
        return name##_of_code(args);                                                   \
    }                                                                                  \
    static PyObject *name##_of_code(PyObject *const *args)

static inline struct sp_function *function_of(PyObject *const *args)
{
    return sp_function_of((PyCodeObject *)args[0], NULL);
}

/* ---- all: each call and return is a word ------------------------------------------------------ */

/* A callback of the program's (sys.setprofile) is not called while its thread seems to have
 * none. It listens by a tool of a higher number, which is told of each event before us. */
static struct {
    PyThreadState *state; /* NULL: none is muted */
    Py_tracefunc callback;
} muted;

static __attribute__((noinline)) void unmute(void)
{
    muted.state->c_profilefunc = muted.callback;
    muted.state = NULL;
}

void sp_setprofile_begins(PyThreadState *state)
{
    (void)state;
    if (muted.state)
        unmute();
}

/* Muted up to our next event: for the end of the call of sys.setprofile(). */
void sp_setprofile_done(PyThreadState *state)
{
    if (sp_agent.calls != SP_CALLS_ALL || !state->c_profilefunc)
        return;
    muted.state = state;
    muted.callback = state->c_profilefunc;
    state->c_profilefunc = NULL;
}

static inline void word(uint32_t id, uint32_t what)
{
    if (sp_unlikely(muted.state != NULL))
        unmute();
    if (__builtin_expect(id == 0 || !sp_lane_word(id | what), 0))
        sp_word_lost(what);
}

CALLBACK(all_start)
{
    word(function_of(args)->id, 0);
    Py_RETURN_NONE;
}

CALLBACK(all_resume)
{
    word(function_of(args)->id, SP_WORD_RESUME);
    Py_RETURN_NONE;
}

CALLBACK(all_return)
{
    word(function_of(args)->id, SP_WORD_RETURN);
    Py_RETURN_NONE;
}

CALLBACK(all_yield)
{
    word(function_of(args)->id, SP_WORD_RETURN | SP_WORD_RESUME);
    Py_RETURN_NONE;
}

CALLBACK(all_unwind)
{
    word(function_of(args)->id, SP_WORD_RETURN | SP_WORD_RAISED);
    Py_RETURN_NONE;
}

CALLBACK(all_call)
{
    if (!sp_native_not(args[2]))
        word(sp_native_id(args[2]), 0);
    Py_RETURN_NONE;
}

/* Some versions tell the end of calls whose begin they did not tell: of Python functions. */
CALLBACK(all_call_return)
{
    if (!sp_native_not(args[2]))
        word(sp_native_id(args[2]), SP_WORD_RETURN);
    Py_RETURN_NONE;
}

CALLBACK(all_call_raise)
{
    if (!sp_native_not(args[2]))
        word(sp_native_id(args[2]), SP_WORD_RETURN | SP_WORD_RAISED);
    Py_RETURN_NONE;
}

/* ---- folded ------------------------------------------------------------------------------------- */

/* Whether the code may set a profile callback, which would hear of the end of that call if
 * the place were instrumented. */
static bool sets_profile(PyCodeObject *code)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_names, i),
                                             "setprofile") == 0)
            return true;
    return false;
}

static void listen(PyCodeObject *code, long events)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = sp_monitoring_local(monitoring, tool, code, events);
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

/* Which of its events code is to tell. C functions: each place answers once. */
static long events_of(const struct sp_function *function, PyCodeObject *code)
{
    bool natives = function && function->reviewed && !sets_profile(code);
    return (natives ? event_call : 0) | (function && !function->init ? 0 : events_init);
}

void sp_monitor_init(struct sp_function *function, PyCodeObject *code)
{
    if (function)
        function->init = 1;
    if (tool >= 0)
        listen(code, events_of(function, code));
}

/* Its code is instrumented for that when it first runs. */
void sp_monitor_natives(struct sp_function *function, PyCodeObject *code)
{
    function->told = 1;
#if SP_INITS_ESCAPE
    function->init = function->init || sp_init_named(code);
#endif
    long events = events_of(function, code);
    if (tool >= 0 && events != 0)
        listen(code, events);
}

/* Whether the frame hook has counted the call whose begin or end the event is. While the hook serves,
 * only the code of an __init__ tells of its begin. */
static inline bool is_counted(struct sp_function *function, bool begin)
{
#if SP_INITS_ESCAPE
    const PyThreadState *state = PyThreadState_Get();
    if (!sp_frame_serves(state->interp))
        return false;
    if (begin)
        function->init = 1;
    return !function->init || !sp_init_inlined(state);
#else
    (void)function, (void)begin;
    return false;
#endif
}

CALLBACK(folded_start)
{
    struct sp_function *function = function_of(args);
    if (is_counted(function, true))
        Py_RETURN_NONE;
    if (sp_unlikely(!function->told))
        sp_monitor_natives(function, (PyCodeObject *)args[0]);
    sp_fold_enter(function, false);
    Py_RETURN_NONE;
}

CALLBACK(folded_resume)
{
    sp_fold_enter(function_of(args), true);
    Py_RETURN_NONE;
}

CALLBACK(folded_end)
{
    struct sp_function *function = function_of(args);
    if (!is_counted(function, false))
        sp_fold_leave(function);
    Py_RETURN_NONE;
}

CALLBACK(folded_call)
{
    if (!sp_native_not(args[2]) && sp_lane_ready()) {
        long offset = PyLong_AsLong(args[1]);
        int line = PyCode_Addr2Line((PyCodeObject *)args[0], (int)offset);
        sp_fold_tell(sp_native_id(args[2]), function_of(args)->id, sp_fold_height(),
                     line > 0 ? (uint32_t)line : 0);
    }
    return Py_NewRef(disable);
}

/* ---- first -------------------------------------------------------------------------------------- */

CALLBACK(first_start)
{
    struct sp_function *function = function_of(args);
    if (!function->told)
        sp_calls_tell_first(function, sp_frame_top(PyThreadState_Get()));
    return Py_NewRef(disable);
}

/* ---- switching on -------------------------------------------------------------------------------------- */

struct callback {
    const char *event;
    PyMethodDef def;
    int number;         /* the event's, as the interpreter counts */
    PyObject *function; /* the main interpreter's */
};
#define ON(event, name)                                                                \
    {event,                                                                            \
     {"callback", (PyCFunction)(void (*)(void))(name), METH_FASTCALL, NULL},           \
     0,                                                                                \
     NULL}

static struct callback callbacks_all[] = {
    ON("PY_START", all_start),     ON("PY_RESUME", all_resume),
    ON("PY_THROW", all_resume),    ON("PY_RETURN", all_return),
    ON("PY_YIELD", all_yield),     ON("PY_UNWIND", all_unwind),
    ON("CALL", all_call),          ON("C_RETURN", all_call_return),
    ON("C_RAISE", all_call_raise), {0},
};
static struct callback callbacks_folded[] = {
    ON("PY_START", folded_start),  ON("PY_RESUME", folded_resume),
    ON("PY_THROW", folded_resume), ON("PY_RETURN", folded_end),
    ON("PY_YIELD", folded_end),    ON("PY_UNWIND", folded_end),
    ON("CALL", folded_call),       {0},
};
static struct callback callbacks_first[] = {ON("PY_START", first_start), {0}};

static long event_number(PyObject *module, const char *name)
{
    PyObject *events = PyObject_GetAttrString(module, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    long event = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(events);
    return event;
}

/* The callback objects are nobody's to find: the garbage collector does not list them. */
static bool register_one(PyObject *module, struct callback *c, long event)
{
    PyObject *function = PyCFunction_New(&c->def, NULL);
    if (!function)
        return false;
    if (PyObject_GC_IsTracked(function))
        PyObject_GC_UnTrack(function);
    PyObject *before = sp_monitoring_register(module, tool, event, function);
    if (PyThreadState_Get()->interp == sp_agent.main) {
        c->number = __builtin_ctzl((unsigned long)event);
        c->function = Py_NewRef(function);
    }
    Py_DECREF(function);
    Py_XDECREF(before);
    return before != NULL;
}

static struct callback *callbacks(void)
{
    return sp_agent.calls == SP_CALLS_ALL      ? callbacks_all
           : sp_agent.calls == SP_CALLS_FOLDED ? callbacks_folded
                                               : callbacks_first;
}

static bool register_all(PyObject *module)
{
    long events = 0;
    event_call = event_number(module, "CALL");
    for (struct callback *c = callbacks(); c->event; c++) {
        long event = event_number(module, c->event);
        if (event <= 0 || !register_one(module, c, event))
            return false;
        events |= event;
    }
    if (sp_agent.calls == SP_CALLS_FOLDED) {
        events_folded =
            events & ~event_call; /* CALL is a matter of single code objects */
        events_init =
            event_number(module, "PY_START") | event_number(module, "PY_RETURN");
        events = SP_INITS_ESCAPE ? event_number(module, "PY_UNWIND") : 0;
    }
    if (PyThreadState_Get()->interp == sp_agent.main)
        armed = events;
    PyObject *done = sp_monitoring_events(module, tool, events);
    Py_XDECREF(done);
    return done != NULL;
}

static bool take_tool(PyObject *module)
{
    static const int order[] = {4, 3, 5};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (tool >= 0 && order[i] != tool)
            continue; /* the same in every interpreter */
        PyObject *done = sp_monitoring_use(module, order[i], "sandpit");
        if (done) {
            Py_DECREF(done);
            tool = order[i];
            return true;
        }
        PyErr_Clear();
    }
    return false;
}

bool sp_monitor_start(void)
{
    PyObject *module = PySys_GetObject("monitoring");
    if (!module || !sp_shim_open(module) || !take_tool(module))
        return false;
    if (!disable)
        disable = PyObject_GetAttrString(module, "DISABLE");
    if (!monitoring)
        monitoring = Py_NewRef(module);
    bool good = disable && register_all(module);
    if (PyErr_Occurred())
        PyErr_Clear();
    sp_shim_install(tool);
    return good;
}

void sp_monitor_take_over(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyThreadState_Get()->interp == sp_agent.main)
        armed = events_folded;
    PyObject *done = monitoring && tool >= 0
                         ? sp_monitoring_events(monitoring, tool, events_folded)
                         : NULL;
    if (!done)
        sp_lane_lost(); /* an unknown number */
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

static bool events_on(const PyInterpreterState *interpreter)
{
    for (struct callback *c = callbacks(); c->event; c++)
        if ((armed >> c->number & 1) && c->number < _PY_MONITORING_UNGROUPED_EVENTS &&
            !(interpreter->monitors.tools[c->number] >> tool & 1))
            return false;
    return true;
}

static void events_again(void)
{
    sp_calls_tamper(
        "the tracer's events were switched off and are on again: calls between "
        "are not seen");
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = sp_monitoring_events(monitoring, tool, armed);
    if (!done)
        sp_lane_lost(); /* an unknown number */
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

void sp_monitor_check(PyInterpreterState *interpreter)
{
    if (tool < 0)
        return;
    for (struct callback *c = callbacks(); c->event; c++) {
        PyObject **slot = &interpreter->monitoring_callables[tool][c->number];
        if (sp_unlikely(*slot != c->function && c->function)) {
            sp_calls_tamper("the tracer's callbacks were taken out and are back: calls "
                            "between are not seen");
            *slot = Py_NewRef(c->function);
        }
    }
    if (sp_unlikely(!events_on(interpreter)))
        events_again();
}

#endif
