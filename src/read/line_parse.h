/* One line of a trace: its head, its values, and what a fault in it is. */
#ifndef SP_READ_LINE_PARSE_H
#define SP_READ_LINE_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "read/run_view.h"
#include "read/tape.h"
#include "trace/fault.h"
#include "trace/head.h"

/* Where the line stands, for faults. */
struct sp_line_place {
    uint64_t number; /* from 1 */
    uint64_t offset;
};

/* Both: `size` bytes, a newline behind them, then SP_LINES_PADDING readable ones. 0, or -1 with
 * *ret_fault. A line is its head and its values, or if it is a run, its head and its run. */
int sp_line_parse(const char *line, size_t size, const struct sp_line_place *place,
                  struct sp_tape *tape, struct sp_head *ret_head,
                  struct sp_fault *ret_fault);
int sp_line_parse_run(const char *line, size_t size, const struct sp_line_place *place,
                      const struct sp_head *head, struct sp_tape *tape,
                      struct sp_run_view *ret_run, struct sp_fault *ret_fault);

/* Whether the first line begins a trace of a format that is known here. 0 or -1. */
int sp_line_check_start(const struct sp_head *head, const struct sp_tape *tape,
                        struct sp_fault *ret_fault);

#endif
