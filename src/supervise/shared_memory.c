#include "supervise/shared_memory.h"

#include <errno.h>
#include <string.h>

#include "policy/policy.h"

bool sp_shared_memory_named(const char *path)
{
    static const char folder[] = SP_SHARED_MEMORY_FOLDER "/";
    return strncmp(path, folder, sizeof folder - 1) == 0 &&
           strchr(path + sizeof folder - 1, '/') == NULL;
}

bool sp_shared_memory_use(const char *operation)
{
    static const char *const uses[] = {"create", "read",  "write", "truncate", "link",
                                       "remove", "chmod", "chown", "utime"};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (strcmp(operation, uses[i]) == 0)
            return true;
    return false;
}

void sp_shared_memory_add(struct sp_shared_memory *memory, const struct stat *st)
{
    unsigned at = memory->made++ % SP_SHARED_MEMORY_MAX;
    memory->items[at].device = st->st_dev;
    memory->items[at].inode = st->st_ino;
}

bool sp_shared_memory_has(const struct sp_shared_memory *memory, const struct stat *st)
{
    unsigned count =
        memory->made < SP_SHARED_MEMORY_MAX ? memory->made : SP_SHARED_MEMORY_MAX;
    for (unsigned i = 0; i < count; i++)
        if (memory->items[i].device == st->st_dev &&
            memory->items[i].inode == st->st_ino)
            return true;
    return false;
}

bool sp_shared_memory_own(const struct sp_shared_memory *memory, const char *operation,
                          const char *path)
{
    struct stat st;
    if (!sp_shared_memory_named(path))
        return false;
    if (lstat(path, &st) == 0)
        return sp_shared_memory_has(memory, &st);
    return errno == ENOENT && strcmp(operation, "remove") != 0;
}
