/* What the agent knows of a function: the id it has in the lane, and what tracing its calls
 * needs to remember, hung on the code object itself so that finding it costs two loads.
 *
 * Main GIL held throughout. Nothing here runs Python code or leaves an exception set.
 */
#ifndef SP_AGENT_FUNCTIONS_H
#define SP_AGENT_FUNCTIONS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/code.h"
#include "agent/extra.h"

/* In the flags of a function, and of a call on a thread's stack. */
#define SP_QUIET                                                                       \
    0x80000000u /* part of a library's import: counted, not told call by call */

struct sp_function {
    uint32_t id;    /* 0: the lane holds no more functions; its calls count as lost */
    uint32_t quiet; /* SP_QUIET: a library's module body, or the import system */
    uint32_t keep;  /* SP_QUIET: as quiet as its caller (library code) */
    uint8_t reviewed;
    uint8_t told; /* it has run before (calls_*.c) */
    uint8_t init; /* events of its own tell its calls too (calls_init.h) */
    /* the pair counted last (calls_fold.h) */
    uint32_t caller;
    uint32_t fold;
    uint32_t generation;
};

/* Gets a place on code objects in the current interpreter. False: none to be had. */
bool sp_functions_start(void);

extern Py_ssize_t sp_functions_index;

/* `frame` is about to run the code (only its code and globals are looked at), NULL: the
 * innermost one does. Never NULL. */
struct sp_function *sp_function_new(PyCodeObject *code, sp_frame *frame);

static inline struct sp_function *sp_function_of(PyCodeObject *code, sp_frame *frame)
{
    struct sp_function *function = sp_extra_get(code, sp_functions_index);
    if (__builtin_expect(function != NULL, 1))
        return function;
    return sp_function_new(code, frame);
}

#endif
