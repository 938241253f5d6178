#include "sys/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

#define PREFIX      "sandpit-"
#define SWEEP_AGE_S 60

static const char *const controller_names[] = {"memory", "pids"};

/* File names: of version 1, and of version 2. */
static const struct {
    const char *limit[2];
    const char *events[2];
    const char *hits[2]; /* the word before the count */
    const char *peak[2];
} files[] = {
    [SP_CGROUP_MEMORY] = {{"memory.limit_in_bytes", "memory.max"},
                          {"memory.oom_control", "memory.events"},
                          {"oom_kill ", "oom_kill "},
                          {"memory.max_usage_in_bytes", "memory.peak"}},
    [SP_CGROUP_PIDS] = {{"pids.max", "pids.max"},
                        {"pids.events", "pids.events"},
                        {"max ", "max "},
                        {"pids.peak", "pids.peak"}},
};

static int open_in(const struct sp_cgroup *group, const char *file, int flags)
{
    char path[SP_CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", group->folder, file);
    return open(path, flags | O_CLOEXEC);
}

static bool write_in(const struct sp_cgroup *group, const char *file, const char *text)
{
    sp_auto_fd fd = open_in(group, file, O_WRONLY);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* What a descriptor of one of the group's files says now. */
static bool read_again(int fd, char *to, size_t size)
{
    ssize_t n = fd >= 0 ? pread(fd, to, size - 1, 0) : -1;
    if (n <= 0)
        return false;
    to[n] = '\0';
    return true;
}

/* "max" is no limit. */
static uint64_t number_in(const struct sp_cgroup *group, const char *file)
{
    char text[64];
    sp_auto_fd fd = open_in(group, file, O_RDONLY);
    if (!read_again(fd, text, sizeof text) || strncmp(text, "max", 3) == 0)
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

static bool set_limit(const struct sp_cgroup *group, uint64_t value)
{
    char text[32];
    int version = group->unified ? 1 : 0;
    snprintf(text, sizeof text, "%" PRIu64, value);
    if (!write_in(group, files[group->controller].limit[version], text))
        return false;
    if (group->controller != SP_CGROUP_MEMORY)
        return true;
    /* What is swapped out is used as well; and one that was ended leaves the rest useless.
     * Neither file is there everywhere. */
    if (group->unified) {
        (void)write_in(group, "memory.swap.max", "0");
        (void)write_in(group, "memory.oom.group", "1");
    } else {
        (void)write_in(group, "memory.memsw.limit_in_bytes", text);
    }
    return true;
}

/* The least that a group around this one allows; of groups that we may not see, nothing is
 * known. */
static uint64_t lowest_around(const struct sp_cgroup *group, size_t mount_size)
{
    struct sp_cgroup around = *group;
    const char *file = files[group->controller].limit[group->unified];
    uint64_t least = UINT64_MAX;
    for (;;) {
        char *slash = strrchr(around.folder, '/');
        if (slash == NULL || (size_t)(slash - around.folder) < mount_size)
            return least;
        *slash = '\0';
        uint64_t value = number_in(&around, file);
        least = value < least ? value : least;
    }
}

static bool open_files(struct sp_cgroup *group)
{
    int version = group->unified ? 1 : 0;
    group->enter = group->unified
                       ? open(group->folder, O_PATH | O_DIRECTORY | O_CLOEXEC)
                       : open_in(group, "tasks", O_WRONLY);
    group->events = open_in(group, files[group->controller].events[version], O_RDONLY);
    group->peak = open_in(group, files[group->controller].peak[version], O_RDONLY);
    return group->enter >= 0 && group->events >= 0;
}

void sp_cgroup_close(struct sp_cgroup *group)
{
    sp_close_fd(&group->enter);
    sp_close_fd(&group->events);
    sp_close_fd(&group->peak);
}

void sp_cgroup_remove(const struct sp_cgroup *group)
{
    if (group->folder[0] != '\0')
        (void)rmdir(group->folder);
}

/* Groups of runs whose keeper was killed, and whose supervisor may not remove them. Nobody is in
 * them, or they stay; one that was just made may yet be entered. */
static void sweep(const char *parent)
{
    char path[SP_CGROUP_PATH_MAX];
    DIR *folder = opendir(parent);
    if (folder == NULL)
        return;
    for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        struct stat st;
        pid_t keeper = (pid_t)(strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0
                                   ? strtol(e->d_name + strlen(PREFIX), NULL, 10)
                                   : 0);
        int n = snprintf(path, sizeof path, "%s/%s", parent, e->d_name);
        if (keeper > 0 && n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 &&
            st.st_ctime + SWEEP_AGE_S < time(NULL) && kill(keeper, 0) != 0 &&
            errno == ESRCH)
            (void)rmdir(path);
    }
    closedir(folder);
}

void sp_cgroup_name(char *to, size_t size)
{
    snprintf(to, size, PREFIX "%d-%" PRIx64, (int)getpid(), sp_clock_ns());
}

/* Makes it in `parent`. A group of version 2 can have the controller only if its parent hands it
 * on, which one with processes in it cannot. */
static int make_in(const char *parent, size_t mount_size, const char *name,
                   uint64_t value, struct sp_cgroup *group, uint64_t *ret_value)
{
    int n = snprintf(group->folder, sizeof group->folder, "%s/%s", parent, name);
    if (n < 0 || (size_t)n >= sizeof group->folder) {
        group->folder[0] = '\0';
        errno = ENAMETOOLONG;
        return -1;
    }
    /* Version 2: made a moment ago for the other controller. */
    bool made = mkdir(group->folder, 0700) == 0;
    if (!made && (errno != EEXIST || !group->unified)) {
        group->folder[0] = '\0';
        return -1;
    }
    if (made)
        sweep(parent);
    uint64_t around = lowest_around(group, mount_size);
    *ret_value = around < value ? around : value;
    if (set_limit(group, value) && open_files(group))
        return 0;
    int error = errno;
    sp_cgroup_close(group);
    if (made)
        sp_cgroup_remove(group);
    group->folder[0] = '\0';
    errno = error;
    return -1;
}

/* Version 2: beside ours as well, as for a program in a scope of the user's own. */
static int make_for(const char *root, const char *path, const char *name,
                    uint64_t value, struct sp_cgroup *group, uint64_t *ret_value)
{
    char parent[SP_CGROUP_PATH_MAX];
    int n = snprintf(parent, sizeof parent, "%s%s", root,
                     strcmp(path, "/") == 0 ? "" : path);
    if (n < 0 || (size_t)n >= sizeof parent) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (make_in(parent, strlen(root), name, value, group, ret_value) == 0)
        return 0;
    char *slash = strrchr(parent, '/');
    if (!group->unified || slash == NULL || (size_t)(slash - parent) < strlen(root))
        return -1;
    *slash = '\0';
    return make_in(parent, strlen(root), name, value, group, ret_value);
}

/* A line of /proc/self/cgroup: "0::/path" (version 2) or "8:pids:/path" (version 1). */
static int make_by_line(const char *mount, char *line, const char *name, uint64_t value,
                        struct sp_cgroup *group, uint64_t *ret_value)
{
    char root[256];
    const char *controller = controller_names[group->controller];
    line[strcspn(line, "\n")] = '\0';
    char *names = strchr(line, ':');
    char *path = names != NULL ? strchr(names + 1, ':') : NULL;
    errno = ENOENT;
    if (path == NULL)
        return -1;
    *path++ = '\0';
    names++;
    group->unified = *names == '\0';
    if (group->unified) {
        snprintf(root, sizeof root, "%s", mount);
        if (make_for(root, path, name, value, group, ret_value) == 0)
            return 0;
        snprintf(root, sizeof root, "%s/unified", mount);
    } else if (strcmp(names, controller) == 0) {
        snprintf(root, sizeof root, "%s/%s", mount, controller);
    } else {
        return -1;
    }
    return make_for(root, path, name, value, group, ret_value);
}

int sp_cgroup_make(const struct sp_cgroup_places *places,
                   enum sp_cgroup_controller controller, const char *name,
                   uint64_t value, struct sp_cgroup *ret_group, uint64_t *ret_value)
{
    static const struct sp_cgroup_places system = {"/proc/self/cgroup",
                                                   "/sys/fs/cgroup"};
    const struct sp_cgroup_places *from = places != NULL ? places : &system;
    FILE *list = fopen(from->list, "re");
    char line[PATH_MAX];
    int result = -1;
    int error = ENOENT;
    if (list == NULL)
        return -1;
    while (result != 0 && fgets(line, sizeof line, list) != NULL) {
        *ret_group = SP_CGROUP_NONE;
        ret_group->controller = controller;
        result = make_by_line(from->mount, line, name, value, ret_group, ret_value);
        error = errno != ENOENT ? errno : error;
    }
    fclose(list);
    if (result != 0)
        *ret_group = SP_CGROUP_NONE;
    errno = error;
    return result;
}

uint64_t sp_cgroup_hits(const struct sp_cgroup *group)
{
    char text[512];
    int version = group->unified ? 1 : 0;
    if (!read_again(group->events, text, sizeof text))
        return 0;
    const char *word = files[group->controller].hits[version];
    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, word, strlen(word)) == 0)
            return strtoull(at + strlen(word), NULL, 10);
    }
    return 0;
}

uint64_t sp_cgroup_peak(const struct sp_cgroup *group)
{
    char text[64];
    return read_again(group->peak, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}
