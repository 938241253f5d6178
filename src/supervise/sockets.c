#include "supervise/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/guest.h"

/* One socket as sock_diag tells of it. */
struct diag_socket {
    uint64_t cookie;
    int type;
    uint32_t path_inode; /* 0: not bound to a path */
    uint32_t path_device;
    const char *name; /* bound name; abstract ones begin with NUL */
    size_t name_size;
};

void sp_sockets_init(struct sp_sockets *sockets, bool keep_dups)
{
    *sockets = (struct sp_sockets){.diag = -1, .keep_dups = keep_dups};
}

void sp_sockets_release(struct sp_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        sp_close_fd(&sockets->items[i].kept);
    free(sockets->items);
    sp_close_fd(&sockets->diag);
    sockets->items = NULL;
    sockets->count = 0;
}

static void parse_socket(const struct nlmsghdr *header, struct diag_socket *ret_socket)
{
    const struct unix_diag_msg *m = NLMSG_DATA(header);
    int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof *m));
    *ret_socket = (struct diag_socket){.cookie = (uint64_t)m->udiag_cookie[1] << 32 |
                                                 m->udiag_cookie[0],
                                       .type = m->udiag_type};
    for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, left);
         a = RTA_NEXT(a, left)) {
        if (a->rta_type == UNIX_DIAG_VFS) {
            const struct unix_diag_vfs *v = RTA_DATA(a);
            ret_socket->path_inode = v->udiag_vfs_ino;
            ret_socket->path_device = v->udiag_vfs_dev;
        } else if (a->rta_type == UNIX_DIAG_NAME) {
            ret_socket->name = RTA_DATA(a);
            ret_socket->name_size = RTA_PAYLOAD(a);
        }
    }
}

/* Calls `each` for every Unix socket of this network namespace. false when the kernel does not
 * tell. */
static bool for_each_socket(struct sp_sockets *sockets,
                            void (*each)(void *context,
                                         const struct diag_socket *socket),
                            void *context)
{
    static char text[32768] __attribute__((aligned(8)));
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        {sizeof question, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 0, 0},
        {.sdiag_family = AF_UNIX,
         .udiag_states = UINT32_MAX,
         .udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_NAME}};
    if (sockets->diag < 0)
        sockets->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (sockets->diag < 0 || send(sockets->diag, &question, sizeof question, 0) < 0)
        return false;
    for (;;) {
        ssize_t size = recv(sockets->diag, text, sizeof text, 0);
        if (size <= 0)
            return false;
        int left = (int)size;
        for (const struct nlmsghdr *h = (const void *)text; NLMSG_OK(h, left);
             h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_type == NLMSG_DONE)
                return true;
            if (h->nlmsg_type == NLMSG_ERROR)
                return false;
            struct diag_socket found;
            parse_socket(h, &found);
            each(context, &found);
        }
    }
}

static struct sp_own_socket *own(struct sp_sockets *sockets, uint64_t cookie)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->items[i].cookie == cookie)
            return &sockets->items[i];
    return NULL;
}

static void mark_alive(void *context, const struct diag_socket *found)
{
    struct sp_own_socket *item = own(context, found->cookie);
    if (item != NULL)
        item->inode |= UINT64_C(1) << 63;
}

/* Forgets sockets that no longer exist. A kept duplicate would keep its socket alive: those
 * whose guest has closed theirs go when their process ends and are bounded by the table. */
static void sweep(struct sp_sockets *sockets)
{
    const uint64_t alive = UINT64_C(1) << 63;
    if (!for_each_socket(sockets, mark_alive, sockets))
        return;
    unsigned kept = 0;
    for (unsigned i = 0; i < sockets->count; i++) {
        struct sp_own_socket item = sockets->items[i];
        if ((item.inode & alive) == 0) {
            sp_close_fd(&item.kept);
            continue;
        }
        item.inode &= ~alive;
        sockets->items[kept++] = item;
    }
    sockets->count = kept;
}

static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

