#include "cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"

#define TRIES 100u /* names that others may have taken */

static int failed(const char *path)
{
    sp_cli_error(0, "cannot write '%s': %m", path);
    return -1;
}

/* Where the file goes: the end of the links that `path` may be. False: with errno. */
static bool settle_path(const char *path, char *ret_path)
{
    if (realpath(path, ret_path) != NULL)
        return true;
    if (errno != ENOENT || strlen(path) >= PATH_MAX)
        return false;
    memcpy(ret_path, path, strlen(path) + 1);
    return true;
}

static void name_aside(struct sp_new_file *f, unsigned i)
{
    const char *slash = strrchr(f->path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - f->path) + 1;
    const int n = snprintf(f->aside, sizeof f->aside, "%.*s.sandpit-%ld-%u", folder,
                           f->path, (long)getpid(), i);
    if (n < 0 || (size_t)n >= sizeof f->aside)
        f->aside[0] = '\0';
}

/* A file without a name is gone whatever ends us. */
static int open_unnamed(struct sp_new_file *f)
{
    char folder[PATH_MAX];
    memcpy(folder, f->path, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        memcpy(folder, ".", 2);
    else
        slash[slash == folder ? 1 : 0] = '\0';
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

static int open_aside(struct sp_new_file *f)
{
    f->fd = open_unnamed(f);
    if (f->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
        return failed(f->path);
    for (unsigned i = 0; i < TRIES; i++) {
        name_aside(f, i);
        f->fd = open(f->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    f->aside[0] = '\0';
    return failed(f->path);
}

static bool is_same(const struct stat *a, int other)
{
    struct stat b;
    return other >= 0 && fstat(other, &b) == 0 && a->st_dev == b.st_dev &&
           a->st_ino == b.st_ino && S_ISREG(a->st_mode);
}

static int open_stdout(struct sp_new_file *f)
{
    f->fd = STDOUT_FILENO;
    f->in_place = true;
    return 0;
}

int sp_new_file_open(const char *path, int other, struct sp_new_file *ret_file)
{
    struct stat st;
    *ret_file = (struct sp_new_file){.fd = -1};
    if (path == NULL || strcmp(path, "-") == 0)
        return open_stdout(ret_file);
    if (!settle_path(path, ret_file->path))
        return failed(path);
    if (stat(ret_file->path, &st) == 0) {
        if (is_same(&st, other)) {
            sp_cli_error(0, "'%s' is the trace itself: it is not overwritten", path);
            return -1;
        }
        if (!S_ISREG(st.st_mode)) {
            ret_file->in_place = true;
            ret_file->fd = open(ret_file->path, O_WRONLY | O_CLOEXEC);
            return ret_file->fd < 0 ? failed(path) : 0;
        }
    }
    return open_aside(ret_file);
}

/* Gives an unnamed file a name beside its own. */
static int name_it(struct sp_new_file *f)
{
    char self[64];
    if (f->aside[0] != '\0')
        return 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    for (unsigned i = 0; i < TRIES; i++) {
        name_aside(f, i);
        if (linkat(AT_FDCWD, self, AT_FDCWD, f->aside, AT_SYMLINK_FOLLOW) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    f->aside[0] = '\0';
    return -1;
}

int sp_new_file_close(struct sp_new_file *f, bool keep)
{
    int result = 0;
    if (f->in_place) {
        if (f->fd != STDOUT_FILENO && close(f->fd) < 0)
            result = failed(f->path);
        f->fd = -1;
        return keep ? result : 0;
    }
    if (keep && (name_it(f) < 0 || rename(f->aside, f->path) < 0))
        result = failed(f->path);
    else if (keep)
        f->aside[0] = '\0'; /* it has its name */
    if (f->aside[0] != '\0')
        unlink(f->aside);
    if (close(f->fd) < 0 && keep && result == 0)
        result = failed(f->path);
    f->fd = -1;
    return result;
}
