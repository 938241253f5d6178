/* Receiving a notified call, finding out whose it is and who decides it, answering. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/ring.h"
#include "supervise/observe.h"
#include "supervise/record.h"
#include "supervise/sentence.h"
#include "sys/guest.h"
#include "sys/listener.h"
#include "sys/together.h"
#include "sys/watchdog.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

struct row {
    int nr;
    struct sp_answer (*decide)(struct sp_act_call *call);
};

/* Whatever the filter notifies and is not listed is forbidden; so are the path calls unknown
 * to path_acts.c. */
static const struct row rows[] = {
    {SP_CALL_NR, sp_act_agent},
    {SYS_exit_group, sp_act_exit},
    {SYS_execve, sp_act_exec},
    {SYS_execveat, sp_act_exec},
    {SYS_openat, sp_act_open},
#ifdef SYS_open
    {SYS_open, sp_act_open},
    {SYS_creat, sp_act_open},
    {SYS_mkdir, sp_act_path},
    {SYS_rmdir, sp_act_path},
    {SYS_unlink, sp_act_path},
    {SYS_rename, sp_act_path},
    {SYS_link, sp_act_path},
    {SYS_symlink, sp_act_path},
    {SYS_chmod, sp_act_path},
    {SYS_chown, sp_act_path},
    {SYS_lchown, sp_act_path},
    {SYS_utime, sp_act_path},
    {SYS_utimes, sp_act_path},
    {SYS_futimesat, sp_act_path},
    {SYS_mknod, sp_act_path},
#endif
    {SYS_mkdirat, sp_act_path},
    {SYS_unlinkat, sp_act_path},
#ifdef SYS_renameat
    {SYS_renameat, sp_act_path},
#endif
    {SYS_renameat2, sp_act_path},
    {SYS_linkat, sp_act_path},
    {SYS_symlinkat, sp_act_path},
    {SYS_truncate, sp_act_path},
    {SYS_fchmod, sp_act_path},
    {SYS_fchmodat, sp_act_path},
    {452, sp_act_path}, /* fchmodat2 */
    {SYS_fchown, sp_act_path},
    {SYS_fchownat, sp_act_path},
    {SYS_utimensat, sp_act_path},
    {SYS_setxattr, sp_act_path},
    {SYS_lsetxattr, sp_act_path},
    {SYS_fsetxattr, sp_act_path},
    {463, sp_act_path}, /* setxattrat */
    {SYS_removexattr, sp_act_path},
    {SYS_lremovexattr, sp_act_path},
    {SYS_fremovexattr, sp_act_path},
    {466, sp_act_path}, /* removexattrat */
    {469, sp_act_path}, /* file_setattr */
    {SYS_mknodat, sp_act_path},
    {SYS_socket, sp_act_socket},
    {SYS_socketpair, sp_act_socketpair},
    {SYS_connect, sp_act_connect},
    {SYS_bind, sp_act_bind},
    {SYS_listen, sp_act_listen},
    {SYS_sendto, sp_act_send},
    {SYS_sendmsg, sp_act_send},
    {SYS_sendmmsg, sp_act_send},
    {SYS_setsockopt, sp_act_setsockopt},
    {SYS_mmap, sp_act_code},
    {SYS_mprotect, sp_act_code},
    {SYS_pkey_mprotect, sp_act_code},
    {SYS_clone, sp_act_task},
#ifdef SYS_fork
    {SYS_fork, sp_act_task},
    {SYS_vfork, sp_act_task},
#endif
    {SYS_kill, sp_act_kill},
    {SYS_tkill, sp_act_kill},
    {SYS_tgkill, sp_act_kill},
    {SYS_rt_sigqueueinfo, sp_act_kill},
    {SYS_rt_tgsigqueueinfo, sp_act_kill},
    {SYS_pidfd_send_signal, sp_act_kill},
    {SYS_prlimit64, sp_act_knob},
    {SYS_setpriority, sp_act_knob},
    {SYS_ioprio_set, sp_act_knob},
    {SYS_sched_setparam, sp_act_knob},
    {SYS_sched_setscheduler, sp_act_knob},
    {SYS_sched_setattr, sp_act_knob},
    {SYS_sched_setaffinity, sp_act_knob},
    {SYS_migrate_pages, sp_act_knob},
    {SYS_move_pages, sp_act_knob},
    {SYS_fcntl, sp_act_fcntl},
    {SYS_prctl, sp_act_prctl},
    {SYS_ioctl, sp_act_ioctl},
};

static struct sp_answer (*decider(int nr))(struct sp_act_call *call)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].nr == nr)
            return rows[i].decide;
    return sp_act_forbidden;
}

/* Who made it. A process whose parent has ended is the child of somebody else for the kernel by now;
 * an agent says whose lane it knew before its own. */
