#include "sys/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/landlock.h"
#include "sys/tree.h"

#define PAGE       4096u
#define PROC_MAGIC 0x9fa0
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD */
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static uint64_t untagged(uint64_t address)
{
#if defined(__aarch64__)
    return address &
           0x00ffffffffffffffu; /* the top byte is a tag that the kernel ignores */
#else
    return address;
#endif
}

/* Some outer seccomp profiles forbid process_vm_readv; /proc/TID/mem asks the same question. */
static ssize_t read_by_file(pid_t tid, uint64_t address, void *to, size_t size)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/mem", tid);
    sp_auto_fd fd = open(name, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : pread(fd, to, size, (off_t)address);
}

static ssize_t read_some(pid_t tid, uint64_t address, void *to, size_t size)
{
    static bool by_file;
    if (by_file)
        return read_by_file(tid, address, to, size);
    struct iovec local = {to, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};
    ssize_t n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
    if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
        n = read_by_file(tid, address, to, size);
        by_file = n > 0;
    }
    return n;
}

int sp_guest_read(pid_t tid, uint64_t address, void *to, size_t size)
{
    if (size == 0)
        return 0;
    return read_some(tid, untagged(address), to, size) == (ssize_t)size ? 0 : -EFAULT;
}

bool sp_guest_readable(pid_t pid)
{
    static const char known[] = "readable";
    char copy[sizeof known];
    return sp_guest_read(pid, (uintptr_t)known, copy, sizeof copy) == 0;
}

int sp_guest_write(pid_t tid, uint64_t address, const void *from, size_t size)
{
    struct iovec local = {(void *)from, size};
    struct iovec remote = {(void *)(uintptr_t)untagged(address), size};
    if (process_vm_writev(tid, &local, 1, &remote, 1, 0) == (ssize_t)size)
        return 0;
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/mem", tid);
    sp_auto_fd fd = open(name, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, from, size, (off_t)untagged(address)) != (ssize_t)size)
        return -EFAULT;
    return 0;
}

ssize_t sp_guest_text(pid_t tid, uint64_t address, char *to, size_t size)
{
    address = untagged(address);
    size_t got = 0;
    while (got < size) {
        size_t want = PAGE - (address + got) % PAGE;
        if (want > size - got)
            want = size - got;
        ssize_t n = read_some(tid, address + got, to + got, want);
        if (n <= 0)
            return -EFAULT;
        const char *end = memchr(to + got, '\0', (size_t)n);
        if (end != NULL)
            return end - to;
        got += (size_t)n;
    }
    return -ENAMETOOLONG;
}

static ssize_t read_file(const char *name, char *to, size_t size)
{
    sp_auto_fd fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, to, size - 1);
    if (n >= 0)
        to[n] = '\0';
    return n;
}

/* What follows the program's name in /proc/PID/stat: the name, in parentheses, may hold
 * anything, so that the last ')' ends it. NULL when the process is gone. */
static char *stat_fields(pid_t pid, char *text, size_t size)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    if (read_file(name, text, size) <= 0)
        return NULL;
    char *after = strrchr(text, ')');
    return after != NULL && after[1] == ' ' && after[2] != '\0' ? after + 3 : NULL;
}

static uint64_t signal_set(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    return at != NULL ? strtoull(at + strlen(name), NULL, 16) : 0;
}

bool sp_guest_interrupted(pid_t tid)
{
    char name[40];
    char text[2048];
    snprintf(name, sizeof name, "/proc/%d/status", tid);
    if (read_file(name, text, sizeof text) <= 0)
        return false;
    uint64_t waiting = signal_set(text, "\nSigPnd:") | signal_set(text, "\nShdPnd:");
    return (waiting & ~signal_set(text, "\nSigBlk:") &
            ~signal_set(text, "\nSigIgn:")) != 0;
}

bool sp_guest_ids(pid_t tid, struct sp_guest_ids *ret_ids)
{
    char name[40];
    char text[1024];
    snprintf(name, sizeof name, "/proc/%d/status", tid);
    if (read_file(name, text, sizeof text) <= 0)
        return false;
    const char *tgid = strstr(text, "\nTgid:");
    if (tgid == NULL)
        return false;
    struct sp_guest_ids ids = {.pid = (pid_t)strtol(tgid + 6, NULL, 10)};
    char *at = stat_fields(ids.pid, text, sizeof text);
    if (at == NULL)
        return false;
    ids.parent = (pid_t)strtol(at, &at, 10);
    ids.group = (pid_t)strtol(at, &at, 10);
    ids.session = (pid_t)strtol(at, &at, 10);
    for (int field = 7; field <= 22; field++)
        ids.start_ticks = strtoull(at, &at, 10);
    *ret_ids = ids;
    return true;
}

