#include "trace/losses.h"

#include <stdio.h>
#include <string.h>

void sp_losses_add(struct sp_losses *l, uint64_t count, uint64_t calls,
                   const char *reason)
{
    if (count == 0)
        return;
    for (size_t i = 0; i < l->count; i++)
        if (strncmp(l->entries[i].reason, reason, SP_LOSS_REASON_MAX - 1) == 0) {
            l->entries[i].count += count;
            l->entries[i].calls += calls;
            return;
        }
    if (l->count == SP_LOSSES_MAX) {
        struct sp_loss *last = &l->entries[SP_LOSSES_MAX - 1];
        last->count += count;
        last->calls += calls;
        snprintf(last->reason, sizeof last->reason, "several");
        return;
    }
    struct sp_loss *new = &l->entries[l->count++];
    new->count = count;
    new->calls = calls;
    snprintf(new->reason, sizeof new->reason, "%s", reason);
}
