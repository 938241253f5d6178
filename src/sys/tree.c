#include "sys/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "sys/guest.h"

#define DEPTH_MAX     64
#define CHILDREN_TEXT 65536

/* Calls `each` for the children of every thread of `pid`. A list longer than the buffer is
 * met again in the next round, when the first ones are gone. */
static int each_child(pid_t pid, char *text, int (*each)(pid_t child, int depth),
                      int depth)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", pid, pid);
    sp_auto_fd fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, CHILDREN_TEXT - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    int count = 0;
    char *rest;
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        count += each((pid_t)strtol(word, NULL, 10), depth);
    return count;
}

/* A stopped process cannot fork: stopping a level before looking below it keeps a fork bomb
 * from outrunning us. Children of threads other than the leader re-parent to us in the end. */
static int stop(pid_t pid, int depth)
{
    (void)depth;
    return kill(pid, SIGSTOP) == 0;
}

static int kill_below(pid_t pid, int depth)
{
    sp_auto_free char *text = malloc(CHILDREN_TEXT);
    int count = 1;
    if (text != NULL && depth < DEPTH_MAX) {
        each_child(pid, text, stop, depth + 1);
        count += each_child(pid, text, kill_below, depth + 1);
    }
    kill(pid, SIGKILL);
    return count;
}

bool sp_tree_kill(uint64_t deadline_ns, sp_on_reaped *on_reaped, void *context)
{
    sp_auto_free char *text = malloc(CHILDREN_TEXT);
    if (text == NULL)
        return false;
    for (;;) {
        each_child(getpid(), text, stop, 0);
        int alive = each_child(getpid(), text, kill_below, 0);
        pid_t pid;
        int status;
        struct rusage usage;
        while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
            if (on_reaped != NULL)
                on_reaped(context, pid, status, &usage);
        if (pid < 0 && errno == ECHILD && alive == 0)
            return true;
        if (sp_clock_ns() > deadline_ns)
            return false;
        if (pid == 0)
            poll(NULL, 0, 1);
    }
}

bool sp_tree_contains(pid_t pid)
{
    pid_t self = getpid();
    for (int depth = 0; depth < DEPTH_MAX * 4 && pid > 1; depth++) {
        struct sp_guest_ids ids;
        if (!sp_guest_ids(pid, &ids))
            return false;
        if (ids.parent == self)
            return true;
        pid = ids.parent;
    }
    return false;
}

/* COMPAT(kernel 6.15 headers): struct pidfd_info and its ioctl, as far as they are used. */
struct pidfd_info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
#define PIDFD_INFO_EXIT 8u
#define PIDFD_GET_INFO  _IOWR(0xFF, 11, struct pidfd_info)

void sp_pidfd_exit_status(int pidfd, int *ret_code, int *ret_signal)
{
    struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};
    if (ioctl(pidfd, PIDFD_GET_INFO, &info) != 0 || (info.mask & PIDFD_INFO_EXIT) == 0)
        return;
    if (WIFSIGNALED(info.exit_code))
        *ret_signal = WTERMSIG(info.exit_code);
    else
        *ret_code = WEXITSTATUS(info.exit_code);
}
