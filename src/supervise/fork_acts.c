/* New processes, where the policy allows none. Threads are no processes. */
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervise/frames.h"
#include "supervise/lane_state.h"
#include "supervise/record.h"

/* Whether the call makes a child that borrows its parent's memory until it executes. */
static bool borrows(const struct sp_act_call *call)
{
    if (call->n->data.nr == SYS_clone)
        return (sp_act_arg(call, 0) & CLONE_VFORK) != 0;
#ifdef SYS_vfork
    return call->n->data.nr == SYS_vfork;
#else
    return false;
#endif
}

bool sp_fork_wanted(const struct sp_act_call *call)
{
    return call->n->data.nr != SYS_clone || (sp_act_arg(call, 0) & CLONE_THREAD) == 0;
}

/* CPython calls fork() where vfork() fails, without a word in between: one attempt. */
static bool is_second_try(const struct sp_act_call *call)
{
    static struct {
        pid_t tid;
        uint64_t spot;
        bool borrowed;
    } last;
    struct sp_ring_frames layout;
    struct sp_process *process = call->process;
    pid_t tid = (pid_t)call->n->pid;
    uint64_t spot = 0;
    if (process->lane != NULL && sp_lane_frames(process->lane, &layout))
        spot = sp_frames_spot(&layout, process->pid, tid);
    bool again = spot != 0 && last.tid == tid && last.spot == spot && last.borrowed &&
                 !borrows(call);
    last.tid = tid;
    last.spot = spot;
    last.borrowed = borrows(call);
    return again;
}

struct sp_answer sp_act_fork(struct sp_act_call *call)
{
    static struct sp_claim claim;
    struct sp_place place;
    char target[PATH_MAX + 32] = "a new process";
    size_t size = 0;
    struct sp_verdict verdict = sp_policy_fork(call->s->policy);
    if (verdict.action == SP_ALLOW)
        return SP_CONTINUE;
    if (!call->observing && is_second_try(call)) {
        call->denied = true;
        call->again = true;
        return SP_REFUSE(EPERM);
    }
    const char *path = NULL;
    if (sp_place_find(call, SP_ACT_PROCESS, NULL, &place, &claim))
        path = sp_claim_text(&claim, SP_FIELD_PATH, &size);
    if (path != NULL)
        snprintf(target, sizeof target, "a new process for '%.*s'", (int)size, path);
    struct sp_denial denial = {.category = "process",
                               .operation = "fork",
                               .target = target,
                               .verdict = verdict,
                               .layer = SP_LAYER_KERNEL};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    return SP_REFUSE(EPERM);
}
