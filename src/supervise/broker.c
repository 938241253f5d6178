#include "supervise/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/record.h"
#include "sys/guest.h"
#include "sys/tree.h"

/* File systems through which the kernel is spoken to: a write there is no file's content. The
 * numbers are those of linux/magic.h. */
static bool speaks_to_kernel(int fd)
{
    static const unsigned magic[] = {
        0x9fa0,     /* proc */
        0x62656572, /* sysfs */
        0x27e0eb,   /* cgroup */
        0x63677270, /* cgroup2 */
        0x64626720, /* debugfs */
        0x74726163, /* tracefs */
        0x73636673, /* securityfs */
        0xcafe4a11, /* bpf */
        0x62656570, /* configfs */
        0xde5e81e4, /* efivarfs */
        0x6165676c, /* pstore */
        0xf97cff8c, /* selinux */
        0x42494e4d, /* binfmt_misc */
        0x65735543, /* fuse control */
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return true;
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
        if ((unsigned)fs.f_type == magic[i])
            return true;
    return false;
}

/* Devices that hold nothing and reach nobody: null, zero, full, random, urandom; the pseudo-
 * terminals' master, and the terminals behind it. */
static bool harmless_device(const struct stat *st)
{
    unsigned major_number = major(st->st_rdev);
    unsigned minor_number = minor(st->st_rdev);
    if (major_number == 1)
        return minor_number == 3 || minor_number == 5 ||
               (minor_number >= 7 && minor_number <= 9);
    return (major_number == 5 && minor_number == 2) ||
           (major_number >= 136 && major_number <= 143);
}

struct sp_answer sp_broker_deny(struct sp_act_call *call, const char *operation,
                                const struct sp_path *path, int err)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "path", path->text);
    sp_place_find(call, strcmp(operation, "open") == 0 ? SP_ACT_OPEN : SP_ACT_FILE,
                  strrchr(path->text, '/'), &place, NULL);
    struct sp_denial denial = {.category = "fs",
                               .operation = operation,
                               .target = path->text,
                               .verdict = sp_verdict_always(call->s->policy),
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place, NULL);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(err);
}

static struct sp_answer give(int fd, int flags)
{
    if (fd < 0)
        return SP_REFUSE(errno);
    return (struct sp_answer){
        .kind = SP_ANSWER_GIVE, .value = fd, .close_on_exec = (flags & O_CLOEXEC) != 0};
}

static int reopen(int object, int flags)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", object);
    return open(name,
                (flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC | O_NOCTTY);
}

