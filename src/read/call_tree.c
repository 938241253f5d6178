/* The tree of calls, made of what call_stacks.h tells. */
#include "read/calls.h"

/* Looked up at the first call, so that threads without calls are not in the tree. */
static uint32_t top_of(struct sp_calls *c, struct sp_call_thread *thread)
{
    if (thread->data == NULL) {
        const uint32_t top = sp_calls_top(c, thread->pid, thread->tid);
        thread->data = (void *)((uintptr_t)top + 1);
    }
    return (uint32_t)((uintptr_t)thread->data - 1);
}

static int opened(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *event)
{
    struct sp_calls *c = context;
    const uint32_t top = top_of(c, thread);
    const bool inner = thread->depth > 1;
    const uint32_t parent =
        inner ? (uint32_t)thread->calls[thread->depth - 2].data : SP_CALLS_NONE;
    const uint32_t before = c->count;
    /* Beneath what found no room is none either. */
    const uint32_t node = top == SP_CALLS_NONE || (inner && parent == SP_CALLS_NONE)
                              ? SP_CALLS_NONE
                              : sp_calls_node(c, top, parent, (uint32_t)call->function);
    call->data = node;
    if (node == SP_CALLS_NONE) {
        c->unlisted += !event->resumed;
        return 0;
    }
    if (inner && c->count > before)
        sp_calls_link(&c->nodes[parent].child, &c->nodes[parent].last_child, c->nodes,
                      node);
    if (event->resumed)
        c->nodes[node].resumes++;
    else
        c->nodes[node].count++;
    return 0;
}

static int closed(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised)
{
    struct sp_calls *c = context;
    const uint32_t node = (uint32_t)call->data;
    (void)thread;
    (void)raised;
    if (node == SP_CALLS_NONE || t_ns <= call->t_ns)
        return 0;
    /* A forged trace may have a thread end and begin again, at any time. */
    const uint64_t left = UINT64_MAX - c->nodes[node].total_ns;
    c->nodes[node].total_ns += t_ns - call->t_ns < left ? t_ns - call->t_ns : left;
    return 0;
}

const struct sp_call_listener sp_call_tree_listener = {.opened = opened,
                                                       .closed = closed};