int sp_guest_zombie_signal(pid_t pid, uint64_t start_ticks)
{
    char text[1024];
    char *at = stat_fields(pid, text, sizeof text);
    unsigned long long value = 0;
    for (int field = 4; at != NULL && field <= 52; field++) {
        value = strtoull(at, &at, 10);
        if (field == 22 && value != start_ticks)
            return 0;
    }
    return WIFSIGNALED((int)value) ? WTERMSIG((int)value) : 0;
}

uint64_t sp_guest_image(pid_t pid)
{
    char text[1024];
    char *at = stat_fields(pid, text, sizeof text);
    uint64_t start_stack = 0;
    for (int field = 4; at != NULL && field <= 28; field++)
        start_stack = strtoull(at, &at, 10);
    return start_stack;
}

int sp_guest_memory(pid_t pid)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    return open(name, O_RDONLY | O_CLOEXEC);
}

bool sp_guest_memory_gone(int memory)
{
    char byte;
    /* Of memory that is in use, nothing is mapped there: EIO. */
    return memory >= 0 && pread(memory, &byte, 1, 0) == 0;
}

pid_t sp_guest_pidfd_target(pid_t tid, int fd)
{
    char name[60];
    char text[512];
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", tid, fd);
    if (read_file(name, text, sizeof text) <= 0)
        return 0;
    const char *pid = strstr(text, "\nPid:");
    return pid != NULL ? (pid_t)strtol(pid + 5, NULL, 10) : 0;
}

static bool link_text(const char *name, char to[PATH_MAX])
{
    ssize_t n = readlink(name, to, PATH_MAX - 1);
    if (n < 0)
        return false;
    to[n] = '\0';
    return true;
}

bool sp_guest_cwd(pid_t tid, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/cwd", tid);
    return link_text(name, to);
}

bool sp_guest_fd_path(pid_t tid, int fd, char to[PATH_MAX])
{
    char name[60];
    snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    return link_text(name, to);
}

/* Whether the link is of a memory file: the kernel calls it as if it lay in the root folder, where
 * a file may be called the same. */
