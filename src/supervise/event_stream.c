#include "supervise/event_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/scope.h"
#include "event/event.h"
#include "sys/watchdog.h"
#include "trace/head.h"

#define CAPACITY_FIRST                                                                 \
    (64u << 10) /* doubled up to 16 MiB: moving what waits stays cheap */
#define CAPACITY_KEPT                                                                  \
    (1u << 20)                  /* what grew beyond it is given back once it is empty */
#define PUSH_BYTES  (64u << 10) /* so much does not wait for its time */
#define PIECE_BYTES 4096u       /* PIPE_BUF: goes into a pipe in one piece */
#define RETRY_NS    1000000u
#define LOST_BYTES  256u
#define STALL_NS    UINT64_C(5000000000) /* for a reader that takes nothing at the end */
#define LOOK_MS     20

/* ---- the descriptor --------------------------------------------------------------------- */

static int refuse(int fd, const char *why, struct sp_error *reterr)
{
    return sp_fail(reterr, SP_E_USAGE, "--events %d: %s", fd, why);
}

/* A description of our own of the same pipe; else -1, as where another user made it. */
static int open_again(int fd)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open(link, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static int choose_way(struct sp_event_stream *s, int fd, struct sp_error *reterr)
{
    struct stat st;
    int type = 0;
    socklen_t size = sizeof type;
    if (fstat(fd, &st) != 0)
        return refuse(fd, strerror(errno), reterr);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK:
        s->way = SP_EVENT_WAY_FILE;
        return 0;
    case S_IFIFO:
        s->way = SP_EVENT_WAY_PIPE;
        return 0;
    case S_IFCHR:
        s->way = SP_EVENT_WAY_ASK;
        return 0;
    case S_IFSOCK:
        s->way = SP_EVENT_WAY_SOCKET;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
            type == SOCK_STREAM)
            return 0;
        return refuse(fd, "not a stream socket", reterr);
    default:
        return refuse(fd, "neither a file, a pipe, a socket nor a terminal", reterr);
    }
}

int sp_event_stream_open(struct sp_event_stream *s, int fd, struct sp_error *reterr)
{
    const int flags = fcntl(fd, F_GETFL);
    *s = (struct sp_event_stream){.fd = -1, .epoll = -1};
    if (flags < 0)
        return refuse(fd, "no such descriptor is open", reterr);
    if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0)
        return refuse(fd, "the descriptor is not open for writing", reterr);
    int code = choose_way(s, fd, reterr);
    if (code != 0)
        return code;
    if (s->way == SP_EVENT_WAY_PIPE && (s->fd = open_again(fd)) < 0)
        s->way = SP_EVENT_WAY_ASK;
    if (s->fd < 0)
        s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (s->fd < 0)
        return sp_fail_errno(reterr, SP_E_HOST, "--events %d", fd);
    /* A copy that stayed open would keep the reader from its end. */
    if (fd > 2)
        close(fd);
    s->asked = true;
    return 0;
}

void sp_event_stream_close(struct sp_event_stream *s)
{
    sp_event_stream_watch(s, -1);
    sp_close_fd(&s->fd);
    free(s->data);
    s->data = NULL;
    s->start = s->size = s->capacity = 0;
}

static void give_up(struct sp_event_stream *s, int err)
{
    if (err != EPIPE && err != ECONNRESET)
        s->failed = err;
    sp_event_stream_close(s);
}

/* ---- what waits -------------------------------------------------------------------------- */

static bool make_room(struct sp_event_stream *s, size_t size)
{
    if (s->start + s->size + size <= s->capacity)
        return true;
    if (s->start > 0) {
        memmove(s->data, s->data + s->start, s->size);
        s->start = 0;
    }
    size_t capacity = s->capacity > 0 ? s->capacity : CAPACITY_FIRST;
    while (capacity < s->size + size)
        capacity *= 2;
    if (capacity == s->capacity)
        return true;
    char *data = realloc(s->data, capacity);
    if (data == NULL)
        return false;
    s->data = data;
    s->capacity = capacity;
    return true;
}

static void drop(struct sp_event_stream *s, const struct sp_head *head)
{
    s->dropped += head->count;
    s->lost += head->count;
    s->dropped_seq = head->seq + head->count;
    s->dropped_t_ns = head->t_ns;
}

/* The line that stands for those that were dropped: it has the number of the last of them. */
static void tell_dropped(struct sp_event_stream *s)
{
    char text[LOST_BYTES];
    struct sp_buffer b;
    const uint64_t missing = s->dropped_seq - 1 - s->next_seq;
    sp_buffer_init(&b, sizeof text);
    sp_buffer_format(
        &b,
        "{\"seq\":%llu,\"t\":%llu,\"kind\":\"%s\",\"layer\":\"%s\",\"pid\":0,"
        "\"tid\":0,\"count\":%llu,\"reason\":\"slow-reader\"",
        (unsigned long long)(s->dropped_seq - 1), (unsigned long long)s->dropped_t_ns,
        sp_kind_name(SP_KIND_LOST), sp_layer_name(SP_LAYER_SUPERVISOR),
        (unsigned long long)s->dropped);
    if (missing > 0) {
        sp_json_key(&b, "missing");
        sp_json_uint(&b, missing);
    }
    sp_buffer_append(&b, "}\n", 2);
    if (!b.failed && b.size <= LOST_BYTES) {
        memcpy(s->data + s->start + s->size, b.data, b.size);
        s->size += b.size;
    }
    sp_buffer_release(&b);
    s->next_seq = s->dropped_seq;
    s->dropped = 0;
}

/* Whether a line may come in: the last one always finds the room that others leave; after a loss
 * there must be room for more than the next, or every other line would be one that tells of it. */
