/* The other end of a Unix socket: who is behind a name, and whether the run may reach it.
 *
 * Names lie, so the object behind one is what is looked at (sockets.h). A socket of the run is
 * always in reach; another one where the policy grants its path or its abstract name.
 */
#ifndef SP_SUPERVISE_UNIX_END_H
#define SP_SUPERVISE_UNIX_END_H

#include "supervise/network.h"

struct sp_unix_end {
    int object; /* of a path: its node (O_PATH), the caller's to close; else -1 */
    bool judged;
    struct sp_verdict verdict; /* when judged */
};

/* Finds out who is behind `address` for the socket `fd`. 0: it may be reached; -EACCES: not;
 * or the errno. *ret_end is filled in any case. */
int sp_unix_end_find(struct sp_act_call *call, int fd, const struct sp_address *address,
                     struct sp_unix_end *ret_end);

/* A name that leads to the node itself, in this process. */
void sp_unix_end_node(int object, struct sockaddr_un *ret_name);

#endif
