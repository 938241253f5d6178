/* The text of a trace's file, whether it lies there as it is or compressed, which its first bytes
 * say and not its name.
 *
 * A compressed one is a row of Zstandard frames, each of which says how long its text is: at most
 * SP_CONTENT_FRAME_MAX. So a small file that unpacks to an endless one costs neither memory nor, up to
 * where it is given up, much time. A frame is unpacked and checked as a whole before any of it is
 * given out; one that the end of the file cuts off, as a killed run leaves it, counts as not there.
 */
#ifndef SP_TRACE_CONTENT_H
#define SP_TRACE_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/format.h"

#define SP_CONTENT_FRAME_MAX SP_TRACE_LINE_MAX

struct sp_unpacker;

struct sp_content {
    int fd; /* borrowed */
    bool known;
    struct sp_unpacker *unpacker; /* owned; NULL: the text lies there as it is */
    char head[4]; /* of a plain text, read to look at it, not given out yet */
    size_t head_size;
};

void sp_content_init(struct sp_content *c, int fd);
void sp_content_release(struct sp_content *c);

/* As read() and pread() of the text; the one moves the descriptor's position, the other does not.
 * A content is read by one of them only. -1 with errno: EBADMSG where a frame is damaged, EFBIG where
 * one is larger than any that sandpit writes, or does not say how large it is. */
ssize_t sp_content_read(struct sp_content *c, char *to, size_t size);
ssize_t sp_content_read_at(struct sp_content *c, char *to, size_t size,
                           uint64_t offset);

/* At the end: whether the file cuts a frame off there. */
bool sp_content_cut(const struct sp_content *c);

/* What to say of an errno of these. */
const char *sp_content_problem(int err);

#endif
