/* A message that a guest wants to send: its header copied once, its payload piece by piece.
 *
 * Whom it goes to and what travels beside it is judged, and so is copied before; what it says
 * is not.
 */
#ifndef SP_SUPERVISE_OUTGOING_H
#define SP_SUPERVISE_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "supervise/address.h"

#define SP_OUTGOING_PARTS_MAX   1024u /* the kernel's own limit */
#define SP_OUTGOING_CONTROL_MAX 8192u
#define SP_OUTGOING_FDS_MAX     253u /* the kernel's own limit */

struct sp_outgoing_part {
    uint64_t from; /* in the guest */
    uint64_t size;
};

struct sp_outgoing {
    bool named;
    struct sp_address name;
    struct sp_outgoing_part *parts;
    size_t parts_count;
    size_t part;            /* the next one ... */
    uint64_t past;          /* ... less what was taken of it */
    uint64_t left;          /* bytes not taken yet */
    unsigned char *control; /* as we may send it */
    size_t control_size;
    int *fds; /* of ours, in `control` */
    size_t fds_count;
};

/* The message of sendto: one part, an address (0: none). 0 or -errno. */
int sp_outgoing_simple(pid_t tid, uint64_t from, uint64_t size, uint64_t name,
                       uint64_t name_size, struct sp_outgoing *ret_message);

/* The one that a msghdr at `header` describes, for a socket of `domain`: descriptors in it are
 * taken from the guest. 0 or -errno: -EPERM for what may not travel beside a message. In any
 * case it is to be released. */
int sp_outgoing_read(pid_t tid, uint64_t header, int domain,
                     struct sp_outgoing *ret_message);

/* Copies what comes next, at most `room` bytes; -EFAULT. Nothing is taken by that. */
ssize_t sp_outgoing_peek(pid_t tid, const struct sp_outgoing *message, void *to,
                         size_t room);
void sp_outgoing_advance(struct sp_outgoing *message, size_t size);

/* What goes to the peer once only is gone. */
void sp_outgoing_drop_control(struct sp_outgoing *message);
void sp_outgoing_release(struct sp_outgoing *message);

#endif
