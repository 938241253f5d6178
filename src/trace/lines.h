/* Reading a trace's text in batches of whole lines, in bounded memory. */
#ifndef SP_TRACE_LINES_H
#define SP_TRACE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/content.h"

/* So many readable bytes follow each batch (parsers read ahead). */
#define SP_LINES_PADDING 64u

struct sp_lines {
    struct sp_content content;
    char *data;      /* owned */
    size_t capacity; /* without the padding */
    size_t start;    /* of what was not handed out yet */
    size_t end;
    uint64_t offset; /* in the text, of data[start] */
};

enum sp_lines_result {
    SP_LINES_MORE, /* a batch */
    SP_LINES_END, /* no more whole lines; what is left is a last line without newline */
    SP_LINES_TOO_LONG, /* a line longer than SP_TRACE_LINE_MAX */
    SP_LINES_ERROR, /* reading failed, or no memory: errno, see sp_content_problem() */
};

/* Opens a trace for reading: a regular file, not a folder, device or pipe; nothing blocks.
 * "-" is standard input, whatever that is. A descriptor, or -1 with errno (EISDIR, EINVAL for
 * what is no file). */
int sp_lines_open(const char *path);

void sp_lines_init(struct sp_lines *l, int fd);
void sp_lines_release(struct sp_lines *l);

/* The next batch: whole lines, each with its newline; valid until the next call. At the end,
 * what is left over. */
enum sp_lines_result sp_lines_read(struct sp_lines *l, const char **ret_data,
                                   size_t *ret_size);

#endif
