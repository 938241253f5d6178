/* What could not be recorded and has not been told yet, by reason. */
#ifndef SP_TRACE_LOSSES_H
#define SP_TRACE_LOSSES_H

#include <stddef.h>
#include <stdint.h>

#define SP_LOSSES_MAX      12u /* further reasons are counted under the last one */
#define SP_LOSS_REASON_MAX 48u /* longer ones are cut */

struct sp_loss {
    uint64_t count;
    uint64_t calls; /* of the program that these events stood for, as far as known */
    char reason[SP_LOSS_REASON_MAX];
};

struct sp_losses {
    struct sp_loss entries[SP_LOSSES_MAX];
    size_t count; /* of entries in use */
};

void sp_losses_add(struct sp_losses *l, uint64_t count, uint64_t calls,
                   const char *reason);

#endif
