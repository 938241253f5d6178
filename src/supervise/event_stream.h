/* The live stream of a run: the lines of its trace, as they are written, to a descriptor of the
 * caller's.
 *
 * Whoever reads it may be slow, stop or go away. Nothing here waits for it: what it has no room for is
 * kept, up to SP_EVENT_STREAM_BYTES; past that lines are dropped, and once half of it is free again, a
 * `lost` line stands in their place. A reader that goes away ends the stream, never the run.
 *
 * The caller's own open file is left as it is (O_NONBLOCK belongs to it, not to our descriptor): a
 * pipe is opened once more, a socket is asked call by call, anything else is looked at before each
 * small write. A regular file never makes anybody wait for a reader.
 */
#ifndef SP_SUPERVISE_EVENT_STREAM_H
#define SP_SUPERVISE_EVENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What may wait for the reader: more than the longest line (SP_TRACE_LINE_MAX). */
#define SP_EVENT_STREAM_BYTES (9u << 20)

/* So long a line is at most kept before it is handed to the system, while the run goes on. */
#define SP_EVENT_STREAM_DELAY_NS 20000000u

enum sp_event_way {
    SP_EVENT_WAY_FILE,   /* write(2) */
    SP_EVENT_WAY_PIPE,   /* a description of our own, which does not block */
    SP_EVENT_WAY_SOCKET, /* MSG_DONTWAIT */
    SP_EVENT_WAY_ASK,    /* may block: poll(2), then a little */
};

struct sp_event_stream {
    int fd;     /* owned; -1: there is none, or it is over */
    bool asked; /* there is, or was, one */
    enum sp_event_way way;
    int epoll; /* borrowed; -1: none is watched */
    bool watched;
    bool stuck;   /* the reader had no room the last time */
    char *data;   /* owned */
    size_t start; /* of what waits */
    size_t size;
    size_t capacity;
    uint64_t since_ns; /* when the first of what waits came */
    uint64_t tried_ns;
    uint64_t next_seq;    /* behind what was let in last */
    uint64_t dropped_seq; /* ... dropped last */
    uint64_t dropped_t_ns;
    uint64_t dropped; /* events since then, that no line has told of */
    uint64_t lost;    /* events that were dropped, in all */
    int failed; /* errno with which it ended early, 0: none; a reader that went away is none */
};

/* Takes over the descriptor, which is closed where it is none of 0 to 2. Fails with SP_E_USAGE when
 * it is not open for writing, or nothing that a stream could go to. */
int sp_event_stream_open(struct sp_event_stream *s, int fd, struct sp_error *reterr)
    SP_MUST_CHECK;

static inline bool sp_event_stream_on(const struct sp_event_stream *s)
{
    return s->fd >= 0;
}

/* One line of the trace, with its newline. Does nothing where there is no stream. */
void sp_event_stream_add(struct sp_event_stream *s, const char *line, size_t size);

/* When the next push is due; UINT64_MAX: nothing waits, or the reader has to take some first. */
static inline uint64_t sp_event_stream_due_ns(const struct sp_event_stream *s)
{
    return s->size == 0 || s->stuck ? UINT64_MAX
                                    : s->since_ns + SP_EVENT_STREAM_DELAY_NS;
}

/* Hands on what the reader has room for. With an epoll set, its being ready to take more is watched
 * there, as an event about the stream itself. */
void sp_event_stream_push(struct sp_event_stream *s);
void sp_event_stream_watch(struct sp_event_stream *s, int epoll); /* -1: no more */

/* The last line was added: gives the reader until `until_ns`, while it takes anything, and closes.
 * Ended early by a signal of `set` (blocked) that is pending. What it did not take counts as lost. */
void sp_event_stream_finish(struct sp_event_stream *s, uint64_t until_ns);

/* Closes without a word. */
void sp_event_stream_close(struct sp_event_stream *s);

#endif
