#include "supervise/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/fs_judge.h"
#include "sys/guest.h"

static bool canonical(int fd, char to[PATH_MAX])
{
    char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return sp_guest_link_path(name, to);
}

/* `path` as an absolute one, as it was written: when it cannot be followed. */
static void as_written(pid_t tid, int dirfd, const char *path, char to[PATH_MAX])
{
    char base[PATH_MAX] = "";
    if (path[0] != '/')
        (void)sp_guest_object_path(tid, dirfd, base);
    size_t length = strlen(base);
    memcpy(to, base, length);
    if (length > 0 && length < PATH_MAX - 1)
        to[length++] = '/';
    size_t rest = strnlen(path, PATH_MAX - 1 - length);
    memcpy(to + length, path, rest);
    to[length + rest] = '\0';
}

/* The last name of a path, a slash behind it included, and the folder before it. */
static const char *last_name(const char *path, char folder[PATH_MAX])
{
    const char *end = path + strlen(path);
    const char *at = end;
    while (at > path && at[-1] == '/')
        at--;
    while (at > path && at[-1] != '/')
        at--;
    snprintf(folder, PATH_MAX, "%.*s", (int)(at - path), path);
    if (folder[0] == '\0')
        memcpy(folder, ".", sizeof ".");
    return at;
}

/* The object's folder as the guest sees it, with the last name as it was written. false: that
 * folder cannot be found. */
static bool by_folder(pid_t tid, int dirfd, const char *path, char to[PATH_MAX])
{
    char folder[PATH_MAX];
    const char *last = last_name(path, folder);
    sp_auto_fd fd = sp_guest_open_path(tid, dirfd, folder, O_DIRECTORY);
    if (fd < 0 || last[0] == '\0' || last[0] == '/' || strncmp(last, "..", 3) == 0 ||
        strcmp(last, ".") == 0 || !canonical(fd, to)) {
        as_written(tid, dirfd, path, to);
        return fd >= 0;
    }
    size_t length = strlen(to);
    snprintf(to + length, PATH_MAX - length, "%s%.*s", length == 1 ? "" : "/",
             (int)strcspn(last, "/"), last);
    return true;
}

/* What the descriptor itself is; `named`: by an empty path. */
static int by_descriptor(pid_t tid, int fd, bool named, char to[PATH_MAX])
{
    if (sp_guest_object_path(tid, fd, to))
        return 0;
    if (errno == ENAMETOOLONG) {
        snprintf(to, PATH_MAX, "descriptor %d", fd);
        return 0;
    }
    if (errno != ENOENT)
        return -EFAULT;
    return named ? -ENOENT : -EBADF;
}

/* The object, for what is changed is a name: without the slash behind it. */
static int open_named(pid_t tid, struct sp_path *path)
{
    char bare[PATH_MAX];
    size_t size = strlen(path->asked);
    while (size > 1 && path->asked[size - 1] == '/')
        size--;
    memcpy(bare, path->asked, size);
    bare[size] = '\0';
    return sp_guest_walk_path(tid, path->dirfd, bare, O_NOFOLLOW, &path->only_guest);
}

/* Where path->asked leads. */
static int resolve(const struct sp_act_call *call, enum sp_last last, bool named,
                   struct sp_path *path)
{
    pid_t tid = (pid_t)call->n->pid;
    struct stat st;
    size_t size = strlen(path->asked);
    path->error = 0;
    path->stray = false;
    path->only_guest = false;
    path->mode = 0;
    path->slash = size > 0 && path->asked[size - 1] == '/';
    if (size == 0)
        return by_descriptor(tid, path->dirfd, named, path->text);
    sp_auto_fd fd = last == SP_LAST_NAMED
                        ? open_named(tid, path)
                        : sp_guest_walk_path(tid, path->dirfd, path->asked,
                                             last == SP_LAST_KEPT ? O_NOFOLLOW : 0,
                                             &path->only_guest);
    if (fd >= 0 && canonical(fd, path->text)) {
        path->mode = fstat(fd, &st) == 0 ? st.st_mode : 0;
        return 0;
    }
    path->error = fd < 0 ? -fd : ENAMETOOLONG;
    path->stray = !by_folder(tid, path->dirfd, path->asked, path->text);
    return 0;
}

