/* Opening what a thread of the run would open: in its folder, through its own names in procfs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/guest.h"
#include "sys/real_path.h"
#include "sys/tree.h"

#define PROC_MAGIC 0x9fa0

/* Names that stand for others, whoever looks. */
static const char *expand_device(const char *path, char to[PATH_MAX])
{
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0) {
            snprintf(to, PATH_MAX, "/proc/self/fd/%d", i);
            return to;
        }
    if (strncmp(path, "/dev/fd", 7) != 0 || (path[7] != '/' && path[7] != '\0'))
        return path;
    snprintf(to, PATH_MAX, "/proc/self/fd%.*s", PATH_MAX - 20, path + 7);
    return to;
}

bool sp_guest_proc_path(pid_t tid, const char *path, char ret_folder[SP_GUEST_PROC_MAX],
                        const char **ret_rest)
{
    static const char *const selves[] = {"/proc/self", "/proc/thread-self"};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(selves[i]);
        if (strncmp(path, selves[i], n) == 0 && (path[n] == '/' || path[n] == '\0')) {
            struct sp_guest_ids ids;
            int pid = sp_guest_ids(tid, &ids) ? ids.pid : tid;
            int length = snprintf(ret_folder, SP_GUEST_PROC_MAX, "/proc/%d", pid);
            if (i == 1)
                snprintf(ret_folder + length, SP_GUEST_PROC_MAX - (size_t)length,
                         "/task/%d", (int)tid);
            *ret_rest = path + n + strspn(path + n, "/");
            return true;
        }
    }
    if (strncmp(path, "/proc/", 6) != 0 || path[6] < '1' || path[6] > '9')
        return false;
    char *end;
    long pid = strtol(path + 6, &end, 10);
    if ((*end != '/' && *end != '\0') || pid > INT32_MAX ||
        !sp_tree_contains((pid_t)pid))
        return false;
    snprintf(ret_folder, SP_GUEST_PROC_MAX, "/proc/%ld", pid);
    *ret_rest = end + strspn(end, "/");
    return true;
}

/* Length of the magic name that the text begins with ("fd/3", "task/12/cwd"), 0: none. */
static size_t magic_name(const char *rest)
{
    static const char *const names[] = {"cwd", "root", "exe"};
    size_t task = 0;
    if (strncmp(rest, "task/", 5) == 0) {
        task = 5 + strspn(rest + 5, "0123456789");
        if (task == 5 || rest[task] != '/')
            return 0;
        task++;
    }
    rest += task;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(rest, names[i], n) == 0 && (rest[n] == '/' || rest[n] == '\0'))
            return task + n;
    }
    size_t digits = strncmp(rest, "fd/", 3) == 0 ? strspn(rest + 3, "0123456789") : 0;
    bool ends = digits > 0 && (rest[3 + digits] == '/' || rest[3 + digits] == '\0');
    return ends ? task + 3 + digits : 0;
}

/* The kernel says ELOOP of a magic link that is not to be followed and of links that go round. */
static bool goes_round(int at, const char *path, int flags)
{
    sp_auto_fd fd = openat(at, path, flags | O_PATH | O_CLOEXEC);
    return fd < 0 && errno == ELOOP;
}

/* Opens O_PATH in the thread's context. Magic links of procfs are not followed: they would be
 * resolved for us instead of for the guest. *ret_loops: ELOOP means just that. */
static int open_for(pid_t tid, int dirfd, const char *path, int flags, bool *ret_loops)
{
    sp_auto_fd at = path[0] != '/' ? sp_guest_open_fd(tid, dirfd) : -1;
    if (path[0] != '/' && at < 0)
        return at;
    int from = at >= 0 ? at : AT_FDCWD;
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_PATH | O_CLOEXEC),
                           .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, from, path, &how, sizeof how);
    int code = fd < 0 ? -errno : fd;
    if (code == -ELOOP)
        *ret_loops = goes_round(from, path, flags);
    return code;
}

