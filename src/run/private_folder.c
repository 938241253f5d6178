#include "run/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

/* Deeper than any path: a guest can nest folders without end, by changing into them. Each level
 * holds a descriptor, so that beyond this what is deeper is first moved up. */
#define DEPTH_MAX 200

int sp_private_folder_make(char to[PATH_MAX], struct sp_error *reterr)
{
    char name[PATH_MAX];
    const char *base = getenv("TMPDIR");
    struct stat st;
    if (base == NULL || base[0] != '/' || stat(base, &st) != 0 ||
        !S_ISDIR(st.st_mode) || access(base, W_OK | X_OK) != 0)
        base = "/tmp";
    int n = snprintf(name, sizeof name, "%s/sandpit-XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof name || mkdtemp(name) == NULL)
        return sp_fail_errno(reterr, SP_E_HOST,
                             "cannot make a private folder in '%.200s'", base);
    if (realpath(name, to) == NULL) {
        rmdir(name);
        return sp_fail_errno(reterr, SP_E_HOST, "cannot find the private folder");
    }
    return 0;
}

static int open_folder(int at, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(at, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(at, name, 0700, 0) == 0)
        fd = openat(at, name, flags);
    if (fd >= 0)
        fchmod(fd, 0700);
    return fd;
}

/* Empties the folder; `top` is where folders that lie too deep are moved to. */
static void empty(int fd, int top, int depth)
{
    static unsigned moved;
    sp_auto_fd copy = dup(fd);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    if (folder == NULL)
        return;
    copy = -1;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[40];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        if (depth >= DEPTH_MAX) {
            snprintf(name, sizeof name, ".sandpit-deep-%u", moved++);
            if (renameat(fd, entry->d_name, top, name) == 0)
                continue;
        }
        sp_auto_fd child = open_folder(fd, entry->d_name);
        if (child >= 0)
            empty(child, top, depth + 1);
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(folder);
}

void sp_private_folder_remove(const char *path)
{
    /* Folders that were moved up on the way are there for the next round. */
    for (int round = 0; round < 64 && rmdir(path) != 0 && errno != ENOENT; round++) {
        sp_auto_fd fd = open_folder(AT_FDCWD, path);
        if (fd < 0)
            return;
        empty(fd, fd, 0);
    }
}
