/* The calls that are open in each thread, from a trace's calls and returns of level `all`, in
 * bounded memory. Whatever the stream of them is like, what comes out is nested:
 *
 * - a return ends its call and what is still open above it (a function left by os._exit, or by a
 *   greenlet that never came back);
 * - a return without a call is left out (what a forked child inherited, what began before
 *   recording did);
 * - time never goes back within a thread;
 * - what is open ends when its process ends or becomes another program, or when its thread
 *   ends; at the end of the trace, at the last time its thread was seen.
 *
 * A generator's resume is a call and its yield a return.
 */
#ifndef SP_READ_CALL_STACKS_H
#define SP_READ_CALL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/pair_map.h"
#include "trace/fault.h"

#define SP_CALL_THREADS_MAX 32768u     /* alive at once */
#define SP_CALL_DEPTH_MAX   (1u << 17) /* of one thread */
#define SP_CALL_OPEN_MAX    (1u << 21) /* of all threads */
#define SP_CALL_SEARCH_MAX  1024u      /* how far down a return looks for its call */

struct sp_read_event;

struct sp_open_call {
    uint64_t t_ns;
    uint64_t data; /* of the one who listens; 0 at first */
    int32_t function;
};

struct sp_call_thread {
    int64_t pid;
    int64_t tid;
    uint64_t last_ns;           /* when it was last seen */
    struct sp_open_call *calls; /* owned, outermost first */
    uint32_t depth;
    uint32_t capacity;
    uint64_t hidden;             /* open calls above `calls`, past the maxima */
    void *data;                  /* of the one who listens */
    struct sp_call_thread *next; /* of the same process */
};

/* What listens: each may be NULL. `call` is the one in hand, the top of the thread's stack until
 * `closed` returns. A result of -1 ends the taking in. */
struct sp_call_listener {
    int (*began)(void *context, struct sp_call_thread *thread);
    int (*opened)(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *event);
    int (*closed)(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised);
    int (*ended)(void *context, struct sp_call_thread *thread);
};

struct sp_call_stacks {
    const struct sp_call_listener *listener; /* borrowed */
    void *context;                           /* borrowed */
    struct sp_pair_map threads;              /* owned, by process and thread */
    struct sp_pair_map processes;  /* the first thread of each, by process and 0 */
    uint64_t open;                 /* calls in all stacks */
    uint64_t hidden;               /* calls that found no room */
    struct sp_call_thread *recent; /* the last one that was looked up */
};

void sp_call_stacks_init(struct sp_call_stacks *s,
                         const struct sp_call_listener *listener, void *context);
void sp_call_stacks_release(struct sp_call_stacks *s);

/* Takes in any event. -1: the listener's own fault, or *ret_fault is set (no memory, too many
 * threads at once). */
int sp_call_stacks_add(struct sp_call_stacks *s, const struct sp_read_event *event,
                       struct sp_fault *ret_fault);

/* At the end of the trace. */
int sp_call_stacks_finish(struct sp_call_stacks *s);

#endif
