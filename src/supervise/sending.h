/* A message on its way: what is left of it, and whether it goes out whole. */
#ifndef SP_SUPERVISE_SENDING_H
#define SP_SUPERVISE_SENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/outgoing.h"

struct sp_send {
    struct sp_outgoing message;
    int domain;
    int type;
    int flags;       /* of the call, MSG_DONTWAIT added */
    bool blocks;     /* the guest's own call would wait */
    bool whole;      /* done with this message */
    int object;      /* a Unix destination's node, -1: none */
    uint64_t sent;   /* bytes of this message */
    uint64_t vector; /* sendmmsg: where its entries lie, 0: another call */
    unsigned entry;
    unsigned entries;
};

static inline bool sp_send_is_stream(const struct sp_send *send)
{
    return send->type == SOCK_STREAM;
}

/* Sends on `fd`, the guest's own description, as far as it goes without waiting. 0: this message
 * is done; -EAGAIN, or another -errno. */
int sp_send_push(pid_t tid, int fd, struct sp_send *send);

/* How much of an entry of a vector went, the guest finds beside it. 0 or -EFAULT. */
int sp_send_write_length(pid_t tid, const struct sp_send *send);

void sp_send_release(struct sp_send *send);      /* NULL accepted */
size_t sp_send_done(const struct sp_send *send); /* bytes or messages sent so far */

#endif