static int made_to_wait(int fd, int flags)
{
    if (fd >= 0 && (flags & O_NONBLOCK) == 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

/* A lease of another process of the guest's, which it does not give back, is not waited for. */
static int reopen_file(int object, int flags)
{
    return made_to_wait(reopen(object, flags | O_NONBLOCK), flags);
}

/* A FIFO without a reader cannot be waited for here: the open is tried once, as a non-blocking
 * one that both reads and writes where it would block. */
static int reopen_fifo(int object, int flags)
{
    int fd = reopen(object, flags | O_NONBLOCK);
    if (fd < 0 && errno == ENXIO && (flags & O_NONBLOCK) == 0)
        fd = reopen(object, (flags & ~O_ACCMODE) | O_RDWR | O_NONBLOCK);
    return made_to_wait(fd, flags);
}

/* Settings of a process that it may write about itself and its kin. */
static bool own_setting(const char *name)
{
    static const char *const names[] = {"comm", "oom_score_adj", "coredump_filter",
                                        "clear_refs", "timerslack_ns"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* /proc/PID/NAME, with `self` told by whom it means. false: it is no such path. */
static bool process_file(const struct sp_act_call *call, const char *path,
                         pid_t *ret_pid, const char **ret_name)
{
    static const char self[] = "/proc/self/";
    static const char thread_self[] = "/proc/thread-self/";
    if (strncmp(path, self, sizeof self - 1) == 0 ||
        strncmp(path, thread_self, sizeof thread_self - 1) == 0) {
        *ret_pid = call->process->pid;
        *ret_name = strchr(path + sizeof "/proc/", '/') + 1;
        return true;
    }
    char *end;
    if (strncmp(path, "/proc/", 6) != 0)
        return false;
    *ret_pid = (pid_t)strtol(path + 6, &end, 10);
    *ret_name = end + 1;
    return end > path + 6 && *end == '/';
}

/* A name that the kernel itself follows to an open object of the guest: judged by the guest's
 * domain when the guest follows it. */
static bool magic_link(const char *name)
{
    return strncmp(name, "fd/", 3) == 0 || strncmp(name, "cwd", 3) == 0 ||
           strncmp(name, "root", 4) == 0 || strcmp(name, "exe") == 0 ||
           strncmp(name, "task/", 5) == 0;
}

static struct sp_answer open_in_proc(struct sp_act_call *call,
                                     const struct sp_path *path, int flags)
{
    pid_t pid;
    const char *name;
    char own[80];
    if (!process_file(call, path->text, &pid, &name))
        return sp_broker_deny(call, "open", path, EACCES);
    if (magic_link(name))
        return SP_CONTINUE;
    if (!own_setting(name) || !sp_tree_contains(pid))
        return sp_broker_deny(call, "open", path, EACCES);
    snprintf(own, sizeof own, "/proc/%d/%s", (int)pid, name);
    return give(open(own, (flags & (O_ACCMODE | O_TRUNC)) | O_NOFOLLOW | O_CLOEXEC),
                flags);
}

static struct sp_answer open_existing(struct sp_act_call *call,
                                      const struct sp_path *path, int object, int flags,
                                      unsigned mode)
{
    struct stat st;
    if (fstat(object, &st) != 0)
        return SP_REFUSE(errno);
    if (speaks_to_kernel(object))
        return sp_broker_deny(call, "open", path, EACCES);
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return SP_REFUSE(EEXIST);
    if (S_ISLNK(st.st_mode))
        return SP_REFUSE(ELOOP);
    if (S_ISDIR(st.st_mode)) {
        char name[40];
        if ((flags & O_TMPFILE) != O_TMPFILE)
            return SP_REFUSE(EISDIR);
        snprintf(name, sizeof name, "/proc/self/fd/%d", object);
        return give(open(name, flags | O_CLOEXEC, mode), flags);
    }
    if (S_ISREG(st.st_mode))
        return give(reopen_file(object, flags), flags);
    if (S_ISFIFO(st.st_mode))
        return give(reopen_fifo(object, flags), flags);
    if (S_ISSOCK(st.st_mode))
        return SP_REFUSE(ENXIO);
    if (S_ISCHR(st.st_mode) && harmless_device(&st))
        return give(reopen(object, flags), flags);
    return sp_broker_deny(call, "open", path, EACCES);
}

/* What openat2 knows; the older calls ignore the rest. */
#define KNOWN_FLAGS                                                                    \
    (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC | O_DIRECT | \
     O_NOFOLLOW | O_NOATIME | O_DIRECTORY)

static struct sp_answer create(struct sp_act_call *call, const struct sp_path *path,
                               int flags, unsigned mode)
{
    /* Non-blocking, in case a FIFO has come to stand there. */
    int fd = sp_guest_create((pid_t)call->n->pid, path->dirfd, path->asked,
                             (flags & KNOWN_FLAGS) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                             mode);
    sp_auto_fd made = fd;
    struct stat st;
    if (fd < 0)
        return SP_REFUSE(-fd);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || speaks_to_kernel(fd))
        return sp_broker_deny(call, "open", path, EACCES);
    return give(made_to_wait(sp_steal_fd(&made), flags), flags);
}

struct sp_answer sp_broker_open(struct sp_act_call *call, const struct sp_path *path,
                                int flags, unsigned mode)
{
    mode &= 07777u & ~sp_guest_umask((pid_t)call->n->pid);
    if (strncmp(path->text, "/proc/", 6) == 0)
        return open_in_proc(call, path, flags);
    sp_auto_fd object = sp_path_open(call, path, flags & O_NOFOLLOW);
    if (object >= 0)
        return open_existing(call, path, object, flags, mode);
    if (object == -ENOENT && (flags & O_CREAT) != 0)
        return create(call, path, flags, mode);
    if (object == -EACCES) /* a walk through procfs that only the guest can make */
        return SP_CONTINUE;
    return SP_REFUSE(-object);
}

struct sp_answer sp_broker_truncate(struct sp_act_call *call,
                                    const struct sp_path *path, int64_t size)
{
    sp_auto_fd object = sp_path_open(call, path, 0);
    struct stat st;
    if (object < 0)
        return object == -EACCES ? SP_CONTINUE : SP_REFUSE(-object);
    if (fstat(object, &st) != 0)
        return SP_REFUSE(errno);
    if (!S_ISREG(st.st_mode))
        return SP_REFUSE(S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
    if (speaks_to_kernel(object))
        return sp_broker_deny(call, "truncate", path, EACCES);
    sp_auto_fd fd = reopen_file(object, O_WRONLY);
    if (fd < 0 || ftruncate(fd, size) != 0)
        return SP_REFUSE(errno);
    return SP_RETURN(0);
}

/* Both folders, in the guest's context. Negative errno on failure. */
static int open_folders(struct sp_act_call *call, const struct sp_path *from,
                        const struct sp_path *to, int fds[2],
                        char names[2][NAME_MAX + 2])
{
    fds[0] = sp_path_open_folder(call, from, names[0]);
    fds[1] = fds[0] < 0 ? -1 : sp_path_open_folder(call, to, names[1]);
    return fds[0] < 0 ? fds[0] : fds[1] < 0 ? fds[1] : 0;
}

struct sp_answer sp_broker_rename(struct sp_act_call *call, const struct sp_path *from,
                                  const struct sp_path *to, unsigned flags)
{
    int fds[2];
    char names[2][NAME_MAX + 2];
    int result = open_folders(call, from, to, fds, names);
    sp_auto_fd from_fd = fds[0];
    sp_auto_fd to_fd = fds[1];
    if (result != 0)
        return result == -EACCES ? SP_CONTINUE : SP_REFUSE(-result);
    if (speaks_to_kernel(from_fd) || speaks_to_kernel(to_fd))
        return sp_broker_deny(call, "rename", from, EACCES);
    if (renameat2(from_fd, names[0], to_fd, names[1], flags) != 0)
        return SP_REFUSE(errno);
    return SP_RETURN(0);
}

struct sp_answer sp_broker_link(struct sp_act_call *call, const struct sp_path *from,
                                const struct sp_path *to, int flags)
{
    int fds[2];
    char names[2][NAME_MAX + 2];
    if (from->asked[0] == '\0')
        return SP_CONTINUE;
    int result = open_folders(call, from, to, fds, names);
    sp_auto_fd from_fd = fds[0];
    sp_auto_fd to_fd = fds[1];
    if (result != 0)
        return result == -EACCES ? SP_CONTINUE : SP_REFUSE(-result);
    if (linkat(from_fd, names[0], to_fd, names[1], flags & AT_SYMLINK_FOLLOW) != 0)
        return SP_REFUSE(errno);
    return SP_RETURN(0);
}
