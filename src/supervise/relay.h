/* Passing the three standard streams between the caller and the guest.
 *
 * The guest never holds the caller's own pipes, sockets or terminals: it gets pipes (or
 * pseudo-terminals) whose other ends are here. Regular files and devices on standard input are
 * passed as they are, since a program may seek in them. Reading from the guest stops while the
 * caller does not take what is there, as it would without us; nothing here ever waits.
 */
#ifndef SP_SUPERVISE_RELAY_H
#define SP_SUPERVISE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "supervise/terminal.h"

#define SP_RELAY_BYTES     65536u
#define SP_STREAMS         4
#define SP_STREAM_TERMINAL 3 /* all that appears on the guest's pseudo-terminal */

/* One direction: what was read from `from` and is not yet written to `to`. */
struct sp_stream {
    int from;
    int to;        /* ours to close; -1: only captured */
    bool to_waits; /* `to` can be waited for (a pipe, socket or terminal) */
    bool to_socket;
    bool from_owned; /* `from` is ours to close */
    bool from_watched;
    bool to_watched;
    bool ended;   /* nothing more will come from `from` */
    int number;   /* 0, 1, 2, or SP_STREAM_TERMINAL */
    int captured; /* memfd, -1: none */
    int lost;     /* errno of a write to `to` that failed, but for a broken pipe */
    uint64_t kept_bytes;
    uint64_t kept_max;
    uint64_t total_bytes;
    uint64_t end_bytes; /* total_bytes to stop at, once the guest is gone */
    size_t start;
    size_t size;
    char data[SP_RELAY_BYTES];
};

struct sp_relay {
    struct sp_stream *streams[SP_STREAMS]; /* NULL: not relayed */
    struct sp_terminal terminal;
    int guest[3]; /* the guest's ends; -1: closed there */
    int epoll;    /* where the streams are watched */
    /* Told of each piece that the guest printed; how many bytes of it are passed on. */
    size_t (*on_output)(void *context, int number, const char *data, size_t size);
    void *context;
};

/* Makes what the guest gets for the caller's `stdio` (-1: closed). `capture`: outputs are
 * kept, at most capture_max bytes each, and not passed on. */
int sp_relay_open(struct sp_relay *relay, const int stdio[3], bool capture,
                  uint64_t capture_max, struct sp_error *reterr) SP_MUST_CHECK;

/* Closes the guest's ends in our table, once it has its own, and starts to watch ours in
 * `epoll`. Events carry the stream as data.ptr. */
void sp_relay_start(struct sp_relay *relay, int epoll);

/* Something happened on a stream: move what can be moved. */
void sp_relay_move(struct sp_relay *relay, struct sp_stream *stream);

/* Whether both outputs have ended and everything was passed on. */
bool sp_relay_drained(const struct sp_relay *relay);

/* Reads what is still in the guest's pipes without waiting (all writers are gone). */
void sp_relay_finish(struct sp_relay *relay);

void sp_relay_close(struct sp_relay *relay);

#endif
