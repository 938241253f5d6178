/* What the processes of a tree have in common, each part counted once. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/guest.h"
#include "sys/usage.h"

#define NAMELESS_MAX    1024u
#define BLOCK           512u
#define TMPFS_MAGIC     0x01021994
#define HUGETLBFS_MAGIC 0x958458f6

/* ---- shares -------------------------------------------------------------------------------- */

static uint64_t kib_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) * 1024u : 0;
}

static struct sp_usage_memory share_of(const struct sp_usage_process *p)
{
    char name[64];
    char text[2048];
    snprintf(name, sizeof name, "/proc/%d/smaps_rollup", p->pid);
    sp_auto_fd fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0) /* it hides: it counts in full */
        return (struct sp_usage_memory){.own = p->resident};
    text[n] = '\0';
    struct sp_usage_memory share = {.own = kib_after(text, "\nSwapPss:")};
    /* COMPAT(kernel 5.4): of which kind it is, is not told. */
    bool told = strstr(text, "\nPss_Anon:") != NULL;
    share.own += kib_after(text, told ? "\nPss_Anon:" : "\nPss:");
    share.shared = told ? kib_after(text, "\nPss_Shmem:") : 0;
    return share;
}

struct sp_usage_memory sp_usage_memory(const struct sp_usage *usage)
{
    struct sp_usage_memory sum = {0};
    for (const struct sp_usage_process *p = usage->all; p != NULL; p = p->next) {
        struct sp_usage_memory share = share_of(p);
        sum.own += share.own;
        sum.shared += share.shared;
    }
    return sum;
}

/* ---- files without a name ------------------------------------------------------------------- */

struct nameless {
    uint64_t device[NAMELESS_MAX];
    uint64_t inode[NAMELESS_MAX];
    unsigned count;
};

static bool first_time(struct nameless *known, const struct stat *st)
{
    for (unsigned i = 0; i < known->count; i++)
        if (known->inode[i] == st->st_ino && known->device[i] == st->st_dev)
            return false;
    if (known->count < NAMELESS_MAX) {
        known->device[known->count] = st->st_dev;
        known->inode[known->count++] = st->st_ino;
    }
    return true;
}

static bool in_memory(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* It lies in no folder, and never did. */
static bool is_memory_only(const char *link)
{
    char path[PATH_MAX];
    return !sp_guest_link_path(link, path) || path[0] != '/';
}

/* What lies in a file system in memory is both, as it is while it has a name. */
static void add_nameless(const struct sp_usage_process *p, struct nameless *known,
                         uint64_t *memory, uint64_t *disk)
{
    char name[300];
    snprintf(name, sizeof name, "/proc/%d/fd", p->pid);
    DIR *files = opendir(name);
    if (files == NULL)
        return;
    for (struct dirent *e = readdir(files); e != NULL; e = readdir(files)) {
        struct stat st;
        snprintf(name, sizeof name, "/proc/%d/fd/%s", p->pid, e->d_name);
        if (e->d_name[0] == '.' || stat(name, &st) != 0 || !S_ISREG(st.st_mode) ||
            st.st_nlink != 0 || st.st_blocks == 0 || !first_time(known, &st))
            continue;
        uint64_t bytes = (uint64_t)st.st_blocks * BLOCK;
        bool held = in_memory(name);
        *memory += held ? bytes : 0;
        *disk += held && is_memory_only(name) ? 0 : bytes;
    }
    closedir(files);
}

void sp_usage_nameless(const struct sp_usage *usage, uint64_t *ret_memory,
                       uint64_t *ret_disk)
{
    static struct nameless known;
    known.count = 0;
    *ret_memory = 0;
    *ret_disk = 0;
    for (const struct sp_usage_process *p = usage->all; p != NULL; p = p->next)
        add_nameless(p, &known, ret_memory, ret_disk);
}
