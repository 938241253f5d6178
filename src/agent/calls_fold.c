#include "agent/calls_fold.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code.h"

#define STACK_FIRST 64u
#define STACK_MAX   (1u << 17)
#define FIND_MAX    4096u /* calls looked through for one that leaves */
#define TOLD_CALLS  3     /* of each pair, each told by itself before counting begins */

#define INDEX_FIRST 1024u
#define INDEX_MAX   (2 * SP_FOLDS_MAX)

__thread struct sp_stack *sp_stack __attribute__((tls_model("initial-exec")));
struct sp_ring_fold *sp_folds;
uint32_t sp_folds_generation = 1;

static uint32_t *places; /* by the pair's hash: place in the table + 1 */
static uint32_t places_mask;
static uint8_t told[SP_FOLDS_MAX]; /* by place: calls told by themselves */
static uint32_t told_used;

/* ---- stacks --------------------------------------------------------------------------------- */

static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static void stack_free(void *p)
{
    struct sp_stack *stack = p;
    sp_stack = NULL;
    free(stack->calls);
    free(stack);
}

static void stack_key_make(void)
{
    pthread_key_create(&stack_key, stack_free);
}

struct sp_stack *sp_stack_grow(void)
{
    struct sp_stack *stack = sp_stack;
    if (!stack) {
        pthread_once(&stack_once, stack_key_make);
        stack = calloc(1, sizeof *stack);
        if (!stack || pthread_setspecific(stack_key, stack) != 0) {
            free(stack);
            return NULL;
        }
        sp_stack = stack;
    }
    if (stack->room == STACK_MAX)
        return NULL;
    uint32_t room = stack->room ? stack->room * 2 : STACK_FIRST;
    struct sp_call *calls = realloc(stack->calls, room * sizeof *calls);
    if (!calls)
        return NULL;
    stack->calls = calls;
    stack->room = room;
    return stack;
}

struct sp_call *sp_fold_find(struct sp_stack *stack, uint32_t id)
{
    uint32_t least = stack->depth > FIND_MAX ? stack->depth - FIND_MAX : 0;
    for (uint32_t i = stack->depth; i > least; i--)
        if ((stack->calls[i - 1].id & SP_FOLD_ID) == id)
            return &stack->calls[i - 1];
    return NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t hash(uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40);
}

static bool places_grow(void)
{
    uint32_t count = places ? (places_mask + 1) * 2 : INDEX_FIRST;
    uint32_t *fresh = count <= INDEX_MAX ? calloc(count, sizeof *fresh) : NULL;
    if (!fresh)
        return false;
    free(places);
    places = fresh;
    places_mask = count - 1;
    for (uint32_t i = 0; i < sp_lane.ring->folds_used; i++) {
        uint32_t at =
            hash(sp_fold_key(sp_folds[i].caller, sp_folds[i].callee)) & places_mask;
        while (places[at])
            at = (at + 1) & places_mask;
        places[at] = i + 1;
    }
    return true;
}

static void forget_all(void)
{
    if (places)
        memset(places, 0, (places_mask + 1) * sizeof *places);
    sp_folds_generation++;
}

/* The table is full: what it holds goes through the ring, and it begins anew. Which pairs have
 * told their first calls is not known any more, so none does from here on. */
static void move_out(void)
{
    struct sp_ring *ring = sp_lane.ring;
    for (uint32_t i = 0; i < ring->folds_used; i++) {
        const struct sp_ring_fold *fold = &sp_folds[i];
        if ((fold->count || fold->resumes || fold->total) &&
            !sp_lane_message(SP_MSG_FOLD, fold, sizeof *fold))
            ring->fold_lost += fold->count;
    }
    memset(sp_folds, 0, ring->folds_used * sizeof *sp_folds);
    ring->folds_used = 0;
    memset(told, TOLD_CALLS, sizeof told);
    forget_all();
}

void sp_fold_open(void)
{
    sp_folds =
        (struct sp_ring_fold *)((uint8_t *)sp_lane.ring + sp_lane.ring->folds_offset);
    memset(told, 0, told_used);
    told_used = 0;
    forget_all();
    for (uint32_t i = 0; sp_stack && i < sp_stack->depth; i++)
        sp_stack->calls[i].fold = SP_FOLD_NONE;
}

void sp_fold_lost(uint64_t count)
{
    if (sp_lane_ready())
        sp_lane.ring->fold_lost += count;
}

