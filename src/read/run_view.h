/* A `run` line taken apart: its calls and returns by position. */
#ifndef SP_READ_RUN_VIEW_H
#define SP_READ_RUN_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct sp_tape;

struct sp_run_view {
    uint32_t count;
    int32_t ids[SP_TRACE_RUN_MAX];   /* negative: a return */
    uint64_t t_ns[SP_TRACE_RUN_MAX]; /* each one's own time */
    uint8_t flags[SP_TRACE_RUN_MAX]; /* SP_RUN_* */
};

#define SP_RUN_RAISED  1u /* a return by exception */
#define SP_RUN_RESUMED 2u /* a generator's resume, or for a return its yield */

/* From a line as our writer writes it: what is behind the head, up to the end of the line (a
 * newline follows). `t_ns`: of the line. False: it has any other form, which may still be a
 * good one. This is five times as fast as the general way. */
bool sp_run_view_scan(struct sp_run_view *v, const char *text, size_t size,
                      uint64_t t_ns);

/* From a line's values. False: a run that is not what the format says. */
bool sp_run_view_read(struct sp_run_view *v, const struct sp_tape *tape, uint64_t t_ns);

#endif
