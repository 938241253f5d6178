#include "trace/content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#define INPUT_FIRST (256u << 10)
#define INPUT_MAX   (ZSTD_COMPRESSBOUND(SP_CONTENT_FRAME_MAX) + 1024)

/* The text between two marks is gone through from the first. */
#define MARK_BYTES (64u << 10)

struct mark {
    uint64_t text;
    uint64_t file;
};

struct sp_unpacker {
    bool by_offset;
    ZSTD_DCtx *context;
    /* packed bytes */
    char *input;
    size_t capacity;
    size_t start;
    size_t end;
    uint64_t input_offset; /* in the file, of input[start] */
    /* the frame in hand */
    char *text;
    size_t text_capacity;
    size_t text_size;
    size_t text_given;    /* by read() */
    uint64_t text_offset; /* of its first byte in the whole text */
    /* for read_at() */
    struct mark *marks;
    size_t marks_count;
    size_t marks_capacity;
};

/* A frame that lies in the input as a whole. */
struct frame {
    size_t packed;
    size_t text;
};

static bool is_packed(const char *head)
{
    uint32_t magic;
    memcpy(&magic, head, sizeof magic);
    return magic == ZSTD_MAGICNUMBER;
}

static void unpacker_free(struct sp_unpacker *u)
{
    if (u == NULL)
        return;
    ZSTD_freeDCtx(u->context);
    free(u->input);
    free(u->text);
    free(u->marks);
    free(u);
}

/* `head`, of `size` bytes, was read already. */
static int unpacker_new(struct sp_content *c, const char *head, size_t size,
                        bool by_offset)
{
    struct sp_unpacker *u = calloc(1, sizeof *u);
    if (u != NULL) {
        u->by_offset = by_offset;
        u->context = ZSTD_createDCtx();
        u->input = malloc(INPUT_FIRST);
        u->capacity = INPUT_FIRST;
    }
    if (u == NULL || u->context == NULL || u->input == NULL) {
        unpacker_free(u);
        errno = ENOMEM;
        return -1;
    }
    if (!by_offset) {
        memcpy(u->input, head, size);
        u->end = size;
    }
    c->unpacker = u;
    return 0;
}

/* ---- packed bytes --------------------------------------------------------------------------- */

