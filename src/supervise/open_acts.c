/* Opens that can write, create or truncate.
 *
 * Where the guest's Landlock domain lets it write, the open is recorded as it was asked for and
 * left to the kernel, which has the last word; everywhere else it is the broker's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "supervise/broker.h"
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
    sp_place_find(call, SP_ACT_OPEN, strrchr(path->text, '/'), &place, NULL);
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
    sp_record_begin(call, SP_KIND_OPEN);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

struct sp_answer sp_act_open(struct sp_act_call *call)
{
    struct open_call open = decode(call);
    struct sp_path path;
    bool creates = (open.flags & O_CREAT) != 0 || (open.flags & O_TMPFILE) == O_TMPFILE;
    bool changes = creates || (open.flags & (O_ACCMODE | O_TRUNC)) != 0;
    bool follow = (open.flags & O_NOFOLLOW) == 0 &&
                  (open.flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    int result = open.path == 0
                     ? -EFAULT
                     : sp_path_read(call, open.dirfd, open.path, follow, &path);
    if (result != 0 || path.asked[0] == '\0')
        return sp_act_unreadable(call, result != 0 ? -result : ENOENT);
    /* Such a file runs with its owner's rights when somebody outside starts it. */
    if (creates && (open.mode & (S_ISUID | S_ISGID)) != 0)
        return sp_broker_deny(call, "open", &path, EPERM);
    if (changes && (open.flags & O_TMPFILE) != O_TMPFILE)
        sp_files_note(&call->s->files, path.text);
    bool whole_truncation =
        call->s->is->truncation_guarded || (open.flags & O_TRUNC) == 0;
    struct sp_answer answer = SP_CONTINUE;
    if (changes && (open.flags & O_PATH) == 0 && call->s->is->writes_guarded &&
        !(sp_path_writable(call->s, &path) && whole_truncation))
        answer = sp_broker_open(call, &path, open.flags, open.mode);
    if (!call->denied)
        record(call, &path, open.flags, &answer);
    return answer;
}