static bool has_room(const struct sp_event_stream *s, const struct sp_head *head,
                     size_t size)
{
    const size_t margin = PUSH_BYTES;
    if (head->kind == SP_KIND_END)
        return s->size + size + LOST_BYTES <= SP_EVENT_STREAM_BYTES;
    if (s->dropped > 0 && s->size > SP_EVENT_STREAM_BYTES / 2)
        return false;
    return s->size + size + LOST_BYTES + margin <= SP_EVENT_STREAM_BYTES;
}

void sp_event_stream_add(struct sp_event_stream *s, const char *line, size_t size)
{
    struct sp_head head;
    size_t bad;
    if (s->fd < 0 || !sp_head_read(line, size - 1, &head, &bad))
        return;
    if (!has_room(s, &head, size) && sp_clock_ns() - s->tried_ns > RETRY_NS)
        sp_event_stream_push(s);
    if (s->fd < 0)
        return;
    if (!has_room(s, &head, size) || !make_room(s, size + LOST_BYTES)) {
        drop(s, &head);
        return;
    }
    if (s->size == 0)
        s->since_ns = sp_clock_ns();
    if (s->dropped > 0)
        tell_dropped(s);
    memcpy(s->data + s->start + s->size, line, size);
    s->size += size;
    s->next_seq = head.seq + head.count;
    /* Many may come before the loop hears that there is room again. */
    if (s->size >= PUSH_BYTES && (!s->stuck || sp_clock_ns() - s->tried_ns > RETRY_NS))
        sp_event_stream_push(s);
}

/* ---- to the reader ------------------------------------------------------------------------ */

/* As much as goes into a pipe at once, in whole lines where that is possible: several writers may
 * share it. */
static size_t piece(const struct sp_event_stream *s)
{
    const char *data = s->data + s->start;
    if (s->size <= PIECE_BYTES)
        return s->size;
    const char *newline = memrchr(data, '\n', PIECE_BYTES);
    return newline != NULL ? (size_t)(newline - data) + 1 : PIECE_BYTES;
}

/* Where a write may wait: no more than the system said there is room for, and not for long. */
static ssize_t write_asking(const struct sp_event_stream *s)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    const bool watched = sp_watchdog_begin();
    ssize_t n = -1;
    int err = EAGAIN;
    if (watched) {
        n = write(s->fd, s->data + s->start, piece(s));
        err = errno == EINTR ? EAGAIN : errno;
    }
    sp_watchdog_end();
    errno = err;
    return n;
}

static ssize_t hand_on(const struct sp_event_stream *s)
{
    const char *data = s->data + s->start;
    switch (s->way) {
    case SP_EVENT_WAY_SOCKET:
        return send(s->fd, data, s->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SP_EVENT_WAY_PIPE:
        return write(s->fd, data, piece(s));
    case SP_EVENT_WAY_ASK:
        return write_asking(s);
    default:
        return write(s->fd, data, s->size);
    }
}

static void rewatch(struct sp_event_stream *s)
{
    const bool wanted = s->epoll >= 0 && s->fd >= 0 && s->stuck;
    struct epoll_event e = {.events = EPOLLOUT, .data.ptr = s};
    if (wanted == s->watched)
        return;
    if (s->fd >= 0 &&
        epoll_ctl(s->epoll, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, &e) != 0)
        return; /* looked at in time, as always */
    s->watched = wanted;
}

void sp_event_stream_watch(struct sp_event_stream *s, int epoll)
{
    if (epoll < 0) {
        const bool stuck = s->stuck;
        s->stuck = false;
        rewatch(s);
        s->stuck = stuck;
    }
    s->epoll = epoll;
    rewatch(s);
}

void sp_event_stream_push(struct sp_event_stream *s)
{
    if (s->fd < 0)
        return;
    s->tried_ns = sp_clock_ns();
    s->stuck = false;
    while (s->size > 0 && !s->stuck) {
        const ssize_t n = hand_on(s);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            give_up(s, errno);
            return;
        }
        s->stuck = n <= 0;
        s->start += n > 0 ? (size_t)n : 0;
        s->size -= n > 0 ? (size_t)n : 0;
    }
    if (s->size == 0) {
        s->start = 0;
        if (s->capacity > CAPACITY_KEPT) {
            free(s->data);
            s->data = NULL;
            s->capacity = 0;
        }
    }
    rewatch(s);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Someone wants this process to end: its signals are blocked by then. */
static bool is_pressed(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
            sigismember(&pending, SIGHUP) == 1 || sigismember(&pending, SIGQUIT) == 1);
}

static void count_rest(struct sp_event_stream *s)
{
    const char *at = s->data + s->start;
    const char *end = at + s->size;
    struct sp_head head;
    size_t bad;
    while (s->size > 0 && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL)
            break;
        /* The first may be the rest of a line: one event, as far as can be told. */
        if (sp_head_read(at, (size_t)(newline - at), &head, &bad))
            s->lost += head.count;
        else
            s->lost++;
        at = newline + 1;
    }
}

void sp_event_stream_finish(struct sp_event_stream *s, uint64_t until_ns)
{
    uint64_t moved_ns = sp_clock_ns();
    sp_event_stream_push(s);
    while (s->fd >= 0 && s->size > 0) {
        const size_t before = s->size;
        struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
        (void)poll(&ready, 1, LOOK_MS);
        sp_event_stream_push(s);
        const uint64_t now = sp_clock_ns();
        if (s->size < before)
            moved_ns = now;
        if (now >= until_ns || now - moved_ns >= STALL_NS || is_pressed())
            break;
    }
    if (s->fd >= 0)
        count_rest(s);
    sp_event_stream_close(s);
}
