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
                         const char *from, const char *to, bool folder,
                         struct sp_answer *ret_answer)
{
    const struct sp_supervisor *s = call->s;
    if (s->is->reads_judged) {
        struct sp_verdict v = sp_fs_verdict(call, SP_LIST_READ, from);
        if (v.action == SP_DENY &&
            sp_fs_verdict(call, SP_LIST_READ, to).action == SP_ALLOW &&
            sp_fs_refuses(call, change->op, from, &v, ret_answer))
            return true;
    }
    if (change->kind != SP_CHANGE_RENAME || !folder ||
        !(s->is->reads_judged || s->is->writes_judged))
        return false;
    struct sp_verdict v = sp_policy_move(s->policy, from, to);
    return sp_fs_refuses(call, change->op, from, &v, ret_answer);
}

/* A semaphore gets its name by a link; what is no shared memory gets none beside it. */
static bool comes_from_elsewhere(struct sp_act_call *call,
                                 const struct sp_change *change, const char *path,
                                 const char *to, struct sp_answer *ret_answer)
{
    if (!call->s->is->writes_judged || !sp_shared_memory_named(to) ||
        sp_shared_memory_named(path))
        return false;
    struct sp_verdict v = sp_fs_verdict(call, SP_LIST_WRITE, to);
    return sp_fs_refuses(call, change->op, to, &v, ret_answer);
}

/* A folder with something of sandpit's in it would take it to another path, where nobody knows it. */
static bool moves_own(const struct sp_supervisor *s, const struct sp_change *change,
                      const char *path, const char *to)
{
    return change->kind == SP_CHANGE_RENAME &&
           (sp_fs_holds_own(s, path) || (to != NULL && sp_fs_holds_own(s, to)));
}

/* The paths are those that the change is about, as the kernel names them; the modes are those of
 * what is there. `object`: what is at the first, where that is open; else -1. */
static bool refuses(struct sp_act_call *call, const struct sp_change *change,
                    const char *path, int object, const char *to,
                    const unsigned mode[2], struct sp_answer *ret_answer)
{
    if (sp_fs_object_refused(call, SP_LIST_WRITE, change->op, path, object, ret_answer))
        return true;
    if (moves_own(call->s, change, path, to)) {
        *ret_answer = sp_fs_deny(call, change->op, path, EACCES);
        return true;
    }
    if (to == NULL)
        return false;
    if (comes_from_elsewhere(call, change, path, to, ret_answer) ||
        sp_fs_refused(call, SP_LIST_WRITE, change->op, to, ret_answer) ||
        refuses_move(call, change, path, to, S_ISDIR(mode[0]), ret_answer))
        return true;
    return change->kind == SP_CHANGE_RENAME && (change->flags & RENAME_EXCHANGE) != 0 &&
           refuses_move(call, change, to, path, S_ISDIR(mode[1]), ret_answer);
}

/* Of something new: that it is there already, or why it cannot be. */
static int making_error(const struct sp_path *path, bool folder)
{
    if (path->stray || (path->error != 0 && path->error != ENOENT))
        return path->error;
    if (path->error == 0)
        return EEXIST;
    return path->slash && !folder ? ENOENT : 0;
}

/* Whether the walk ends before the last name. */
static bool no_folder(const struct sp_path *path)
{
    return path->stray || path->error == EACCES;
}

static int removing_error(const struct sp_path *path, bool folder)
{
    static const int errors[][4] = {{0, EISDIR, EISDIR, EISDIR},
                                    {0, EINVAL, ENOTEMPTY, EBUSY}};
    int error = no_folder(path) ? path->error : errors[folder][sp_path_ending(path)];
    if (error != 0 || path->error != 0)
        return error != 0 ? error : path->error;
    return path->slash && !S_ISDIR(path->mode) ? ENOTDIR : 0;
}

static int renaming_error(const struct sp_change *change)
{
    const struct sp_path *path = change->path;
    const struct sp_path *to = change->to;
    bool exchange = (change->flags & RENAME_EXCHANGE) != 0;
    bool keeps = (change->flags & RENAME_NOREPLACE) != 0;
    if (no_folder(path) || no_folder(to))
        return no_folder(path) ? path->error : to->error;
    if (sp_path_ending(path) != SP_ENDING_PLAIN)
        return EBUSY;
    if (sp_path_ending(to) != SP_ENDING_PLAIN)
        return keeps ? EEXIST : EBUSY;
    if (path->error != 0)
        return path->error;
    if (to->error != 0 && to->error != ENOENT)
        return to->error;
    if (to->error == 0 && keeps)
        return EEXIST;
    if (to->error != 0 && exchange)
        return ENOENT;
    if (!S_ISDIR(path->mode) && (path->slash || (to->slash && !exchange)))
        return ENOTDIR;
    return exchange && to->slash && !S_ISDIR(to->mode) ? ENOTDIR : 0;
}

