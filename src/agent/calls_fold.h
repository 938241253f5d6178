/* Calls counted by caller and callee, with the time they took (level `folded`).
 *
 * The counts lie in the lane, so they are exact however the process ends. Each thread has a
 * stack of the calls it is in. What enters does not always leave (and the other way round):
 * a call that leaves is looked for from the top, what lies above it is given up, and one that
 * is not found is ignored.
 *
 * Main GIL held.
 */
#ifndef SP_AGENT_CALLS_FOLD_H
#define SP_AGENT_CALLS_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/functions.h"
#include "agent/lane.h"

#define SP_FOLD_ID   0xffffu
#define SP_FOLD_NONE UINT32_MAX /* a call that found no place */
#define SP_FOLD_TOLD                                                                   \
    0x40000000u /* of an id on the stack: the call was told by itself */

struct sp_call {
    uint64_t key; /* caller in the low half, callee in the high one, as in the table */
    uint32_t id;  /* and SP_QUIET, SP_FOLD_TOLD */
    uint32_t fold;
    uint64_t start; /* ticks */
    uint64_t inner; /* ticks spent in calls from here */
};

struct sp_stack {
    uint32_t depth;
    uint32_t room;
    uint32_t over; /* calls above a full stack: counted, not timed */
    struct sp_call *calls;
};

extern __thread struct sp_stack *sp_stack __attribute__((tls_model("initial-exec")));
extern struct sp_ring_fold *sp_folds; /* of this process's lane */
extern uint32_t sp_folds_generation;

/* The thread's stack with room for one more call, or NULL: full, or no memory. */
struct sp_stack *sp_stack_grow(void);

/* Takes the table of the lane that was just put in place; calls that this thread is in are
 * counted from now on elsewhere (in the parent of a forked child). */
void sp_fold_open(void);

/* The slow halves of enter and leave. */
void sp_fold_count(struct sp_function *function, struct sp_call *call, bool resumed);
void sp_fold_over(struct sp_function *function, bool resumed);
struct sp_call *sp_fold_find(struct sp_stack *stack, uint32_t id);
void sp_fold_lost(uint64_t count);
void sp_word_lost(uint32_t what); /* SP_WORD_* bits, at level `all` */
uint32_t sp_fold_again(const struct sp_call *call);

/* Tells one call by itself. `line`: of the call, for a C function. */
void sp_fold_tell(uint32_t callee, uint32_t caller, uint32_t depth, uint32_t line);

static inline uint64_t sp_fold_key(uint32_t caller, uint32_t callee)
{
    return (uint64_t)callee << 32 | caller;
}

/* A call begins, or a generator goes on. */
static inline void sp_fold_enter(struct sp_function *function, bool resumed)
{
    struct sp_stack *stack = sp_stack;
    if (__builtin_expect(!sp_lane_ready(), 0))
        return;
    if (__builtin_expect(!stack || stack->depth == stack->room, 0) &&
        !(stack = sp_stack_grow())) {
        sp_fold_over(function, resumed);
        return;
    }
    struct sp_call *call = &stack->calls[stack->depth];
    uint32_t parent = stack->depth ? call[-1].id : 0;
    uint32_t caller = parent & SP_FOLD_ID;
    call->key = sp_fold_key(caller, function->id);
    call->id = function->id | function->quiet | (parent & function->keep);
    call->inner = 0;
    stack->depth++;
    if (__builtin_expect(function->caller == caller &&
                             function->generation == sp_folds_generation,
                         1)) {
        struct sp_ring_fold *fold = &sp_folds[function->fold];
        call->fold = function->fold;
        if (resumed)
            fold->resumes++;
        else
            fold->count++;
    } else {
        sp_fold_count(function, call, resumed);
    }
    call->start = sp_clock_ticks();
}

/* Takes the innermost call off and adds up its time. */
static inline void sp_fold_close(struct sp_stack *stack)
{
    struct sp_call *call = &stack->calls[--stack->depth];
    uint64_t total = sp_clock_ticks() - call->start;
    if (stack->depth)
        call[-1].inner += total;
    uint32_t at = call->fold;
    if (at == SP_FOLD_NONE)
        return;
    uint64_t key = sp_fold_key(sp_folds[at].caller, sp_folds[at].callee);
    if (__builtin_expect(key != call->key, 0) &&
        (at = sp_fold_again(call)) == SP_FOLD_NONE)
        return;
    sp_folds[at].total += total;
    sp_folds[at].self += total - call->inner;
}

/* A call ends: returns, raises, or its generator yields. */
static inline void sp_fold_leave(struct sp_function *function)
{
    struct sp_stack *stack = sp_stack;
    if (__builtin_expect(!sp_lane_ready() || !stack, 0))
        return;
    if (__builtin_expect(stack->over != 0, 0)) {
        stack->over--;
        return;
    }
    if (__builtin_expect(stack->depth == 0, 0))
        return;
    struct sp_call *call = &stack->calls[stack->depth - 1];
    if (__builtin_expect((call->id & SP_FOLD_ID) != function->id, 0)) {
        call = sp_fold_find(stack, function->id);
        if (!call)
            return;
        stack->depth = (uint32_t)(call - stack->calls) + 1;
    }
    sp_fold_close(stack);
}

/* The call at that height did not come about: it is not counted (unless it was told). */
void sp_fold_forget(uint32_t height);

/* For callers that know when a call is over: how high the stack is before it is entered, and
 * what must be above that afterwards is left. */
static inline uint32_t sp_fold_height(void)
{
    return sp_stack ? sp_stack->depth + sp_stack->over : 0;
}
/* Whether the innermost call is among the first of its pair, each of which is told. */
static inline bool sp_fold_rare(void)
{
    const struct sp_stack *stack = sp_stack;
    if (!stack || !stack->depth)
        return false;
    const struct sp_call *call = &stack->calls[stack->depth - 1];
    return call->fold == SP_FOLD_NONE || (call->id & SP_FOLD_TOLD);
}
/* Whether the innermost call is part of a library's import. */
static inline bool sp_fold_quiet(void)
{
    const struct sp_stack *stack = sp_stack;
    return stack && stack->depth && (stack->calls[stack->depth - 1].id & SP_QUIET);
}

static inline void sp_fold_leave_to(uint32_t height)
{
    struct sp_stack *stack = sp_stack;
    if (__builtin_expect(!sp_lane_ready() || !stack, 0))
        return;
    if (__builtin_expect(stack->over != 0, 0)) {
        stack->over = height > stack->depth ? height - stack->depth : 0;
        if (height >= stack->depth)
            return;
    }
    if (__builtin_expect(stack->depth > height, 1)) {
        stack->depth = height + 1;
        sp_fold_close(stack);
    }
}

#endif