int sp_path_read(const struct sp_act_call *call, int dirfd, uint64_t address,
                 enum sp_last last, struct sp_path *ret_path)
{
    pid_t tid = (pid_t)call->n->pid;
    ret_path->dirfd = dirfd;
    ret_path->asked[0] = '\0';
    ssize_t size = address == 0 ? 0
                                : sp_guest_text(tid, address, ret_path->asked,
                                                sizeof ret_path->asked);
    int result = size < 0 ? (int)size : resolve(call, last, address != 0, ret_path);
    return sp_notify_valid(call) ? result : -ESRCH;
}

int sp_path_take(const struct sp_act_call *call, int dirfd, const char *asked,
                 enum sp_last last, struct sp_path *ret_path)
{
    ret_path->dirfd = dirfd;
    snprintf(ret_path->asked, sizeof ret_path->asked, "%s", asked);
    int result = resolve(call, last, true, ret_path);
    return sp_notify_valid(call) ? result : -ESRCH;
}

int sp_path_open(struct sp_act_call *call, const struct sp_path *path, int flags)
{
    if (path->asked[0] == '\0')
        return sp_guest_open_fd((pid_t)call->n->pid, path->dirfd);
    return sp_guest_open_path((pid_t)call->n->pid, path->dirfd, path->asked, flags);
}

int sp_path_split(const char *path, char ret_folder[PATH_MAX],
                  char ret_name[NAME_MAX + 2])
{
    const char *last = last_name(path, ret_folder);
    if (strlen(last) > NAME_MAX + 1)
        return -ENAMETOOLONG;
    if (last[0] == '\0')
        return -EBUSY; /* the root folder */
    memcpy(ret_name, last, strlen(last) + 1);
    return 0;
}

enum sp_ending sp_path_ending(const struct sp_path *path)
{
    char folder[PATH_MAX];
    char name[NAME_MAX + 2];
    int code = sp_path_split(path->asked, folder, name);
    if (code != 0)
        return code == -EBUSY ? SP_ENDING_NONE : SP_ENDING_PLAIN;
    name[strcspn(name, "/")] = '\0';
    if (name[0] == '\0')
        return SP_ENDING_NONE;
    if (strcmp(name, ".") == 0)
        return SP_ENDING_DOT;
    return strcmp(name, "..") == 0 ? SP_ENDING_DOTS : SP_ENDING_PLAIN;
}

int sp_path_open_folder(struct sp_act_call *call, const struct sp_path *path,
                        char ret_name[NAME_MAX + 2])
{
    char folder[PATH_MAX];
    int code = sp_path_split(path->asked, folder, ret_name);
    if (code != 0)
        return code;
    return sp_guest_open_path((pid_t)call->n->pid, path->dirfd, folder, O_DIRECTORY);
}

#define LINKS_MAX 40 /* as in the kernel */

/* The link's text, as a path from the root folder or from the link's own. false: it is no link, or
 * what comes out is too long. */
static bool link_text(struct sp_act_call *call, const struct sp_path *path,
                      char to[PATH_MAX])
{
    char name[NAME_MAX + 2];
    char target[PATH_MAX];
    char folder[PATH_MAX];
    sp_auto_fd fd = sp_path_open_folder(call, path, name);
    ssize_t n = fd >= 0 ? readlinkat(fd, name, target, sizeof target - 1) : -1;
    if (n <= 0 || !canonical(fd, folder))
        return false;
    target[n] = '\0';
    int length = target[0] == '/' ? snprintf(to, PATH_MAX, "%s", target)
                                  : snprintf(to, PATH_MAX, "%s/%s", folder, target);
    return length < PATH_MAX;
}

bool sp_path_pursue(struct sp_act_call *call, const struct sp_path *path,
                    struct sp_path *ret_target)
{
    char text[PATH_MAX];
    bool link = false;
    for (int i = 0; i < LINKS_MAX && path->error == ENOENT && !path->stray &&
                    link_text(call, path, text);
         i++) {
        if (sp_path_take(call, AT_FDCWD, text, SP_LAST_FOLLOWED, ret_target) != 0)
            return false;
        path = ret_target;
        link = true;
    }
    return link;
}

bool sp_path_writable(const struct sp_supervisor *s, const struct sp_path *path)
{
    return sp_fs_kernel_decides(s, SP_LIST_WRITE, path->text);
}
