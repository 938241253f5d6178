#include "trace/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/format.h"

#define CAPACITY_FIRST (256u << 10)

int sp_lines_open(const char *path)
{
    if (strcmp(path, "-") == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    const int err = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    close(fd);
    errno = err;
    return -1;
}

void sp_lines_init(struct sp_lines *l, int fd)
{
    *l = (struct sp_lines){0};
    sp_content_init(&l->content, fd);
}

void sp_lines_release(struct sp_lines *l)
{
    free(l->data);
    sp_content_release(&l->content);
    *l = (struct sp_lines){.content.fd = -1};
}

/* Room for more bytes behind what is kept. */
static bool make_room(struct sp_lines *l)
{
    if (l->start > 0) {
        memmove(l->data, l->data + l->start, l->end - l->start);
        l->end -= l->start;
        l->start = 0;
    }
    if (l->end < l->capacity)
        return true;
    const size_t capacity = l->capacity == 0 ? CAPACITY_FIRST : l->capacity * 2;
    char *data = realloc(l->data, capacity + SP_LINES_PADDING);
    if (data == NULL) {
        errno = ENOMEM;
        return false;
    }
    memset(data + capacity, 0, SP_LINES_PADDING);
    l->data = data;
    l->capacity = capacity;
    return true;
}

/* Bytes read, 0 at the end, -1 with errno. */
static ssize_t fill(struct sp_lines *l)
{
    for (;;) {
        ssize_t n =
            sp_content_read(&l->content, l->data + l->end, l->capacity - l->end);
        if (n >= 0 || errno != EINTR)
            return n;
    }
}

static void hand_out(struct sp_lines *l, size_t size, const char **ret_data,
                     size_t *ret_size)
{
    *ret_data = l->data + l->start;
    *ret_size = size;
    l->start += size;
    l->offset += size;
}

enum sp_lines_result sp_lines_read(struct sp_lines *l, const char **ret_data,
                                   size_t *ret_size)
{
    for (;;) {
        if (l->end - l->start > SP_TRACE_LINE_MAX)
            return SP_LINES_TOO_LONG;
        if (!make_room(l))
            return SP_LINES_ERROR;
        const size_t before = l->end;
        const ssize_t n = fill(l);
        if (n < 0)
            return SP_LINES_ERROR;
        if (n == 0) {
            hand_out(l, l->end - l->start, ret_data, ret_size);
            return SP_LINES_END;
        }
        l->end += (size_t)n;
        const char *newline = memrchr(l->data + before, '\n', (size_t)n);
        if (newline != NULL) {
            hand_out(l, (size_t)(newline + 1 - (l->data + l->start)), ret_data,
                     ret_size);
            return SP_LINES_MORE;
        }
    }
}
