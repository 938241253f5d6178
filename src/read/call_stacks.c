#include "read/call_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "read/read_event.h"

void sp_call_stacks_init(struct sp_call_stacks *s,
                         const struct sp_call_listener *listener, void *context)
{
    *s = (struct sp_call_stacks){.listener = listener, .context = context};
    sp_pair_map_init(&s->threads);
    sp_pair_map_init(&s->processes);
}

void sp_call_stacks_release(struct sp_call_stacks *s)
{
    for (size_t i = 0; i < s->threads.slots_count; i++) {
        struct sp_call_thread *t = s->threads.slots[i].value;
        if (t != NULL)
            free(t->calls);
        free(t);
    }
    sp_pair_map_release(&s->threads);
    sp_pair_map_release(&s->processes);
}

/* ---- threads -------------------------------------------------------------------------- */

static struct sp_call_thread *make(struct sp_call_stacks *s, int64_t pid, int64_t tid)
{
    struct sp_call_thread *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    *t = (struct sp_call_thread){.pid = pid, .tid = tid};
    struct sp_call_thread *first = sp_pair_map_get(&s->processes, pid, 0);
    if ((first == NULL && !sp_pair_map_add(&s->processes, pid, 0, t)) ||
        !sp_pair_map_add(&s->threads, pid, tid, t)) {
        if (first == NULL)
            sp_pair_map_remove(&s->processes, pid, 0);
        free(t);
        return NULL;
    }
    if (first != NULL) {
        t->next = first->next;
        first->next = t;
    }
    return t;
}

/* The thread of an event, made when it is seen for the first time. NULL with *ret_fault, or
 * when the listener had enough. */
static struct sp_call_thread *thread_of(struct sp_call_stacks *s,
                                        const struct sp_read_event *e,
                                        struct sp_fault *ret_fault)
{
    if (s->recent != NULL && s->recent->pid == e->pid && s->recent->tid == e->tid)
        return s->recent;
    struct sp_call_thread *t = sp_pair_map_get(&s->threads, e->pid, e->tid);
    if (t == NULL) {
        if (s->threads.count == SP_CALL_THREADS_MAX) {
            sp_fault_set(
                ret_fault, e->line_number, 0,
                "more than %u threads at once, which is more than are followed",
                SP_CALL_THREADS_MAX);
            return NULL;
        }
        t = make(s, e->pid, e->tid);
        if (t == NULL) {
            sp_fault_set(ret_fault, 0, 0, "no memory");
            return NULL;
        }
        t->last_ns = e->t_ns;
        if (s->listener->began != NULL && s->listener->began(s->context, t) < 0)
            return NULL;
    }
    s->recent = t;
    return t;
}

static int close_top(struct sp_call_stacks *s, struct sp_call_thread *t, uint64_t t_ns,
                     bool raised)
{
    const struct sp_open_call *top = &t->calls[t->depth - 1];
    const int result = s->listener->closed == NULL
                           ? 0
                           : s->listener->closed(s->context, t, top, t_ns, raised);
    t->depth--;
    s->open--;
    return result;
}

/* Closes what is open in a thread and forgets the thread. */
static int end_thread(struct sp_call_stacks *s, struct sp_call_thread *t, uint64_t t_ns)
{
    int result = 0;
    while (t->depth > 0 && result == 0)
        result = close_top(s, t, t_ns, false);
    s->open -= t->depth;
    if (result == 0 && s->listener->ended != NULL)
        result = s->listener->ended(s->context, t);
    if (s->recent == t)
        s->recent = NULL;
    sp_pair_map_remove(&s->threads, t->pid, t->tid);
    free(t->calls);
    free(t);
    return result;
}

/* Takes a thread out of the list of its process. */
static void unlink_thread(struct sp_call_stacks *s, struct sp_call_thread *t)
{
    struct sp_call_thread *first = sp_pair_map_get(&s->processes, t->pid, 0);
    if (first == t) {
        sp_pair_map_remove(&s->processes, t->pid, 0);
        /* Putting back what was there needs no memory. */
        if (t->next != NULL)
            (void)sp_pair_map_add(&s->processes, t->pid, 0, t->next);
        return;
    }
    while (first != NULL && first->next != t)
        first = first->next;
    if (first != NULL)
        first->next = t->next;
}

