#include "supervise/attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "base/scope.h"
#include "supervise/fs_judge.h"
#include "sys/guest.h"

#define SP_SYS_fchmodat2     452
#define SP_SYS_setxattrat    463
#define SP_SYS_removexattrat 466
#define SP_SYS_file_setattr  469

int sp_attributes_flags(const struct sp_act_call *call)
{
    switch (call->n->data.nr) {
    case SYS_linkat:
    case SYS_fchownat:
        return sp_act_int(call, 4);
    case SYS_utimensat:
    case SP_SYS_fchmodat2:
        return sp_act_int(call, 3);
    case SP_SYS_setxattrat:
    case SP_SYS_removexattrat:
        return sp_act_int(call, 2);
    case SP_SYS_file_setattr:
        return sp_act_int(call, 4);
    default:
        return 0;
    }
}

bool sp_attributes_of_link(const struct sp_act_call *call)
{
    switch (call->n->data.nr) {
#ifdef SYS_lchown
    case SYS_lchown:
#endif
    case SYS_lsetxattr:
    case SYS_lremovexattr:
        return true;
    default:
        return (sp_attributes_flags(call) & AT_SYMLINK_NOFOLLOW) != 0;
    }
}

/* Copied once. `address` 0: now. */
static int read_times(const struct sp_act_call *call, uint64_t address, bool micro,
                      struct timespec times[2])
{
    struct timeval values[2];
    if (address == 0) {
        times[0] = times[1] = (struct timespec){0, UTIME_NOW};
        return 0;
    }
    pid_t tid = (pid_t)call->n->pid;
    if (!micro)
        return sp_guest_read(tid, address, times, 2 * sizeof *times);
    if (sp_guest_read(tid, address, values, sizeof values) != 0)
        return -EFAULT;
    for (int i = 0; i < 2; i++) {
        if (values[i].tv_usec < 0 || values[i].tv_usec > 999999)
            return -EINVAL;
        times[i] = (struct timespec){values[i].tv_sec, values[i].tv_usec * 1000};
    }
    return 0;
}

#ifdef SYS_utime
static int read_old_times(const struct sp_act_call *call, uint64_t address,
                          struct timespec times[2])
{
    struct utimbuf value;
    if (address == 0)
        return read_times(call, 0, false, times);
    if (sp_guest_read((pid_t)call->n->pid, address, &value, sizeof value) != 0)
        return -EFAULT;
    times[0] = (struct timespec){value.actime, 0};
    times[1] = (struct timespec){value.modtime, 0};
    return 0;
}
#endif

static int set_times(struct sp_act_call *call, const char *object)
{
    struct timespec times[2];
    int code;
    switch (call->n->data.nr) {
#ifdef SYS_utime
    case SYS_utime:
        code = read_old_times(call, sp_act_arg(call, 1), times);
        break;
    case SYS_utimes:
        code = read_times(call, sp_act_arg(call, 1), true, times);
        break;
    case SYS_futimesat:
        code = read_times(call, sp_act_arg(call, 2), true, times);
        break;
#endif
    default:
        code = read_times(call, sp_act_arg(call, 2), false, times);
    }
    if (code == 0 && !sp_notify_valid(call))
        code = -ESRCH;
    if (code != 0) {
        errno = -code;
        return -1;
    }
    return utimensat(AT_FDCWD, object, times, 0);
}

static int set_owner(struct sp_act_call *call, int object)
{
    int first = call->n->data.nr == SYS_fchownat ? 2 : 1;
    return fchownat(object, "", (uid_t)sp_act_int(call, first),
                    (gid_t)sp_act_int(call, first + 1), AT_EMPTY_PATH);
}

static int set_mode(struct sp_act_call *call, const char *object)
{
    bool at = call->n->data.nr == SYS_fchmodat || call->n->data.nr == SP_SYS_fchmodat2;
    return chmod(object, (mode_t)sp_act_int(call, at ? 2 : 1) & 07777u);
}

