#include "sys/user_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void sp_user_namespace_prepare(struct sp_user_namespace *ret_namespace)
{
    unsigned uid = geteuid();
    unsigned gid = getegid();
    snprintf(ret_namespace->uid_map, sizeof ret_namespace->uid_map, "%u %u 1", uid,
             uid);
    snprintf(ret_namespace->gid_map, sizeof ret_namespace->gid_map, "%u %u 1", gid,
             gid);
}

static int put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, text, strlen(text));
    int result = n == (ssize_t)strlen(text) ? 0 : -errno;
    close(fd);
    return result;
}

/* The namespace's maker has every capability in it. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0}, {0}};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
         capability++)
        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    return syscall(SYS_capset, &header, none) == 0 ? 0 : -errno;
}

int sp_user_namespace_enter(const struct sp_user_namespace *space)
{
    if (unshare(CLONE_NEWUSER) != 0)
        return -errno;
    /* Files in /proc belong to root while a process hides. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int result = put("/proc/self/setgroups", "deny");
    if (result == 0 || result == -ENOENT)
        result = put("/proc/self/uid_map", space->uid_map);
    if (result == 0)
        result = put("/proc/self/gid_map", space->gid_map);
    return result == 0 ? drop_capabilities() : result;
}

/* Outside the namespace the user has at least three processes: the caller, this one and the one
 * that is started. */
static bool counts_here(const struct sp_user_namespace *space)
{
    const struct rlimit two = {2, 2};
    if (sp_user_namespace_enter(space) != 0 || setrlimit(RLIMIT_NPROC, &two) != 0)
        return false;
    pid_t second = fork();
    if (second == 0) {
        pause();
        _exit(0);
    }
    if (second < 0)
        return false;
    pid_t third = fork();
    if (third == 0)
        _exit(0);
    bool refused = third < 0 && errno == EAGAIN;
    kill(second, SIGKILL);
    return refused;
}

bool sp_user_namespace_counts(void)
{
    struct sp_user_namespace space;
    sp_user_namespace_prepare(&space);
    pid_t child = fork();
    if (child == 0)
        _exit(counts_here(&space) ? 0 : 1);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && status == 0;
}
