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
#include "supervise/fs_judge.h"
#include "supervise/record.h"
#include "sys/guest.h"
#include "sys/tree.h"

/* File systems through which the kernel is spoken to: a write there is no file's content. The
 * numbers are those of linux/magic.h. */
bool sp_broker_speaks_to_kernel(int fd)
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

/* What openat2 knows; the older calls ignore the rest. */
#define KNOWN_FLAGS                                                                    \
    (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_SYNC | O_DSYNC | O_DIRECT | \
     O_NOFOLLOW | O_NOATIME | O_DIRECTORY)

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

static struct sp_answer write_in_proc(struct sp_act_call *call,
                                      const struct sp_path *path, int flags)
{
    pid_t pid;
    const char *name;
    char own[80];
    if (!process_file(call, path->text, &pid, &name))
        return sp_fs_deny(call, "open", path->text, EACCES);
    if (magic_link(name))
        return sp_fs_unseen(call->s);
    if (!own_setting(name) || !sp_tree_contains(pid))
        return sp_fs_deny(call, "open", path->text, EACCES);
    snprintf(own, sizeof own, "/proc/%d/%s", (int)pid, name);
    return give(open(own, (flags & (O_ACCMODE | O_TRUNC)) | O_NOFOLLOW | O_CLOEXEC),
                flags);
}

/* Files that procfs shows everyone, under the names by which it leads to a process's own. */
static const char *shared_name(const char *path)
{
    if (strcmp(path, "/proc/mounts") == 0)
        return "/proc/self/mounts";
    return strcmp(path, "/proc/net") == 0 ? "/proc/self/net" : path;
}

/* What procfs shows of a process to anyone. The rest is for who may look into it: of a process
 * outside the run that is not the guest, but it may be we, above all into ourselves. */
