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
    bool inet;     /* remembered only for as long as its duplicate is kept */
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

/* Makes a socket for the guest and remembers it: a Unix one, or, where duplicates must be kept,
 * a TCP one. Returns the descriptor or -errno. */
int sp_sockets_make(struct sp_sockets *sockets, int domain, int type, int protocol);

/* Makes what an INET datagram socket is given for: an unconnected Unix stream socket, on which
 * every send fails. `type`: SOCK_NONBLOCK counts. */
int sp_sockets_make_stand_in(struct sp_sockets *sockets, int type);

/* Whether the thread's descriptor is one of those; whether it is one, or a real datagram
 * socket. */
bool sp_sockets_is_stand_in(struct sp_sockets *sockets, pid_t tid, int fd);
bool sp_sockets_is_datagram(struct sp_sockets *sockets, pid_t tid, int fd);

/* The open file description behind the thread's descriptor `fd`, if it is a socket that was
 * made here; a descriptor of ours, or -errno (-EACCES: a socket of another kind). */
int sp_sockets_take(struct sp_sockets *sockets, pid_t tid, int fd);

/* The same for any socket of the guest's, found by `pidfd` of its process (-1: by tid). Where
 * duplicates are kept, for those that were made here only. -EBADF, -ENOTSOCK: it is none. */
int sp_sockets_take_any(struct sp_sockets *sockets, int pidfd, pid_t tid, int fd);

/* The socket has connected or listens: a duplicate kept for it is let go. */
void sp_sockets_settled(struct sp_sockets *sockets, int fd);

/* Who has bound a Unix socket: to the path object behind `object` (O_PATH), or to an abstract
 * name, for the type of socket that `fd` is. Or -errno. */
enum sp_whose {
    SP_WHOSE_NOBODY,
    SP_WHOSE_OWN,
    SP_WHOSE_STRANGER,
};
int sp_sockets_whose_path(struct sp_sockets *sockets, int object);
int sp_sockets_whose_name(struct sp_sockets *sockets, int fd,
                          const struct sockaddr_un *address, socklen_t size);

/* Connects `fd`, the guest's own description, without waiting. 0 or -errno; *ret_blocks: the
 * guest's would have waited. To be called under the watchdog. */
int sp_sockets_connect(int fd, const struct sockaddr *address, socklen_t size,
                       bool *ret_blocks);

/* When a send or connect on it gives up (SO_SNDTIMEO), from now on; 0: never. */
uint64_t sp_sockets_patience_ns(int fd);

#endif
