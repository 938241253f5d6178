#include "run/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/real_path.h"

static const char *const other_places[] = {"/var/tmp", "/dev/shm", "/tmp"};
#define PLACES (sizeof other_places / sizeof *other_places)

static int open_folder(const char *path, struct sp_trace_file *file,
                       struct sp_error *reterr)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int length = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    if (name[0] == '\0' || strlen(name) > NAME_MAX - 24 || strlen(path) >= PATH_MAX)
        return sp_fail(reterr, SP_E_TRACE, "'%.200s' is no name for a trace", path);
    snprintf(folder, sizeof folder, "%.*s", length, slash == NULL ? "." : path);
    snprintf(file->name, sizeof file->name, "%s", name);
    file->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (file->folder < 0)
        return sp_fail_errno(reterr, SP_E_TRACE, "cannot write the trace '%.200s'",
                             path);
    char real[PATH_MAX];
    if (!sp_real_path(folder, real))
        return sp_fail_errno(reterr, SP_E_TRACE, "cannot write the trace '%.200s'",
                             path);
    if (snprintf(file->path, sizeof file->path, "%s%s%s", real,
                 strcmp(real, "/") == 0 ? "" : "/", name) >= PATH_MAX)
        return sp_fail(reterr, SP_E_TRACE, "the trace's path is too long");
    return 0;
}

/* Whether a file can be made beside `name`, by making one: permission bits do not tell it of
 * every file system. */
static bool can_create(int folder, const char *name)
{
    char fresh[NAME_MAX + 1];
    snprintf(fresh, sizeof fresh, "%.200s.%d", name, (int)getpid());
    sp_auto_fd fd =
        openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && unlinkat(folder, fresh, 0) == 0;
}

int sp_trace_file_open(const char *path, struct sp_trace_file *ret_file,
                       struct sp_error *reterr)
{
    struct sp_trace_file file = {.fd = -1, .folder = -1};
    int code = open_folder(path, &file, reterr);
    struct stat st;
    if (code == 0 && fstatat(file.folder, file.name, &st, 0) == 0 &&
        !S_ISREG(st.st_mode))
        code = sp_fail(reterr, SP_E_TRACE, "cannot write the trace '%.200s': it is %s",
                       path, S_ISDIR(st.st_mode) ? "a folder" : "no regular file");
    if (code == 0) {
        file.fd = openat(file.folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
        bool lacking = file.fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR ||
                                       errno == EINVAL || errno == ENOENT);
        if (lacking && can_create(file.folder, file.name)) {
            for (size_t i = 0; i < PLACES && file.fd < 0; i++)
                file.fd = open(other_places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
            file.elsewhere = true;
        }
        if (file.fd < 0)
            code = sp_fail_errno(reterr, SP_E_TRACE, "cannot write the trace '%.200s'",
                                 path);
    }
    if (code != 0) {
        sp_trace_file_release(&file);
        return code;
    }
    *ret_file = file;
    return 0;
}

static int link_at(int fd, int folder, const char *name)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW);
}

static int copy_at(int fd, int folder, const char *name)
{
    sp_auto_fd to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct stat st;
    if (to < 0 || fstat(fd, &st) != 0)
        return -1;
    off_t at = 0;
    while (at < st.st_size)
        if (sendfile(to, fd, &at, (size_t)(st.st_size - at)) <= 0)
            return -1;
    return 0;
}

/* What stands under the name changes places with ours and is removed: an older trace. What
 * cannot be removed like a file, a folder that the guest made, is moved aside. Unlike a rename
 * over it, the exchange does not make the file system write ours to the disk first. */
static int swap_in(int folder, const char *fresh, const char *name)
{
    if (renameat2(folder, fresh, folder, name, RENAME_EXCHANGE) != 0)
        return errno == EINVAL || errno == ENOSYS
                   ? renameat(folder, fresh, folder, name)
                   : -1;
    if (unlinkat(folder, fresh, 0) == 0)
        return 0;
    char aside[NAME_MAX + 1];
    snprintf(aside, sizeof aside, "%.200s.moved-%d", name, (int)getpid());
    return renameat(folder, fresh, folder, aside);
}

static int put(const struct sp_trace_file *file, int folder, const char *name,
               bool copy)
{
    return copy ? copy_at(file->fd, folder, name) : link_at(file->fd, folder, name);
}

static int place(const struct sp_trace_file *file, int folder, bool copy)
{
    char fresh[NAME_MAX + 1];
    int result = put(file, folder, file->name, copy);
    if (result == 0 || errno != EEXIST)
        return result;
    for (int i = 0; i < 100 && result != 0; i++) {
        snprintf(fresh, sizeof fresh, "%.200s.%d-%d", file->name, (int)getpid(), i);
        result = put(file, folder, fresh, copy);
        if (result != 0 && errno != EEXIST)
            return -1;
    }
    if (result != 0 || swap_in(folder, fresh, file->name) == 0)
        return result;
    int err = errno;
    unlinkat(folder, fresh, 0);
    errno = err;
    return -1;
}

/* Whether the name that was asked for leads to the trace. The program may have moved the folder
 * away and made another in its place, with a trace of its own invention. */
static bool stands_there(const struct sp_trace_file *file)
{
    struct stat placed;
    struct stat named;
    return fstatat(file->folder, file->name, &placed, AT_SYMLINK_NOFOLLOW) == 0 &&
           lstat(file->path, &named) == 0 && placed.st_dev == named.st_dev &&
           placed.st_ino == named.st_ino;
}

static int moved(struct sp_trace_file *file, struct sp_error *reterr)
{
    char self[40];
    char folder[PATH_MAX];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->folder);
    ssize_t n = readlink(self, folder, sizeof folder - 1);
    folder[n > 0 ? n : 0] = '\0';
    if ((size_t)snprintf(file->path, sizeof file->path, "%s/%s", folder, file->name) >=
        sizeof file->path)
        snprintf(file->path, sizeof file->path, "%.255s", file->name);
    return sp_fail(reterr, SP_E_TRACE,
                   "the program moved the trace's folder: the trace is '%.300s'",
                   file->path);
}

bool sp_trace_file_may_publish(const struct sp_trace_file *file)
{
    return faccessat(file->folder, ".", W_OK | X_OK, AT_EACCESS) == 0 ||
           errno != EACCES;
}

int sp_trace_file_publish(struct sp_trace_file *file, struct sp_error *reterr)
{
    struct stat st;
    if (place(file, file->folder, file->elsewhere) == 0)
        return stands_there(file) ? 0 : moved(file, reterr);
    bool taken = lstat(file->path, &st) == 0;
    (void)sp_fail_errno(reterr, SP_E_TRACE, "cannot write the trace '%.200s'",
                        file->path);
    for (size_t i = 0; i < PLACES; i++) {
        sp_auto_fd folder = open(other_places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 || place(file, folder, true) != 0)
            continue;
        snprintf(file->path, sizeof file->path, "%s/%s", other_places[i], file->name);
        /* What stands under the name that was asked for is no trace of this run. */
        file->displaced = !taken;
        if (!taken)
            return 0;
        return sp_fail(reterr, SP_E_TRACE,
                       "the trace could not be put in its place: it is '%.300s'",
                       file->path);
    }
    return SP_E_TRACE;
}

void sp_trace_file_release(struct sp_trace_file *file)
{
    sp_close_fd(&file->fd);
    sp_close_fd(&file->folder);
}
