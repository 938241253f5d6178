/* Calls that change names and attributes: one family, handled together.
 *
 * Under the policies of today none of them is denied, but for set-id bits and device nodes: they
 * are recorded as they were asked for, with the object that the path led to at that moment, and
 * left to the kernel. What the guest's Landlock domain would refuse (moves between folders of
 * unlike rights, truncation) is the broker's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervise/broker.h"
#include "supervise/paths.h"
#include "supervise/record.h"

#define NONE (-1)
#define CWD  (-2)

/* Which arguments of a call name what. */
struct path_call {
    int nr;
    const char *op;
    int8_t dirfd; /* argument number of the folder's descriptor; CWD */
    int8_t path;  /* argument number of the path; NONE: `dirfd` is the object itself */
    int8_t to_dirfd;
    int8_t to;   /* second path, NONE */
    int8_t mode; /* argument with permission bits, NONE */
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

static int read_path(struct sp_act_call *call, int8_t dirfd, int8_t path,
                     struct sp_path *ret_path)
{
    return sp_path_read(call, folder_argument(call, dirfd),
                        path == NONE ? 0 : sp_act_arg(call, path), false, ret_path);
}

/* Whether the guest's domain refuses this, though the policy does not: it treats the two folders
 * differently, or (ABI 1) lets nothing be moved between folders. */
static bool domain_refuses(const struct sp_supervisor *s, const struct sp_path *from,
                           const struct sp_path *to)
{
    if (!s->is->writes_guarded)
        return false;
    return !s->is->moves_granted ||
           sp_path_writable(s, from) != sp_path_writable(s, to);
}

static struct sp_answer decide(struct sp_act_call *call, const struct path_call *p,
                               const struct sp_path *path, const struct sp_path *to)
{
    const struct sp_supervisor *s = call->s;
    int nr = call->n->data.nr;
    if (strcmp(p->op, "truncate") == 0 && s->is->writes_guarded &&
        !(s->is->truncation_guarded && sp_path_writable(s, path)))
        return sp_broker_truncate(call, path, (int64_t)sp_act_arg(call, 1));
    if (p->to == NONE || !domain_refuses(s, path, to))
        return SP_CONTINUE;
    if (strcmp(p->op, "rename") == 0)
        return sp_broker_rename(
            call, path, to, nr == SYS_renameat2 ? (unsigned)sp_act_int(call, 4) : 0);
    return sp_broker_link(call, path, to, nr == SYS_linkat ? sp_act_int(call, 4) : 0);
}

struct sp_answer sp_act_path(struct sp_act_call *call)
{
    const struct path_call *p = find_call(call->n->data.nr);
    static struct sp_path path;
    static struct sp_path to;
    if (p == NULL)
        return SP_REFUSE(EPERM);
    int result = read_path(call, p->dirfd, p->path, &path);
    if (result == 0 && p->to != NONE)
        result = read_path(call, p->to_dirfd, p->to, &to);
    if (result != 0)
        return sp_act_unreadable(call, -result);
    /* A mode with set-id bits makes a file that runs with its owner's rights when somebody
     * outside starts it; a device node reaches the kernel's drivers. */
    if (p->mode != NONE && dangerous_mode(p, sp_act_arg(call, p->mode)))
        return sp_broker_deny(call, p->op, &path, EPERM);
    const char *op = p->op;
    if (call->n->data.nr == SYS_unlinkat && (sp_act_int(call, 2) & AT_REMOVEDIR) != 0)
        op = "rmdir";
    sp_files_note(&call->s->files, path.text);
    if (p->to != NONE)
        sp_files_note(&call->s->files, to.text);
    struct sp_answer answer = decide(call, p, &path, &to);
    if (!call->denied)
        record_change(call, op, path.text, p->to != NONE ? to.text : NULL, &answer);
    return answer;
}
