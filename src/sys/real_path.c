#include "sys/real_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"

/* Without a name that leads back or nowhere; one slash may be behind it. */
static bool plain(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *name = path + 1; name[0] != '\0';) {
        size_t size = strcspn(name, "/");
        size_t dots = strspn(name, ".");
        if (size == 0 || (dots == size && dots <= 2))
            return false;
        name += name[size] == '/' ? size + 1 : size;
    }
    return true;
}

int sp_open_plain(const char *path, int flags)
{
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_PATH | O_CLOEXEC),
                           .resolve = RESOLVE_NO_SYMLINKS};
    if (plain(path))
        return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    errno = ELOOP;
    return -1;
}

/* Most paths that anybody names. Reading a descriptor's link makes the kernel set up an entry of
 * procfs for it, which takes longer than all the rest. */
static bool real_already(const char *path, char to[PATH_MAX])
{
    size_t size = strlen(path);
    sp_auto_fd fd = size < PATH_MAX ? sp_open_plain(path, 0) : -1;
    if (fd < 0)
        return false;
    size -= size > 1 && path[size - 1] == '/';
    memmove(to, path, size);
    to[size] = '\0';
    return true;
}

bool sp_real_path(const char *path, char ret_path[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    char name[40];
    char real[PATH_MAX];
    if (real_already(path, ret_path))
        return true;
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
