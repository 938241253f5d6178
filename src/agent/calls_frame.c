/* Calls by the frame evaluation hook (PEP 523), up to 3.11: `first` and `folded`.
 *
 * The hook costs C stack, where 3.11 by itself needs none for a call. So past a bound it is
 * taken out and the profile callback, which needs none either, counts until the frame that
 * crossed the bound returns: programs recurse as deep as without us.
 */
#define Py_BUILD_CORE 1
#include "agent/calls.h"

#if PY_VERSION_HEX < 0x030c0000

#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#include <opcode.h>
#else
#include <frameobject.h>
#endif

#include "agent/calls_fold.h"

/* Of C stack, from where the thread first called Python: a share of what the thread has, the
 * less where plain calls take C stack as well. */
#if PY_VERSION_HEX >= 0x030b0000
#define STACK_BOUND (1u << 20)
#else
#define STACK_BOUND (1u << 18)
#endif
#define STACK_SHARE 8
#define STACK_UNKNOWN (8u << 20)

static bool taken;     /* by another tool; the profile callback serves */
static unsigned deep;  /* frames past the bound that have not returned, of all threads */

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
    if (sp_lane_tid() == (uint32_t)getpid()) { /* the C library would read a file for it */
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

#if PY_VERSION_HEX >= 0x030b0000
/* The call that only makes the generator runs no code of it. */
static inline bool makes_generator(const sp_frame *frame, const PyCodeObject *code)
{
    return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
           && frame->owner != FRAME_OWNED_BY_GENERATOR;
}

static inline bool goes_on(const sp_frame *frame, int throwing)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR
           && (throwing || _Py_OPCODE(*frame->prev_instr) != RETURN_GENERATOR);
}
#else
static inline bool makes_generator(const sp_frame *frame, const PyCodeObject *code)
{
    (void)frame, (void)code;
    return false;
}

static inline bool goes_on(const sp_frame *frame, int throwing)
{
    return throwing || frame->f_lasti >= 0;
}
#endif

/* ---- the hook --------------------------------------------------------------------------------- */

static __attribute__((noinline)) PyObject *evaluate_deep(PyThreadState *state, sp_frame *frame,
                                                         int throwing)
{
    PyInterpreterState *interpreter = state->interp;
    if (deep++ == 0) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, _PyEval_EvalFrameDefault);
        sp_profile_start(interpreter);
    }
    PyObject *result = _PyEval_EvalFrameDefault(state, frame, throwing);
    if (--deep == 0 && !taken) {
        sp_profile_stop(interpreter);
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
    }
    return result;
}

static inline PyObject *evaluate_folded(PyThreadState *state, sp_frame *frame, int throwing,
                                        struct sp_function *function)
{
    uint32_t height = sp_fold_height();
    sp_fold_enter(function, goes_on(frame, throwing));
    PyObject *result = _PyEval_EvalFrameDefault(state, frame, throwing);
    sp_fold_leave_to(height);
    return result;
}

static PyObject *evaluate(PyThreadState *state, sp_frame *frame, int throwing)
{
    PyCodeObject *code = frame->f_code;
    if (__builtin_expect(stack_used_up((const char *)__builtin_frame_address(0)), 0))
        return evaluate_deep(state, frame, throwing);
    if (makes_generator(frame, code))
        return _PyEval_EvalFrameDefault(state, frame, throwing);
    struct sp_function *function = sp_function_of(code, frame);
    if (sp_agent.calls == SP_CALLS_FOLDED)
        return evaluate_folded(state, frame, throwing, function);
    if (!function->told)
        sp_calls_tell_first(function, frame);
    return _PyEval_EvalFrameDefault(state, frame, throwing);
}

void sp_frame_start(PyInterpreterState *interpreter)
{
    sp_frame_check(interpreter);
    if (!taken && !deep)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

void sp_frame_check(PyInterpreterState *interpreter)
{
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    if (sp_agent.calls == SP_CALLS_ALL || taken || now == evaluate
        || now == _PyEval_EvalFrameDefault)
        return;
    taken = true;
    sp_calls_tamper("another tool has taken the frame evaluation hook: calls are seen by the "
                    "profile callback from here on");
    sp_profile_start(interpreter);
}

#endif