/* What the kernel would answer before it asks for any right. 0: nothing of the kind. */
static int plain_error(const struct sp_change *change)
{
    const struct sp_path *path = change->path;
    const struct sp_path *to = change->to;
    SP_BUG_ON(to == NULL &&
              (change->kind == SP_CHANGE_RENAME || change->kind == SP_CHANGE_LINK));
    if (change->kind <= SP_CHANGE_SYMLINK)
        return making_error(path, change->kind == SP_CHANGE_MKDIR);
    if (change->kind == SP_CHANGE_RENAME)
        return renaming_error(change);
    if (change->kind != SP_CHANGE_LINK)
        return removing_error(path, change->kind == SP_CHANGE_RMDIR);
    if (path->error != 0)
        return path->error;
    return making_error(to, false);
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

static void modes_of(const struct ends *ends, unsigned ret_mode[2])
{
    struct stat st;
    for (int i = 0; i < 2; i++)
        ret_mode[i] = ends->folder[i] >= 0 && fstatat(ends->folder[i], ends->name[i],
                                                      &st, AT_SYMLINK_NOFOLLOW) == 0
                          ? st.st_mode
                          : 0;
}

/* The folders are held open: what was judged is what is changed. A link that is to be followed
 * could be another one by now: it is followed first. */
static struct sp_answer do_it(struct sp_act_call *call, const struct sp_change *change)
{
    struct ends ends;
    char path[PATH_MAX];
    char to[PATH_MAX];
    unsigned mode[2];
    struct sp_answer answer;
    int result = open_ends(call, change, &ends);
    if (result == -EACCES)
        return sp_fs_unseen(call->s);
    if (result != 0)
        return SP_REFUSE(-result);
    bool known = sp_fs_path_in(call->s, ends.folder[0], ends.name[0], path) &&
                 (change->to == NULL ||
                  sp_fs_path_in(call->s, ends.folder[1], ends.name[1], to));
    modes_of(&ends, mode);
    if (!known)
        answer = SP_REFUSE(ENAMETOOLONG);
    else if (sp_broker_speaks_to_kernel(ends.folder[0]) ||
             (change->to != NULL && sp_broker_speaks_to_kernel(ends.folder[1])))
        answer = sp_fs_deny(call, change->op, path, EACCES);
    else if (!refuses(call, change, path, -1, change->to != NULL ? to : NULL, mode,
                      &answer))
        answer = perform(call, change, &ends) == 0 ? SP_RETURN(0) : SP_REFUSE(errno);
    close_ends(&ends);
    return answer;
}

/* Whether both folders have the same rights, and the objects none of their own. */
static bool rights_alike(const struct sp_supervisor *s, enum sp_list list,
                         const char *path, const char *to)
{
    bool from_named = sp_fs_kernel_names(s, list, path);
    bool to_named = sp_fs_kernel_names(s, list, to);
    return from_named == to_named &&
           from_named == sp_fs_kernel_decides(s, list, path) &&
           to_named == sp_fs_kernel_decides(s, list, to);
}

/* Whether the kernel can be left to it: the domain allows it, or forbids what the policy does. It
 * also refuses what it takes for a way around it, a move between two folders that it treats
 * differently (ABI 1: between any two). */
static bool kernel_may(const struct sp_supervisor *s, const struct sp_change *change)
{
    const char *path = change->path->text;
    const char *to = change->to != NULL ? change->to->text : path;
    bool from_granted = sp_fs_kernel_names(s, SP_LIST_WRITE, path);
    bool to_granted = sp_fs_kernel_names(s, SP_LIST_WRITE, to);
    if (s->is->writes_judged && !(from_granted && to_granted) && s->observed == NULL)
        return false;
    if (change->to == NULL || !s->is->writes_guarded)
        return true;
    bool alike = rights_alike(s, SP_LIST_WRITE, path, to) &&
                 (!(s->is->reads_judged || sp_fs_reads_bound(s)) ||
                  rights_alike(s, SP_LIST_READ, path, to));
    /* What was granted and moved still has its rights, wherever it lies now. */
    return alike && s->is->moves_granted && !s->grants_moved;
}

/* Linking an object by a descriptor, through a link, or by no name: its own folder is not the
 * path's. */
static bool links_object(const struct sp_change *change)
{
    return change->kind == SP_CHANGE_LINK &&
           (change->path->asked[0] == '\0' || change->path->slash ||
            sp_path_ending(change->path) != SP_ENDING_PLAIN ||
            (change->flags & AT_SYMLINK_FOLLOW) != 0);
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
    if (!sp_fs_path_of(call->s, object, from) ||
        !sp_fs_path_in(call->s, folder, name, to))
        return SP_REFUSE(ENAMETOOLONG);
    const unsigned mode[2] = {0, 0}; /* a folder is not linked */
    if (refuses(call, change, from, object, to, mode, &answer))
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
    bool own = sp_fs_own(s, path) || (to != NULL && sp_fs_own(s, to)) ||
               moves_own(s, change, path, to);
    if (own || s->is->writes_judged || (s->is->reads_judged && to != NULL)) {
        int error = plain_error(change);
        if (error != 0)
            return change->path->only_guest || (to != NULL && change->to->only_guest)
                       ? sp_fs_unseen(s)
                       : SP_REFUSE(error);
        const unsigned mode[2] = {change->path->mode,
                                  change->to != NULL ? change->to->mode : 0};
        if (refuses(call, change, path, -1, to, mode, &answer))
            return answer;
    }
    answer = kernel_may(s, change)  ? SP_CONTINUE
             : links_object(change) ? link_object(call, change)
                                    : do_it(call, change);
    if (change->kind >= SP_CHANGE_REMOVE && change->kind <= SP_CHANGE_RENAME &&
        answer.kind != SP_ANSWER_REFUSE) {
        sp_fs_moved(call->s, path);
        if (to != NULL)
            sp_fs_moved(call->s, to);
    }
    return answer;
}
