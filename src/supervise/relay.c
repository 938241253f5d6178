#include "supervise/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"

/* A pseudo-terminal holds back less; how much, it does not say. */
#define TERMINAL_BYTES_MAX 131072

static struct sp_stream *stream_new(int number)
{
    struct sp_stream *s = malloc(sizeof *s);
    if (s == NULL)
        return NULL;
    memset(s, 0, offsetof(struct sp_stream, data));
    s->from = -1;
    s->to = -1;
    s->captured = -1;
    s->number = number;
    return s;
}

/* Whether the guest may have the caller's own standard input. */
static bool passes_as_is(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
                                   (S_ISCHR(st.st_mode) && !isatty(fd)));
}

static void look_at_target(struct sp_stream *s)
{
    struct stat st;
    s->to_waits = fstat(s->to, &st) == 0 && !S_ISREG(st.st_mode);
    s->to_socket = S_ISSOCK(st.st_mode);
}

/* One stream carries whatever the guest's terminal shows to the caller's. */
static int open_terminal(struct sp_relay *relay, const int stdio[3])
{
    if (sp_terminal_open(&relay->terminal, stdio) != 0)
        return -1;
    if (relay->terminal.master < 0)
        return 0;
    struct sp_stream *s = stream_new(SP_STREAM_TERMINAL);
    if (s == NULL)
        return -1;
    relay->streams[SP_STREAM_TERMINAL] = s;
    s->from = fcntl(relay->terminal.master, F_DUPFD_CLOEXEC, 3);
    s->from_owned = true;
    s->to = fcntl(relay->terminal.caller, F_DUPFD_CLOEXEC, 3);
    s->to_waits = true;
    return s->from < 0 || s->to < 0 ? -1 : 0;
}

static int open_terminal_input(struct sp_relay *relay, int from)
{
    struct sp_stream *s = stream_new(0);
    if (s == NULL)
        return -1;
    relay->streams[0] = s;
    relay->guest[0] = fcntl(relay->terminal.slave, F_DUPFD_CLOEXEC, 3);
    s->from = from;
    s->to = fcntl(relay->terminal.master, F_DUPFD_CLOEXEC, 3);
    s->to_waits = true;
    return relay->guest[0] < 0 || s->to < 0 ? -1 : 0;
}

static int open_input(struct sp_relay *relay, int from)
{
    if (passes_as_is(from)) {
        relay->guest[0] = fcntl(from, F_DUPFD_CLOEXEC, 3);
        return relay->guest[0] < 0 ? -1 : 0;
    }
    int ends[2];
    struct sp_stream *s = stream_new(0);
    if (s == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        free(s);
        return -1;
    }
    relay->streams[0] = s;
    relay->guest[0] = ends[0];
    s->from = from;
    s->to = ends[1];
    s->to_waits = true;
    return fcntl(s->to, F_SETFL, O_NONBLOCK);
}

static int open_output(struct sp_relay *relay, int number, int to, bool capture,
                       uint64_t capture_max)
{
    int ends[2];
    struct sp_stream *s = stream_new(number);
    if (s == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        free(s);
        return -1;
    }
    relay->streams[number] = s;
    relay->guest[number] = ends[1];
    s->from = ends[0];
    s->from_owned = true;
    if (capture) {
        s->kept_max = capture_max;
        s->captured = memfd_create("sandpit-output", MFD_CLOEXEC);
        if (s->captured < 0)
            return -1;
    } else {
        /* A number of its own: epoll takes one description under one number once. */
        s->to = fcntl(to, F_DUPFD_CLOEXEC, 3);
        if (s->to < 0)
            return -1;
        look_at_target(s);
    }
    return fcntl(s->from, F_SETFL, O_NONBLOCK);
}

static bool same_file(int a, int b)
{
    struct stat x;
    struct stat y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino && x.st_rdev == y.st_rdev;
}

