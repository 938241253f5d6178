/* Calls by the profile callback, up to 3.11: level `all`, and where the frame evaluation hook
 * cannot be.
 *
 * The callback is written into the thread states directly: setting it by the interpreter's
 * own function is for one thread, raises an audit event and drops the program's. A callback
 * of the program's keeps its object and is called after ours, so that sys.getprofile(), cProfile
 * and the like go on as if alone.
 */
#define Py_BUILD_CORE 1
#include "agent/calls.h"

#if PY_VERSION_HEX < 0x030c0000

#include <stdlib.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#else
#include <frameobject.h>
#endif
#include <internal/pycore_runtime.h>
#include <opcode.h>

#include "agent/calls_fold.h"
#include "agent/calls_setprofile.h"
#include "agent/natives.h"

static bool used;

/* ---- callbacks of the program's --------------------------------------------------------------- */

/* Few threads have one. */
static struct chain {
    PyThreadState *state;
    Py_tracefunc next;
} *chains;
static unsigned chains_count;

static struct chain *chain_of(const PyThreadState *state)
{
    for (unsigned i = 0; i < chains_count; i++)
        if (chains[i].state == state)
            return &chains[i];
    return NULL;
}

static void chain_drop(const PyThreadState *state)
{
    struct chain *chain = chain_of(state);
    if (chain)
        *chain = chains[--chains_count];
}

static bool chain_set(PyThreadState *state, Py_tracefunc next)
{
    struct chain *chain = chain_of(state);
    if (!chain) {
        struct chain *more = realloc(chains, (chains_count + 1) * sizeof *more);
        if (!more)
            return false;
        chains = more;
        chain = &chains[chains_count++];
        chain->state = state;
    }
    chain->next = next;
    return true;
}

/* The program has just set its callback: the end of that call is none of its business. */
static bool just_set;

static int call_next(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    bool skip = just_set && what == PyTrace_C_RETURN && sp_setprofile_is(arg);
    just_set = false;
    if (skip)
        return 0;
    const struct chain *chain = chain_of(PyThreadState_Get());
    return chain ? chain->next(object, frame, what, arg) : 0;
}

/* ---- frames ----------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030b0000
static inline PyCodeObject *code_of(const PyFrameObject *frame)
{
    return frame->f_frame->f_code;
}

static inline sp_frame *frame_of(PyFrameObject *frame)
{
    return frame->f_frame;
}

static inline bool is_generator(const PyCodeObject *code)
{
    return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* A generator begins at RESUME 0; what it is thrown into, or goes on at, is anything else. */
static inline bool resumed(const PyFrameObject *frame, const PyCodeObject *code)
{
    if (!is_generator(code))
        return false;
    _Py_CODEUNIT unit = *frame->f_frame->prev_instr;
    int opcode = _Py_OPCODE(unit);
    return !((opcode == RESUME || opcode == RESUME_QUICK) && _Py_OPARG(unit) == 0);
}

static inline bool yields(const PyFrameObject *frame, const PyCodeObject *code)
{
    return is_generator(code) && _Py_OPCODE(*frame->f_frame->prev_instr) == YIELD_VALUE;
}

static inline void set_tracing(PyThreadState *state, bool on)
{
    if (state->cframe)
        state->cframe->use_tracing = on || state->c_tracefunc ? 255 : 0;
}
#else
static inline PyCodeObject *code_of(const PyFrameObject *frame)
{
    return frame->f_code;
}

static inline sp_frame *frame_of(PyFrameObject *frame)
{
    return frame;
}

static inline bool resumed(const PyFrameObject *frame, const PyCodeObject *code)
{
    (void)code;
    return frame->f_lasti >= 0;
}

#if PY_VERSION_HEX >= 0x030a0000
static inline bool yields(const PyFrameObject *frame, const PyCodeObject *code)
{
    (void)code;
    return frame->f_state == FRAME_SUSPENDED;
}

static inline void set_tracing(PyThreadState *state, bool on)
{
    if (state->cframe)
        state->cframe->use_tracing = on || state->c_tracefunc ? 255 : 0;
}
#else
static inline bool yields(const PyFrameObject *frame, const PyCodeObject *code)
{
    (void)code;
    return frame->f_stacktop != NULL;
}

static inline void set_tracing(PyThreadState *state, bool on)
{
    state->use_tracing = on || state->c_tracefunc;
}
#endif
#endif

/* ---- the callbacks ------------------------------------------------------------------------------------- */

static inline void word(uint32_t id, uint32_t what)
{
    if (__builtin_expect(id == 0 || !sp_lane_word(id | what), 0))
        sp_word_lost(what);
}

static void all_return(PyFrameObject *frame, PyObject *arg)
{
    PyCodeObject *code = code_of(frame);
    uint32_t what = SP_WORD_RETURN;
    if (!arg)
        what |= SP_WORD_RAISED;
    else if (yields(frame, code))
        what |= SP_WORD_RESUME;
    word(sp_function_of(code, frame_of(frame))->id, what);
}