static int end_process(struct sp_call_stacks *s, int64_t pid, uint64_t t_ns)
{
    int result = 0;
    struct sp_call_thread *t = sp_pair_map_get(&s->processes, pid, 0);
    sp_pair_map_remove(&s->processes, pid, 0);
    while (t != NULL) {
        struct sp_call_thread *next = t->next;
        const int one = end_thread(s, t, t_ns > t->last_ns ? t_ns : t->last_ns);
        if (one < 0)
            result = one;
        t = next;
    }
    return result;
}

/* ---- calls ---------------------------------------------------------------------------- */

static bool room(struct sp_call_stacks *s, struct sp_call_thread *t)
{
    if (t->hidden > 0 || t->depth == SP_CALL_DEPTH_MAX || s->open == SP_CALL_OPEN_MAX)
        return false;
    if (t->depth < t->capacity)
        return true;
    const uint32_t capacity = t->capacity == 0 ? 32 : t->capacity * 2;
    struct sp_open_call *calls = realloc(t->calls, capacity * sizeof *calls);
    if (calls == NULL)
        return false;
    t->calls = calls;
    t->capacity = capacity;
    return true;
}

static int open_call(struct sp_call_stacks *s, struct sp_call_thread *t,
                     const struct sp_read_event *e)
{
    if (!room(s, t)) {
        t->hidden++;
        s->hidden++;
        return 0;
    }
    struct sp_open_call *call = &t->calls[t->depth++];
    *call = (struct sp_open_call){.t_ns = t->last_ns, .function = e->function_id};
    s->open++;
    return s->listener->opened == NULL ? 0
                                       : s->listener->opened(s->context, t, call, e);
}

static int close_call(struct sp_call_stacks *s, struct sp_call_thread *t,
                      const struct sp_read_event *e)
{
    if (t->hidden > 0) {
        t->hidden--;
        return 0;
    }
    const uint32_t least =
        t->depth > SP_CALL_SEARCH_MAX ? t->depth - SP_CALL_SEARCH_MAX : 0;
    uint32_t at = t->depth;
    while (at > least && t->calls[at - 1].function != e->function_id)
        at--;
    if (at == least) /* not found */
        return 0;
    while (t->depth > at)
        if (close_top(s, t, t->last_ns, false) < 0)
            return -1;
    return close_top(s, t, t->last_ns, e->raised);
}

static bool is_thread_end(const struct sp_read_event *e)
{
    return e->kind == SP_KIND_THREAD && e->tape != NULL &&
           sp_node_is(sp_tape_text(e->tape, "op"), "end");
}

int sp_call_stacks_add(struct sp_call_stacks *s, const struct sp_read_event *e,
                       struct sp_fault *ret_fault)
{
    if (e->pid == 0)
        return 0;
    struct sp_call_thread *t = thread_of(s, e, ret_fault);
    if (t == NULL)
        return -1;
    if (t->last_ns < e->t_ns)
        t->last_ns = e->t_ns;
    if (e->function_id != 0)
        return e->kind == SP_READ_RETURN ? close_call(s, t, e) : open_call(s, t, e);
    if (e->kind == SP_KIND_EXIT || e->kind == SP_KIND_EXEC)
        return end_process(s, e->pid, e->t_ns);
    if (is_thread_end(e)) {
        unlink_thread(s, t);
        return end_thread(s, t, t->last_ns);
    }
    return 0;
}

int sp_call_stacks_finish(struct sp_call_stacks *s)
{
    while (s->processes.count > 0)
        for (size_t i = 0; i < s->processes.slots_count; i++) {
            const struct sp_pair_slot slot = s->processes.slots[i];
            if (slot.value != NULL && end_process(s, slot.first, 0) < 0)
                return -1;
        }
    return 0;
}
