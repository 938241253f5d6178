/* Opens that can change something, and every other call that changes names or attributes.
 *
 * Under the policies of today none of them is denied (but for set-id bits and device nodes):
 * they are recorded as they were asked for, with the object that the path led to at that
 * moment, and left to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/record.h"
#include "sys/guest.h"

#define NONE (-1)
#define CWD (-2)

/* Which arguments of a call name what. */
struct path_call {
    int nr;
    const char *op;
    int8_t dirfd; /* argument number of the folder's descriptor; CWD */
    int8_t path;  /* argument number of the path; NONE: `dirfd` is the object itself */
    int8_t to_dirfd;
    int8_t to;    /* second path, NONE */
    int8_t mode;  /* argument with permission bits, NONE */
};

static const struct path_call path_calls[] = {
#ifdef SYS_mkdir
    {SYS_mkdir, "mkdir", CWD, 0, NONE, NONE, 1},
    {SYS_rmdir, "rmdir", CWD, 0, NONE, NONE, NONE},
    {SYS_unlink, "remove", CWD, 0, NONE, NONE, NONE},
    {SYS_rename, "rename", CWD, 0, CWD, 1, NONE},
    {SYS_link, "link", CWD, 0, CWD, 1, NONE},
    {SYS_symlink, "symlink", CWD, 1, NONE, NONE, NONE},
    {SYS_chmod, "chmod", CWD, 0, NONE, NONE, 1},
    {SYS_chown, "chown", CWD, 0, NONE, NONE, NONE},
    {SYS_lchown, "chown", CWD, 0, NONE, NONE, NONE},
    {SYS_utime, "utime", CWD, 0, NONE, NONE, NONE},
    {SYS_utimes, "utime", CWD, 0, NONE, NONE, NONE},
    {SYS_futimesat, "utime", 0, 1, NONE, NONE, NONE},
    {SYS_mknod, "mknod", CWD, 0, NONE, NONE, 1},
#endif
    {SYS_mkdirat, "mkdir", 0, 1, NONE, NONE, 2},
    {SYS_unlinkat, "remove", 0, 1, NONE, NONE, NONE},
#ifdef SYS_renameat
    {SYS_renameat, "rename", 0, 1, 2, 3, NONE},
#endif
    {SYS_renameat2, "rename", 0, 1, 2, 3, NONE},
    {SYS_linkat, "link", 0, 1, 2, 3, NONE},
    {SYS_symlinkat, "symlink", 1, 2, NONE, NONE, NONE},
    {SYS_truncate, "truncate", CWD, 0, NONE, NONE, NONE},
    {SYS_fchmod, "chmod", 0, NONE, NONE, NONE, 1},
    {SYS_fchmodat, "chmod", 0, 1, NONE, NONE, 2},
    {452 /* fchmodat2 */, "chmod", 0, 1, NONE, NONE, 2},
    {SYS_fchown, "chown", 0, NONE, NONE, NONE, NONE},
    {SYS_fchownat, "chown", 0, 1, NONE, NONE, NONE},
    {SYS_utimensat, "utime", 0, 1, NONE, NONE, NONE},
    {SYS_setxattr, "setxattr", CWD, 0, NONE, NONE, NONE},
    {SYS_lsetxattr, "setxattr", CWD, 0, NONE, NONE, NONE},
    {SYS_fsetxattr, "setxattr", 0, NONE, NONE, NONE, NONE},
    {463 /* setxattrat */, "setxattr", 0, 1, NONE, NONE, NONE},
    {SYS_removexattr, "removexattr", CWD, 0, NONE, NONE, NONE},
    {SYS_lremovexattr, "removexattr", CWD, 0, NONE, NONE, NONE},
    {SYS_fremovexattr, "removexattr", 0, NONE, NONE, NONE, NONE},
    {466 /* removexattrat */, "removexattr", 0, 1, NONE, NONE, NONE},
    {469 /* file_setattr */, "setattr", 0, 1, NONE, NONE, NONE},
    {SYS_mknodat, "mknod", 0, 1, NONE, NONE, 2},
};

static bool canonical(int fd, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, to, PATH_MAX - 1);
    if (n < 0)
        return false;
    to[n] = '\0';
    return true;
}

