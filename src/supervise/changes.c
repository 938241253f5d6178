#include "supervise/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/broker.h"
#include "supervise/fs_judge.h"
#include "sys/guest.h"

/* Both folders of a change, in the guest's context, with the names in them. */
struct ends {
    int folder[2];
    char name[2][NAME_MAX + 2];
};

static void close_ends(struct ends *ends)
{
    sp_close_fd(&ends->folder[0]);
    sp_close_fd(&ends->folder[1]);
}

/* Negative errno on failure; then nothing is open. */
static int open_ends(struct sp_act_call *call, const struct sp_change *change,
                     struct ends *ends)
{
    ends->folder[0] = sp_path_open_folder(call, change->path, ends->name[0]);
    ends->folder[1] = -1;
    if (ends->folder[0] >= 0 && change->to != NULL)
        ends->folder[1] = sp_path_open_folder(call, change->to, ends->name[1]);
    int result = ends->folder[0] < 0                         ? ends->folder[0]
                 : change->to != NULL && ends->folder[1] < 0 ? ends->folder[1]
                                                             : 0;
    if (result != 0)
        close_ends(ends);
    return result;
}

/* What may not be read must not get to where it may: neither itself nor what lies in it. */
static bool refuses_move(struct sp_act_call *call, const struct sp_change *change,
                         const char *from, const char *to, struct sp_answer *ret_answer)
{
    const struct sp_supervisor *s = call->s;
    if (s->is->reads_judged) {
        struct sp_verdict v = sp_fs_verdict(call, SP_LIST_READ, from);
        if (v.action == SP_DENY &&
            sp_fs_verdict(call, SP_LIST_READ, to).action == SP_ALLOW &&
            sp_fs_refuses(call, change->op, from, &v, ret_answer))
            return true;
    }
    if (change->kind != SP_CHANGE_RENAME ||
        !(s->is->reads_judged || s->is->writes_judged))
        return false;
    struct sp_verdict v = sp_policy_move(s->policy, from, to);
    return sp_fs_refuses(call, change->op, from, &v, ret_answer);
}

/* The paths are those that the change is about, as the kernel names them. */
static bool refuses(struct sp_act_call *call, const struct sp_change *change,
                    const char *path, const char *to, struct sp_answer *ret_answer)
{
    if (sp_fs_refused(call, SP_LIST_WRITE, change->op, path, ret_answer))
        return true;
    if (to == NULL)
        return false;
    if (sp_fs_refused(call, SP_LIST_WRITE, change->op, to, ret_answer) ||
        refuses_move(call, change, path, to, ret_answer))
        return true;
    return change->kind == SP_CHANGE_RENAME && (change->flags & RENAME_EXCHANGE) != 0 &&
           refuses_move(call, change, to, path, ret_answer);
}

/* What the kernel would answer before it asks for any right. 0: nothing of the kind. */
static int plain_error(const struct sp_change *change)
{
    bool makes = change->kind <= SP_CHANGE_SYMLINK;
    if (makes && change->path->stray)
        return change->path->error;
    if (makes)
        return change->path->error == 0        ? EEXIST
               : change->path->error == ENOENT ? 0
                                               : change->path->error;
    if (change->path->error != 0)
        return change->path->error;
    if (change->to == NULL || (change->to->error == ENOENT && !change->to->stray))
        return 0;
    if (change->kind == SP_CHANGE_LINK && change->to->error == 0)
        return EEXIST;
    return change->to->error;
}

static int make_symlink(struct sp_act_call *call, const struct sp_change *change,
                        const struct ends *ends)
{
    char text[PATH_MAX];
    ssize_t n = sp_guest_text((pid_t)call->n->pid, change->target, text, sizeof text);
    if (n < 0 || !sp_notify_valid(call)) {
        errno = n < 0 ? (int)-n : ESRCH;
        return -1;
    }
    return symlinkat(text, ends->folder[0], ends->name[0]);
}

static int perform(struct sp_act_call *call, const struct sp_change *change,
                   const struct ends *ends)
{
    unsigned mask = ~sp_guest_umask((pid_t)call->n->pid);
    int folder = ends->folder[0];
    const char *name = ends->name[0];
    switch (change->kind) {
    case SP_CHANGE_MKDIR:
        return mkdirat(folder, name, change->mode & 01777u & mask);
    case SP_CHANGE_MKNOD:
        return mknodat(folder, name,
                       (change->mode & S_IFMT) | (change->mode & 01777u & mask), 0);
    case SP_CHANGE_SYMLINK:
        return make_symlink(call, change, ends);
    case SP_CHANGE_REMOVE:
        return unlinkat(folder, name, 0);
    case SP_CHANGE_RMDIR:
        return unlinkat(folder, name, AT_REMOVEDIR);
    case SP_CHANGE_RENAME:
        return renameat2(folder, name, ends->folder[1], ends->name[1], change->flags);
    case SP_CHANGE_LINK:
        return linkat(folder, name, ends->folder[1], ends->name[1],
                      (int)change->flags & AT_SYMLINK_FOLLOW);
    }
    errno = EPERM;
    return -1;
}

