/* What is mounted here, and under which other names that shows a file. */
#ifndef SP_SYS_MOUNTS_H
#define SP_SYS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* A mount: what of its file system it shows, where, and of which type that is. */
struct sp_mount {
    char root[PATH_MAX];
    char place[PATH_MAX];
    char kind[32];
};

/* Calls `each` for one after the other, until it says true. 1: it did; 0: it never did; -1 where the
 * mounts cannot be read. */
int sp_mounts_each(bool (*each)(void *context, const struct sp_mount *mount),
                   void *context);

/* Whether the file, known by its canonical path and by what it is, can be reached by another path
 * through a second mount of its file system or of a folder above it (a bind mount). Where the mounts
 * cannot be read it is taken to be so. */
bool sp_mounts_other_name(const char *path, dev_t device, ino_t inode,
                          char ret_path[PATH_MAX]);

#endif
