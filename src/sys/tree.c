#include "sys/tree.h"

#include <dirent.h>
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
#define THREADS_MAX   512 /* looked at, to find who made a child */

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

static pid_t left_out;

void sp_tree_leave_out(pid_t pid)
{
    left_out = pid;
}

bool sp_tree_contains(pid_t pid)
{
    pid_t self = getpid();
    for (int depth = 0; depth < DEPTH_MAX * 4 && pid > 1 && pid != left_out; depth++) {
        struct sp_guest_ids ids;
        if (!sp_guest_ids(pid, &ids))
            return false;
        if (ids.parent == self)
            return true;
        pid = ids.parent;
    }
    return false;
}

/* Whether `children`, numbers each with a space behind it, holds `child`. */
static bool lists(int folder, const char *thread, const char *child, char *text)
{
    char name[64];
    snprintf(name, sizeof name, "%.20s/children", thread);
    sp_auto_fd fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text + 1, CHILDREN_TEXT - 2);
    if (n <= 0)
        return false;
    text[0] = ' ';
    text[n + 1] = '\0';
    return strstr(text, child) != NULL;
}

pid_t sp_tree_maker(pid_t parent, pid_t child)
{
    char name[64];
    char number[24];
    snprintf(name, sizeof name, "/proc/%d/task", parent);
    snprintf(number, sizeof number, " %d ", child);
    sp_auto_free char *text = malloc(CHILDREN_TEXT);
    DIR *threads = opendir(name);
    pid_t maker = 0;
    struct dirent *entry;
    for (int i = 0; threads != NULL && text != NULL && maker == 0 && i < THREADS_MAX &&
                    (entry = readdir(threads)) != NULL;
         i++)
        if (entry->d_name[0] != '.' &&
            lists(dirfd(threads), entry->d_name, number, text))
            maker = (pid_t)strtol(entry->d_name, NULL, 10);
    if (threads != NULL)
        closedir(threads);
    return maker;
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