int sp_relay_open(struct sp_relay *relay, const int stdio[3], bool capture,
                  uint64_t capture_max, struct sp_error *reterr)
{
    for (int i = 0; i < 3; i++)
        relay->guest[i] = -1;
    relay->terminal.master = relay->terminal.slave = -1;
    int bad = capture ? 0 : open_terminal(relay, stdio);
    if (bad == 0 && stdio[0] >= 0)
        bad = !capture && sp_terminal_is(stdio, 0)
                  ? open_terminal_input(relay, stdio[0])
                  : open_input(relay, stdio[0]);
    for (int i = 1; i < 3 && bad == 0; i++) {
        if (stdio[i] < 0 && !capture)
            continue;
        if (!capture && sp_terminal_is(stdio, i)) {
            bad = (relay->guest[i] = fcntl(relay->terminal.slave, F_DUPFD_CLOEXEC, 3)) <
                  0;
            continue;
        }
        /* Both into one file: one pipe, so that what is printed keeps its order. */
        if (i == 2 && !capture && stdio[1] >= 0 && same_file(stdio[1], stdio[2]))
            bad = (relay->guest[2] = fcntl(relay->guest[1], F_DUPFD_CLOEXEC, 3)) < 0;
        else
            bad = open_output(relay, i, stdio[i], capture, capture_max);
    }
    return bad != 0
               ? sp_fail_errno(reterr, SP_E_HOST, "cannot make pipes for the program")
               : 0;
}

/* An end that is not waited for is taken out altogether: a hang-up would be told again and
 * again. */
static void watch(const struct sp_relay *relay, struct sp_stream *s, int fd,
                  uint32_t events, bool *watched)
{
    bool wanted = events != 0;
    if (fd < 0 || wanted == *watched)
        return;
    struct epoll_event e = {.events = events, .data.ptr = s};
    epoll_ctl(relay->epoll, wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &e);
    *watched = wanted;
}

/* Watches `from` while there is room, `to` while there is something for it. */
static void rewatch(const struct sp_relay *relay, struct sp_stream *s)
{
    bool room = !s->ended && (s->size == 0 || s->start + s->size < SP_RELAY_BYTES);
    watch(relay, s, s->from, room ? EPOLLIN : 0, &s->from_watched);
    if (s->to_waits)
        watch(relay, s, s->to, s->size > 0 ? EPOLLOUT : 0, &s->to_watched);
}

void sp_relay_start(struct sp_relay *relay, int epoll)
{
    relay->epoll = epoll;
    sp_close_fd(&relay->terminal.slave);
    for (int i = 0; i < 3; i++)
        sp_close_fd(&relay->guest[i]);
    for (int i = 0; i < SP_STREAMS; i++)
        if (relay->streams[i] != NULL)
            rewatch(relay, relay->streams[i]);
}

static void keep(struct sp_stream *s, const char *data, size_t size)
{
    uint64_t room = s->kept_max - s->kept_bytes;
    size_t want = size < room ? size : (size_t)room;
    while (want > 0) {
        ssize_t n = write(s->captured, data, want);
        if (n <= 0)
            return; /* no memory: what is missing shows in the totals */
        s->kept_bytes += (uint64_t)n;
        data += n;
        want -= (size_t)n;
    }
}

static void close_from(struct sp_relay *relay, struct sp_stream *s)
{
    s->ended = true;
    if (s->from < 0)
        return;
    watch(relay, s, s->from, 0, &s->from_watched);
    if (s->from_owned)
        close(s->from);
    s->from = -1;
}

static void close_to(struct sp_relay *relay, struct sp_stream *s)
{
    s->size = 0;
    if (s->to < 0)
        return;
    watch(relay, s, s->to, 0, &s->to_watched);
    close(s->to);
    s->to = -1;
}

