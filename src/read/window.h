/* Lines of a trace's text by their offset, through a window of bounded size; the descriptor's own
 * position is not touched. */
#ifndef SP_READ_WINDOW_H
#define SP_READ_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "trace/content.h"

struct sp_window {
    struct sp_content content;
    char *data;      /* owned */
    size_t capacity; /* without padding */
    size_t size;
    uint64_t offset; /* in the text, of data[0] */
    int err;         /* why there is no more of it, 0: it ends there, or goes on */
};

enum sp_window_result {
    SP_WINDOW_LINE,
    SP_WINDOW_END,      /* nothing, or half a line, is left */
    SP_WINDOW_TOO_LONG, /* a line longer than SP_TRACE_LINE_MAX */
    SP_WINDOW_ERROR,    /* errno, see sp_content_problem() */
};

void sp_window_init(struct sp_window *w, int fd);
void sp_window_release(struct sp_window *w);

/* The line that begins at `offset`, without its newline, which follows it, and then
 * SP_LINES_PADDING readable bytes. Valid until the next call. */
enum sp_window_result sp_window_line(struct sp_window *w, uint64_t offset,
                                     const char **ret_line, size_t *ret_size);

#endif
