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
    /* Pipes and the like are no paths; the kernel itself cuts none that is one. */
    if (n <= 0 || n == (ssize_t)sizeof real || real[0] != '/') {
        errno = n < 0 ? errno : ENAMETOOLONG;
        return false;
    }
    size_t suffix = sizeof deleted - 1;
    if ((size_t)n > suffix && memcmp(real + n - suffix, deleted, suffix) == 0)
        return realpath(path, ret_path) != NULL; /* deleted, or called so */
    memcpy(ret_path, real, (size_t)n);
    ret_path[n] = '\0';
    return true;
}