static pid_t parent_of(const struct sp_supervisor *s, const struct sp_guest_ids *ids,
                       const struct seccomp_data *data)
{
    bool forked = data->nr == SP_CALL_NR && data->args[0] == SP_CALL_HELLO &&
                  data->args[1] == SP_HELLO_FORK;
    uint32_t lane = forked ? (uint32_t)data->args[3] : 0;
    bool known = lane != 0 && lane <= s->lane_last &&
                 s->lane_last - lane < SP_LANE_PIDS && ids->parent == getpid();
    return known ? s->lane_pids[lane % SP_LANE_PIDS] : ids->parent;
}

static void tell_fork(struct sp_supervisor *s, const struct sp_process *process)
{
    if (process->program || s->phase < SP_PHASE_RUNNING)
        return;
    struct sp_process *parent = sp_processes_find(&s->processes, process->parent);
    if (parent != NULL)
        sp_exec_look(s, parent);
    if (parent != NULL && parent->lane != NULL)
        sp_lane_drain(parent->lane, s->writer, 0);
    sp_trace_begin(s->writer, SP_KIND_FORK, SP_LAYER_KERNEL, sp_supervisor_t(s),
                   process->pid, process->pid);
    sp_trace_int(s->writer, "parent", process->parent);
    sp_trace_int(s->writer, "child", process->pid);
    sp_trace_end(s->writer);
}

struct sp_process *sp_notify_process(struct sp_supervisor *s, pid_t tid,
                                     const struct seccomp_data *data)
{
    struct sp_process *process = sp_processes_of_thread(&s->processes, tid);
    if (process != NULL)
        return process;
    struct sp_guest_ids ids;
    if (!sp_guest_ids(tid, &ids))
        return NULL;
    process = sp_processes_find(&s->processes, ids.pid);
    if (process == NULL) {
        int pidfd = (int)syscall(SYS_pidfd_open, ids.pid, 0);
        process = sp_processes_add(&s->processes, ids.pid, parent_of(s, &ids, data),
                                   ids.start_ticks, pidfd);
        if (process == NULL) {
            if (pidfd >= 0)
                close(pidfd);
            return NULL;
        }
        process->program = ids.pid == s->guest.pid;
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = process};
        if (pidfd >= 0)
            epoll_ctl(s->epoll, EPOLL_CTL_ADD, pidfd, &e);
        tell_fork(s, process);
        sp_limits_process(s, ids.pid);
    }
    sp_processes_note_thread(&s->processes, tid, process);
    return process;
}

/* Puts the descriptor into the thread's table; the thread waits on. It must come to take it, and a
 * guest can keep one from running. Meanwhile others may use what they like: limits are looked at all
 * the same. */
static int place(struct sp_supervisor *s, uint64_t id, pid_t tid,
                 const struct sp_answer *answer)
{
    bool limited = sp_limits_due_ns(&s->limits) != UINT64_MAX;
    struct sp_together together = {.kept = false};
    bool again = false;
    int number;
    do {
        if (limited)
            again = sp_watchdog_begin();
        if (s->wakes_here) /* and no signal makes it go on meanwhile (5.19) */
            sp_together_begin(&together, tid);
        number = sp_listener_place(s->guest.listener, id, (int)answer->value,
                                   answer->close_on_exec);
        sp_together_end(&together,
                        together.kept && sp_listener_valid(s->guest.listener, id));
        if (limited)
            sp_watchdog_end();
        if (number == -EINTR)
            sp_limits_look_now(s);
    } while (again && number == -EINTR && !sp_limits_ended(&s->limits));
    return number;
}

/* In two steps the thread goes on where it was, with what it has in that processor's caches. */
static int give(struct sp_supervisor *s, uint64_t id, pid_t tid,
                const struct sp_answer *answer)
{
    int fd = s->guest.listener;
    if (!s->wakes_here && sp_limits_due_ns(&s->limits) == UINT64_MAX)
        return sp_listener_give(fd, id, (int)answer->value, answer->close_on_exec);
    int number = place(s, id, tid, answer);
    return number < 0 ? number : sp_listener_return(fd, id, number);
}

void sp_notify_answer(struct sp_supervisor *s, uint64_t id, pid_t tid,
                      struct sp_answer answer)
{
    int fd = s->guest.listener;
    int result = 0;
    switch (answer.kind) {
    case SP_ANSWER_CONTINUE:
        result = sp_listener_continue(fd, id);
        break;
    case SP_ANSWER_RETURN:
        result = sp_listener_return(fd, id, answer.value);
        break;
    case SP_ANSWER_REFUSE:
        result = sp_listener_refuse(fd, id, (int)answer.value);
        break;
    case SP_ANSWER_GIVE:
        result = give(s, id, tid, &answer);
        close((int)answer.value);
        /* It did not come to take it before a limit was reached: the run is over. */
        if (result == -EINTR)
            return;
        /* No room in the guest's table: it gets that errno, never the call itself. */
        if (result != 0 && result != -ENOENT)
            result = sp_listener_refuse(fd, id, -result);
        break;
    case SP_ANSWER_GONE:
    case SP_ANSWER_LATER:
        break;
    }
    /* -ENOENT: the caller was killed meanwhile. Anything else is a fault of ours; the call
     * stays unanswered, and the run ends. */
    if (result != 0 && result != -ENOENT && s->failure.code == 0) {
        errno = -result;
        (void)sp_fail_errno(&s->failure, SP_E_INTERNAL, "cannot answer a system call");
    }
}

