/* Namespaces, control groups and nameless files: whether they can be had where we
 * stand. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/host.h"
#include "sys/trial.h"

static bool try_user_namespace(void)
{
    pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    int status = 1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static bool try_tmpfile(void)
{
    sp_auto_fd fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0;
}

/* Makes a group below `folder`, and looks whether it could limit the number of
 * processes. */
static bool try_group(const char *folder)
{
    char group[PATH_MAX];
    char knob[PATH_MAX + 16];
    int size =
        snprintf(group, sizeof(group), "%s/sandpit-trial-%d", folder, (int)getpid());
    if (size < 0 || (size_t)size >= sizeof(group) || mkdir(group, 0700) != 0)
        return false;
    snprintf(knob, sizeof(knob), "%s/pids.max", group);
    bool works = access(knob, W_OK) == 0;
    rmdir(group);
    return works;
}

/* A line of /proc/self/cgroup: "0::/path" (version 2) or "N:pids:/path" (version 1). */
static bool try_cgroup_line(char *line)
{
    char folder[PATH_MAX];
    line[strcspn(line, "\n")] = '\0';
    const char *root = NULL;
    const char *path = NULL;
    if (strncmp(line, "0::", 3) == 0) {
        root = "/sys/fs/cgroup";
        path = line + 3;
    } else if ((path = strstr(line, ":pids:")) != NULL) {
        root = "/sys/fs/cgroup/pids";
        path += strlen(":pids:");
    }
    if (path == NULL)
        return false;
    int size = snprintf(folder, sizeof(folder), "%s%s", root, path);
    return size > 0 && (size_t)size < sizeof(folder) && try_group(folder);
}

static bool try_cgroup(void)
{
    FILE *list = fopen("/proc/self/cgroup", "re");
    if (list == NULL)
        return false;
    char line[PATH_MAX];
    bool works = false;
    while (!works && fgets(line, sizeof(line), list) != NULL)
        works = try_cgroup_line(line);
    fclose(list);
    return works;
}

void sp_trial_places(struct sp_host *host)
{
    host->user_namespaces = try_user_namespace();
    host->cgroup_writable = try_cgroup();
    host->tmpfile = try_tmpfile();
}
