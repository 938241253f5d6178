#include "launch/launch_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seal/landlock/ruleset.h"
#include "seal/limits/limit_seal.h"
#include "seal/seccomp/load.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void publish(struct sp_launch_report *report, int listener)
{
    __atomic_store_n(&report->listener, listener, __ATOMIC_RELEASE);
    syscall(SYS_futex, &report->listener, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static _Noreturn void fail(struct sp_launch_report *report, enum sp_stage stage,
                           int err)
{
    report->err = err;
    __atomic_store_n(&report->stage, (int32_t)stage, __ATOMIC_RELEASE);
    if (report->listener == SP_LISTENER_PENDING)
        publish(report, -1);
    _exit(127);
}

/* What the supervisor changed for itself goes back to what it was started with, so that the
 * guest inherits what it would inherit under plain python. */
static void restore_signals(const struct sp_launch *launch)
{
    struct sigaction pipe_action = {.sa_handler =
                                        launch->pipe_ignored ? SIG_IGN : SIG_DFL};
    struct sigaction child_action = {.sa_handler =
                                         launch->child_ignored ? SIG_IGN : SIG_DFL};
    struct sigaction size_action = {.sa_handler =
                                        launch->size_ignored ? SIG_IGN : SIG_DFL};
    sigaction(SIGPIPE, &pipe_action, NULL);
    sigaction(SIGCHLD, &child_action, NULL);
    sigaction(SIGXFSZ, &size_action, NULL);
    sigprocmask(SIG_SETMASK, launch->mask, NULL);
}

/* Puts 0, 1 and 2 in place and closes the rest; in two passes, so that a source which is
 * itself one of the three is not overwritten before it is used. */
static int place_descriptors(const struct sp_launch *launch)
{
    int source[4];
    for (int i = 0; i < 4; i++) {
        int fd = i < 3 ? launch->stdio[i] : launch->channel;
        source[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD, 10);
        if (fd >= 0 && source[i] < 0)
            return -1;
    }
    int last = -1;
    for (int i = 0; i < 4; i++) {
        int to = i < 3 ? i : SP_CHANNEL_FD;
        if (source[i] < 0)
            close(to);
        else if (dup2(source[i], to) < 0)
            return -1;
        else
            last = to;
    }
    unsigned first = last == SP_CHANNEL_FD ? SP_CHANNEL_FD + 1 : 3;
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return 0;
    /* COMPAT(kernel 5.9): no close_range. */
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned fd = first; fd < limit.rlim_cur; fd++)
        close((int)fd);
    return 0;
}

void sp_launch_child(const struct sp_launch *launch, pid_t supervisor,
                     struct sp_launch_report *report)
{
    const struct rlimit none = {0, 0};
    int result = sp_limits_enter(launch->limits, report->grouped != 0);
    if (result != 0)
        fail(report, SP_STAGE_LIMITS, -result);
    if (setsid() < 0)
        fail(report, SP_STAGE_SESSION, errno);
    if (launch->terminal >= 0 && ioctl(launch->terminal, TIOCSCTTY, 0) != 0)
        fail(report, SP_STAGE_SESSION, errno);
    /* The supervisor may have died before PDEATHSIG was set. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != supervisor)
        fail(report, SP_STAGE_PARENT, errno);
    if (setrlimit(RLIMIT_CORE, &none) != 0)
        fail(report, SP_STAGE_LIMITS, errno);
    if (launch->folder >= 0 && fchdir(launch->folder) != 0)
        fail(report, SP_STAGE_FOLDER, errno);
    /* Inherited from the keeper: the supervisor must be able to read the guest's memory. */
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail(report, SP_STAGE_PRIVILEGES, errno);
    restore_signals(launch);
    umask(launch->file_mask);
    if (launch->ruleset >= 0) {
        if (sp_landlock_enter(launch->ruleset) != 0)
            fail(report, SP_STAGE_LANDLOCK, errno);
        if (sp_landlock_self_test(supervisor, launch->scoped) != 0)
            fail(report, SP_STAGE_SELF_TEST, 0);
    }
    int listener = launch->listener ? sp_filter_load(launch->filter)
                                    : sp_filter_load_without_listener(launch->filter);
    if (listener < 0)
        fail(report, SP_STAGE_FILTER, -listener);
    /* Both tables hold the listener now. Once the supervisor knows, it may close its own ends of
     * things: the child's table must be its own by then. */
    if (unshare(CLONE_FILES) != 0)
        fail(report, SP_STAGE_DESCRIPTORS, errno);
    publish(report, launch->listener ? listener : -1);
    if (place_descriptors(launch) != 0)
        fail(report, SP_STAGE_DESCRIPTORS, errno);
    result = sp_limits_apply(launch->limits);
    if (result != 0)
        fail(report, SP_STAGE_LIMITS, -result);
    execve(launch->path, launch->argv, launch->envp);
    fail(report, SP_STAGE_EXEC, errno);
}