/* true: there was nothing to read. */
static bool pull(struct sp_relay *relay, struct sp_stream *s)
{
    if (s->ended || s->from < 0)
        return true;
    if (s->size == 0)
        s->start = 0;
    size_t room = SP_RELAY_BYTES - s->start - s->size;
    if (room == 0)
        return false;
    /* The caller's input may be one that blocks: it is read only when it says it is ready. */
    struct pollfd ready = {s->from, POLLIN, 0};
    if (!s->from_owned && poll(&ready, 1, 0) <= 0)
        return true;
    char *to = s->data + s->start + s->size;
    ssize_t n = read(s->from, to, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EAGAIN;
    if (n <= 0) {
        close_from(relay, s);
        return true;
    }
    size_t size = (size_t)n;
    if (s->number == 0 && sp_terminal_suspend(&relay->terminal, to, &size) && size == 0)
        return false;
    s->total_bytes += size;
    if (s->number > 0 && relay->on_output != NULL)
        size = relay->on_output(relay->context, s->number, to, size);
    if (s->captured >= 0)
        keep(s, to, size);
    else
        s->size += size;
    return false;
}

/* At most a pipe's guaranteed room at a time where a write could block. */
static ssize_t put(struct sp_stream *s)
{
    const char *data = s->data + s->start;
    if (s->to_socket)
        return send(s->to, data, s->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!s->to_waits)
        return write(s->to, data, s->size);
    struct pollfd ready = {s->to, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    size_t piece = s->number > 0 && s->size > 4096 ? 4096 : s->size;
    return write(s->to, data, piece);
}

static void push(struct sp_relay *relay, struct sp_stream *s)
{
    while (s->size > 0 && s->to >= 0) {
        ssize_t n = put(s);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            /* Nobody takes it any more: the guest learns it as from a broken pipe. */
            s->lost = errno != EPIPE && errno != ECONNRESET ? errno : 0;
            close_to(relay, s);
            close_from(relay, s);
            return;
        }
        s->start += (size_t)n;
        s->size -= (size_t)n;
    }
    if (s->ended && s->size == 0 && s->number == 0)
        close_to(relay, s);
}

void sp_relay_move(struct sp_relay *relay, struct sp_stream *s)
{
    pull(relay, s);
    push(relay, s);
    rewatch(relay, s);
}

bool sp_relay_drained(const struct sp_relay *relay)
{
    for (int i = 1; i < SP_STREAMS; i++) {
        const struct sp_stream *s = relay->streams[i];
        if (s != NULL && (!s->ended || (s->size > 0 && s->to >= 0)))
            return false;
    }
    return true;
}

/* What can still be in the guest's pipe or terminal now that the guest is gone. */
static size_t left_in(const struct sp_stream *s)
{
    int size = 0;
    if (ioctl(s->from, FIONREAD, &size) != 0 || size < TERMINAL_BYTES_MAX)
        size = TERMINAL_BYTES_MAX;
    return (size_t)size;
}

/* Who still holds the other end, or writes there, is not of the run. */
static void finish(struct sp_relay *relay, struct sp_stream *s)
{
    if (s->end_bytes == 0)
        s->end_bytes = s->total_bytes + left_in(s);
    for (uint64_t before = UINT64_MAX; !s->ended && s->total_bytes != before;) {
        before = s->total_bytes;
        if (pull(relay, s) || s->total_bytes >= s->end_bytes)
            close_from(relay, s);
        push(relay, s);
    }
    rewatch(relay, s); /* what could not be passed on at once */
}

void sp_relay_finish(struct sp_relay *relay)
{
    for (int i = 1; i < SP_STREAMS; i++)
        if (relay->streams[i] != NULL && !relay->streams[i]->ended)
            finish(relay, relay->streams[i]);
}

void sp_relay_close(struct sp_relay *relay)
{
    sp_terminal_close(&relay->terminal);
    for (int i = 0; i < 3; i++)
        sp_close_fd(&relay->guest[i]);
    for (int i = 0; i < SP_STREAMS; i++) {
        struct sp_stream *s = relay->streams[i];
        if (s == NULL)
            continue;
        close_from(relay, s);
        close_to(relay, s);
        sp_close_fd(&s->captured);
        free(s);
        relay->streams[i] = NULL;
    }
}
