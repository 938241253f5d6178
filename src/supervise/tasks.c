/* Counting new tasks, where the kernel does not do it for us: each is notified, and refused beyond
 * the limit. */
#include <errno.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "supervise/limit_watch.h"
#include "supervise/supervisor.h"
#include "sys/guest.h"

/* As the filter's guard, which is not in force where tasks are notified: namespaces, and processes
 * that share memory without being a thread. */
#define FORBIDDEN                                                                      \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |     \
     CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_UNTRACED)

/* A task that was let through shows in /proc a moment later. Its maker can be kept from the
 * processor for longer; it is itself counted, so that at the worst there are twice as many. */
#define PERMIT_NS 20000000u

/* Counting that takes longer is not done again at once. */
#define LONG_COUNT_NS 1000000u

static bool forbidden(const struct sp_act_call *call)
{
    unsigned flags = (unsigned)sp_act_arg(call, 0);
    if (call->n->data.nr != SYS_clone)
        return false;
    return (flags & FORBIDDEN) != 0 ||
           ((flags & CLONE_VM) != 0 && (flags & (CLONE_VFORK | CLONE_THREAD)) == 0);
}

/* Permits that may not have become tasks. One whose thread asks again, or waits in another call,
 * has; and by as many as there are more tasks than at the last count, they have. */
static uint64_t outstanding(struct sp_limit_watch *w, pid_t tid, uint64_t now_ns)
{
    unsigned left = 0;
    for (unsigned i = 0; i < w->permits_count; i++)
        if (w->permits[i].until_ns > now_ns && w->permits[i].tid != tid &&
            !sp_guest_waits_elsewhere(w->permits[i].tid, w->permits[i].nr))
            w->permits[left++] = w->permits[i];
    w->permits_count = left;
    uint64_t bound = w->tasks_seen + w->permits_since; /* none is beyond these */
    uint64_t missing = bound > w->usage.tasks ? bound - w->usage.tasks : 0;
    return missing < left ? missing : left;
}

/* Tasks only come by permits: as long as those that were seen and all permits since then are
 * within the limit, nobody needs to be looked for. */
static bool surely_within(const struct sp_limit_watch *w, uint64_t value)
{
    return w->tasks_seen != 0 && w->tasks_seen + w->permits_since + 1 <= value;
}

static uint64_t count_tasks(struct sp_limit_watch *w, pid_t tid)
{
    uint64_t from_ns = sp_clock_ns();
    sp_usage_look(&w->usage, from_ns);
    uint64_t now_ns = sp_clock_ns();
    w->tasks_seen = w->usage.tasks + outstanding(w, tid, from_ns);
    w->permits_since = 0;
    uint64_t took_ns = now_ns - from_ns;
    w->count_again_ns = took_ns > LONG_COUNT_NS ? now_ns + took_ns : 0;
    if (w->usage.tasks > w->measured[SP_LIMIT_PROCESSES])
        w->measured[SP_LIMIT_PROCESSES] = w->usage.tasks;
    return w->tasks_seen;
}

static struct sp_answer permit(struct sp_limit_watch *w, pid_t tid, int nr)
{
    if (w->permits_count < SP_PERMITS_MAX) {
        w->permits[w->permits_count].tid = tid;
        w->permits[w->permits_count].nr = nr;
        w->permits[w->permits_count++].until_ns = sp_clock_ns() + PERMIT_NS;
    }
    w->permits_since++;
    return SP_CONTINUE;
}

struct sp_answer sp_act_task(struct sp_act_call *call)
{
    struct sp_supervisor *s = call->s;
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = w->plan->limits.value[SP_LIMIT_PROCESSES];
    pid_t tid = (pid_t)call->n->pid;
    if (forbidden(call))
        return sp_act_forbidden(call);
    if (sp_fork_wanted(call) && sp_policy_fork(s->policy).action == SP_DENY)
        return sp_act_fork(call);
    if (!sp_limit_plan_has(w->plan, SP_LIMIT_PROCESSES, SP_BY_LISTENER))
        return SP_CONTINUE;
    if (surely_within(w, value))
        return permit(w, tid, call->n->data.nr);
    /* A bomb asks again and again: no more than half of the time goes into counting. */
    bool full = sp_clock_ns() < w->count_again_ns || count_tasks(w, tid) + 1 > value ||
                w->usage.beyond || w->permits_count == SP_PERMITS_MAX;
    if (!full)
        return permit(w, tid, call->n->data.nr);
    sp_limits_reach(s, SP_LIMIT_PROCESSES, w->usage.tasks, false);
    call->denied = true;
    return SP_REFUSE(EAGAIN);
}