/* `path` as an absolute one, as it was written: when it cannot be followed. */
static void as_written(pid_t tid, int dirfd, const char *path, char to[PATH_MAX])
{
    char base[PATH_MAX] = "";
    if (path[0] != '/')
        (void)(dirfd == AT_FDCWD ? sp_guest_cwd(tid, base) : sp_guest_fd_path(tid, dirfd, base));
    size_t length = strlen(base);
    memcpy(to, base, length);
    if (length > 0 && length < PATH_MAX - 1)
        to[length++] = '/';
    size_t rest = strnlen(path, PATH_MAX - 1 - length);
    memcpy(to + length, path, rest);
    to[length + rest] = '\0';
}

/* The object's folder as the guest sees it, with the last name as it was written. */
static void by_folder(pid_t tid, int dirfd, const char *path, char to[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *last = slash != NULL ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash == path ? 1 : last - path), path);
    sp_auto_fd fd = sp_guest_open_path(tid, dirfd, folder[0] != '\0' ? folder : ".", O_DIRECTORY);
    if (fd < 0 || last[0] == '\0' || strcmp(last, "..") == 0 || !canonical(fd, to)) {
        as_written(tid, dirfd, path, to);
        return;
    }
    size_t length = strlen(to);
    snprintf(to + length, PATH_MAX - length, "%s%s", length == 1 ? "" : "/", last);
}

/* Where a path leads now. `follow`: a symbolic link at its end is followed. */
static void resolve(pid_t tid, int dirfd, const char *path, bool follow, char to[PATH_MAX])
{
    if (follow) {
        sp_auto_fd fd = sp_guest_open_path(tid, dirfd, path, 0);
        if (fd >= 0 && canonical(fd, to))
            return;
    }
    by_folder(tid, dirfd, path, to);
}

static int folder_argument(const struct sp_act_call *call, int8_t argument)
{
    return argument == CWD ? AT_FDCWD : sp_act_int(call, argument);
}

/* The path in an argument, resolved; false when the guest's memory cannot be read (the kernel
 * will not be able to either). */
static bool path_argument(struct sp_act_call *call, int8_t dirfd, int8_t path, bool follow,
                          char to[PATH_MAX])
{
    pid_t tid = (pid_t)call->n->pid;
    char asked[PATH_MAX];
    if (path == NONE)
        return sp_guest_fd_path(tid, folder_argument(call, dirfd), to);
    uint64_t address = sp_act_arg(call, path);
    if (address == 0) /* utimensat on a descriptor */
        return sp_guest_fd_path(tid, folder_argument(call, dirfd), to);
    if (sp_guest_text(tid, address, asked, sizeof asked) < 0)
        return false;
    if (asked[0] == '\0')
        return sp_guest_fd_path(tid, folder_argument(call, dirfd), to);
    resolve(tid, folder_argument(call, dirfd), asked, follow, to);
    return true;
}

/* A mode with set-id bits makes a file that runs with its owner's rights when somebody else,
 * outside, starts it; a device node reaches the kernel's drivers. No policy allows either. */
static struct sp_answer deny_mode(struct sp_act_call *call, const char *op, const char *path)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "path", path);
    sp_place_find(call, SP_ACT_FILE, path, &place, NULL);
    struct sp_denial denial = {.category = "fs",
                               .operation = op,
                               .target = path,
                               .verdict = sp_verdict_always(call->s->policy),
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    sp_record_denial(call, &denial, &place, NULL);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(EPERM);
}

static bool dangerous_mode(const struct path_call *p, uint64_t mode)
{
    bool node = strcmp(p->op, "mknod") == 0 && (S_ISCHR(mode) || S_ISBLK(mode));
    bool set_id = (mode & S_ISUID) != 0 || ((mode & S_ISGID) != 0 && strcmp(p->op, "mkdir") != 0);
    return node || set_id;
}

static const struct path_call *find_call(int nr)
{
    for (size_t i = 0; i < sizeof path_calls / sizeof *path_calls; i++)
        if (path_calls[i].nr == nr)
            return &path_calls[i];
    return NULL;
}

static void record_change(struct sp_act_call *call, const char *op, const char *path,
                          const char *to)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_place_find(call, SP_ACT_FILE, strrchr(path, '/'), &place, NULL);
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "op", op);
    sp_member_text(&members, "path", path);
    if (to != NULL)
        sp_member_text(&members, "to", to);
    sp_member_text(&members, "args", "observed");
    sp_place_members(&place, &members);
    sp_record_begin(call, SP_KIND_FILE);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

