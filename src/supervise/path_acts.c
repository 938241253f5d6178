/* Calls that change names and attributes: one family, handled together.
 *
 * Each is recorded with the object that its path leads to at that moment. Where the policy judges
 * changes, or the guest's domain would refuse one that the policy does not, it is decided in
 * changes.c and attributes.c; else it is left to the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervise/attributes.h"
#include "supervise/broker.h"
#include "supervise/changes.h"
#include "supervise/fs_judge.h"
#include "supervise/paths.h"
#include "supervise/record.h"

#define NONE (-1)
#define CWD  (-2)

#define ATTRIBUTE 100
#define OTHER     101

/* Which arguments of a call name what. */
struct path_call {
    int nr;
    const char *op;
    int8_t kind;  /* enum sp_change_kind; ATTRIBUTE, OTHER */
    int8_t dirfd; /* argument number of the folder's descriptor; CWD */
    int8_t path;  /* argument number of the path; NONE: `dirfd` is the object itself */
    int8_t to_dirfd;
    int8_t to;   /* second path, NONE */
    int8_t mode; /* argument with permission bits, NONE */
};

static const struct path_call path_calls[] = {
#ifdef SYS_mkdir
    {SYS_mkdir, "mkdir", SP_CHANGE_MKDIR, CWD, 0, NONE, NONE, 1},
    {SYS_rmdir, "rmdir", SP_CHANGE_RMDIR, CWD, 0, NONE, NONE, NONE},
    {SYS_unlink, "remove", SP_CHANGE_REMOVE, CWD, 0, NONE, NONE, NONE},
    {SYS_rename, "rename", SP_CHANGE_RENAME, CWD, 0, CWD, 1, NONE},
    {SYS_link, "link", SP_CHANGE_LINK, CWD, 0, CWD, 1, NONE},
    {SYS_symlink, "symlink", SP_CHANGE_SYMLINK, CWD, 1, NONE, NONE, NONE},
    {SYS_chmod, "chmod", ATTRIBUTE, CWD, 0, NONE, NONE, 1},
    {SYS_chown, "chown", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_lchown, "chown", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_utime, "utime", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_utimes, "utime", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_futimesat, "utime", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {SYS_mknod, "mknod", SP_CHANGE_MKNOD, CWD, 0, NONE, NONE, 1},
#endif
    {SYS_mkdirat, "mkdir", SP_CHANGE_MKDIR, 0, 1, NONE, NONE, 2},
    {SYS_unlinkat, "remove", SP_CHANGE_REMOVE, 0, 1, NONE, NONE, NONE},
#ifdef SYS_renameat
    {SYS_renameat, "rename", SP_CHANGE_RENAME, 0, 1, 2, 3, NONE},
#endif
    {SYS_renameat2, "rename", SP_CHANGE_RENAME, 0, 1, 2, 3, NONE},
    {SYS_linkat, "link", SP_CHANGE_LINK, 0, 1, 2, 3, NONE},
    {SYS_symlinkat, "symlink", SP_CHANGE_SYMLINK, 1, 2, NONE, NONE, NONE},
    {SYS_truncate, "truncate", OTHER, CWD, 0, NONE, NONE, NONE},
    {SYS_fchmod, "chmod", ATTRIBUTE, 0, NONE, NONE, NONE, 1},
    {SYS_fchmodat, "chmod", ATTRIBUTE, 0, 1, NONE, NONE, 2},
    {452 /* fchmodat2 */, "chmod", ATTRIBUTE, 0, 1, NONE, NONE, 2},
    {SYS_fchown, "chown", ATTRIBUTE, 0, NONE, NONE, NONE, NONE},
    {SYS_fchownat, "chown", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {SYS_utimensat, "utime", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {SYS_setxattr, "setxattr", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_lsetxattr, "setxattr", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_fsetxattr, "setxattr", ATTRIBUTE, 0, NONE, NONE, NONE, NONE},
    {463 /* setxattrat */, "setxattr", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {SYS_removexattr, "removexattr", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_lremovexattr, "removexattr", ATTRIBUTE, CWD, 0, NONE, NONE, NONE},
    {SYS_fremovexattr, "removexattr", ATTRIBUTE, 0, NONE, NONE, NONE, NONE},
    {466 /* removexattrat */, "removexattr", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {469 /* file_setattr */, "setattr", ATTRIBUTE, 0, 1, NONE, NONE, NONE},
    {SYS_mknodat, "mknod", SP_CHANGE_MKNOD, 0, 1, NONE, NONE, 2},
};

static bool dangerous_mode(const struct path_call *p, uint64_t mode)
{
    bool node = strcmp(p->op, "mknod") == 0 && (S_ISCHR(mode) || S_ISBLK(mode));
    bool set_id =
        (mode & S_ISUID) != 0 || ((mode & S_ISGID) != 0 && strcmp(p->op, "mkdir") != 0);
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
                          const char *to, const struct sp_answer *answer)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_place_find(call, SP_ACT_FILE, strrchr(path, '/'), &place, NULL);
    sp_buffer_init(&members, 64u << 10);
    sp_member_text(&members, "op", op);
    sp_member_text(&members, "path", path);
    if (to != NULL)
        sp_member_text(&members, "to", to);
    if (answer->kind == SP_ANSWER_CONTINUE)
        sp_member_text(&members, "args", "observed");
    if (answer->kind == SP_ANSWER_REFUSE)
        sp_member_int(&members, "errno", answer->value);
    sp_place_members(&place, &members);
    sp_record_begin(call, SP_KIND_FILE);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

static int folder_argument(const struct sp_act_call *call, int8_t argument)
{
    return argument == CWD ? AT_FDCWD : sp_act_int(call, argument);
}

/* Whether the call takes no path, or an empty one, for the descriptor itself. */
static bool may_lack_path(const struct sp_act_call *call, int folder)
{
    int nr = call->n->data.nr;
#ifdef SYS_futimesat
    if (nr == SYS_futimesat)
        return folder != AT_FDCWD;
#endif
    return nr == SYS_utimensat && folder != AT_FDCWD;
}

static int read_path(struct sp_act_call *call, int8_t dirfd, int8_t path,
                     enum sp_last last, struct sp_path *ret_path)
{
    int folder = folder_argument(call, dirfd);
    uint64_t address = path == NONE ? 0 : sp_act_arg(call, path);
    if (path != NONE && address == 0 && !may_lack_path(call, folder))
        return -EFAULT;
    int result = sp_path_read(call, folder, address, last, ret_path);
    bool empty = (result == 0 || result == -ENOENT) && address != 0 &&
                 ret_path->asked[0] == '\0';
    if (empty && (sp_attributes_flags(call) & AT_EMPTY_PATH) == 0)
        return -ENOENT;
    return empty && result == -ENOENT ? -EBADF : result;
}

static bool is_op(const struct path_call *p, const char *op)
{
    return strcmp(p->op, op) == 0;
}

/* What a link at the end of the first path means. */
static enum sp_last first_last(const struct sp_act_call *call,
                               const struct path_call *p)
{
    bool follows = is_op(p, "truncate");
    if (is_op(p, "link"))
        follows = call->n->data.nr == SYS_linkat &&
                  (sp_act_int(call, 4) & AT_SYMLINK_FOLLOW) != 0;
    else if (p->kind == ATTRIBUTE)
        follows = !sp_attributes_of_link(call);
    else if (!follows)
        return SP_LAST_NAMED;
    return follows ? SP_LAST_FOLLOWED : SP_LAST_KEPT;
}

static struct sp_answer decide_truncate(struct sp_act_call *call,
                                        const struct sp_path *path)
{
    const struct sp_supervisor *s = call->s;
    struct sp_answer answer;
    if (path->error == 0 &&
        sp_fs_refused(call, SP_LIST_WRITE, "truncate", path->text, &answer))
        return answer;
    if ((s->is->writes_guarded || s->is->writes_judged) &&
        !(s->is->truncation_guarded && sp_path_writable(s, path)))
        return sp_broker_truncate(call, path, (int64_t)sp_act_arg(call, 1));
    return SP_CONTINUE;
}

static struct sp_answer decide(struct sp_act_call *call, const struct path_call *p,
                               const char *op, const struct sp_path *path,
                               const struct sp_path *to)
{
    int nr = call->n->data.nr;
    if (p->kind == ATTRIBUTE)
        return sp_attributes_decide(call, op, path);
    if (is_op(p, "truncate"))
        return decide_truncate(call, path);
    struct sp_change change = {.kind = (enum sp_change_kind)p->kind,
                               .op = op,
                               .path = path,
                               .to = p->to != NONE ? to : NULL};
    if (strcmp(op, "rmdir") == 0)
        change.kind = SP_CHANGE_RMDIR;
    if (p->mode != NONE)
        change.mode = (unsigned)sp_act_int(call, p->mode);
    if (nr == SYS_renameat2 || nr == SYS_linkat)
        change.flags = (unsigned)sp_act_int(call, 4);
    if (change.kind == SP_CHANGE_SYMLINK)
        change.target = sp_act_arg(call, 0);
    return sp_change_decide(call, &change);
}

/* Of an empty one, the kernel speaks once it has looked for the first. */
static int second_path(struct sp_act_call *call, const struct path_call *p,
                       const struct sp_path *first, struct sp_path *ret_path)
{
    int result = read_path(call, p->to_dirfd, p->to, SP_LAST_NAMED, ret_path);
    bool ends = is_op(p, "link") || first->stray || first->error == EACCES;
    return result == -ENOENT && ends && first->error != 0 ? -first->error : result;
}

struct sp_answer sp_act_path(struct sp_act_call *call)
{
    const struct path_call *p = find_call(call->n->data.nr);
    static struct sp_path path;
    static struct sp_path to;
    if (p == NULL)
        return SP_REFUSE(EPERM);
    int result = read_path(call, p->dirfd, p->path, first_last(call, p), &path);
    if (result == 0 && p->to != NONE)
        result = second_path(call, p, &path, &to);
    if (result != 0) {
        sp_place_forget(call, SP_ACT_FILE);
        return sp_act_unreadable(call, -result);
    }
    /* A mode with set-id bits makes a file that runs with its owner's rights when somebody
     * outside starts it; a device node reaches the kernel's drivers. */
    if (p->mode != NONE && dangerous_mode(p, sp_act_arg(call, p->mode)))
        return sp_fs_deny(call, p->op, path.text, EPERM);
    call->asked = p->to == NONE && !is_op(p, "symlink") ? path.asked : NULL;
    const char *op = p->op;
    if (call->n->data.nr == SYS_unlinkat && (sp_act_int(call, 2) & AT_REMOVEDIR) != 0)
        op = "rmdir";
    call->op = op;
    sp_files_note(&call->s->files, path.text);
    if (p->to != NONE)
        sp_files_note(&call->s->files, to.text);
    struct sp_answer answer = decide(call, p, op, &path, &to);
    if (!call->denied)
        record_change(call, op, path.text, p->to != NONE ? to.text : NULL, &answer);
    return answer;
}
