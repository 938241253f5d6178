#include "run/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "sys/erase.h"
#include "sys/real_path.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* How often a folder is made anew that somebody's sweep took away before it was locked. */
#define TRIES 16

static bool same_object(int fd, int at, const char *name)
{
    struct stat held;
    struct stat named;
    return fstat(fd, &held) == 0 &&
           fstatat(at, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* -1: it is gone, or somebody else holds it. A file system without such locks lets a run go on: a
 * sweep finds no lock to be had there either, and leaves the folder alone. */
static int open_locked(const char *path)
{
    sp_auto_fd fd = open(path, FOLDER);
    if (fd < 0 || (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
        !same_object(fd, AT_FDCWD, path))
        return -1;
    return sp_steal_fd(&fd);
}

int sp_private_folder_make(struct sp_private_folder *folder, struct sp_error *reterr)
{
    char name[PATH_MAX];
    const char *base = getenv("TMPDIR");
    struct stat st;
    if (base == NULL || base[0] != '/' || stat(base, &st) != 0 ||
        !S_ISDIR(st.st_mode) || access(base, W_OK | X_OK) != 0)
        base = "/tmp";
    folder->fd = -1;
    for (int i = 0; i < TRIES && folder->fd < 0; i++) {
        int n = snprintf(name, sizeof name, "%s/sandpit-tmp-XXXXXX", base);
        if (n < 0 || (size_t)n >= sizeof name || mkdtemp(name) == NULL)
            return sp_fail_errno(reterr, SP_E_HOST,
                                 "cannot make a private folder in '%.200s'", base);
        folder->fd = open_locked(name);
    }
    if (folder->fd >= 0 && sp_real_path(name, folder->path))
        return 0;
    (void)sp_fail_errno(reterr, SP_E_HOST, "cannot use the private folder '%.200s'",
                        name);
    rmdir(name);
    sp_close_fd(&folder->fd);
    folder->path[0] = '\0';
    return SP_E_HOST;
}

/* Where it is now: a guest that may write around it may have moved it. */
static void remove_empty(const struct sp_private_folder *folder)
{
    char link[40];
    char now[PATH_MAX];
    if (same_object(folder->fd, AT_FDCWD, folder->path)) {
        rmdir(folder->path);
        return;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder->fd);
    ssize_t n = readlink(link, now, sizeof now - 1);
    if (n <= 0)
        return;
    now[n] = '\0';
    if (same_object(folder->fd, AT_FDCWD, now))
        rmdir(now);
}

/* Nothing of the caller's but the folder: a pipe that stayed open would keep its reader waiting. */
static void let_go(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3 && null >= 0; i++)
        dup2(null, i);
    if (fd > 3)
        syscall(SYS_close_range, 3, fd - 1, 0);
    syscall(SYS_close_range, fd + 1, ~0u, 0);
    setsid();
}

static void go_on_alone(const struct sp_private_folder *folder)
{
    bool late;
    pid_t pid = fork();
    if (pid > 0)
        return;
    if (pid == 0)
        let_go(folder->fd);
    if (sp_erase_content(folder->fd, 0, &late))
        remove_empty(folder);
    if (pid == 0)
        _exit(0);
}

void sp_private_folder_remove(struct sp_private_folder *folder, uint64_t patience_ns)
{
    bool late;
    if (folder->path[0] == '\0' || folder->fd < 0)
        return;
    if (sp_erase_content(folder->fd, sp_clock_ns() + patience_ns, &late))
        remove_empty(folder);
    else if (late)
        go_on_alone(folder);
    sp_close_fd(&folder->fd);
    folder->path[0] = '\0';
}

/* ---- what crashes left -------------------------------------------------------------------- */

/* Names that nothing but sandpit gives: its programs' private folders, and where its Python package
 * keeps what belongs to runs. */
static bool is_ours(const char *name)
{
    static const char *const kinds[] = {"sandpit-tmp-", "sandpit-api-"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(name, kinds[i], n) != 0)
            continue;
        size_t random = strspn(name + n, "abcdefghijklmnopqrstuvwxyz"
                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        return name[n + random] == '\0' && (random == 6 || random == 8);
    }
    return false;
}

/* The lock of a folder that no run holds; -1: it is in use, or not ours. */
static int take_leftover(int base, const char *name)
{
    struct stat st;
    char link[40];
    sp_auto_fd place =
        openat(base, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place < 0 || fstat(place, &st) != 0 || st.st_uid != geteuid())
        return -1;
    sp_auto_fd fd = openat(place, ".", FOLDER);
    if (fd < 0 && errno == EACCES) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", place);
        if (chmod(link, 0700) == 0)
            fd = openat(place, ".", FOLDER);
    }
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || !same_object(fd, base, name))
        return -1;
    return sp_steal_fd(&fd);
}

bool sp_private_folder_sweep(const char *base, bool look_only,
                             void (*found)(void *context, const char *path,
                                           enum sp_leftover what),
                             void *context)
{
    int at = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = at >= 0 ? fdopendir(at) : NULL;
    const struct dirent *entry;
    if (folder == NULL && at >= 0)
        close(at);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char path[PATH_MAX];
        bool late;
        enum sp_leftover what = SP_LEFTOVER_FOUND;
        sp_auto_fd fd = is_ours(entry->d_name) ? take_leftover(at, entry->d_name) : -1;
        if (fd < 0)
            continue;
        if (!look_only)
            what = sp_erase_content(fd, 0, &late) &&
                           unlinkat(at, entry->d_name, AT_REMOVEDIR) == 0
                       ? SP_LEFTOVER_REMOVED
                       : SP_LEFTOVER_FAILED;
        snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        found(context, path, what);
    }
    if (folder != NULL)
        closedir(folder);
    return folder != NULL;
}
