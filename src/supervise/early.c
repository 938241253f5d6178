#include "supervise/early.h"

#include <string.h>

#include "trace/writer.h"

/* A loader that searches for a library opens a few dozen files in vain. */
#define EVENTS_BYTES_MAX (512u << 10)

struct head {
    enum sp_kind kind;
    pid_t pid;
    pid_t tid;
    uint64_t t_ns;
    size_t size; /* of the members that follow */
};

void sp_early_init(struct sp_early *early)
{
    sp_buffer_init(&early->events, EVENTS_BYTES_MAX);
}

void sp_early_release(struct sp_early *early)
{
    sp_buffer_release(&early->events);
}

void sp_early_add(struct sp_early *early, enum sp_kind kind, uint64_t t_ns, pid_t pid,
                  pid_t tid, const struct sp_buffer *members)
{
    struct head head = {kind, pid, tid, t_ns, members->size};
    char *to = members->failed
                   ? NULL
                   : sp_buffer_reserve(&early->events, sizeof head + members->size);
    if (to == NULL) {
        early->lost++;
        return;
    }
    memcpy(to, &head, sizeof head);
    if (members->size > 0)
        memcpy(to + sizeof head, members->data, members->size);
    sp_buffer_advance(&early->events, sizeof head + members->size);
}

void sp_early_tell(struct sp_early *early, struct sp_trace_writer *w)
{
    struct head head;
    for (size_t at = 0; at < early->events.size; at += sizeof head + head.size) {
        memcpy(&head, early->events.data + at, sizeof head);
        sp_trace_begin(w, head.kind, SP_LAYER_KERNEL, head.t_ns, head.pid, head.tid);
        sp_trace_members(w, early->events.data + at + sizeof head, head.size);
        sp_trace_end(w);
    }
    if (early->lost > 0)
        sp_trace_lost(w, early->lost, 0, "opens before the program began");
    early->lost = 0;
    sp_early_release(early);
}
