/* Counting new tasks, where the kernel does not do it for us: each is notified, and refused beyond
 * the limit. */
#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "supervise/limit_watch.h"
#include "supervise/supervisor.h"

/* As the filter's guard, which is not in force where tasks are notified: namespaces, and processes
 * that share memory without being a thread. */
#define FORBIDDEN                                                                      \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |     \
     CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_UNTRACED)

/* A task that was let through shows in /proc a moment later. Its maker can be kept from the
 * processor for longer; it is itself counted, so that at the worst there are twice as many. */
#define PERMIT_NS 50000000u

static bool forbidden(const struct sp_act_call *call)
{
    unsigned flags = (unsigned)sp_act_arg(call, 0);
    if (call->n->data.nr != SYS_clone)
        return false;
    return (flags & FORBIDDEN) != 0 ||
           ((flags & CLONE_VM) != 0 && (flags & (CLONE_VFORK | CLONE_THREAD)) == 0);
}

/* Permits that may not have become tasks. One whose thread asks again has. */
static unsigned outstanding(struct sp_limit_watch *w, pid_t tid, uint64_t now_ns)
{
    unsigned left = 0;
    for (unsigned i = 0; i < w->permits_count; i++)
        if (w->permits[i].until_ns > now_ns && w->permits[i].tid != tid)
            w->permits[left++] = w->permits[i];
    w->permits_count = left;
    return left;
}

struct sp_answer sp_act_task(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = w->plan->limits.value[SP_LIMIT_PROCESSES];
    uint64_t now_ns = sp_clock_ns();
    pid_t tid = (pid_t)call->n->pid;
    if (forbidden(call))
        return sp_act_forbidden(call);
    if (!sp_limit_plan_has(w->plan, SP_LIMIT_PROCESSES, SP_BY_LISTENER))
        return SP_CONTINUE;
    sp_usage_look(&w->usage, now_ns);
    uint64_t tasks = w->usage.tasks + outstanding(w, tid, now_ns);
    if (tasks > w->measured[SP_LIMIT_PROCESSES])
        w->measured[SP_LIMIT_PROCESSES] = tasks;
    if (tasks + 1 > value || w->permits_count == SP_PERMITS_MAX || w->usage.beyond) {
        sp_limits_reach(s, SP_LIMIT_PROCESSES, tasks, false);
        call->denied = true;
        return SP_REFUSE(EAGAIN);
    }
    w->permits[w->permits_count].tid = tid;
    w->permits[w->permits_count++].until_ns = now_ns + PERMIT_NS;
    return SP_CONTINUE;
}