/* The program must begin with its agent reporting in. */
static bool out_of_turn(struct sp_supervisor *s, struct sp_act_call *call)
{
    if (s->phase != SP_PHASE_LOADING || sp_open_of_loader(call) ||
        sp_is_code_call(call->n->data.nr))
        return false;
    return call->n->data.nr != SP_CALL_NR || sp_act_arg(call, 0) != SP_CALL_HELLO;
}

/* What a loader and an interpreter have open at once. */
#define FILES_TO_BEGIN 10u

void sp_supervisor_fail_agent(struct sp_supervisor *s)
{
    const char *path = s->is->launch->path;
    uint64_t files = s->is->limits->limits.value[SP_LIMIT_OPEN_FILES];
    if (files != 0 && files < FILES_TO_BEGIN)
        (void)sp_fail(&s->failure, SP_E_HOST,
                      "the interpreter '%.300s' did not begin: its limit of open files "
                      "(%llu) is too low for it",
                      path, (unsigned long long)files);
    else if (s->withheld[0] != '\0')
        (void)sp_fail(
            &s->failure, SP_E_HOST,
            "the interpreter '%.300s' did not begin: the policy denies reading "
            "'%.300s', which it was to be loaded with",
            path, s->withheld);
    else
        (void)sp_fail(&s->failure, SP_E_HOST,
                      "the interpreter '%.300s' has no agent: it did not report in "
                      "(sandpit doctor lists the agents; to run without one: "
                      "--allow-degraded agent)",
                      path);
    sp_error_what(&s->failure, "agent");
}

static void debug(const struct sp_act_call *call, const struct sp_answer *answer)
{
    static const char *const kinds[] = {"continue", "return",   "refuse",
                                        "give",     "answered", "later"};
    dprintf(STDERR_FILENO, "sandpit: [%d] call %d -> %s %lld\n", (int)call->n->pid,
            call->n->data.nr, kinds[answer->kind], (long long)answer->value);
}

bool sp_notify_valid(const struct sp_act_call *call)
{
    return sp_listener_valid(call->s->guest.listener, call->n->id);
}

/* After a process was not found: whether it is there all the same, and we are at our own limit. */
static bool unaccounted(const struct sp_supervisor *s)
{
    return s->processes.count == SP_PROCESSES_MAX || errno == EMFILE ||
           errno == ENFILE || errno == ENOMEM;
}

bool sp_notify(struct sp_supervisor *s)
{
    struct seccomp_notif n;
    int result = sp_listener_receive(s->guest.listener, &n);
    if (result != 0)
        return result == -EAGAIN;
    struct sp_act_call call = {.s = s, .n = &n};
    errno = 0;
    call.process = sp_notify_process(s, (pid_t)n.pid, &n.data);
    if (call.process == NULL) {
        /* Gone, or one process too many to keep account of: it may not go on unrecorded. */
        if (unaccounted(s))
            sp_trace_lost(s->writer, 1, 0,
                          "calls of processes for which there was no room");
        sp_notify_answer(s, n.id, (pid_t)n.pid, SP_REFUSE(EAGAIN));
        return true;
    }
    /* What is read about the thread from here on is about the one that waits. */
    if (!sp_notify_valid(&call))
        return true;
    if (out_of_turn(s, &call)) {
        if (s->is->needs_agent) {
            sp_supervisor_fail_agent(s);
            return true;
        }
        sp_supervisor_begin(s, 0);
    }
    if (!sp_exec_settle(&call) || !sp_code_verify(&call)) {
        syscall(SYS_pidfd_send_signal, call.process->pidfd, SIGKILL, NULL, 0);
        sp_notify_answer(s, n.id, (pid_t)n.pid, SP_REFUSE(EPERM));
        return true;
    }
    struct sp_answer decided = sp_observe(&call, decider(n.data.nr));
    if (s->is->debug)
        debug(&call, &decided);
    if (s->stopped) /* it never returns: the tree is about to be killed */
        return true;
    sp_sentence_settle(&call, &decided);
    sp_notify_answer(s, n.id, (pid_t)n.pid, decided);
    if (decided.drain && call.process->lane != NULL)
        sp_lane_drain(call.process->lane, s->writer, 0);
    return true;
}
