/* Signals and settings aimed at other processes, and what no policy allows: what protects the
 * supervisor, the record, and everything outside the run.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "seal/seccomp/calls.h"
#include "seal/seccomp/filter.h"
#include "supervise/attributes.h"
#include "supervise/record.h"
#include "sys/guest.h"
#include "sys/tree.h"

static void record(struct sp_act_call *call, const char *category, const char *target,
                   struct sp_verdict verdict)
{
    struct sp_place place;
    struct sp_buffer members;
    char unknown[24];
    const char *name = sp_filter_call_name(call->n->data.nr);
    if (name == NULL) {
        snprintf(unknown, sizeof unknown, "syscall %d", call->n->data.nr);
        name = unknown;
    }
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "call", name);
    sp_buffer_text(&members, ",\"arguments\":[");
    for (int i = 0; i < 6; i++)
        sp_buffer_format(&members, "%s\"0x%llx\"", i > 0 ? "," : "",
                         (unsigned long long)sp_act_arg(call, i));
    sp_buffer_text(&members, "]");
    sp_place_find(call, SP_ACT_PROCESS, NULL, &place, NULL);
    struct sp_denial denial = {.category = category,
                               .operation = name,
                               .target = target,
                               .verdict = verdict,
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

static struct sp_answer refuse_process(struct sp_act_call *call, long target)
{
    char text[40];
    snprintf(text, sizeof text, "process %ld", target);
    record(call, "process", text, sp_verdict_always(call->s->policy));
    return SP_REFUSE(EPERM);
}

static bool exists(pid_t pid)
{
    struct sp_guest_ids ids;
    return sp_guest_ids(pid, &ids);
}

/* Where the domain does not keep signals inside, it is sent from here: another thread may put a
 * different process under the number of the one that was judged. */
static struct sp_answer send_by_pidfd(struct sp_act_call *call, pid_t target)
{
    if (sp_act_arg(call, 3) != 0)
        return SP_REFUSE(EINVAL);
    sp_auto_fd pidfd = (int)syscall(SYS_pidfd_open, target, 0);
    if (pidfd < 0)
        return SP_REFUSE(errno);
    if (!sp_tree_contains(target))
        return SP_REFUSE(ESRCH);
    if (syscall(SYS_pidfd_send_signal, pidfd, sp_act_int(call, 1), NULL, 0) != 0)
        return SP_REFUSE(errno);
    return SP_RETURN(0);
}

/* A signal may go to the run's own processes: 0 is the caller's group, which lies in the run's
 * session. To everything (-1) it may not. */
struct sp_answer sp_act_kill(struct sp_act_call *call)
{
    bool by_pidfd = call->n->data.nr == SYS_pidfd_send_signal;
    bool scoped = call->s->is->signals_scoped;
    int target = sp_act_int(call, 0);
    if (by_pidfd) {
        target = sp_guest_pidfd_target((pid_t)call->n->pid, sp_act_int(call, 0));
        if (target == 0) /* no pidfd: the kernel says so */
            return scoped ? SP_CONTINUE : SP_REFUSE(EBADF);
    }
    if (target == 0)
        return SP_CONTINUE;
    if (target == -1 || target == INT32_MIN)
        return refuse_process(call, target);
    if (sp_tree_contains(abs(target)))
        return by_pidfd && !scoped ? send_by_pidfd(call, target) : SP_CONTINUE;
    if (exists(abs(target)))
        return refuse_process(call, target);
    /* Nobody has that number; but a group goes on without its leader, and then the domain
     * keeps the signal inside. */
    return target < 0 && scoped ? SP_CONTINUE : SP_REFUSE(ESRCH);
}

/* What the kernel says of a number that no process can have. */
static int errno_of_negative(int nr)
{
    return nr == SYS_sched_setparam || nr == SYS_sched_setscheduler ||
                   nr == SYS_sched_setattr
               ? EINVAL
               : ESRCH;
}

/* Limits, priorities, affinity of another process. */
/* Done here, so that it comes before or after a thread is kept on a processor (sys/together.h), and
 * never in between. What cannot be done so is left to the kernel. */
static struct sp_answer set_processors(const struct sp_act_call *call, pid_t target)
{
    static uint8_t set[1024];
    size_t size = (uint32_t)sp_act_arg(call, 1);
    size = size < sizeof set ? size : sizeof set;
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 2), set, size) != 0 ||
        !sp_notify_valid(call) ||
        syscall(SYS_sched_setaffinity, target, size, set) != 0)
        return SP_CONTINUE;
    return SP_RETURN(0);
}

