#include "supervise/lookups.h"

#include <stddef.h>

struct sp_lookup *sp_lookups_find(struct sp_lookups *lookups, pid_t tid)
{
    for (unsigned i = 0; i < SP_LOOKUPS_MAX; i++)
        if (lookups->items[i].tid == tid)
            return &lookups->items[i];
    return NULL;
}

struct sp_lookup *sp_lookups_note(struct sp_lookups *lookups, pid_t pid, pid_t tid)
{
    struct sp_lookup *known = sp_lookups_find(lookups, tid);
    if (known != NULL)
        return known;
    struct sp_lookup *free_one = sp_lookups_find(lookups, 0);
    if (free_one != NULL)
        *free_one = (struct sp_lookup){.tid = tid, .pid = pid};
    return free_one;
}
