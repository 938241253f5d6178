#include "sys/erase.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"

/* Each level on the way down holds a descriptor. What lies deeper is moved up to the top first, so
 * that neither the number of descriptors nor the stack depends on what the guest made. */
#define DEPTH_MAX 24

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct erasing {
    int top;
    uint64_t deadline_ns;
    uint64_t mark; /* in the names of what was moved: the guest could not know it */
    unsigned moved;
    unsigned seen;
    bool late;
    bool progress;
};

static bool is_late(struct erasing *e)
{
    if (e->deadline_ns != 0 && ++e->seen % 64 == 0)
        e->late = e->late || sp_clock_ns() >= e->deadline_ns;
    return e->late;
}

/* Its owner may always change a folder's mode, even one that shuts everybody out. */
static void open_up(int at, const char *name)
{
    char link[40];
    sp_auto_fd fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    chmod(link, 0700);
}

static int open_folder(int at, const char *name)
{
    int fd = openat(at, name, FOLDER);
    if (fd < 0 && errno == EACCES) {
        open_up(at, name);
        fd = openat(at, name, FOLDER);
    }
    if (fd >= 0)
        fchmod(fd, 0700);
    return fd;
}

static void clear_flags(int fd)
{
    const int fixed = FS_IMMUTABLE_FL | FS_APPEND_FL;
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 || (flags & fixed) == 0)
        return;
    flags &= ~fixed;
    ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* Root, which started a run, may take away the marks that keep a file from being removed. */
static void loosen(int at, const char *name)
{
    struct stat st;
    clear_flags(at);
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return;
    sp_auto_fd fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        clear_flags(fd);
}

static bool unlink_one(struct erasing *e, int at, const char *name, int flags)
{
    int result = unlinkat(at, name, flags);
    if (result != 0 && (errno == EPERM || errno == EACCES)) {
        loosen(at, name);
        result = unlinkat(at, name, flags);
    }
    e->progress = e->progress || result == 0;
    return result == 0;
}

/* To the top, under a name that is not taken. A folder can change its parent only where it may be
 * written to itself. */
static void lift(struct erasing *e, int at, const char *name)
{
    char to[48];
    open_up(at, name);
    snprintf(to, sizeof to, ".%016llx-%u", (unsigned long long)e->mark, e->moved++);
    if (renameat(at, name, e->top, to) == 0)
        e->progress = true;
}

static void erase_folder(struct erasing *e, int *fd, int depth);

static void erase_entry(struct erasing *e, int at, const struct dirent *entry,
                        int depth)
{
    const char *name = entry->d_name;
    bool maybe = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    if (entry->d_type != DT_DIR && unlink_one(e, at, name, 0))
        return;
    if (!maybe || unlink_one(e, at, name, AT_REMOVEDIR))
        return;
    if (depth == DEPTH_MAX) {
        lift(e, at, name);
        return;
    }
    int child = open_folder(at, name);
    if (child < 0)
        return;
    erase_folder(e, &child, depth + 1);
    unlink_one(e, at, name, AT_REMOVEDIR);
}

/* Takes the descriptor. */
static void erase_folder(struct erasing *e, int *fd, int depth)
{
    DIR *folder = fdopendir(*fd);
    if (folder == NULL) {
        sp_close_fd(fd);
        return;
    }
    const struct dirent *entry;
    while (!is_late(e) && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            erase_entry(e, dirfd(folder), entry, depth);
    closedir(folder);
    *fd = -1;
}

static bool is_empty(int fd)
{
    int again = openat(fd, ".", FOLDER);
    DIR *folder = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *entry;
    bool empty = folder != NULL;
    if (folder == NULL && again >= 0)
        close(again);
    while (empty && (entry = readdir(folder)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder != NULL)
        closedir(folder);
    return empty;
}

bool sp_erase_content(int fd, uint64_t deadline_ns, bool *ret_late)
{
    struct erasing e = {.top = fd, .deadline_ns = deadline_ns};
    if (getrandom(&e.mark, sizeof e.mark, GRND_NONBLOCK) != sizeof e.mark)
        e.mark = sp_clock_ns();
    fchmod(fd, 0700);
    /* What was moved to the top is there for the next round; a round that changes nothing is the
     * last. */
    do {
        int again = openat(fd, ".", FOLDER);
        e.progress = false;
        if (again >= 0)
            erase_folder(&e, &again, 0);
    } while (e.progress && !e.late && !is_empty(fd));
    *ret_late = e.late;
    return !e.late && is_empty(fd);
}
