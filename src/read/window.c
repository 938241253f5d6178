#include "read/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/format.h"
#include "trace/lines.h"

#define CAPACITY_FIRST (256u << 10)

void sp_window_init(struct sp_window *w, int fd)
{
    *w = (struct sp_window){0};
    sp_content_init(&w->content, fd);
}

void sp_window_release(struct sp_window *w)
{
    free(w->data);
    sp_content_release(&w->content);
    *w = (struct sp_window){.content.fd = -1};
}

static int resize(struct sp_window *w, size_t capacity)
{
    char *data = realloc(w->data, capacity + SP_LINES_PADDING);
    if (data == NULL) {
        errno = ENOMEM;
        return -1;
    }
    w->data = data;
    w->capacity = capacity;
    return 0;
}

/* Fills the window from `offset` on. */
static int load(struct sp_window *w, uint64_t offset)
{
    if (w->capacity == 0 && resize(w, CAPACITY_FIRST) < 0)
        return -1;
    w->offset = offset;
    w->size = 0;
    w->err = 0;
    while (w->size < w->capacity) {
        const ssize_t n = sp_content_read_at(&w->content, w->data + w->size,
                                             w->capacity - w->size, offset + w->size);
        if (n < 0 && errno == EINTR)
            continue;
        /* What comes before a damaged place is as good as ever. */
        if (n < 0)
            w->err = errno;
        if (n <= 0)
            break;
        w->size += (size_t)n;
    }
    memset(w->data + w->size, 0, SP_LINES_PADDING);
    return 0;
}

static const char *find_newline(const struct sp_window *w, size_t from)
{
    return memchr(w->data + from, '\n', w->size - from);
}

enum sp_window_result sp_window_line(struct sp_window *w, uint64_t offset,
                                     const char **ret_line, size_t *ret_size)
{
    size_t from = 0;
    const char *newline = NULL;
    if (offset >= w->offset && offset - w->offset < w->size) {
        from = (size_t)(offset - w->offset);
        newline = find_newline(w, from);
    }
    while (newline == NULL) {
        /* Twice the room when all of it was not enough for this one line. */
        if (from == 0 && w->offset == offset && w->size == w->capacity && w->size > 0) {
            if (w->capacity > SP_TRACE_LINE_MAX)
                return SP_WINDOW_TOO_LONG;
            if (resize(w, w->capacity * 2) < 0)
                return SP_WINDOW_ERROR;
        }
        if (load(w, offset) < 0)
            return SP_WINDOW_ERROR;
        from = 0;
        newline = find_newline(w, from);
        if (newline == NULL && w->err != 0) {
            errno = w->err;
            return SP_WINDOW_ERROR;
        }
        if (newline == NULL && w->size < w->capacity)
            return SP_WINDOW_END;
    }
    *ret_line = w->data + from;
    *ret_size = (size_t)(newline - *ret_line);
    return SP_WINDOW_LINE;
}
