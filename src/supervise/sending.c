#include "supervise/sending.h"

#include <errno.h>
#include <stdlib.h>

#include "base/scope.h"
#include "supervise/unix_end.h"
#include "sys/guest.h"

/* A datagram goes whole; of a stream so much at a time, and not more than TURN_BYTES before
 * others have their turn. */
#define PIECE_BYTES    65536u
#define DATAGRAM_BYTES (256u << 10)
#define TURN_BYTES     (1u << 20)

void sp_send_release(struct sp_send *send)
{
    if (send == NULL)
        return;
    sp_outgoing_release(&send->message);
    sp_close_fd(&send->object);
    free(send);
}

size_t sp_send_done(const struct sp_send *send)
{
    return send->vector != 0 ? send->entry : (size_t)send->sent;
}

static ssize_t send_piece(int fd, struct sp_send *send, void *data, size_t size)
{
    struct sp_outgoing *m = &send->message;
    struct sockaddr_un node;
    struct iovec part = {data, size};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = m->control_size > 0 ? m->control : NULL,
                            .msg_controllen = m->control_size};
    if (m->named) {
        header.msg_name = &m->name.raw;
        header.msg_namelen = m->name.size;
    }
    if (send->object >= 0) {
        sp_unix_end_node(send->object, &node);
        header.msg_name = &node;
        header.msg_namelen = sizeof node;
    }
    ssize_t n = sendmsg(fd, &header, send->flags | MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

static int send_datagram(pid_t tid, int fd, struct sp_send *send)
{
    static char payload[DATAGRAM_BYTES];
    if (send->message.left > sizeof payload)
        return -EMSGSIZE;
    ssize_t n = sp_outgoing_peek(tid, &send->message, payload, sizeof payload);
    if (n >= 0)
        n = send_piece(fd, send, payload, (size_t)n);
    if (n < 0)
        return (int)n;
    send->sent = (uint64_t)n;
    send->whole = true;
    return 0;
}

/* 0 when all of it is gone, or so much that others are to have their turn. */
static int send_stream(pid_t tid, int fd, struct sp_send *send)
{
    static char payload[PIECE_BYTES];
    struct sp_outgoing *m = &send->message;
    for (size_t turn = 0; turn < TURN_BYTES; turn += PIECE_BYTES) {
        ssize_t n = sp_outgoing_peek(tid, m, payload, sizeof payload);
        if (n >= 0)
            n = send_piece(fd, send, payload, (size_t)n);
        if (n < 0)
            return (int)n;
        sp_outgoing_drop_control(m);
        sp_outgoing_advance(m, (size_t)n);
        send->sent += (uint64_t)n;
        send->whole = m->left == 0;
        if (send->whole)
            return 0;
    }
    return 0;
}

/* As far as it goes without waiting: 0: this message is done; -EAGAIN, or another errno. */
int sp_send_push(pid_t tid, int fd, struct sp_send *send)
{
    if (!sp_send_is_stream(send))
        return send_datagram(tid, fd, send);
    int result = send_stream(tid, fd, send);
    return result == 0 && !send->whole ? -EAGAIN : result;
}

/* How much of an entry went, the guest finds beside it. */
int sp_send_write_length(pid_t tid, const struct sp_send *send)
{
    unsigned length = (unsigned)send->sent;
    uint64_t at = send->vector + send->entry * sizeof(struct mmsghdr);
    return sp_guest_write(tid, at + offsetof(struct mmsghdr, msg_len), &length,
                          sizeof length);
}
