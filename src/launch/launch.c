#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"
#include "launch/launch_child.h"
#include "seal/limits/limit_seal.h"
#include "sys/guest.h"

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x00001000
#endif

static const char *const stage_says[SP_STAGE_COUNT] = {
    [SP_STAGE_START] = "starting the program",
    [SP_STAGE_SESSION] = "giving the program a session of its own",
    [SP_STAGE_PARENT] = "tying the program to the supervisor's life",
    [SP_STAGE_LIMITS] = "setting the program's limits",
    [SP_STAGE_FOLDER] = "entering the working folder",
    [SP_STAGE_PRIVILEGES] = "giving up privileges",
    [SP_STAGE_LANDLOCK] = "entering the Landlock domain",
    [SP_STAGE_SELF_TEST] = "checking that the Landlock domain holds",
    [SP_STAGE_FILTER] = "loading the seccomp filter",
    [SP_STAGE_DESCRIPTORS] = "closing descriptors",
    [SP_STAGE_EXEC] = "starting the interpreter",
};

static struct sp_launch_report *report_new(void)
{
    struct sp_launch_report *report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        return NULL;
    report->listener = SP_LISTENER_PENDING;
    report->stage = SP_STAGE_COUNT;
    return report;
}

static const char killed_early[] =
    "the program was killed while it was started (a limit of memory or processor time "
    "may be too low for it)";

int sp_launch_failed(const struct sp_guest *guest, const struct sp_launch *launch,
                     struct sp_error *reterr)
{
    int stage = __atomic_load_n(&guest->report->stage, __ATOMIC_ACQUIRE);
    if (stage == SP_STAGE_COUNT)
        return 0;
    errno = guest->report->err;
    if (stage == SP_STAGE_EXEC) {
        int code = errno == ENOENT || errno == ENOTDIR ? SP_E_NOT_FOUND : SP_E_HOST;
        return sp_fail_errno(reterr, code, "cannot start '%s'", launch->path);
    }
    if (stage == SP_STAGE_FILTER && errno == EBUSY && launch->listener) {
        (void)sp_fail(
            reterr, SP_E_HOST,
            "there is a seccomp listener around this process already, as inside "
            "another sandpit (to run without one: --allow-degraded listener)");
        return sp_error_what(reterr, "listener");
    }
    if (errno == 0)
        return sp_fail(reterr, SP_E_HOST, "%s failed", stage_says[stage]);
    return sp_fail_errno(reterr, SP_E_HOST, "%s failed", stage_says[stage]);
}

/* Waits for the listener's number. A child that was killed from outside says nothing, so that
 * its life is looked at now and then. */
static int wait_listener(struct sp_guest *guest)
{
    int value;
    while ((value = __atomic_load_n(&guest->report->listener, __ATOMIC_ACQUIRE)) ==
           SP_LISTENER_PENDING) {
        const struct timespec slice = {0, 100000000};
        syscall(SYS_futex, &guest->report->listener, FUTEX_WAIT, SP_LISTENER_PENDING,
                &slice, NULL, 0);
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)guest->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == guest->pid && guest->report->listener == SP_LISTENER_PENDING)
            return -1;
    }
    return value;
}

/* COMPAT(kernel 5.7 headers): struct clone_args, as far as it is used. */
struct clone_arguments {
    uint64_t flags;
    uint64_t pidfd;
    uint64_t child_tid;
    uint64_t parent_tid;
    uint64_t exit_signal;
    uint64_t stack[2];
    uint64_t tls;
    uint64_t set_tid[2];
    uint64_t cgroup;
};
#define INTO_CGROUP UINT64_C(0x200000000)

/* A control group of version 2 is best entered by being born there: moving takes a lock of the
 * whole machine. Where a filter around us hides clone3, the child moves. */
static long start(const struct sp_launch *launch, struct sp_guest *guest)
{
    const uint64_t flags = CLONE_FILES | CLONE_PIDFD;
    if (launch->limits->group >= 0) {
        struct clone_arguments arguments = {.flags = flags | INTO_CGROUP,
                                            .pidfd = (uintptr_t)&guest->pidfd,
                                            .exit_signal = SIGCHLD,
                                            .cgroup = (uint64_t)launch->limits->group};
        guest->report->grouped = 1;
        long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
        if (pid >= 0)
            return pid;
        guest->report->grouped = 0;
    }
    return syscall(SYS_clone, flags | SIGCHLD, NULL, &guest->pidfd, NULL, NULL);
}

/* It hides its memory, or it is gone. */
static int fail_unread(struct sp_guest *guest, const struct sp_launch *launch,
                       struct sp_error *reterr)
{
    siginfo_t info = {0};
    bool gone =
        waitid(P_PID, (id_t)guest->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == guest->pid;
    kill(guest->pid, SIGKILL);
    waitpid(guest->pid, NULL, 0);
    int code = sp_launch_failed(guest, launch, reterr);
    sp_guest_release(guest);
    if (code != 0)
        return code;
    if (gone)
        return sp_fail(reterr, SP_E_HOST, killed_early);
    (void)sp_fail(reterr, SP_E_HOST,
                  "%s (to run without it: --allow-degraded listener)",
                  SP_MEMORY_HIDDEN);
    return sp_error_what(reterr, "listener");
}

int sp_launch(const struct sp_launch *launch, struct sp_guest *ret_guest,
              struct sp_error *reterr)
{
    struct sp_guest guest = {.pidfd = -1, .listener = -1, .report = report_new()};
    if (guest.report == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "no memory for the launch");
    pid_t supervisor = getpid();
    long pid = start(launch, &guest);
    if (pid == 0)
        sp_launch_child(launch, supervisor, guest.report);
    if (pid < 0) {
        sp_guest_release(&guest);
        return sp_fail_errno(reterr, SP_E_HOST, "cannot start a process");
    }
    guest.pid = (pid_t)pid;
    guest.listener = wait_listener(&guest);
    if (guest.listener < 0 && launch->listener) {
        int code = sp_launch_failed(&guest, launch, reterr);
        if (code == 0)
            code = sp_fail(reterr, SP_E_HOST, killed_early);
        waitpid(guest.pid, NULL, 0);
        sp_guest_release(&guest);
        return code;
    }
    /* It is still a copy of this process: its exec waits for an answer. */
    if (launch->listener && !sp_guest_readable(guest.pid))
        return fail_unread(&guest, launch, reterr);
    *ret_guest = guest;
    return 0;
}

void sp_guest_release(struct sp_guest *guest)
{
    sp_close_fd(&guest->pidfd);
    sp_close_fd(&guest->listener);
    if (guest->report != NULL)
        munmap(guest->report, sizeof *guest->report);
    guest->report = NULL;
}
