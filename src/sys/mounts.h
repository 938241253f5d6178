/* Under which other names mounts show a file. */
#ifndef SP_SYS_MOUNTS_H
#define SP_SYS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Whether the file, known by its canonical path and by what it is, can be reached by another path
 * through a second mount of its file system or of a folder above it (a bind mount). */
bool sp_mounts_other_name(const char *path, dev_t device, ino_t inode,
                          char ret_path[PATH_MAX]);

#endif
