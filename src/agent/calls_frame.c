/* Calls by the frame evaluation hook (PEP 523): `folded` up to 3.13 (where it costs two thirds of
 * what sys.monitoring does), `first` up to 3.11.
 *
 * The hook costs C stack, where the interpreter by itself needs none for a call from 3.11 on.
 * So past a bound it is taken out and another means counts that needs none either: programs
 * recurse as deep as without us. Up to 3.11 that is the profile callback, until the frame that
 * crossed the bound returns; from 3.12 on sys.monitoring, for good, since its events are
 * better not switched more than once. It also takes over when coroutines appear.
 */
#define Py_BUILD_CORE 1
#include "agent/calls.h"

#if PY_VERSION_HEX < 0x030e0000

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#else
#include <frameobject.h>
#endif

#include "agent/calls_fold.h"
#include "agent/calls_init.h"

/* Of C stack, from where the thread first called Python: a share of what the thread has; less
 * where plain calls take C stack as well. A thousand levels fit in. */
#if PY_VERSION_HEX >= 0x030b0000
#define STACK_BOUND (1u << 20)
#else
#define STACK_BOUND (1u << 18)
#endif
#define STACK_SHARE   8
#define STACK_UNKNOWN (8u << 20)

/* The hook is not ours any more: the other means serves from here on. */
static bool taken;
static bool placed; /* in the main interpreter */

static __thread struct {
    const char *base;
    size_t bound;
} stack __attribute__((tls_model("initial-exec")));

static PyObject *evaluate(PyThreadState *state, sp_frame *frame, int throwing);

static size_t stack_size(void)
{
    pthread_attr_t attributes;
    struct rlimit limit;
    size_t size = STACK_UNKNOWN;
    if (sp_lane_tid() ==
        (uint32_t)getpid()) { /* the C library would read a file for it */
        if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < SIZE_MAX / 2)
            size = (size_t)limit.rlim_cur;
    } else if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &size);
        pthread_attr_destroy(&attributes);
    }
    return size;
}

static __attribute__((noinline)) void stack_learn(const char *here)
{
    size_t share = stack_size() / STACK_SHARE;
    stack.bound = share < STACK_BOUND ? share : STACK_BOUND;
    stack.base = here;
}

static inline bool stack_used_up(const char *here)
{
    if (__builtin_expect(!stack.base, 0))
        stack_learn(here);
    return (size_t)(stack.base - here) > stack.bound && here < stack.base;
}

/* ---- generators ----------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030d0000
#define FRAME_CODE(frame) ((PyCodeObject *)(frame)->f_executable)
#define FRAME_UNIT(frame) ((frame)->instr_ptr - 1)
#elif PY_VERSION_HEX >= 0x030b0000
#define FRAME_CODE(frame) ((frame)->f_code)
#define FRAME_UNIT(frame) ((frame)->prev_instr)
#else
#define FRAME_CODE(frame) ((frame)->f_code)
#endif

#if PY_VERSION_HEX >= 0x030b0000
/* The call that only makes the generator runs no code of it. */
static inline bool makes_generator(const sp_frame *frame, const PyCodeObject *code)
{
    return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) &&
           frame->owner != FRAME_OWNED_BY_GENERATOR;
}

/* A generator that was just made stands before its first traceable instruction. */
static inline bool goes_on(const sp_frame *frame, PyCodeObject *code, int throwing)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR &&
           (throwing || FRAME_UNIT(frame) >= (_Py_CODEUNIT *)code->co_code_adaptive +
                                                 code->_co_firsttraceable);
}
#else
static inline bool makes_generator(const sp_frame *frame, const PyCodeObject *code)
{
    (void)frame, (void)code;
    return false;
}

static inline bool goes_on(const sp_frame *frame, const PyCodeObject *code,
                           int throwing)
{
    (void)code;
    return throwing || frame->f_lasti >= 0;
}
#endif

/* The interpreter counts its C recursion, in units, of which entering evaluation takes two from
 * 3.12.1 on. The hook enters it for each call: that is none of the program's doing. */
#define EVALUATION_UNITS 2

static inline PyObject *evaluate_plainly(PyThreadState *state, sp_frame *frame,
                                         int throwing)
{
#if PY_VERSION_HEX >= 0x030c0000
    state->c_recursion_remaining += EVALUATION_UNITS;
    PyObject *result = _PyEval_EvalFrameDefault(state, frame, throwing);
    state->c_recursion_remaining -= EVALUATION_UNITS;
    return result;
#else
    return _PyEval_EvalFrameDefault(state, frame, throwing);
#endif
}

