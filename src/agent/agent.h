/* What the parts of the agent share: the interpreter they live in and what the supervisor
 * asked for.
 *
 * Theory of operation
 * -------------------
 * The stub (stub.c, preloaded into every program of the guest) loads this library into a
 * CPython of the version it was built for, before Py_Initialize, and calls
 * sp_agent_start(). From then on three things call us: the interpreter's audit events
 * (audit.c), the interpreter's calls (calls_*.c), and libc functions that the stub
 * interposes (native.c). All of them end in the lane (lane.h), a ring shared with the
 * supervisor, or in a question to it (channel.h).
 *
 * Nothing here is trusted with a decision: whoever owns this process owns this library too.
 * So it may be simple and fast; what it must be is invisible. It runs no Python code, adds
 * no frame, keeps no exception set unless it means to, and touches no Python object after
 * finalisation has begun.
 */
#ifndef SP_AGENT_AGENT_H
#define SP_AGENT_AGENT_H

#include <Python.h>
#include <stdbool.h>

#include "policy/policy.h"
#include "ring/ring.h"

#define sp_likely(x)   __builtin_expect(!!(x), 1)
#define sp_unlikely(x) __builtin_expect(!!(x), 0)

struct sp_agent {
    const struct sp_ring_config
        *config;                    /* our copy, checked; never NULL once started */
    const struct sp_policy *policy; /* our copy, checked; NULL: none was given */
    enum sp_calls_level calls;
    bool program; /* the program itself runs (a cpython.run_* event was seen) */
    bool ended;   /* finalisation has begun: no Python object may be touched any more */
    char file[4096]; /* the program's file as the interpreter names it, "" if none */
    size_t file_size;
    char package[128]; /* with -m: the named package, "" otherwise */
    size_t package_size;
    PyInterpreterState
        *main; /* the main interpreter, known from the first audit event on */
};

/* One per process, written under the main interpreter's GIL. */
extern struct sp_agent sp_agent;

/* A text of the configuration; "" for an offset that lies outside. */
const char *sp_agent_text(uint32_t offset);

/* ---- provided by calls_*.c ------------------------------------------------------------ */

/* Switches call tracing on, at sp_agent.calls, when the program starts (GIL held). */
void sp_calls_start(void);

/* A thread is about to be made: pthread_create was called by this thread, which may or may
 * not hold a GIL. Its PyThreadState, if it will be a Python thread, exists already. */
void sp_calls_thread(void);

#if PY_VERSION_HEX < 0x030c0000
/* A thread keeps `value` under a key: perhaps the state that was just made for it, since it
 * calls into Python. It holds no GIL. */
void sp_calls_state_kept(unsigned key, PyThreadState *value);
#endif

/* First audit event from an interpreter other than the main one (its GIL held, which may be
 * a GIL of its own: only the locked side of the lane may be used then, see lane.h). */
void sp_calls_interpreter(PyInterpreterState *interpreter);

/* This is a forked child and its lane was just put in place; ids of functions are still
 * valid, folds are empty, this is the only thread. */
void sp_calls_forked(void);

/* Every audit event that begins with "sys." or "gc." and is not ours: may veto attempts on
 * the tracer. Returns 0, or -1 with an exception set (GIL held). */
int sp_calls_audit(const char *event, PyObject *args);

/* Finalisation begins: write what is pending, touch no Python object afterwards. */
void sp_calls_stop(void);

#endif
