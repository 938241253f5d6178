/* A thread of the run and this process on one processor, for a moment.
 *
 * Whom the kernel wakes to take a descriptor it likes to put on another, idle processor; both ways
 * take an interrupt between processors, which under a hypervisor costs more than all the rest.
 */
#ifndef SP_SYS_TOGETHER_H
#define SP_SYS_TOGETHER_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct sp_together {
    bool kept; /* they are together */
    pid_t tid;
    cpu_set_t here;
};

/* The thread must be blocked until the end: what it is while it is kept, others it makes would stay.
 * Where either has a choice of its own about where it runs, nothing happens: that is slower. */
void sp_together_begin(struct sp_together *together, pid_t tid);

/* `blocked`: the thread still is the one that was blocked. If not, another may have its number. What
 * somebody chose for it meanwhile stays. */
void sp_together_end(const struct sp_together *together, bool blocked);

#endif
