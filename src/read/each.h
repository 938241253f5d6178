/* Going through the events of a trace whose index was built, all or some of them. */
#ifndef SP_READ_EACH_H
#define SP_READ_EACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/read_event.h"
#include "trace/fault.h"

struct sp_index;

struct sp_each {
    const uint64_t *within; /* ascending positions; NULL: all */
    size_t within_count;
    const bool *kinds; /* by enum sp_kind and SP_READ_RETURN; NULL: all */
    /* 0, or -1 with *ret_fault, which ends it. */
    int (*take)(void *to, const struct sp_read_event *event,
                struct sp_fault *ret_fault);
    void *to;
};

/* Calls `take` for each event, in order. Changes nothing of the index: several threads may do
 * this at once. 0 or -1. */
int sp_each(const struct sp_index *x, const struct sp_each *each,
            struct sp_fault *ret_fault);

#endif