static int set_xattr(struct sp_act_call *call, const char *object)
{
    char name[XATTR_NAME_MAX + 1];
    sp_auto_free char *value = NULL;
    pid_t tid = (pid_t)call->n->pid;
    uint64_t size = sp_act_arg(call, 3);
    ssize_t n = sp_guest_text(tid, sp_act_arg(call, 1), name, sizeof name);
    int code = n < 0 ? (n == -ENAMETOOLONG ? -ERANGE : (int)n) : 0;
    if (code == 0 && size > XATTR_SIZE_MAX)
        code = -E2BIG;
    if (code == 0 && size > 0) {
        value = malloc(size);
        code = value == NULL ? -ENOMEM
                             : sp_guest_read(tid, sp_act_arg(call, 2), value, size);
    }
    if (code == 0 && !sp_notify_valid(call))
        code = -ESRCH;
    if (code != 0) {
        errno = -code;
        return -1;
    }
    return setxattr(object, name, value, size, sp_act_int(call, 4));
}

static int remove_xattr(struct sp_act_call *call, const char *object)
{
    char name[XATTR_NAME_MAX + 1];
    ssize_t n =
        sp_guest_text((pid_t)call->n->pid, sp_act_arg(call, 1), name, sizeof name);
    if (n < 0 || !sp_notify_valid(call)) {
        errno = n == -ENAMETOOLONG ? ERANGE : n < 0 ? (int)-n : ESRCH;
        return -1;
    }
    return removexattr(object, name);
}

static int perform(struct sp_act_call *call, const char *op, int object)
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", object);
    if (strcmp(op, "chmod") == 0)
        return set_mode(call, name);
    if (strcmp(op, "chown") == 0)
        return set_owner(call, object);
    if (strcmp(op, "utime") == 0)
        return set_times(call, name);
    return strcmp(op, "setxattr") == 0 ? set_xattr(call, name)
                                       : remove_xattr(call, name);
}

/* Callers have another way: the older calls. */
static bool too_new(const struct sp_act_call *call)
{
    int nr = call->n->data.nr;
    return nr == SP_SYS_setxattrat || nr == SP_SYS_removexattrat ||
           nr == SP_SYS_file_setattr;
}

struct sp_answer sp_attributes_decide(struct sp_act_call *call, const char *op,
                                      const struct sp_path *path)
{
    char text[PATH_MAX];
    struct sp_answer answer;
    if (!call->s->is->writes_judged && !sp_fs_own(call->s, path->text))
        return SP_CONTINUE;
    if (path->error != 0)
        return SP_REFUSE(path->error);
    bool by_number =
        path->asked[0] == '\0' && (sp_attributes_flags(call) & AT_EMPTY_PATH) == 0;
    if (by_number && sp_guest_fd_bare((pid_t)call->n->pid, path->dirfd))
        return SP_REFUSE(EBADF);
    sp_auto_fd object =
        sp_path_open(call, path, sp_attributes_of_link(call) ? O_NOFOLLOW : 0);
    if (object < 0)
        return SP_REFUSE(-object);
    if (!sp_fs_path_of(call->s, object, text))
        return SP_REFUSE(ENAMETOOLONG);
    if (sp_fs_object_refused(call, SP_LIST_WRITE, op, text, object, &answer))
        return answer;
    if (call->s->observed != NULL)
        return SP_CONTINUE;
    if (too_new(call))
        return SP_REFUSE(ENOSYS);
    return perform(call, op, object) == 0 ? SP_RETURN(0) : SP_REFUSE(errno);
}

/* Requests of these families that only ask, or for which a descriptor open for writing is needed
 * anyway. */
static bool asks_only(unsigned request)
{
    static const unsigned known[] = {
        FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR, FICLONE,           FICLONERANGE,
        FIDEDUPERANGE,   FS_IOC_FIEMAP,     FS_IOC_GETVERSION,
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == request)
            return true;
    return false;
}

struct sp_answer sp_act_file_ioctl(struct sp_act_call *call)
{
    char path[PATH_MAX];
    struct sp_answer answer;
    if (asks_only((unsigned)sp_act_int(call, 1)))
        return SP_CONTINUE;
    if (!sp_guest_object_path((pid_t)call->n->pid, sp_act_int(call, 0), path))
        return SP_REFUSE(EBADF);
    if (sp_fs_refused(call, SP_LIST_WRITE, "setattr", path, &answer))
        return answer;
    /* What the descriptor is may change before the kernel looks: none is set where some may not. */
    return call->s->observed != NULL ? SP_CONTINUE : SP_REFUSE(EOPNOTSUPP);
}
