/* Opening files.
 *
 * An open is judged by the object that its path leads to, recorded, and left to the kernel where
 * the guest's Landlock domain forbids what the policy does; everywhere else it is the broker's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "supervise/broker.h"
#include "supervise/fs_judge.h"
#include "supervise/paths.h"
#include "supervise/record.h"

static void flags_text(int flags, char *to, size_t size)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {{O_CREAT, "O_CREAT"},       {O_EXCL, "O_EXCL"},
                 {O_TRUNC, "O_TRUNC"},       {O_APPEND, "O_APPEND"},
                 {O_NONBLOCK, "O_NONBLOCK"}, {O_CLOEXEC, "O_CLOEXEC"},
                 {O_NOFOLLOW, "O_NOFOLLOW"}, {O_PATH, "O_PATH"}};
    static const char *const access_names[] = {"O_RDONLY", "O_WRONLY", "O_RDWR",
                                               "O_ACCMODE"};
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
    int dirfd;
    uint64_t path;
    unsigned mode;
    int flags;
};

static bool notified_open(int nr)
{
#ifdef SYS_open
    if (nr == SYS_open || nr == SYS_creat)
        return true;
#endif
    return nr == SYS_openat;
}

static struct open_call decode(const struct sp_act_call *call)
{
#ifdef SYS_open
    if (call->n->data.nr == SYS_open)
        return (struct open_call){AT_FDCWD, sp_act_arg(call, 0),
                                  (unsigned)sp_act_int(call, 2), sp_act_int(call, 1)};
    if (call->n->data.nr == SYS_creat)
        return (struct open_call){AT_FDCWD, sp_act_arg(call, 0),
                                  (unsigned)sp_act_int(call, 1),
                                  O_WRONLY | O_CREAT | O_TRUNC};
#endif
    return (struct open_call){sp_act_int(call, 0), sp_act_arg(call, 1),
                              (unsigned)sp_act_int(call, 3), sp_act_int(call, 2)};
}

static void record(struct sp_act_call *call, const struct sp_path *path, int flags,
                   const struct sp_answer *answer)
{
    static const char *const ops[] = {"read", "write", "read-write", "read-write"};
    struct sp_place place;
    struct sp_buffer members;
    char text[160];
    const char *slash = strrchr(call->asked, '/');
    const char *name = slash != NULL ? slash : call->asked;
    bool changes = (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0;
    (void)(changes ? sp_place_find : sp_place_claimed)(call, SP_ACT_OPEN, name, &place,
                                                       NULL);
    sp_buffer_init(&members, 64u << 10);
    flags_text(flags, text, sizeof text);
    sp_member_text(&members, "path", path->text);
    sp_member_text(&members, "op", ops[flags & O_ACCMODE]);
    sp_member_text(&members, "flags", text);
    if (answer->kind == SP_ANSWER_CONTINUE)
        sp_member_text(&members, "args", "observed");
    if (answer->kind == SP_ANSWER_REFUSE)
        sp_member_int(&members, "errno", answer->value);
    sp_place_members(&place, &members);
    sp_record_act(call, SP_KIND_OPEN, &members);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

/* What an open is for, as far as rights go. */
struct wish {
    bool reads;
    bool writes; /* content, or a new file */
    bool makes;  /* a file that is not there yet */
    bool names;  /* ... and gives it a name */
};

static struct wish wish_of(int flags, const struct sp_path *path)
{
    bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    bool makes =
        unnamed || ((flags & O_CREAT) != 0 && path->error == ENOENT && !path->stray);
    return (struct wish){.reads = (flags & O_ACCMODE) != O_WRONLY,
                         .writes = makes || (flags & (O_ACCMODE | O_TRUNC)) != 0,
                         .makes = makes,
                         .names = makes && !unnamed};
}

/* Whether the policy says no; then *ret_answer is the answer. A file without a name is judged as
 * one in its folder. */
static bool refused(struct sp_act_call *call, const struct sp_path *path, int flags,
                    const struct wish *wish, struct sp_answer *ret_answer)
{
    char inside[PATH_MAX];
    const char *text = path->text;
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        snprintf(inside, sizeof inside, "%.*s/#", PATH_MAX - 3, path->text);
        text = inside;
    }
    if (wish->writes &&
        sp_fs_refused(call, SP_LIST_WRITE, wish->makes ? "create" : "write", text,
                      ret_answer))
        return true;
    return wish->reads && !wish->makes &&
           sp_fs_refused(call, SP_LIST_READ, "read", text, ret_answer);
}

/* Whether the kernel can be left to it: the domain forbids what the policy does. */
static bool kernel_may(const struct sp_supervisor *s, const struct sp_path *path,
                       int flags, const struct wish *wish)
{
    const struct sp_supervision *is = s->is;
    int access = flags & O_ACCMODE;
    /* Whoever may write may truncate: Landlock's right to write is asked for anyway. */
    bool whole = is->truncation_guarded || (flags & O_TRUNC) == 0 ||
                 access == O_WRONLY || access == O_RDWR;
    bool writes = !wish->writes || !(is->writes_guarded || is->writes_judged) ||
                  (whole && (wish->names ? sp_fs_kernel_names : sp_fs_kernel_decides)(
                                s, SP_LIST_WRITE, path->text));
    bool reads = !wish->reads || !sp_fs_reads_bound(s) ||
                 sp_fs_kernel_decides(s, SP_LIST_READ, path->text);
    return writes && reads;
}

