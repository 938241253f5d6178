/* The positions of those events of a trace that answer a question. */
#ifndef SP_READ_SEARCH_H
#define SP_READ_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/functions.h"
#include "trace/fault.h"

struct sp_index;

/* What is left as it is in a zeroed question lets every event through, but for until_ns. Texts
 * are borrowed. */
struct sp_question {
    const struct sp_text *kinds; /* any of these; "return" too */
    size_t kinds_count;
    uint64_t from_ns;  /* t >= */
    uint64_t until_ns; /* t <; UINT64_MAX: no end */
    bool has_pid;
    int64_t pid;
    bool has_tid;
    int64_t tid;
    struct sp_text layer;
    struct sp_text text; /* stands in a text of the event, beside its kind and layer */
};

/* Ascending, in *ret_positions, which is the caller's to free. `within`: only these, ascending;
 * NULL: any. The index must be built; it is not changed, so that several threads may search it
 * at once. 0 or -1. */
int sp_search(const struct sp_index *x, const struct sp_question *question,
              const uint64_t *within, size_t within_count, uint64_t **ret_positions,
              size_t *ret_count, struct sp_fault *ret_fault);

#endif