static int on_all(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    switch (what) {
    case PyTrace_CALL: {
        PyCodeObject *code = code_of(frame);
        word(sp_function_of(code, frame_of(frame))->id,
             resumed(frame, code) ? SP_WORD_RESUME : 0);
        break;
    }
    case PyTrace_RETURN:
        all_return(frame, arg);
        break;
    case PyTrace_C_CALL:
        word(sp_native_id(arg), 0);
        break;
    case PyTrace_C_RETURN:
        word(sp_native_id(arg), SP_WORD_RETURN);
        break;
    case PyTrace_C_EXCEPTION:
        word(sp_native_id(arg), SP_WORD_RETURN | SP_WORD_RAISED);
        break;
    }
    return sp_unlikely(chains_count) ? call_next(object, frame, what, arg) : 0;
}

static int on_counted(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    PyCodeObject *code = code_of(frame);
    if (what == PyTrace_CALL && sp_agent.calls == SP_CALLS_FIRST) {
        struct sp_function *function = sp_function_of(code, frame_of(frame));
        if (!function->told)
            sp_calls_tell_first(function, frame_of(frame));
    } else if (what == PyTrace_CALL) {
        sp_fold_enter(sp_function_of(code, frame_of(frame)), resumed(frame, code));
    } else if (what == PyTrace_RETURN) {
        sp_fold_leave(sp_function_of(code, frame_of(frame)));
    }
    return sp_unlikely(chains_count) ? call_next(object, frame, what, arg) : 0;
}

static Py_tracefunc callback(void)
{
    return sp_agent.calls == SP_CALLS_ALL ? on_all : on_counted;
}

/* Threads on which the program is about to set its own. Nobody tells when it has, so the frame
 * evaluation hook is borrowed until each of them has run a function. */
static unsigned expected;
static __thread bool expecting __attribute__((tls_model("initial-exec")));

/* ---- on and off ----------------------------------------------------------------------------------------- */

static void chain(PyThreadState *state)
{
    if (state->c_profilefunc == callback())
        return;
    if (!state->c_profilefunc)
        chain_drop(state);
    else if (!chain_set(state, state->c_profilefunc))
        return;
    state->c_profilefunc = callback();
    set_tracing(state, true);
}

static void unchain(PyThreadState *state)
{
    if (state->c_profilefunc != callback())
        return;
    const struct chain *chain = chain_of(state);
    state->c_profilefunc = chain ? chain->next : NULL;
    set_tracing(state, chain != NULL);
    chain_drop(state);
}

void sp_profile_start(PyInterpreterState *interpreter)
{
    used = true;
    for (PyThreadState *state = PyInterpreterState_ThreadHead(interpreter); state;
         state = PyThreadState_Next(state))
        chain(state);
}

void sp_profile_stop(PyInterpreterState *interpreter)
{
    used = false;
    for (PyThreadState *state = PyInterpreterState_ThreadHead(interpreter); state;
         state = PyThreadState_Next(state))
        unchain(state);
}

/* Nobody else knows the new state yet, but the list of all. */
void sp_calls_state_kept(unsigned key, PyThreadState *value)
{
    if (!used || key != (unsigned)_PyRuntime.gilstate.autoTSSkey._key ||
        value->c_profilefunc)
        return;
    value->c_profilefunc = callback();
    set_tracing(value, true);
}

void sp_profile_check(PyThreadState *state)
{
    if (!used || state->c_profilefunc == callback() || expecting)
        return;
    sp_calls_tamper("the profile callback was taken out and is back: calls between are "
                    "not seen");
    chain(state);
}

bool sp_profile_used(void)
{
    return used;
}

/* ---- when the program sets its own ----------------------------------------------------------------------- */

static void expect_no_more(PyThreadState *state);

static PyObject *evaluate_expecting(PyThreadState *state, sp_frame *frame, int throwing)
{
    if (expecting) {
        chain(state);
        expect_no_more(state);
    }
    return _PyEval_EvalFrameDefault(state, frame, throwing);
}

static void expect_no_more(PyThreadState *state)
{
    if (!expecting)
        return;
    expecting = false;
    if (--expected == 0 &&
        _PyInterpreterState_GetEvalFrameFunc(state->interp) == evaluate_expecting)
        _PyInterpreterState_SetEvalFrameFunc(state->interp, _PyEval_EvalFrameDefault);
}

void sp_profile_expect(PyThreadState *state)
{
    if (expecting)
        return;
    if (_PyInterpreterState_GetEvalFrameFunc(state->interp) == _PyEval_EvalFrameDefault)
        _PyInterpreterState_SetEvalFrameFunc(state->interp, evaluate_expecting);
    else if (expected == 0)
        return; /* another tool's hook: what the program's callback hides is not seen */
    expecting = true;
    expected++;
}

void sp_setprofile_begins(PyThreadState *state)
{
    (void)state;
}

void sp_setprofile_done(PyThreadState *state)
{
    if (!used)
        return;
    chain(state);
    expect_no_more(state);
    just_set = true;
}

#endif