/* Calls are told apart from returns and resumes, so that they add up. */
void sp_word_lost(uint32_t what)
{
    if (what & (SP_WORD_RETURN | SP_WORD_RESUME))
        sp_lane_lost();
    else
        sp_fold_lost(1);
}

/* Place of the pair in the table. */
static uint32_t place_of(uint64_t key)
{
    struct sp_ring *ring = sp_lane.ring;
    if ((!places || ring->folds_used >= places_mask / 2 + 1) &&
        places_mask + 1 < INDEX_MAX && !places_grow())
        return SP_FOLD_NONE;
    uint32_t at = hash(key) & places_mask;
    for (; places[at]; at = (at + 1) & places_mask) {
        const struct sp_ring_fold *fold = &sp_folds[places[at] - 1];
        if (sp_fold_key(fold->caller, fold->callee) == key)
            return places[at] - 1;
    }
    if (ring->folds_used == SP_FOLDS_MAX) {
        move_out();
        at = hash(key) & places_mask;
    }
    uint32_t place = ring->folds_used;
    sp_folds[place] =
        (struct sp_ring_fold){.caller = (uint32_t)key, .callee = (uint32_t)(key >> 32)};
    __atomic_store_n(&ring->folds_used, place + 1, __ATOMIC_RELEASE);
    places[at] = place + 1;
    if (place >= told_used)
        told_used = place + 1;
    return place;
}

uint32_t sp_fold_again(const struct sp_call *call)
{
    return place_of(call->key);
}

/* ---- counting ---------------------------------------------------------------------------------- */

void sp_fold_tell(uint32_t callee, uint32_t caller, uint32_t depth, uint32_t line)
{
    struct sp_ring_call call = {
        .ticks = sp_clock_ticks(),
        .tid = sp_lane_tid(),
        .callee = callee,
        .caller = caller,
        .depth = depth,
        .line = line,
    };
    if (callee != 0 && sp_lane_message(SP_MSG_CALL, &call, sizeof call))
        return;
    if (line != 0)
        sp_lane_lost(); /* of C functions only some calls are told */
    else
        sp_fold_lost(1);
}

static uint32_t depth_of(const struct sp_call *call)
{
    return (uint32_t)(call - sp_stack->calls);
}

void sp_fold_count(struct sp_function *function, struct sp_call *call, bool resumed)
{
    call->fold = SP_FOLD_NONE;
    if (function->id == 0) {
        sp_fold_lost(!resumed);
        return;
    }
    uint32_t at = place_of(call->key);
    if (at == SP_FOLD_NONE) {
        sp_fold_lost(!resumed);
        return;
    }
    call->fold = at;
    if (!resumed && !(call->id & SP_QUIET) && told[at] < TOLD_CALLS) {
        told[at]++;
        call->id |= SP_FOLD_TOLD; /* its time is added up with that of the others */
        sp_fold_tell(function->id, (uint32_t)call->key, depth_of(call), 0);
        return;
    }
    if (resumed)
        sp_folds[at].resumes++;
    else
        sp_folds[at].count++;
    if (told[at] == TOLD_CALLS) {
        function->caller = (uint32_t)call->key;
        function->fold = at;
        function->generation = sp_folds_generation;
    }
}

void sp_fold_forget(uint32_t height)
{
    if (!sp_lane_ready() || !sp_stack || height >= sp_stack->depth)
        return;
    const struct sp_call *call = &sp_stack->calls[height];
    struct sp_ring_fold *fold =
        call->fold != SP_FOLD_NONE ? &sp_folds[call->fold] : NULL;
    if (fold && !(call->id & SP_FOLD_TOLD) &&
        sp_fold_key(fold->caller, fold->callee) == call->key && fold->count > 0)
        fold->count--;
}

/* A call above the full stack. Its caller is read from the frames. */
void sp_fold_over(struct sp_function *function, bool resumed)
{
    sp_frame *frame = sp_frame_top(PyThreadState_Get());
    sp_frame *back = frame ? sp_frame_back(frame) : NULL;
    uint32_t caller = back ? sp_function_of(sp_frame_code(back), back)->id : 0;
    uint32_t at =
        function->id ? place_of(sp_fold_key(caller, function->id)) : SP_FOLD_NONE;
    if (sp_stack)
        sp_stack->over++;
    if (at == SP_FOLD_NONE)
        sp_fold_lost(!resumed);
    else if (resumed)
        sp_folds[at].resumes++;
    else
        sp_folds[at].count++;
}