static int make(struct sp_sockets *sockets, int domain, int type, int protocol,
                bool stand_in)
{
    if (sockets->items == NULL)
        sockets->items = calloc(SP_SOCKETS_MAX, sizeof *sockets->items);
    if (sockets->items == NULL)
        return -ENOMEM;
    if (sockets->count == SP_SOCKETS_MAX)
        sweep(sockets);
    if (sockets->count == SP_SOCKETS_MAX)
        return -ENFILE;
    sp_auto_fd fd = socket(domain, type | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return -errno;
    struct sp_own_socket item = {.cookie = cookie_of(fd),
                                 .kept = -1,
                                 .stand_in = stand_in,
                                 .inet = domain != AF_UNIX};
    struct stat st;
    if (item.cookie == 0 || fstat(fd, &st) != 0)
        return -EACCES;
    item.inode = st.st_ino;
    if (sockets->keep_dups && !stand_in)
        item.kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    sockets->items[sockets->count++] = item;
    return sp_steal_fd(&fd);
}

int sp_sockets_make(struct sp_sockets *sockets, int domain, int type, int protocol)
{
    return make(sockets, domain, type, protocol, false);
}

int sp_sockets_make_stand_in(struct sp_sockets *sockets, int type)
{
    return make(sockets, AF_UNIX, SOCK_STREAM | (type & SOCK_NONBLOCK), 0, true);
}

bool sp_sockets_is_stand_in(struct sp_sockets *sockets, pid_t tid, int fd)
{
    uint64_t inode = sp_guest_socket(tid, fd);
    for (unsigned i = 0; inode != 0 && i < sockets->count; i++)
        if (sockets->items[i].inode == inode && sockets->items[i].stand_in)
            return true;
    return false;
}

bool sp_sockets_is_datagram(struct sp_sockets *sockets, pid_t tid, int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    if (sp_sockets_is_stand_in(sockets, tid, fd))
        return true;
    if (sockets->keep_dups)
        return false;
    sp_auto_fd taken = sp_guest_take_fd(tid, fd);
    return taken >= 0 && getsockopt(taken, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_DGRAM;
}

static int take_kept(struct sp_sockets *sockets, pid_t tid, int fd)
{
    uint64_t inode = sp_guest_socket(tid, fd);
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->items[i].inode == inode && sockets->items[i].kept >= 0)
            return fcntl(sockets->items[i].kept, F_DUPFD_CLOEXEC, 3);
    return -EACCES;
}

int sp_sockets_take(struct sp_sockets *sockets, pid_t tid, int fd)
{
    if (sockets->keep_dups)
        return take_kept(sockets, tid, fd);
    sp_auto_fd taken = sp_guest_take_fd(tid, fd);
    if (taken < 0)
        return taken;
    uint64_t cookie = cookie_of(taken);
    const struct sp_own_socket *item = cookie != 0 ? own(sockets, cookie) : NULL;
    return item != NULL && !item->stand_in ? sp_steal_fd(&taken) : -EACCES;
}

int sp_sockets_take_any(struct sp_sockets *sockets, int pidfd, pid_t tid, int fd)
{
    if (sockets->keep_dups)
        return take_kept(sockets, tid, fd);
    return sp_guest_take_socket(tid, pidfd, fd);
}

void sp_sockets_settled(struct sp_sockets *sockets, int fd)
{
    struct sp_own_socket *item = own(sockets, cookie_of(fd));
    if (item == NULL)
        return;
    sp_close_fd(&item->kept);
    if (item->inet)
        *item = sockets->items[--sockets->count];
}

struct search {
    struct sp_sockets *sockets;
    struct stat object;
    const char *name;
    size_t name_size;
    int type; /* an abstract name is taken once for each type of socket */
    bool found;
    bool is_own;
};

/* The kernel tells the device in its own encoding: 12 bits of major, 20 of minor. */
static bool same_node(const struct diag_socket *found, const struct stat *object)
{
    return found->path_inode == (uint32_t)object->st_ino &&
           found->path_device == ((uint32_t)major(object->st_dev) << 20 |
                                  (uint32_t)minor(object->st_dev));
}

static void match(void *context, const struct diag_socket *found)
{
    struct search *search = context;
    bool same = search->name != NULL
                    ? found->type == search->type &&
                          found->name_size == search->name_size &&
                          found->name_size > 0 &&
                          memcmp(found->name, search->name, found->name_size) == 0
                    : found->path_inode != 0 && same_node(found, &search->object);
    if (!same)
        return;
    search->found = true;
    search->is_own |= own(search->sockets, found->cookie) != NULL;
}

static int whose(struct sp_sockets *sockets, struct search *search)
{
    search->sockets = sockets;
    if (!for_each_socket(sockets, match, search))
        return -EACCES;
    if (!search->found)
        return SP_WHOSE_NOBODY;
    return search->is_own ? SP_WHOSE_OWN : SP_WHOSE_STRANGER;
}

int sp_sockets_whose_path(struct sp_sockets *sockets, int object)
{
    struct search search = {0};
    if (fstat(object, &search.object) != 0)
        return -errno;
    if (!S_ISSOCK(search.object.st_mode))
        return SP_WHOSE_NOBODY;
    return whose(sockets, &search);
}

int sp_sockets_whose_name(struct sp_sockets *sockets, int fd,
                          const struct sockaddr_un *address, socklen_t size)
{
    struct search search = {.name = address->sun_path,
                            .name_size = size - offsetof(struct sockaddr_un, sun_path)};
    socklen_t type_size = sizeof search.type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &search.type, &type_size) != 0)
        return -errno;
    return whose(sockets, &search);
}

/* The guest's description may be one that blocks; we may not. */
int sp_sockets_connect(int fd, const struct sockaddr *address, socklen_t size,
                       bool *ret_blocks)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    *ret_blocks = (flags & O_NONBLOCK) == 0;
    if (*ret_blocks && fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return -errno;
    int result = connect(fd, address, size) == 0 ? 0 : -errno;
    /* What the own machine answered meanwhile is taken in between two calls. */
    if (*ret_blocks && result == -EINPROGRESS && connect(fd, address, size) == 0)
        result = 0;
    else if (*ret_blocks && result == -EINPROGRESS && errno != EALREADY)
        result = -errno;
    if (*ret_blocks)
        fcntl(fd, F_SETFL, flags);
    /* The watchdog: a thread of the guest's changed the flag back, and it goes on by itself. */
    return result == -EINTR ? -EINPROGRESS : result;
}

uint64_t sp_sockets_patience_ns(int fd)
{
    struct timeval limit = {0};
    socklen_t size = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &size) != 0)
        return 0;
    return (uint64_t)limit.tv_sec * 1000000000u + (uint64_t)limit.tv_usec * 1000u;
}
