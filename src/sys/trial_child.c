/* One child is confined by a filter that notifies getppid, and what a supervisor does
 * to its guest is done to it.
 *
 * The child shares our descriptor table, so that its listener appears in it, says which
 * number that is, calls getppid twice, and waits to be killed. We answer the first call
 * with "go on", the second with a descriptor. Every wait has a deadline: a kernel that
 * hangs here is one that cannot be used.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/host.h"
#include "sys/listener.h"
#include "sys/trial.h"

#define FLAG_NEW_LISTENER  8u
#define FLAG_WAIT_KILLABLE 32u
/* COMPAT(kernel 6.6 headers) */
#define NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define DEADLINE_MS     2000

/* Of number and meaning the same on every architecture since 5.3 and 5.6. */
#define NR_PIDFD_OPEN  434
#define NR_PIDFD_GETFD 438

struct introduction {
    int listener; /* or a negative errno */
    int killable;
};

struct outcome {
    int went_on;  /* the first call gave the parent's id */
    int received; /* the second gave a descriptor that works */
};

static int load_filter(unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    long rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return rc < 0 ? -errno : (int)rc;
}

static void run_child(int to_parent, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct introduction hello = {.killable = 1};
    hello.listener = load_filter(FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE);
    if (hello.listener < 0) {
        hello.killable = 0;
        hello.listener = load_filter(FLAG_NEW_LISTENER);
    }
    if (write(to_parent, &hello, sizeof(hello)) != sizeof(hello))
        _exit(1);
    struct outcome outcome = {0};
    if (hello.listener >= 0) {
        outcome.went_on = syscall(SYS_getppid) == parent;
        long fd = syscall(SYS_getppid);
        outcome.received = fd > 2 && close((int)fd) == 0; /* of the shared table */
    }
    if (write(to_parent, &outcome, sizeof(outcome)) != sizeof(outcome))
        _exit(1);
    for (;;)
        pause();
}

static bool wait_for(int fd)
{
    struct pollfd ready = {fd, POLLIN, 0};
    int rc;
    do {
        rc = poll(&ready, 1, DEADLINE_MS);
    } while (rc < 0 && errno == EINTR);
    return rc == 1 && (ready.revents & POLLIN) != 0;
}

static bool receive(int listener, uint64_t *ret_id)
{
    struct seccomp_notif notification;
    if (!wait_for(listener) || sp_listener_receive(listener, &notification) != 0)
        return false;
    *ret_id = notification.id;
    return true;
}

/* Gives a descriptor and answers in one step, and in no other way. */
static bool give(int listener, uint64_t id, int source)
{
    struct seccomp_notif_addfd add = {
        .id = id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)source,
        .newfd_flags = O_CLOEXEC,
    };
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) >= 0;
}

static void try_listener(struct sp_host *host, int listener, int source)
{
    uint64_t flags = 1;
    uint64_t id;
    host->sync_wake = ioctl(listener, NOTIF_SET_FLAGS, flags) == 0;
    if (!receive(listener, &id) || sp_listener_continue(listener, id) != 0)
        return;
    if (!receive(listener, &id))
        return;
    host->addfd_send = give(listener, id, source);
    if (!host->addfd_send)
        (void)sp_listener_refuse(listener, id, ENOSYS);
}

static void try_memory(struct sp_host *host, pid_t child)
{
    static const char sample[] = "sandpit";
    char copy[sizeof(sample)] = "";
    struct iovec local = {copy, sizeof(copy)};
    struct iovec remote = {(void *)sample, sizeof(sample)};
    host->process_vm_readv =
        process_vm_readv(child, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(copy) &&
        memcmp(copy, sample, sizeof(copy)) == 0;

    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/mem", child);
    memset(copy, 0, sizeof(copy));
    sp_auto_fd memory = open(path, O_RDONLY | O_CLOEXEC);
    host->memory_file = memory >= 0 &&
                        pread(memory, copy, sizeof(copy), (off_t)(uintptr_t)sample) ==
                            (ssize_t)sizeof(copy) &&
                        memcmp(copy, sample, sizeof(copy)) == 0;
}

static void try_descriptors(struct sp_host *host, pid_t child, int number)
{
    sp_auto_fd process = (int)syscall(NR_PIDFD_OPEN, child, 0u);
    if (process < 0)
        return;
    sp_auto_fd copy = (int)syscall(NR_PIDFD_GETFD, process, number, 0u);
    host->pidfd_getfd = copy >= 0;
}

static void try_all(struct sp_host *host, pid_t child, int from_child, int to_parent)
{
    struct introduction hello;
    if (!wait_for(from_child) ||
        read(from_child, &hello, sizeof(hello)) != sizeof(hello))
        return;
    sp_auto_fd listener = hello.listener; /* of the shared table: ours as well */
    if (listener >= 0)
        try_listener(host, listener, to_parent);
    struct outcome outcome;
    if (!wait_for(from_child) ||
        read(from_child, &outcome, sizeof(outcome)) != sizeof(outcome))
        return;
    host->listener = listener >= 0 && outcome.went_on;
    host->wait_killable = listener >= 0 && hello.killable != 0;
    host->addfd_send = host->addfd_send && outcome.received;
    try_memory(host, child);
    try_descriptors(host, child, to_parent);
}

void sp_trial_child(struct sp_host *host)
{
    int ends[2];
    host->listener = false;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    sp_auto_fd from_child = ends[0];
    sp_auto_fd to_parent = ends[1];
    pid_t parent = getpid();
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child < 0)
        return;
    if (child == 0)
        run_child(to_parent, parent);
    try_all(host, child, from_child, to_parent);
    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
}