struct sp_answer sp_act_path(struct sp_act_call *call)
{
    const struct path_call *p = find_call(call->n->data.nr);
    char path[PATH_MAX];
    char to[PATH_MAX];
    if (p == NULL)
        return SP_REFUSE(EPERM);
    if (!path_argument(call, p->dirfd, p->path, false, path))
        return SP_CONTINUE;
    if (p->to != NONE && !path_argument(call, p->to_dirfd, p->to, false, to))
        return SP_CONTINUE;
    if (p->mode != NONE && dangerous_mode(p, sp_act_arg(call, p->mode)))
        return deny_mode(call, p->op, path);
    const char *op = p->op;
    if (call->n->data.nr == SYS_unlinkat && (sp_act_int(call, 2) & AT_REMOVEDIR) != 0)
        op = "rmdir";
    sp_files_note(&call->s->files, path);
    if (p->to != NONE)
        sp_files_note(&call->s->files, to);
    record_change(call, op, path, p->to != NONE ? to : NULL);
    return SP_CONTINUE;
}

static void flags_text(int flags, char *to, size_t size)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {{O_CREAT, "O_CREAT"},       {O_EXCL, "O_EXCL"},     {O_TRUNC, "O_TRUNC"},
                 {O_APPEND, "O_APPEND"},     {O_NONBLOCK, "O_NONBLOCK"},
                 {O_CLOEXEC, "O_CLOEXEC"},   {O_NOFOLLOW, "O_NOFOLLOW"},
                 {O_PATH, "O_PATH"}};
    static const char *const access_names[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
    size_t n = (size_t)snprintf(to, size, "%s", access_names[flags & O_ACCMODE]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((flags & names[i].bit) != 0)
            n += (size_t)snprintf(to + n, size - n, "|%s", names[i].name);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        snprintf(to + n, size - n, "|O_TMPFILE");
    else if ((flags & O_DIRECTORY) != 0)
        snprintf(to + n, size - n, "|O_DIRECTORY");
}

struct open_call {
    int8_t dirfd;
    int8_t path;
    int8_t mode;
    int flags;
};

static struct open_call decode_open(const struct sp_act_call *call)
{
#ifdef SYS_open
    if (call->n->data.nr == SYS_open)
        return (struct open_call){CWD, 0, 2, sp_act_int(call, 1)};
    if (call->n->data.nr == SYS_creat)
        return (struct open_call){CWD, 0, 1, O_WRONLY | O_CREAT | O_TRUNC};
#endif
    return (struct open_call){0, 1, 3, sp_act_int(call, 2)};
}

struct sp_answer sp_act_open(struct sp_act_call *call)
{
    static const char *const ops[] = {"read", "write", "read-write", "read-write"};
    struct open_call open = decode_open(call);
    bool creates = (open.flags & O_CREAT) != 0 || (open.flags & O_TMPFILE) == O_TMPFILE;
    bool changes = creates || (open.flags & (O_ACCMODE | O_TRUNC)) != 0;
    char path[PATH_MAX];
    char flags[160];
    if (!path_argument(call, open.dirfd, open.path, (open.flags & O_NOFOLLOW) == 0, path))
        return SP_CONTINUE;
    if (creates && (sp_act_arg(call, open.mode) & (S_ISUID | S_ISGID)) != 0)
        return deny_mode(call, "open", path);
    if (changes && (open.flags & O_TMPFILE) != O_TMPFILE)
        sp_files_note(&call->s->files, path);
    struct sp_place place;
    struct sp_buffer members;
    sp_place_find(call, SP_ACT_OPEN, strrchr(path, '/'), &place, NULL);
    sp_buffer_init(&members, 64u << 10);
    flags_text(open.flags, flags, sizeof flags);
    sp_member_text(&members, "path", path);
    sp_member_text(&members, "op", ops[open.flags & O_ACCMODE]);
    sp_member_text(&members, "flags", flags);
    sp_member_text(&members, "args", "observed");
    sp_place_members(&place, &members);
    sp_record_begin(call, SP_KIND_OPEN);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_CONTINUE;
}