static ssize_t get(const struct sp_content *c, char *to, size_t size, uint64_t offset)
{
    ssize_t n;
    do
        n = c->unpacker->by_offset ? pread(c->fd, to, size, (off_t)offset)
                                   : read(c->fd, to, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static int grow(struct sp_unpacker *u)
{
    const size_t capacity = u->capacity * 2 < INPUT_MAX ? u->capacity * 2 : INPUT_MAX;
    char *input = capacity > u->capacity ? realloc(u->input, capacity) : NULL;
    if (input == NULL) {
        errno = u->capacity < INPUT_MAX ? ENOMEM : EFBIG;
        return -1;
    }
    u->input = input;
    u->capacity = capacity;
    return 0;
}

/* More behind what the input holds. 1; 0 at the end of the file; -1. */
static int fill(const struct sp_content *c)
{
    struct sp_unpacker *u = c->unpacker;
    if (u->start > 0) {
        memmove(u->input, u->input + u->start, u->end - u->start);
        u->end -= u->start;
        u->start = 0;
    }
    if (u->end == u->capacity && grow(u) < 0)
        return -1;
    const ssize_t n =
        get(c, u->input + u->end, u->capacity - u->end, u->input_offset + u->end);
    if (n <= 0)
        return (int)n;
    u->end += (size_t)n;
    return 1;
}

static void skip(struct sp_unpacker *u, size_t size)
{
    u->start += size;
    u->input_offset += size;
}

/* ---- frames --------------------------------------------------------------------------------- */

/* What the frame says about itself. 1; 0 when more of it is needed; -1. */
static int look(const char *data, size_t size, struct frame *ret_frame)
{
    if (size < 4)
        return 0;
    if (!is_packed(data)) {
        errno = EBADMSG;
        return -1;
    }
    const size_t packed = ZSTD_findFrameCompressedSize(data, size);
    const unsigned long long text = ZSTD_getFrameContentSize(data, size);
    if (text == ZSTD_CONTENTSIZE_ERROR)
        return size < 18 ? 0 : (errno = EBADMSG, -1);
    if (text == ZSTD_CONTENTSIZE_UNKNOWN || text > SP_CONTENT_FRAME_MAX) {
        errno = EFBIG;
        return -1;
    }
    if (text == 0) { /* who hides something writes such */
        errno = EBADMSG;
        return -1;
    }
    if (ZSTD_isError(packed))
        return ZSTD_getErrorCode(packed) == ZSTD_error_srcSize_wrong
                   ? 0
                   : (errno = EBADMSG, -1);
    *ret_frame = (struct frame){.packed = packed, .text = (size_t)text};
    return 1;
}

/* The frame at the input's start. 1; 0 at the end, or where the file cuts one off; -1. */
static int next_frame(const struct sp_content *c, struct frame *ret_frame)
{
    struct sp_unpacker *u = c->unpacker;
    for (;;) {
        const int seen = look(u->input + u->start, u->end - u->start, ret_frame);
        if (seen != 0)
            return seen;
        const int more = fill(c);
        if (more <= 0)
            return more;
    }
}

/* Unpacks the frame at the input's start. */
static int unpack(struct sp_unpacker *u, const struct frame *frame)
{
    if (frame->text > u->text_capacity) {
        char *text = realloc(u->text, frame->text);
        if (text == NULL) {
            errno = ENOMEM;
            return -1;
        }
        u->text = text;
        u->text_capacity = frame->text;
    }
    const size_t n = ZSTD_decompressDCtx(u->context, u->text, frame->text,
                                         u->input + u->start, frame->packed);
    if (ZSTD_isError(n) || n != frame->text) {
        errno = EBADMSG;
        return -1;
    }
    u->text_size = n;
    u->text_given = 0;
    return 0;
}

/* Takes the next frame in hand. 1, 0 or -1. */
static int take_frame(const struct sp_content *c)
{
    struct sp_unpacker *u = c->unpacker;
    struct frame frame;
    const int got = next_frame(c, &frame);
    if (got <= 0)
        return got;
    u->text_offset += u->text_size;
    u->text_size = 0;
    if (unpack(u, &frame) < 0)
        return -1;
    skip(u, frame.packed);
    return 1;
}

/* ---- by offset ------------------------------------------------------------------------------ */

static void go_to(struct sp_unpacker *u, const struct mark *mark)
{
    u->start = u->end = 0;
    u->input_offset = mark->file;
    u->text_offset = mark->text;
    u->text_size = 0;
}

/* Puts down where frames begin, up to the first that lies beyond `offset`: they are not unpacked. */
static int add_mark(struct sp_unpacker *u)
{
    const struct mark mark = {u->text_offset, u->input_offset};
    const struct mark *last = u->marks_count > 0 ? &u->marks[u->marks_count - 1] : NULL;
    if (last != NULL && mark.text < last->text + MARK_BYTES)
        return 0;
    if (u->marks_count == u->marks_capacity) {
        const size_t capacity = u->marks_capacity == 0 ? 64 : u->marks_capacity * 2;
        struct mark *marks = realloc(u->marks, capacity * sizeof *marks);
        if (marks == NULL) {
            errno = ENOMEM;
            return -1;
        }
        u->marks = marks;
        u->marks_capacity = capacity;
    }
    u->marks[u->marks_count++] = mark;
    return 0;
}

/* The last mark that is not behind `offset`. */
static const struct mark *find_mark(const struct sp_unpacker *u, uint64_t offset)
{
    size_t low = 0;
    size_t high = u->marks_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (u->marks[middle].text <= offset)
            low = middle;
        else
            high = middle;
    }
    return &u->marks[low];
}

/* Takes the frame in hand that `offset` lies in. 1, 0 at the end, or -1. */
static int find_frame(const struct sp_content *c, uint64_t offset)
{
    struct sp_unpacker *u = c->unpacker;
    const bool ahead = u->text_size > 0 && offset >= u->text_offset;
    if (ahead && offset < u->text_offset + u->text_size)
        return 1;
    if (u->marks_count == 0 && add_mark(u) < 0)
        return -1;
    const struct mark *mark = find_mark(u, offset);
    if (!ahead || mark->text > u->text_offset + u->text_size)
        go_to(u, mark);
    for (;;) {
        struct frame frame;
        u->text_offset += u->text_size;
        u->text_size = 0;
        if (add_mark(u) < 0)
            return -1;
        const int got = next_frame(c, &frame);
        if (got <= 0)
            return got;
        if (offset < u->text_offset + frame.text) {
            const int result = unpack(u, &frame);
            skip(u, frame.packed);
            return result < 0 ? -1 : 1;
        }
        u->text_size = frame.text;
        skip(u, frame.packed);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sp_content_init(struct sp_content *c, int fd)
{
    *c = (struct sp_content){.fd = fd};
}

void sp_content_release(struct sp_content *c)
{
    unpacker_free(c->unpacker);
    *c = (struct sp_content){.fd = -1};
}

/* Looks at the first bytes. */
static int learn(struct sp_content *c, bool by_offset)
{
    char head[sizeof c->head];
    size_t size = 0;
    while (size < sizeof head) {
        const ssize_t n =
            by_offset ? pread(c->fd, head + size, sizeof head - size, (off_t)size)
                      : read(c->fd, head + size, sizeof head - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        size += (size_t)n;
    }
    if (size == sizeof head && is_packed(head)) {
        if (unpacker_new(c, head, size, by_offset) < 0)
            return -1;
    } else if (!by_offset) {
        memcpy(c->head, head, size);
        c->head_size = size;
    }
    c->known = true;
    return 0;
}

ssize_t sp_content_read(struct sp_content *c, char *to, size_t size)
{
    if (!c->known && learn(c, false) < 0)
        return -1;
    struct sp_unpacker *u = c->unpacker;
    if (u == NULL) {
        size_t n = c->head_size < size ? c->head_size : size;
        if (n == 0)
            return read(c->fd, to, size);
        memcpy(to, c->head, n);
        memmove(c->head, c->head + n, c->head_size - n);
        c->head_size -= n;
        return (ssize_t)n;
    }
    if (u->text_given == u->text_size) {
        const int got = take_frame(c);
        if (got <= 0)
            return got;
    }
    const size_t left = u->text_size - u->text_given;
    const size_t n = left < size ? left : size;
    memcpy(to, u->text + u->text_given, n);
    u->text_given += n;
    return (ssize_t)n;
}

ssize_t sp_content_read_at(struct sp_content *c, char *to, size_t size, uint64_t offset)
{
    if (!c->known && learn(c, true) < 0)
        return -1;
    struct sp_unpacker *u = c->unpacker;
    if (u == NULL)
        return pread(c->fd, to, size, (off_t)offset);
    const int got = find_frame(c, offset);
    if (got <= 0)
        return got;
    const size_t from = (size_t)(offset - u->text_offset);
    const size_t left = u->text_size - from;
    const size_t n = left < size ? left : size;
    memcpy(to, u->text + from, n);
    return (ssize_t)n;
}

bool sp_content_cut(const struct sp_content *c)
{
    return c->unpacker != NULL && c->unpacker->end > c->unpacker->start;
}

const char *sp_content_problem(int err)
{
    if (err == EBADMSG)
        return "the compressed data is damaged from here on";
    if (err == EFBIG)
        return "a compressed frame larger than any that sandpit writes (unpack the "
               "file "
               "with zstd -d)";
    return strerror(err);
}