/* The folders are held open: what was judged is what is changed. A link that is to be followed
 * could be another one by now: it is followed first. */
static struct sp_answer do_it(struct sp_act_call *call, const struct sp_change *change)
{
    struct ends ends;
    char path[PATH_MAX];
    char to[PATH_MAX];
    struct sp_answer answer;
    int result = open_ends(call, change, &ends);
    if (result == -EACCES) /* a walk through procfs that only the guest can make */
        return SP_CONTINUE;
    if (result != 0)
        return SP_REFUSE(-result);
    sp_fs_path_in(ends.folder[0], ends.name[0], path);
    if (change->to != NULL)
        sp_fs_path_in(ends.folder[1], ends.name[1], to);
    if (sp_broker_speaks_to_kernel(ends.folder[0]) ||
        (change->to != NULL && sp_broker_speaks_to_kernel(ends.folder[1])))
        answer = sp_fs_deny(call, change->op, path, EACCES);
    else if (!refuses(call, change, path, change->to != NULL ? to : NULL, &answer))
        answer = perform(call, change, &ends) == 0 ? SP_RETURN(0) : SP_REFUSE(errno);
    close_ends(&ends);
    return answer;
}

/* Whether the kernel can be left to it: the domain allows it, or forbids what the policy does. It
 * also refuses what it takes for a way around it, a move between two folders that it treats
 * differently (ABI 1: between any two). */
static bool kernel_may(const struct sp_supervisor *s, const struct sp_change *change)
{
    const char *path = change->path->text;
    const char *to = change->to != NULL ? change->to->text : path;
    bool from_granted = sp_fs_kernel_decides(s, SP_LIST_WRITE, path);
    bool to_granted = sp_fs_kernel_decides(s, SP_LIST_WRITE, to);
    if (s->is->writes_judged && !(from_granted && to_granted) && s->observed == NULL)
        return false;
    if (change->to == NULL || !s->is->writes_guarded)
        return true;
    bool alike = from_granted == to_granted;
    if (s->is->reads_judged)
        alike = alike && sp_fs_kernel_decides(s, SP_LIST_READ, path) ==
                             sp_fs_kernel_decides(s, SP_LIST_READ, to);
    return alike && s->is->moves_granted;
}

/* Linking an object by a descriptor or through a link: its own folder is not the path's. */
static bool links_object(const struct sp_change *change)
{
    return change->kind == SP_CHANGE_LINK &&
           (change->path->asked[0] == '\0' || (change->flags & AT_SYMLINK_FOLLOW) != 0);
}

/* The object itself is linked, whatever its name has become. */
static struct sp_answer link_object(struct sp_act_call *call,
                                    const struct sp_change *change)
{
    char name[NAME_MAX + 2];
    char from[PATH_MAX];
    char to[PATH_MAX];
    char object_name[40];
    struct sp_answer answer;
    sp_auto_fd object = sp_path_open(call, change->path, 0);
    sp_auto_fd folder = object >= 0 ? sp_path_open_folder(call, change->to, name) : -1;
    if (object < 0 || folder < 0)
        return SP_REFUSE(object < 0 ? -object : -folder);
    sp_fs_path_of(object, from);
    sp_fs_path_in(folder, name, to);
    if (refuses(call, change, from, to, &answer))
        return answer;
    snprintf(object_name, sizeof object_name, "/proc/self/fd/%d", object);
    return linkat(AT_FDCWD, object_name, folder, name, AT_SYMLINK_FOLLOW) == 0
               ? SP_RETURN(0)
               : SP_REFUSE(errno);
}

struct sp_answer sp_change_decide(struct sp_act_call *call,
                                  const struct sp_change *change)
{
    const struct sp_supervisor *s = call->s;
    const char *path = change->path->text;
    const char *to = change->to != NULL ? change->to->text : NULL;
    struct sp_answer answer;
    bool own = sp_fs_own(s, path) || (to != NULL && sp_fs_own(s, to));
    if (own || s->is->writes_judged || (s->is->reads_judged && to != NULL)) {
        int error = plain_error(change);
        if (error != 0)
            return error == EACCES ? SP_CONTINUE : SP_REFUSE(error);
        if (refuses(call, change, path, to, &answer))
            return answer;
    }
    if (kernel_may(s, change))
        return SP_CONTINUE;
    return links_object(change) ? link_object(call, change) : do_it(call, change);
}
