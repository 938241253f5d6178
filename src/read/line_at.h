/* A line of a trace by its place, and its head. */
#ifndef SP_READ_LINE_AT_H
#define SP_READ_LINE_AT_H

#include "read/line_parse.h"
#include "read/window.h"

/* The line at place->offset, as sp_window_line() gives it. 1; 0 at the end of the file; or -1
 * with *ret_fault. */
int sp_line_at(struct sp_window *w, const struct sp_line_place *place,
               const char **ret_line, size_t *ret_size, struct sp_head *ret_head,
               struct sp_fault *ret_fault);

#endif
