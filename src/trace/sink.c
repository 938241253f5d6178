#include "trace/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"

#define RESERVE_FIRST (64u << 10)
#define RESERVE_STEP  (1u << 20)
#define RETRY_NS      50000000u
/* A file system with so much left does not fill up before the run writes to it. */
#define PLENTY    (64u << 20)
#define NOT_KNOWN UINT64_MAX

int sp_sink_init(struct sp_sink *s, int fd, bool packed)
{
    char *buffer = NULL;
    struct sp_packer *packer = NULL;
    if (fd >= 0) {
        buffer = malloc(SP_SINK_CAPACITY);
        packer = packed && buffer != NULL ? sp_packer_new() : NULL;
        if (buffer == NULL || (packed && packer == NULL)) {
            free(buffer);
            return -1;
        }
    }
    *s = (struct sp_sink){.fd = fd, .buffer = buffer, .packer = packer};
    return 0;
}

void sp_sink_release(struct sp_sink *s)
{
    free(s->buffer);
    sp_packer_free(s->packer);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct sp_sink){.fd = -1};
}

static bool give_up(struct sp_sink *s, int err)
{
    s->full = true;
    s->err = err;
    s->tried_ns = sp_clock_ns();
    return false;
}

/* Sets blocks aside beyond the end of the file, which stays as long as it is. */
static bool set_aside(struct sp_sink *s, uint64_t up_to)
{
    const uint64_t step = s->reserved == 0 ? RESERVE_FIRST : RESERVE_STEP;
    const uint64_t sizes[] = {up_to - s->reserved + step, up_to - s->reserved};
    for (size_t i = 0; i < 2; i++) {
        int done;
        do
            done = fallocate(s->fd, FALLOC_FL_KEEP_SIZE, (off_t)s->reserved,
                             (off_t)sizes[i]);
        while (done < 0 && errno == EINTR);
        if (done == 0) {
            s->reserved += sizes[i];
            return true;
        }
        if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) {
            /* Not a file system that can: the writes themselves will tell. */
            s->reserved = NOT_KNOWN;
            return true;
        }
    }
    return false;
}

/* Whether blocks that were set aside are enough for the line and for what comes later. */
static bool has_blocks(const struct sp_sink *s, size_t size, size_t keep)
{
    return s->reserved != NOT_KNOWN && s->reserved >= sp_sink_stored(s) + size + keep;
}

/* Tries to get the disk to hold it. */
static bool make_room(struct sp_sink *s, size_t size, size_t keep)
{
    if (s->full && sp_clock_ns() - s->tried_ns < RETRY_NS)
        return false;
    if (s->full && s->reserved == NOT_KNOWN && !sp_sink_flush(s))
        return false;
    if (s->reserved != NOT_KNOWN && !set_aside(s, sp_sink_stored(s) + size + keep))
        return give_up(s, errno);
    s->full = false;
    return true;
}

bool sp_sink_room(struct sp_sink *s, size_t size, size_t keep)
{
    if (s->fd < 0 || has_blocks(s, size, keep))
        return true;
    /* Setting blocks aside and giving them back costs milliseconds, which a trace that is
     * written in one piece at the end is spared. */
    if (!s->full && s->reserved == 0 && sp_sink_stored(s) + size <= SP_SINK_BUFFER)
        return true;
    if (make_room(s, size, keep))
        return true;
    /* Blocks that there are hold the last lines, and no more than they hold is taken in. */
    bool blocks = s->reserved != 0 && s->reserved != NOT_KNOWN;
    return !blocks && s->used + size + keep <= SP_SINK_CAPACITY;
}

void sp_sink_guard(struct sp_sink *s)
{
    if (s->fd >= 0 && s->reserved == 0 && !s->full)
        (void)make_room(s, SP_SINK_BUFFER, SP_SINK_TAIL + SP_SINK_MARGIN);
}

bool sp_sink_begin(struct sp_sink *s)
{
    struct statvfs there;
    if (s->fd < 0 || fstatvfs(s->fd, &there) != 0 || there.f_blocks == 0 ||
        (uint64_t)there.f_bavail * there.f_frsize >= PLENTY)
        return true;
    sp_sink_guard(s);
    return !s->full;
}

/* Writes lines at the end of the file. Returns how many bytes are in it for good: all, or up
 * to the last whole line that fitted. */
static size_t write_lines(struct sp_sink *s, const char *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pwrite(s->fd, data + done, size - done, (off_t)(s->written + done));
        if (n > 0) {
            done += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        give_up(s, n < 0 ? errno : EIO);
        const char *newline = done == 0 ? NULL : memrchr(data, '\n', done);
        const size_t whole = newline == NULL ? 0 : (size_t)(newline - data) + 1;
        if (whole < done && ftruncate(s->fd, (off_t)(s->written + whole)) < 0)
            s->err = errno; /* the next attempt writes over the half line */
        done = whole;
        break;
    }
    s->written += done;
    s->text += done;
    return done;
}

/* A frame on its way into the file. */
struct frame {
    struct sp_sink *sink;
    uint64_t size; /* of it, so far */
};

static bool put_piece(void *context, const char *data, size_t size)
{
    struct frame *frame = context;
    while (size > 0) {
        const ssize_t n = pwrite(frame->sink->fd, data, size,
                                 (off_t)(frame->sink->written + frame->size));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return false;
        }
        data += n;
        size -= (size_t)n;
        frame->size += (uint64_t)n;
    }
    return true;
}

/* The same as one frame: all of it is in the file, or none. */
static size_t write_packed(struct sp_sink *s, const char *data, size_t size)
{
    struct frame frame = {.sink = s};
    if (!sp_packer_frame(s->packer, data, size, put_piece, &frame)) {
        give_up(s, errno);
        if (frame.size > 0 && ftruncate(s->fd, (off_t)s->written) < 0)
            s->err = errno; /* the next attempt writes over the half frame */
        return 0;
    }
    s->written += frame.size;
    s->text += size;
    return size;
}

static size_t store(struct sp_sink *s, const char *data, size_t size)
{
    return s->packer != NULL ? write_packed(s, data, size) : write_lines(s, data, size);
}

bool sp_sink_flush(struct sp_sink *s)
{
    if (s->used == 0)
        return true;
    const size_t done = store(s, s->buffer, s->used);
    s->used -= done;
    if (s->used == 0)
        return true;
    memmove(s->buffer, s->buffer + done, s->used);
    return false;
}

bool sp_sink_append(struct sp_sink *s, const char *line, size_t size)
{
    if (s->fd < 0) {
        s->written += size;
        s->text += size;
        return true;
    }
    if (s->used + size > SP_SINK_BUFFER && !sp_sink_flush(s) &&
        s->used + size > SP_SINK_CAPACITY)
        return false;
    if (size > SP_SINK_CAPACITY - s->used)
        return store(s, line, size) == size;
    memcpy(s->buffer + s->used, line, size);
    s->used += size;
    return true;
}

bool sp_sink_finish(struct sp_sink *s)
{
    if (!sp_sink_flush(s))
        return false;
    if (s->fd >= 0 && s->reserved != 0 && s->reserved != NOT_KNOWN &&
        ftruncate(s->fd, (off_t)s->written) < 0)
        s->err = errno; /* some blocks stay taken: no harm to the trace */
    return true;
}
