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
