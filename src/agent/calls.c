/* What the rest of the agent calls (agent.h), and what every version needs. */
#define Py_BUILD_CORE 1 /* an interpreter's own lock, its count of levels */
#include "agent/calls.h"

#include <string.h>

#include "agent/calls_fold.h"
#include "agent/calls_init.h"
#include "agent/calls_setprofile.h"
#include "agent/calls_watch.h"
#include "agent/natives.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <internal/pycore_interp.h>
#endif

#define TAMPERS_MAX 16

/* With the program's line that did it, where there is one. */
static void tell(const char *text)
{
    char full[SP_TAMPER_TEXT_MAX + 1];
    sp_frame *site = sp_frame_site(sp_frame_top(_PyThreadState_UncheckedGet()));
    size_t size = 0;
    const char *file =
        site ? sp_text_view(sp_frame_code(site)->co_filename, &size) : "";
    int room = (int)(sizeof full - strlen(text)) - 20;
    if (site && (int)size < room)
        snprintf(full, sizeof full, "%s (%.*s:%d)", text, (int)size, file,
                 sp_frame_line(site));
    else
        snprintf(full, sizeof full, "%s", text);
    sp_lane_message(SP_MSG_TAMPER, full, strnlen(full, SP_TAMPER_TEXT_MAX));
}

void sp_calls_tamper(const char *text)
{
    static const char *told[TAMPERS_MAX];
    static unsigned count;
    for (unsigned i = 0; i < count; i++)
        if (told[i] == text)
            return;
    if (count < TAMPERS_MAX && sp_lane_owned()) {
        told[count++] = text;
        tell(text);
    }
}

/* Calls below this one, by the interpreter's own count. */
static uint32_t depth_of(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030c0000
    int depth = state->py_recursion_limit - state->py_recursion_remaining;
#elif PY_VERSION_HEX >= 0x030b0000
    int depth = state->recursion_limit - state->recursion_remaining;
#else
    int depth = state->recursion_depth;
#endif
    return depth > 1 ? (uint32_t)depth - 1 : 0;
}

/* A frame that the interpreter has not entered yet is not among the thread's. */
void sp_calls_tell_first(struct sp_function *function, sp_frame *frame)
{
    PyThreadState *state = PyThreadState_Get();
    sp_frame *caller = sp_frame_top(state);
    function->told = 1;
    if (caller && frame && caller == frame)
        caller = sp_frame_back(caller);
    uint32_t caller_id = caller ? sp_function_of(sp_frame_code(caller), caller)->id : 0;
    sp_fold_tell(function->id, caller_id, depth_of(state), 0);
}

/* ---- the agent's other parts call ----------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030c0000
/* Of all calls, or of those that it is not by events. `monitored`: there are events. */
static bool hook_is_told_of_all(bool monitored)
{
#if SP_INITS_ESCAPE
    return monitored && sp_inits_start();
#else
    (void)monitored;
    return PY_VERSION_HEX < 0x030d0000;
#endif
}
#endif

static void start(PyInterpreterState *interpreter)
{
#if PY_VERSION_HEX >= 0x030c0000
    bool good = sp_monitor_start();
    if (sp_agent.calls != SP_CALLS_FOLDED)
        return;
    if (hook_is_told_of_all(good))
        sp_frame_start(interpreter);
    else
        sp_monitor_take_over();
#else
    if (sp_agent.calls == SP_CALLS_ALL)
        sp_profile_start(interpreter);
    else
        sp_frame_start(interpreter);
#endif
}

void sp_calls_start(void)
{
    if (!sp_lane_ready() || !sp_functions_start())
        return;
    sp_natives_start();
    sp_setprofile_install();
    sp_fold_open();
    start(PyThreadState_Get()->interp);
}

/* The state with which this thread holds the GIL; NULL: it does not. PyGILState_Check() says
 * yes to everybody once there was a second interpreter. */
static PyThreadState *held_state(void)
{
    PyThreadState *state = _PyThreadState_UncheckedGet();
#if PY_VERSION_HEX < 0x030c0000
    /* One for the process, perhaps another thread's: compare, and never look into it. */
    if (state != PyGILState_GetThisThreadState())
        return NULL;
#endif
    return state;
}

static void check_hook(PyInterpreterState *interpreter)
{
#if PY_VERSION_HEX < 0x030e0000
    sp_frame_check(interpreter);
#else
    (void)interpreter;
#endif
}

void sp_calls_thread(void)
{
    PyThreadState *state = sp_functions_index >= 0 ? held_state() : NULL;
    if (!state)
        return;
    check_hook(state->interp);
#if PY_VERSION_HEX < 0x030c0000
    if (sp_profile_used())
        sp_profile_start(state->interp);
#endif
}

/* An interpreter with a GIL of its own cannot share what the main one's guards: that its calls
 * are missing is counted. */
static bool has_own_lock(PyInterpreterState *interpreter)
{
#if PY_VERSION_HEX >= 0x030c0000
    return interpreter->ceval.own_gil;
#else
    (void)interpreter;
    return false;
#endif
}

void sp_calls_interpreter(PyInterpreterState *interpreter)
{
    if (sp_functions_index < 0)
        return;
    if (has_own_lock(interpreter) || !sp_functions_start()) {
        if (sp_lane.ring)
            __atomic_fetch_add(&sp_lane.ring->own_locks, 1, __ATOMIC_RELAXED);
        return;
    }
    start(interpreter);
}

void sp_calls_forked(void)
{
    if (sp_functions_index >= 0)
        sp_fold_open();
}

int sp_calls_audit(const char *event, PyObject *args)
{
    (void)args;
    if (strcmp(event, "sys.addaudithook") == 0)
        sp_calls_hook_added();
#if PY_VERSION_HEX < 0x030c0000
    if (sp_functions_index >= 0 && sp_profile_used() &&
        strcmp(event, "sys.setprofile") == 0)
        sp_profile_expect(PyThreadState_Get());
#endif
    return 0;
}

/* Counts and words are in the lane as soon as they are made: nothing is pending. */
void sp_calls_stop(void)
{
    sp_calls_check_last(PyThreadState_Get());
}
