/* The Unix sockets that this run made, and who is behind a name.
 *
 * Where the network is denied, a Unix socket may reach only sockets of the run itself. Names
 * lie (links, renames), so the socket behind a name is what is judged: the object is opened as
 * the guest sees it, sock_diag says which socket is bound to that inode, and its cookie, which
 * the kernel never gives twice, must be one that we handed out.
 */
#ifndef SP_SUPERVISE_SOCKETS_H
#define SP_SUPERVISE_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define SP_SOCKETS_MAX 4096u

struct sp_own_socket {
    uint64_t cookie;
    bool stand_in; /* given out in an INET datagram socket's place */
    int kept;      /* a duplicate, where pidfd_getfd cannot be had; -1: none */
    uint64_t inode;
};

struct sp_sockets {
    struct sp_own_socket *items;
    unsigned count;
    int diag;       /* netlink socket; -1: not opened yet */
    bool keep_dups; /* no pidfd_getfd on this host */
};

void sp_sockets_init(struct sp_sockets *sockets, bool keep_dups);
void sp_sockets_release(struct sp_sockets *sockets);

/* Makes a Unix socket for the guest and remembers it. Returns the descriptor or -errno. */
int sp_sockets_make(struct sp_sockets *sockets, int type, int protocol);

/* Makes what an INET datagram socket is given for: an unconnected Unix stream socket, on which
 * every send fails. `type`: SOCK_NONBLOCK counts. */
int sp_sockets_make_stand_in(struct sp_sockets *sockets, int type);

/* Whether the thread's descriptor is one of those. */
bool sp_sockets_is_stand_in(struct sp_sockets *sockets, pid_t tid, int fd);

/* The open file description behind the thread's descriptor `fd`, if it is a socket that was
 * made here; a descriptor of ours, or -errno (-EACCES: a socket of another kind). */
int sp_sockets_take(struct sp_sockets *sockets, pid_t tid, int fd);

/* The socket has connected or listens: a duplicate kept for it is let go. */
void sp_sockets_settled(struct sp_sockets *sockets, int fd);

/* Connects `fd` (ours to use, the guest's description) to the path object behind `object`
 * (O_PATH) or to the abstract name in `address`, if the run's own socket is there. 0, -EACCES
 * when it is not one of the run's, -EAGAIN when the listener's queue is full, or the errno. */
int sp_sockets_connect_path(struct sp_sockets *sockets, int fd, int object);
int sp_sockets_connect_abstract(struct sp_sockets *sockets, int fd,
                                const struct sockaddr_un *address, socklen_t size);

#endif