struct sp_answer sp_act_knob(struct sp_act_call *call)
{
    bool two =
        call->n->data.nr == SYS_setpriority || call->n->data.nr == SYS_ioprio_set;
    int which = sp_act_int(call, 0);
    int target = sp_act_int(call, two ? 1 : 0);
    bool one_process =
        !two ||
        (call->n->data.nr == SYS_setpriority ? which == PRIO_PROCESS : which == 1);
    if (one_process && target > 0 && sp_tree_contains(target))
        return call->n->data.nr == SYS_sched_setaffinity ? set_processors(call, target)
                                                         : SP_CONTINUE;
    if (one_process && target < 0)
        return SP_REFUSE(errno_of_negative(call->n->data.nr));
    if (one_process && target > 0 && !exists(target))
        return SP_REFUSE(ESRCH);
    if (two && target == 0 &&
        (call->n->data.nr == SYS_setpriority ? which == PRIO_PGRP : which == 2))
        return SP_CONTINUE; /* the caller's own group */
    return refuse_process(call, target);
}

/* F_SETOWN sends signals to whomever it names, without a call that sends one. */
struct sp_answer sp_act_fcntl(struct sp_act_call *call)
{
    int command = sp_act_int(call, 1);
    int target = sp_act_int(call, 2);
    if (command == F_SETOWN && target != INT32_MIN &&
        (target == 0 || sp_tree_contains(abs(target))))
        return SP_CONTINUE;
    if (command == F_SETSIG)
        return SP_CONTINUE; /* which signal: the receiver is one of the run's */
    if (command == F_SETOWN)
        return refuse_process(call, target);
    record(call, "process", "the receiver of a signal",
           sp_verdict_always(call->s->policy));
    return SP_REFUSE(EPERM);
}

struct sp_answer sp_act_prctl(struct sp_act_call *call)
{
    /* The supervisor must be able to read the guest's memory: it is told yes, and stays as it
     * is. Well-meant programs (key agents) ask for it. */
    if (sp_act_int(call, 0) == PR_SET_DUMPABLE) {
        struct sp_verdict verdict = sp_verdict_always(call->s->policy);
        verdict.expected = true;
        if (sp_act_arg(call, 1) != 1)
            record(call, "integrity", "being readable by the supervisor", verdict);
        return SP_RETURN(0);
    }
    return sp_act_forbidden(call);
}

/* Of file systems' requests the policy on changes decides; all others are of no use to a guest. */
struct sp_answer sp_act_ioctl(struct sp_act_call *call)
{
    unsigned request = (unsigned)sp_act_int(call, 1);
    unsigned family = request >> 8 & 0xffu;
    bool of_files = (family == 'f' || family == 'X' || family == 0x94) &&
                    request != FIFREEZE && request != FITHAW && request != FITRIM;
    return of_files && call->s->is->writes_judged ? sp_act_file_ioctl(call)
                                                  : sp_act_forbidden(call);
}

/* What cannot be read can be neither judged nor recorded: it is not done. A process that cannot
 * be looked into at all, as it runs a program that its user may not read, is told of. */
struct sp_answer sp_act_unreadable(struct sp_act_call *call, int err)
{
    char folder[PATH_MAX];
    if (err == EFAULT && !sp_guest_cwd((pid_t)call->n->pid, folder) && errno == EACCES)
        record(call, "integrity", "being readable by the supervisor",
               sp_verdict_always(call->s->policy));
    return SP_REFUSE(err);
}

static int errno_of(const struct sp_act_call *call)
{
    for (size_t i = 0; i < sp_call_rules_count; i++) {
        const struct sp_call_rule *rule = &sp_call_rules[i];
#if defined(__x86_64__)
        int nr = rule->nr_x86_64;
#else
        int nr = rule->nr_aarch64;
#endif
        if (nr == call->n->data.nr)
            return call->s->reach != SP_REACH_OPEN ? rule->network_denied.err
                                                   : rule->network_open.err;
    }
    return SP_CALL_UNKNOWN_ERRNO;
}

struct sp_answer sp_act_forbidden(struct sp_act_call *call)
{
    int err = errno_of(call);
    record(call, "integrity", "a call that no policy allows",
           sp_verdict_always(call->s->policy));
    return SP_REFUSE(err != 0 ? err : EPERM);
}