/* ---- the hook --------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030c0000
static void take_over(PyInterpreterState *interpreter)
{
    if (taken)
        return;
    taken = true;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
    sp_monitor_take_over();
}

static void give_back(PyInterpreterState *interpreter)
{
    (void)interpreter;
}

static bool lent(void)
{
    return false;
}
#else
static unsigned deep; /* frames past the bound that have not returned, of all threads */

static void take_over(PyInterpreterState *interpreter)
{
    if (deep++ > 0)
        return;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
    sp_profile_start(interpreter);
}

static void give_back(PyInterpreterState *interpreter)
{
    if (--deep > 0 || taken)
        return;
    sp_profile_stop(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

static bool lent(void)
{
    return deep > 0;
}
#endif

static __attribute__((noinline)) PyObject *evaluate_deep(PyThreadState *state,
                                                         sp_frame *frame, int throwing)
{
    take_over(state->interp);
    PyObject *result = evaluate_plainly(state, frame, throwing);
    give_back(state->interp);
    return result;
}

/* A frame that fails before its first instruction (no levels left) was not called; any other
 * that fails has put itself into the traceback. */
static inline bool never_ran(const PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030c0000
    const PyBaseExceptionObject *error =
        (PyBaseExceptionObject *)state->current_exception;
    return error && !error->traceback;
#else
    return !state->curexc_traceback;
#endif
}

static inline PyObject *evaluate_folded(PyThreadState *state, sp_frame *frame,
                                        int throwing, PyCodeObject *code,
                                        struct sp_function *function)
{
#if PY_VERSION_HEX >= 0x030c0000
    if (sp_unlikely(!function->told))
        sp_monitor_natives(function, code);
#endif
    uint32_t height = sp_fold_height();
    sp_fold_enter(function, goes_on(frame, code, throwing));
#if SP_INITS_ESCAPE
    if (sp_unlikely(sp_fold_rare() && !function->init && sp_init_called(frame, code)))
        sp_monitor_init(function, code);
#endif
    PyObject *result = evaluate_plainly(state, frame, throwing);
    if (sp_unlikely(!result) && never_ran(state))
        sp_fold_forget(height);
    sp_fold_leave_to(height);
    return result;
}

/* With the hook in place, 3.12 and 3.13 send to coroutines by looking up and calling a method,
 * at several times the cost: a program that has them is better served by the other means. (A
 * library that makes one while it is imported only wants to know its type.) */
static inline PyObject *evaluate_making(PyThreadState *state, sp_frame *frame,
                                        int throwing, const PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030c0000
    if ((code->co_flags & CO_COROUTINE) && !sp_fold_quiet())
        take_over(state->interp);
#else
    (void)code;
#endif
    return evaluate_plainly(state, frame, throwing);
}

static PyObject *evaluate(PyThreadState *state, sp_frame *frame, int throwing)
{
    PyCodeObject *code = FRAME_CODE(frame);
    if (sp_unlikely(stack_used_up((const char *)__builtin_frame_address(0))))
        return evaluate_deep(state, frame, throwing);
    if (sp_unlikely(makes_generator(frame, code)))
        return evaluate_making(state, frame, throwing, code);
    struct sp_function *function = sp_function_of(code, frame);
    if (sp_likely(sp_agent.calls == SP_CALLS_FOLDED))
        return evaluate_folded(state, frame, throwing, code, function);
    if (!function->told)
        sp_calls_tell_first(function, frame);
    return evaluate_plainly(state, frame, throwing);
}

void sp_frame_start(PyInterpreterState *interpreter)
{
    sp_frame_check(interpreter);
    if (!taken &&
        _PyInterpreterState_GetEvalFrameFunc(interpreter) == _PyEval_EvalFrameDefault)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    placed |= interpreter == sp_agent.main;
}

static void put_back(PyInterpreterState *interpreter)
{
    if (!placed || lent() || interpreter != sp_agent.main)
        return;
    sp_calls_tamper(
        "the frame evaluation hook was taken out and is back: calls between "
        "are not seen");
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

bool sp_frame_serves(PyInterpreterState *interpreter)
{
    return _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate;
}

void sp_frame_check(PyInterpreterState *interpreter)
{
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (sp_agent.calls == SP_CALLS_ALL || taken || now == evaluate)
        return;
    if (now == _PyEval_EvalFrameDefault) {
        put_back(interpreter);
        return;
    }
    taken = true;
    sp_calls_tamper(
        "another tool has taken the frame evaluation hook: calls are seen by other "
        "means from here on");
#if PY_VERSION_HEX >= 0x030c0000
    sp_monitor_take_over();
#else
    sp_profile_start(interpreter);
#endif
}

#endif
