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

/* A path without the slashes behind it. true: there are some. */
static bool strip_slashes(const char *path, char to[PATH_MAX])
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    memcpy(to, path, size);
    to[size] = '\0';
    return path[size] != '\0';
}

/* What the descriptor is of, by the plain path that it was opened by or else as the kernel has it. */
static bool path_of(int fd, const struct sp_guest_walk *walk, const char *asked,
                    char to[PATH_MAX])
{
    if (!walk->plain)
        return canonical(fd, to);
    (void)strip_slashes(asked, to);
    return true;
}

/* The object's folder as the guest sees it, with the last name as it was written. false: that
 * folder cannot be found. *ret_link: there is a link of that name. */
static bool by_folder(pid_t tid, struct sp_path *path, bool *ret_link)
{
    char folder[PATH_MAX];
    char one;
    char *to = path->text;
    const char *last = last_name(path->asked, folder);
    struct sp_guest_walk walk;
    sp_auto_fd fd = sp_guest_walk_path(tid, path->dirfd, folder, O_DIRECTORY, &walk);
    path->only_guest = walk.only_guest;
    *ret_link = false;
    if (fd < 0 || last[0] == '\0' || last[0] == '/' || strncmp(last, "..", 3) == 0 ||
        strcmp(last, ".") == 0 || !path_of(fd, &walk, folder, to)) {
        as_written(tid, path->dirfd, path->asked, to);
        return fd >= 0;
    }
    size_t length = strlen(to);
    snprintf(to + length, PATH_MAX - length, "%s%.*s", length == 1 ? "" : "/",
             (int)strcspn(last, "/"), last);
    *ret_link = readlinkat(fd, last, &one, 1) > 0;
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

static int open_object(pid_t tid, const struct sp_path *path, enum sp_last last,
                       struct sp_guest_walk *ret_walk)
{
    char bare[PATH_MAX];
    const char *asked = path->asked;
    /* What is changed is a name: without the slash behind it. */
    if (last == SP_LAST_NAMED && strip_slashes(asked, bare))
        asked = bare;
    int flags = last == SP_LAST_FOLLOWED ? 0 : O_NOFOLLOW;
    return sp_guest_walk_path(tid, path->dirfd, asked, flags, ret_walk);
}

/* Where path->asked leads. *ret_elsewhere: the guest may come to something else: procfs has names
 * that mean whoever looks. */
static int resolve(const struct sp_act_call *call, enum sp_last last, bool named,
                   struct sp_path *path, bool *ret_elsewhere)
{
    pid_t tid = (pid_t)call->n->pid;
    struct stat st;
    bool link;
    struct sp_guest_walk walk;
    size_t size = strlen(path->asked);
    *ret_elsewhere = false;
    path->error = 0;
    path->stray = false;
    path->only_guest = false;
    path->mode = 0;
    path->slash = size > 0 && path->asked[size - 1] == '/';
    if (size == 0)
        return by_descriptor(tid, path->dirfd, named, path->text);
    sp_auto_fd fd = open_object(tid, path, last, &walk);
    if (fd >= 0 && path_of(fd, &walk, path->asked, path->text)) {
        path->mode = fstat(fd, &st) == 0 ? st.st_mode : 0;
        return 0;
    }
    path->error = fd < 0 ? -fd : ENAMETOOLONG;
    path->stray = !by_folder(tid, path, &link);
    path->only_guest = walk.only_guest || (path->only_guest && path->error == ENOENT);
    if (path->only_guest)
        path->error = EACCES;
    *ret_elsewhere =
        path->only_guest || (path->error == ENOENT && !walk.plain &&
                             (path->stray || (link && last == SP_LAST_FOLLOWED)));
    return 0;
}

/* For what the guest comes to instead, the path is written so that it leads there for us too. From
 * the root folder on it may be closed, where the guest's own way is not. */
static void look_again(const struct sp_act_call *call, enum sp_last last,
                       struct sp_path *path)
{
    static struct sp_path other;
    char bare[PATH_MAX];
    char text[PATH_MAX];
    /* The link itself, where it is a name that counts. */
    bool stripped = last == SP_LAST_NAMED && strip_slashes(path->asked, bare);
    if (!sp_guest_proc_walk((pid_t)call->n->pid, path->dirfd,
                            stripped ? bare : path->asked, last == SP_LAST_FOLLOWED,
                            text) ||
        strlen(text) + 1 >= sizeof text)
        return;
    if (stripped)
        memcpy(text + strlen(text), "/", 2);
    if (sp_path_take(call, AT_FDCWD, text, last, &other) != 0)
        return;
    bool found =
        other.error == 0 || other.only_guest || (other.error == ENOENT && !other.stray);
    if (found || (path->only_guest && other.error != EACCES))
        *path = other;
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
    bool elsewhere = false;
    int result =
        size < 0 ? (int)size : resolve(call, last, address != 0, ret_path, &elsewhere);
    if (elsewhere)
        look_again(call, last, ret_path);
    return sp_notify_valid(call) ? result : -ESRCH;
}

int sp_path_take(const struct sp_act_call *call, int dirfd, const char *asked,
                 enum sp_last last, struct sp_path *ret_path)
{
    ret_path->dirfd = dirfd;
    snprintf(ret_path->asked, sizeof ret_path->asked, "%s", asked);
    bool elsewhere;
    int result = resolve(call, last, true, ret_path, &elsewhere);
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