static bool shown_to_anyone(const char *name)
{
    static const char *const names[] = {
        "",           "cgroup", "cmdline",   "comm",      "cpuset",
        "gid_map",    "limits", "loginuid",  "mounts",    "mountinfo",
        "mountstats", "net",    "oom_adj",   "oom_score", "oom_score_adj",
        "projid_map", "sched",  "schedstat", "sessionid", "setgroups",
        "stat",       "statm",  "status",    "task",      "uid_map"};
    if (strncmp(name, "task/", 5) == 0) {
        name += 5 + strspn(name + 5, "0123456789");
        name += *name == '/';
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return strncmp(name, "net/", 4) == 0;
}

/* For the guest, whose /proc/self is not ours. Its domain does not reach here; no link is
 * followed. */
static struct sp_answer read_in_proc(struct sp_act_call *call,
                                     const struct sp_path *path, int flags)
{
    char name[PATH_MAX + SP_GUEST_PROC_MAX];
    char folder[SP_GUEST_PROC_MAX];
    const char *rest;
    const char *text = shared_name(path->text);
    pid_t pid;
    if (strstr(text, "/../") != NULL || strstr(text, "//") != NULL)
        return SP_REFUSE(EACCES);
    if (process_file(call, text, &pid, &rest) && !sp_tree_contains(pid) &&
        !shown_to_anyone(rest))
        return sp_fs_deny(call, "read", path->text, EACCES);
    if (sp_guest_proc_path((pid_t)call->n->pid, text, folder, &rest)) {
        bool link = rest[0] == '\0' && rest[-1] != '/' && strstr(text, "self") != NULL;
        if (link && (flags & O_NOFOLLOW) != 0)
            return SP_REFUSE((flags & O_DIRECTORY) != 0 ? ENOTDIR : ELOOP);
        snprintf(name, sizeof name, "%s/%s", folder, rest);
        text = name;
    }
    struct open_how how = {.flags =
                               (uint64_t)(unsigned)((flags & KNOWN_FLAGS) | O_CLOEXEC |
                                                    O_NONBLOCK | O_NOCTTY),
                           .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, text, &how, sizeof how);
    return give(made_to_wait(fd, flags), flags);
}

/* The object may have become another one since the path was judged. true: *ret_answer says no. */
static bool object_refused(struct sp_act_call *call, int object, const char *asked,
                           int flags, struct sp_answer *ret_answer)
{
    char path[PATH_MAX];
    bool writes = (flags & (O_ACCMODE | O_TRUNC)) != 0;
    bool reads = (flags & O_ACCMODE) != O_WRONLY;
    if (sp_fs_hidden_object(call->s, object)) {
        *ret_answer = sp_fs_deny(call, writes ? "write" : "read", asked, EACCES);
        return true;
    }
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (!(unnamed ? sp_fs_path_in(call->s, object, "#", path)
                  : sp_fs_path_of(call->s, object, path))) {
        *ret_answer = SP_REFUSE(ENAMETOOLONG);
        return true;
    }
    if (unnamed)
        return sp_fs_refused(call, SP_LIST_WRITE, "create", path, ret_answer);
    return (writes && sp_fs_object_refused(call, SP_LIST_WRITE, "write", path, object,
                                           ret_answer)) ||
           (reads &&
            sp_fs_object_refused(call, SP_LIST_READ, "read", path, object, ret_answer));
}

static struct sp_answer open_folder(int object, int flags, unsigned mode)
{
    char name[40];
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (!unnamed && (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0)
        return SP_REFUSE(EISDIR);
    if (!unnamed)
        return give(reopen(object, flags), flags);
    snprintf(name, sizeof name, "/proc/self/fd/%d", object);
    return give(open(name, flags | O_CLOEXEC, mode), flags);
}

static struct sp_answer open_existing(struct sp_act_call *call,
                                      const struct sp_path *path, int object, int flags,
                                      unsigned mode)
{
    struct stat st;
    struct sp_answer answer;
    bool writes = (flags & (O_ACCMODE | O_TRUNC)) != 0;
    if (fstat(object, &st) != 0)
        return SP_REFUSE(errno);
    if (writes && sp_broker_speaks_to_kernel(object))
        return sp_fs_deny(call, "open", path->text, EACCES);
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return SP_REFUSE(EEXIST);
    if (S_ISLNK(st.st_mode))
        return SP_REFUSE((flags & O_DIRECTORY) != 0 ? ENOTDIR : ELOOP);
    if (object_refused(call, object, path->text, flags, &answer))
        return answer;
    if (S_ISDIR(st.st_mode))
        return open_folder(object, flags, mode);
    if ((flags & O_DIRECTORY) != 0)
        return SP_REFUSE(ENOTDIR);
    if (S_ISREG(st.st_mode))
        return give(reopen_file(object, flags), flags);
    if (S_ISFIFO(st.st_mode))
        return give(reopen_fifo(object, flags), flags);
    if (S_ISSOCK(st.st_mode))
        return SP_REFUSE(ENXIO);
    if (S_ISCHR(st.st_mode) && harmless_device(&st))
        return give(reopen(object, flags), flags);
    return sp_fs_deny(call, "open", path->text, EACCES);
}

#define LINKS_MAX 40 /* as in the kernel */

/* Makes `name` in the folder unless something is there. A link that leads nowhere is followed by
 * hand, so that what is made is what was judged: *ret_link gets its text, -ELOOP comes back. */
static int create_in(int folder, const char *name, int flags, unsigned mode,
                     char ret_link[PATH_MAX])
{
    /* Non-blocking, in case a FIFO has come to stand there. */
    struct open_how how = {.flags =
                               (uint64_t)(unsigned)((flags & KNOWN_FLAGS) | O_CLOEXEC |
                                                    O_NOCTTY | O_NONBLOCK | O_NOFOLLOW),
                           .mode = mode,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    if (fd >= 0 || errno != ELOOP)
        return fd >= 0 ? fd : -errno;
    ssize_t n = readlinkat(folder, name, ret_link, PATH_MAX - 1);
    if (n < 0)
        return -EAGAIN;
    ret_link[n] = '\0';
    return -ELOOP;
}

/* The folder that a link's text leads to, seen from the folder that holds the link. */
static int open_link_folder(int from, const char *link, char ret_name[NAME_MAX + 2])
{
    char folder[PATH_MAX];
    int code = sp_path_split(link, folder, ret_name);
    if (code != 0)
        return code;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_DIRECTORY,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, from, folder, &how, sizeof how);
    return fd >= 0 ? fd : -errno;
}

static struct sp_answer create(struct sp_act_call *call, const struct sp_path *path,
                               int flags, unsigned mode)
{
    char name[NAME_MAX + 2];
    char link[PATH_MAX];
    char target[PATH_MAX];
    struct sp_answer answer;
    sp_auto_fd folder = sp_path_open_folder(call, path, name);
    for (int i = 0; i < LINKS_MAX && folder >= 0; i++) {
        if (!sp_fs_path_in(call->s, folder, name, target))
            return SP_REFUSE(ENAMETOOLONG);
        if (sp_fs_refused(call, SP_LIST_WRITE, "create", target, &answer))
            return answer;
        sp_files_note(&call->s->files, target);
        /* What somebody else made meanwhile is not the run's own. */
        bool shared = sp_shared_memory_named(target);
        sp_auto_fd made =
            create_in(folder, name, shared ? flags | O_EXCL : flags, mode, link);
        struct stat st;
        if (made == -ELOOP && (flags & O_NOFOLLOW) == 0) {
            int next = open_link_folder(folder, link, name);
            sp_close_fd(&folder);
            folder = next;
            continue;
        }
        if (shared && made == -EEXIST && (flags & O_EXCL) == 0) {
            sp_auto_fd object = sp_path_open(call, path, flags & O_NOFOLLOW);
            return object >= 0 ? open_existing(call, path, object, flags, mode)
                               : SP_REFUSE(-object);
        }
        if (made < 0)
            return SP_REFUSE(-made);
        if (fstat(made, &st) != 0 || !S_ISREG(st.st_mode) ||
            sp_broker_speaks_to_kernel(made))
            return sp_fs_deny(call, "open", target, EACCES);
        if (shared)
            sp_shared_memory_add(&call->s->shared_memory, &st);
        return give(made_to_wait(sp_steal_fd(&made), flags), flags);
    }
    return SP_REFUSE(folder < 0 ? -folder : ELOOP);
}

struct sp_answer sp_broker_open(struct sp_act_call *call, const struct sp_path *path,
                                int flags, unsigned mode)
{
    bool writes = (flags & (O_ACCMODE | O_TRUNC)) != 0;
    mode &= 07777u & ~sp_guest_umask((pid_t)call->n->pid);
    if (strncmp(path->text, "/proc/", 6) == 0 && path->error != 0)
        return writes ? write_in_proc(call, path, flags)
                      : read_in_proc(call, path, flags);
    sp_auto_fd object = sp_path_open(call, path, flags & O_NOFOLLOW);
    if (object >= 0)
        return open_existing(call, path, object, flags, mode);
    if (object == -ENOENT && (flags & O_CREAT) != 0)
        return create(call, path, flags, mode);
    /* A walk through procfs that only the guest can make. */
    bool whole = call->s->is->truncation_guarded || (flags & O_TRUNC) == 0;
    return object == -EACCES && whole ? sp_fs_unseen(call->s) : SP_REFUSE(-object);
}

struct sp_answer sp_broker_truncate(struct sp_act_call *call,
                                    const struct sp_path *path, int64_t size)
{
    sp_auto_fd object = sp_path_open(call, path, 0);
    struct stat st;
    char text[PATH_MAX];
    struct sp_answer answer;
    if (object < 0)
        return object == -EACCES && call->s->is->truncation_guarded
                   ? sp_fs_unseen(call->s)
                   : SP_REFUSE(-object);
    if (fstat(object, &st) != 0)
        return SP_REFUSE(errno);
    if (!S_ISREG(st.st_mode))
        return SP_REFUSE(S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
    if (sp_broker_speaks_to_kernel(object))
        return sp_fs_deny(call, "truncate", path->text, EACCES);
    if (!sp_fs_path_of(call->s, object, text))
        return SP_REFUSE(ENAMETOOLONG);
    if (sp_fs_object_refused(call, SP_LIST_WRITE, "truncate", text, object, &answer))
        return answer;
    sp_auto_fd fd = reopen_file(object, O_WRONLY);
    if (fd < 0 || ftruncate(fd, size) != 0)
        return SP_REFUSE(errno);
    return SP_RETURN(0);
}