/* What a magic name leads to; with more path behind it, from there. -EXDEV: it is none, or it is
 * not to be followed. */
static int open_magic(pid_t tid, const char *path, int flags, bool *ret_loops)
{
    char name[PATH_MAX + SP_GUEST_PROC_MAX];
    char other[PATH_MAX];
    char folder_of[SP_GUEST_PROC_MAX];
    const char *rest;
    path = expand_device(path, other);
    size_t n = 0;
    if (sp_guest_proc_path(tid, path, folder_of, &rest))
        n = magic_name(rest);
    if (n == 0 || (rest[n] == '\0' && (flags & O_NOFOLLOW) != 0))
        return -EXDEV;
    const char *behind = rest + n + strspn(rest + n, "/");
    snprintf(name, sizeof name, "%s/%.*s", folder_of, (int)n, rest);
    bool last = behind[0] == '\0';
    bool folder = last && (rest[n] == '/' || (flags & O_DIRECTORY) != 0);
    sp_auto_fd object = open(name, O_PATH | O_CLOEXEC | (folder ? O_DIRECTORY : 0));
    if (object < 0 || last)
        return object < 0 ? -errno : sp_steal_fd(&object);
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_PATH | O_CLOEXEC),
                           .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, object, behind, &how, sizeof how);
    int code = fd < 0 ? -errno : fd;
    if (code == -ELOOP)
        *ret_loops = goes_round(object, behind, flags);
    return code;
}

/* procfs's names for whoever looks, as the thread's; the links of these names themselves stay. */
static const char *expand_self(pid_t tid, const char *path, int flags,
                               char to[PATH_MAX])
{
    char folder[SP_GUEST_PROC_MAX];
    const char *rest;
    if (!sp_guest_proc_path(tid, path, folder, &rest) ||
        ((flags & O_NOFOLLOW) != 0 && rest[0] == '\0' && rest[-1] != '/'))
        return path;
    int n = snprintf(to, PATH_MAX, "%s/%s", folder, rest);
    return n < PATH_MAX ? to : path;
}

bool sp_guest_in_proc(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_MAGIC;
}

/* By a plain path, outside procfs. -ELOOP: not in this way. */
static int open_plain(const char *path, int flags)
{
    if (strncmp(path, "/proc", 5) == 0)
        return -ELOOP;
    sp_auto_fd fd = sp_open_plain(path, flags);
    if (fd < 0)
        return -errno;
    return sp_guest_in_proc(fd) ? -ELOOP : sp_steal_fd(&fd);
}

int sp_guest_walk_path(pid_t tid, int dirfd, const char *path, int flags,
                       struct sp_guest_walk *ret_walk)
{
    char other[PATH_MAX];
    bool loops = false;
    int fd = open_plain(path, flags);
    *ret_walk = (struct sp_guest_walk){.plain = fd >= 0 || fd == -ENOENT};
    if (ret_walk->plain)
        return fd;
    fd = open_magic(tid, path, flags, &loops);
    if (fd == -EXDEV)
        fd = open_for(tid, dirfd, expand_self(tid, path, flags, other), flags, &loops);
    if (fd < 0 && (fd != -ELOOP || loops))
        return fd;
    if (fd >= 0 && !sp_guest_in_proc(fd))
        return fd;
    sp_close_fd(&fd);
    ret_walk->only_guest = true;
    return -EACCES;
}

int sp_guest_open_path(pid_t tid, int dirfd, const char *path, int flags)
{
    struct sp_guest_walk walk;
    return sp_guest_walk_path(tid, dirfd, path, flags, &walk);
}

int sp_guest_open_fd(pid_t tid, int fd)
{
    char name[60];
    if (fd == AT_FDCWD)
        snprintf(name, sizeof name, "/proc/%d/cwd", tid);
    else
        snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    int object = open(name, O_PATH | O_CLOEXEC);
    return object >= 0 ? object : errno == ENOENT ? -EBADF : -errno;
}