/* What the kernel says before it asks for any right. 0: nothing of the kind. */
static int plain_error(const struct sp_path *path, int flags, const struct wish *wish)
{
    bool creates = (flags & O_CREAT) != 0;
    if (creates && (flags & O_DIRECTORY) != 0)
        return EINVAL;
    if (path->error == EACCES && !path->only_guest)
        return EACCES;
    if (creates && path->slash && !path->stray &&
        ((flags & O_EXCL) == 0 || sp_path_ending(path) == SP_ENDING_PLAIN))
        return EISDIR;
    if (path->error != 0)
        return wish->names || path->only_guest ? 0 : path->error;
    return creates && (flags & O_EXCL) != 0 ? EEXIST : 0;
}

static struct sp_answer decide(struct sp_act_call *call, const struct sp_path *path,
                               int flags, unsigned mode)
{
    const struct sp_supervision *is = call->s->is;
    struct wish wish = wish_of(flags, path);
    struct sp_answer answer;
    bool judged =
        (wish.writes && (is->writes_judged || sp_fs_own(call->s, path->text))) ||
        (wish.reads && (is->reads_judged || sp_fs_hidden(call->s, path->text)));
    if ((flags & O_PATH) != 0)
        return SP_CONTINUE; /* nothing can be read or written by it */
    int error = plain_error(path, flags, &wish);
    if (judged && error != 0)
        return SP_REFUSE(error);
    if (judged && refused(call, path, flags, &wish, &answer))
        return answer;
    if (kernel_may(call->s, path, flags, &wish))
        return SP_CONTINUE;
    if (error != 0)
        return SP_REFUSE(error);
    return sp_broker_open(call, path, flags, mode);
}

struct sp_answer sp_act_open(struct sp_act_call *call)
{
    struct open_call open = decode(call);
    static struct sp_path path;
    static struct sp_path target;
    bool creates = (open.flags & O_CREAT) != 0 || (open.flags & O_TMPFILE) == O_TMPFILE;
    bool changes = creates || (open.flags & (O_ACCMODE | O_TRUNC)) != 0;
    bool follow = (open.flags & O_NOFOLLOW) == 0 &&
                  (open.flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    int result = 0;
    if (call->opens != NULL && follow)
        path = *call->opens;
    else
        result = open.path == 0
                     ? -EFAULT
                     : sp_path_read(call, open.dirfd, open.path,
                                    follow ? SP_LAST_FOLLOWED : SP_LAST_KEPT, &path);
    if (result != 0 || path.asked[0] == '\0') {
        sp_place_forget(call, SP_ACT_OPEN);
        if ((open.flags & O_CREAT) != 0 && (open.flags & O_DIRECTORY) != 0)
            return SP_REFUSE(EINVAL); /* which the kernel sees first */
        return sp_act_unreadable(call, result != 0 ? -result : ENOENT);
    }
    call->asked = path.asked;
    /* Such a file runs with its owner's rights when somebody outside starts it. */
    if (creates && (open.mode & (S_ISUID | S_ISGID)) != 0)
        return sp_fs_deny(call, "open", path.text, EPERM);
    /* A file is made where the link leads. */
    bool pursued =
        creates && follow && !path.slash && sp_path_pursue(call, &path, &target);
    /* With a slash behind it, it is the name that counts. */
    bool named =
        (open.flags & O_CREAT) != 0 && path.slash &&
        sp_path_take(call, open.dirfd, path.asked, SP_LAST_NAMED, &target) == 0;
    const struct sp_path *at = pursued || named ? &target : &path;
    if (changes)
        sp_trace_guard(call->s->writer);
    if (changes && (open.flags & O_TMPFILE) != O_TMPFILE)
        sp_files_note(&call->s->files, at->text);
    struct sp_answer answer = decide(call, at, open.flags, open.mode);
    if (!call->denied)
        record(call, at, open.flags, &answer);
    return answer;
}

bool sp_open_of_loader(struct sp_act_call *call)
{
    static const char *const folders[] = {"/etc/", "/proc/", "/sys/", "/dev/",
                                          "/usr/lib/locale/"};
    static struct sp_path path;
    if (!notified_open(call->n->data.nr))
        return false;
    struct open_call open = decode(call);
    if ((open.flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != 0)
        return false;
    if (call->opens == NULL &&
        sp_path_read(call, open.dirfd, open.path, SP_LAST_FOLLOWED, &path) != 0)
        return false;
    call->opens = &path;
    const char *name = strrchr(path.text, '/');
    if (name != NULL && strstr(name, ".so") != NULL)
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path.text, folders[i], strlen(folders[i])) == 0)
            return true;
    /* Where libraries are looked for and are not. */
    return path.error == ENOENT && (name == NULL || strstr(name, ".py") == NULL);
}