static bool of_memory_file(const char *link, const char *text)
{
    static dev_t device; /* of those that somebody makes */
    struct stat st;
    struct statfs fs;
    if (strncmp(text, "/memfd:", 7) != 0 || stat(link, &st) != 0 || st.st_nlink != 0)
        return false;
    if (device == 0) {
        struct stat made;
        sp_auto_fd fd = memfd_create("sandpit", MFD_CLOEXEC);
        device = fd >= 0 && fstat(fd, &made) == 0 ? made.st_dev : 0;
    }
    return (device != 0 && st.st_dev == device) ||
           (statfs(link, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC);
}

bool sp_guest_link_path(const char *link, char to[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    struct stat own;
    struct stat there;
    if (!link_text(link, to))
        return false;
    if (of_memory_file(link, to))
        memmove(to, to + 1, strlen(to));
    size_t size = strlen(to);
    size_t suffix = sizeof deleted - 1;
    if (size <= suffix || strcmp(to + size - suffix, deleted) != 0)
        return true;
    bool named = stat(link, &own) == 0 && lstat(to, &there) == 0 &&
                 own.st_ino == there.st_ino && own.st_dev == there.st_dev;
    if (!named)
        to[size - suffix] = '\0';
    return true;
}

bool sp_guest_object_path(pid_t tid, int fd, char to[PATH_MAX])
{
    char name[60];
    if (fd == AT_FDCWD)
        snprintf(name, sizeof name, "/proc/%d/cwd", tid);
    else
        snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    return sp_guest_link_path(name, to);
}

bool sp_guest_exe(pid_t pid, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/%d/exe", pid);
    return link_text(name, to);
}

bool sp_guest_waits_elsewhere(pid_t tid, int nr)
{
    char name[40];
    char text[256];
    snprintf(name, sizeof name, "/proc/%d/syscall", tid);
    if (read_file(name, text, sizeof text) <= 0)
        return errno == ENOENT || errno == ESRCH;
    return text[0] >= '0' && text[0] <= '9' && strtol(text, NULL, 10) != nr;
}

uint64_t sp_guest_socket(pid_t tid, int fd)
{
    char name[60];
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    return stat(name, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

/* Of the thread itself, since it may have a table of descriptors of its own.
 * COMPAT(kernel 6.8): pidfds of processes only. */
static int open_task(pid_t tid, pid_t pid)
{
    int pidfd = tid == pid ? -1 : (int)syscall(SYS_pidfd_open, tid, PIDFD_OF_THREAD);
    return pidfd >= 0 ? pidfd : (int)syscall(SYS_pidfd_open, pid, 0);
}

int sp_guest_take_fd(pid_t tid, int fd)
{
    struct sp_guest_ids ids;
    struct stat st;
    if (!sp_guest_ids(tid, &ids))
        return -ESRCH;
    sp_auto_fd pidfd = open_task(tid, ids.pid);
    if (pidfd < 0)
        return -errno;
    sp_auto_fd taken = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    if (taken < 0)
        return -errno;
    /* Not from another thread's table. */
    if (fstat(taken, &st) != 0 ||
        (S_ISSOCK(st.st_mode) && sp_guest_socket(tid, fd) != st.st_ino))
        return -EBADF;
    return sp_steal_fd(&taken);
}

int sp_guest_take_socket(pid_t tid, int pidfd, int fd)
{
    char name[60];
    struct stat own;
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", tid, fd);
    if (stat(name, &own) != 0)
        return -EBADF;
    if (!S_ISSOCK(own.st_mode))
        return -ENOTSOCK;
    sp_auto_fd taken = pidfd >= 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0) : -1;
    if (taken >= 0 && fstat(taken, &st) == 0 && st.st_ino == own.st_ino &&
        st.st_dev == own.st_dev)
        return sp_steal_fd(&taken);
    return sp_guest_take_fd(tid, fd);
}

/* In a child that shares our memory while we wait for it, and nothing else with us: what is left
 * of our descriptors is the socket, so that no name in procfs leads to another. */
static _Noreturn void bind_as(int folder, unsigned mask, int ruleset, int socket_fd,
                              const struct sockaddr_un *address, unsigned size)
{
    if (ruleset >= 0 && sp_sys_landlock_restrict(ruleset) != 0)
        _exit(EACCES);
    if (fchdir(folder) != 0)
        _exit(errno);
    umask(mask);
    if ((socket_fd > 0 &&
         syscall(SYS_close_range, 0u, (unsigned)socket_fd - 1, 0u) != 0) ||
        syscall(SYS_close_range, (unsigned)socket_fd + 1, ~0u, 0u) != 0)
        _exit(EACCES);
    _exit(bind(socket_fd, (const struct sockaddr *)address, size) == 0 ? 0 : errno);
}

int sp_guest_bind_path(pid_t tid, int ruleset, int socket,
                       const struct sockaddr_un *address, unsigned size)
{
    sp_auto_fd folder = sp_guest_open_fd(tid, AT_FDCWD);
    return folder < 0 ? folder
                      : sp_guest_bind_in(tid, folder, ruleset, socket, address, size);
}

int sp_guest_bind_in(pid_t tid, int folder, int ruleset, int socket,
                     const struct sockaddr_un *address, unsigned size)
{
    int status;
    unsigned mask = sp_guest_umask(tid);
    /* A copy of this process for one call would cost more than all the rest, and has its locks.
     * The child does system calls and leaves. NOLINTBEGIN(clang-analyzer-*) */
    pid_t child = vfork();
    if (child == 0)
        bind_as(folder, mask, ruleset, socket, address, size);
    /* NOLINTEND(clang-analyzer-*) */
    if (child < 0)
        return -errno;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -EACCES;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EACCES;
}

bool sp_guest_fd_bare(pid_t tid, int fd)
{
    char name[60];
    char line[80];
    unsigned flags = 0;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", tid, fd);
    FILE *info = fopen(name, "re");
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (sscanf(line, "flags: %o", &flags) == 1)
            break;
    if (info != NULL)
        fclose(info);
    return (flags & O_PATH) != 0;
}

unsigned sp_guest_umask(pid_t tid)
{
    char name[40];
    char text[512];
    snprintf(name, sizeof name, "/proc/%d/status", tid);
    const char *at =
        read_file(name, text, sizeof text) > 0 ? strstr(text, "\nUmask:") : NULL;
    return at != NULL ? (unsigned)strtoul(at + 7, NULL, 8) & 0777u : 0777u;
}
