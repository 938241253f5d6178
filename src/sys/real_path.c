#include "sys/real_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

bool sp_real_path(const char *path, char ret_path[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    char name[40];
    char real[PATH_MAX];
    sp_auto_fd fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return false;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, real, sizeof real);
    size_t suffix = sizeof deleted - 1;
    bool cut = n == (ssize_t)sizeof real;
    /* Without procfs; and where it is deleted, or is called so. */
    if (n < 0 || cut ||
        ((size_t)n > suffix && memcmp(real + n - suffix, deleted, suffix) == 0))
        return realpath(path, ret_path) != NULL;
    if (real[0] != '/') { /* a pipe or the like: no path */
        errno = ENOENT;
        return false;
    }
    memcpy(ret_path, real, (size_t)n);
    ret_path[n] = '\0';
    return true;
}

bool sp_link_step(const char *link, const char *rest, char ret_path[PATH_MAX])
{
    char target[PATH_MAX];
    ssize_t size = readlink(link, target, sizeof target - 1);
    if (size <= 0)
        return false;
    target[size] = '\0';
    int folder = target[0] == '/' ? 0 : (int)(strrchr(link, '/') - link) + 1;
    return snprintf(ret_path, PATH_MAX, "%.*s%s%s", folder, link, target, rest) <
           PATH_MAX;
}
