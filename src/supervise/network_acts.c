/* Sockets: made, connected, bound, listened on, sent from.
 *
 * Where the network is granted, each is recorded and left to the kernel. Where it is denied,
 * nothing is left to the kernel that rests on memory which a second thread can change: an
 * address is copied once and judged, a Unix connection is made by us on the guest's own open
 * file description, and what could reach outside does not exist: INET datagram sockets are
 * unconnected Unix stream sockets in disguise, on which every send fails.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scope.h"
#include "supervise/record.h"
#include "sys/guest.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif
#define DNS_PORT   53
#define TYPE(type) ((type) & 0xf)

/* An address, copied once and in words. */
struct address {
    int family;
    int port;
    char host[INET6_ADDRSTRLEN + 8]; /* INET and INET6 */
    char text[PATH_MAX];             /* as a person reads it */
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        unsigned char bytes[128];
    } raw;
    socklen_t size;
};

static const char *family_name(int family)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {AF_UNSPEC, "unspec"}, {AF_UNIX, "unix"},       {AF_INET, "inet"},
        {AF_INET6, "inet6"},   {AF_NETLINK, "netlink"}, {AF_PACKET, "packet"},
        {AF_VSOCK, "vsock"},   {AF_ALG, "alg"},         {AF_BLUETOOTH, "bluetooth"},
        {AF_CAN, "can"},       {AF_TIPC, "tipc"},       {AF_XDP, "xdp"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].number == family)
            return names[i].name;
    return "other";
}

static const char *type_name(int type)
{
    static const char *const names[] = {"0",   "stream",    "dgram", "raw",
                                        "rdm", "seqpacket", "dccp"};
    return TYPE(type) < (int)(sizeof names / sizeof *names) ? names[TYPE(type)]
                                                            : "other";
}

static void describe(struct address *a)
{
    snprintf(a->text, sizeof a->text, "a %s address", family_name(a->family));
    if (a->family == AF_INET && a->size >= sizeof a->raw.in) {
        inet_ntop(AF_INET, &a->raw.in.sin_addr, a->host, sizeof a->host);
        a->port = ntohs(a->raw.in.sin_port);
        snprintf(a->text, sizeof a->text, "%s:%d", a->host, a->port);
    } else if (a->family == AF_INET6 && a->size >= 24) {
        inet_ntop(AF_INET6, &a->raw.in6.sin6_addr, a->host, sizeof a->host);
        a->port = ntohs(a->raw.in6.sin6_port);
        snprintf(a->text, sizeof a->text, "[%s]:%d", a->host, a->port);
    } else if (a->family == AF_UNIX &&
               a->size > offsetof(struct sockaddr_un, sun_path)) {
        size_t n = a->size - offsetof(struct sockaddr_un, sun_path);
        const char *path = a->raw.un.sun_path;
        if (path[0] == '\0')
            snprintf(a->text, sizeof a->text, "@%.*s", (int)(n - 1), path + 1);
        else
            snprintf(a->text, sizeof a->text, "%.*s", (int)n, path);
    }
}

/* false: the guest's memory cannot be read, or the size makes no sense. */
static bool read_address(struct sp_act_call *call, uint64_t from, uint64_t size,
                         struct address *ret_address)
{
    memset(ret_address, 0, offsetof(struct address, text));
    memset(&ret_address->raw, 0, sizeof ret_address->raw);
    int length = (int)(uint32_t)size;
    if (length < (int)sizeof(sa_family_t) || length > (int)sizeof ret_address->raw)
        return false;
    if (sp_guest_read((pid_t)call->n->pid, from, &ret_address->raw, (size_t)length) !=
            0 ||
        !sp_notify_valid(call))
        return false;
    ret_address->size = (socklen_t)length;
    ret_address->family = ret_address->raw.sa.sa_family;
    describe(ret_address);
    return true;
}

/* A size that makes no sense is the kernel's to refuse. */
static struct sp_answer unreadable(struct sp_act_call *call, uint64_t size)
{
    int length = (int)(uint32_t)size;
    bool sound = length >= (int)sizeof(sa_family_t) &&
                 length <= (int)sizeof(struct sockaddr_storage);
    return sound || call->s->is->network_closed ? sp_act_unreadable(call, EFAULT)
                                                    : SP_CONTINUE;
}

static void address_members(const struct address *a, struct sp_buffer *members)
{
    sp_member_text(members, "family", family_name(a->family));
    if (a->family == AF_INET || a->family == AF_INET6) {
        sp_member_text(members, "address", a->host);
        sp_member_int(members, "port", a->port);
    } else {
        sp_member_text(members, "address", a->text);
    }
}

/* What libc tries within a lookup: its services' sockets, name servers, a netlink socket to ask
 * for addresses, datagram sockets connected to sort its answers. That a lookup is going on is
 * the guest's claim, and must hide nothing else. */
static bool may_be_of_lookup(struct sp_act_call *call, const char *operation,
                             const struct address *a)
{
    if (a == NULL)
        return false;
    if (a->family == AF_UNIX)
        return strstr(a->text, "/nscd/") != NULL ||
               strstr(a->text, "/systemd/") != NULL || strstr(a->text, "/nss/") != NULL;
    if (strcmp(operation, "socket") == 0)
        return a->family == AF_NETLINK;
    bool connects = strcmp(operation, "connect") == 0;
    if (a->host[0] == '\0' || !(connects || strcmp(operation, "send") == 0))
        return false;
    return a->port == DNS_PORT ||
           (connects && sp_sockets_is_stand_in(&call->s->sockets, (pid_t)call->n->pid,
                                               sp_act_int(call, 0)));
}

/* Inside a name lookup, what libc's own services try belongs to the lookup. Anything else that
 * is tried meanwhile is not libc's. */
static bool belongs_to_lookup(struct sp_act_call *call, const char *operation,
                              const struct address *a)
{
    static struct sp_claim claim;
    pid_t tid = (pid_t)call->n->pid;
    if (call->process->lane == NULL ||
        !sp_lane_act(call->process->lane, tid, SP_ACT_LOOKUP, &claim))
        return false;
    if (!may_be_of_lookup(call, operation, a))
        return false;
    struct sp_lookup *lookup =
        sp_lookups_note(&call->s->lookups, call->process->pid, tid);
    if (lookup == NULL)
        return false;
    if (!lookup->tried && a->host[0] != '\0') {
        lookup->tried = true;
        lookup->port = a->port;
        snprintf(lookup->address, sizeof lookup->address, "%s", a->host);
    }
    return true;
}

static struct sp_answer deny(struct sp_act_call *call, enum sp_act act,
                             const char *operation, const char *target,
                             const struct address *a, int err)
{
    struct sp_place place;
    struct sp_buffer members;
    if (belongs_to_lookup(call, operation, a))
        return SP_REFUSE(err);
    sp_buffer_init(&members, 64u << 10);
    if (a != NULL)
        address_members(a, &members);
    sp_place_find(call, act, a != NULL && a->host[0] != '\0' ? a->host : NULL, &place,
                  NULL);
    struct sp_denial denial = {.category = "network",
                               .operation = operation,
                               .target = target,
                               .verdict = sp_policy_network(call->s->policy),
                               .layer = SP_LAYER_KERNEL,
                               .members = &members};
    if (denial.verdict.action == SP_ALLOW) /* refused though the network is granted */
        denial.verdict = sp_verdict_always(call->s->policy);
    sp_record_denial(call, &denial, &place, NULL);
    sp_place_release(&place);
    sp_buffer_release(&members);
    return SP_REFUSE(err);
}

static void record(struct sp_act_call *call, enum sp_kind kind, enum sp_act act,
                   const char *op, const struct address *a, const char *args)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_place_find(call, act, a != NULL && a->host[0] != '\0' ? a->host : NULL, &place,
                  NULL);
    sp_member_text(&members, "op", op);
    if (a != NULL)
        address_members(a, &members);
    if (args != NULL)
        sp_member_text(&members, "args", args);
    sp_place_members(&place, &members);
    sp_record_begin(call, kind);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

/* ---- creation ------------------------------------------------------------------------- */

static void record_socket(struct sp_act_call *call)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_place_find(call, SP_ACT_SOCKET, NULL, &place, NULL);
    sp_member_text(&members, "family", family_name(sp_act_int(call, 0)));
    sp_member_text(&members, "type", type_name(sp_act_int(call, 1)));
    sp_member_int(&members, "protocol", sp_act_int(call, 2));
    sp_place_members(&place, &members);
    sp_record_begin(call, SP_KIND_SOCKET);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

static struct sp_answer deny_socket(struct sp_act_call *call, const char *operation,
                                    int err)
{
    char target[60];
    snprintf(target, sizeof target, "%s %s", family_name(sp_act_int(call, 0)),
             type_name(sp_act_int(call, 1)));
    struct address a = {.family = sp_act_int(call, 0)};
    snprintf(a.text, sizeof a.text, "%s", target);
    return deny(call, SP_ACT_SOCKET, operation, target, &a, err);
}

static struct sp_answer give(int fd, int type)
{
    if (fd < 0)
        return SP_REFUSE(-fd);
    return (struct sp_answer){.kind = SP_ANSWER_GIVE,
                              .value = fd,
                              .close_on_exec = (type & SOCK_CLOEXEC) != 0};
}

/* An INET datagram socket: nothing sent on what is given arrives anywhere; sends with an
 * address, connect and bind are notified with the address that was meant. Within a lookup it
 * says that libc is about to ask a server. */
static struct sp_answer stand_in(struct sp_act_call *call, int type)
{
    static struct sp_claim claim;
    pid_t tid = (pid_t)call->n->pid;
    if (call->process->lane != NULL &&
        sp_lane_act(call->process->lane, tid, SP_ACT_LOOKUP, &claim))
        (void)sp_lookups_note(&call->s->lookups, call->process->pid, tid);
    return give(sp_sockets_make_stand_in(&call->s->sockets, type), type);
}

static struct sp_answer make_unix(struct sp_act_call *call, int type)
{
    int made =
        sp_sockets_make(&call->s->sockets, type & ~SOCK_CLOEXEC, sp_act_int(call, 2));
    if (made >= 0)
        record_socket(call);
    return give(made, type);
}

struct sp_answer sp_act_socket(struct sp_act_call *call)
{
    int domain = sp_act_int(call, 0);
    int type = sp_act_int(call, 1);
    int protocol = sp_act_int(call, 2);
    bool inet = domain == AF_INET || domain == AF_INET6;
    bool route = domain == AF_NETLINK && protocol == 0;
    if (!(inet || domain == AF_UNIX || route) || (inet && TYPE(type) == SOCK_RAW))
        return deny_socket(call, "socket",
                           domain == AF_NETLINK ? EACCES : EAFNOSUPPORT);
    if (inet && (protocol == IPPROTO_MPTCP || protocol == IPPROTO_SCTP))
        return deny_socket(call, "socket", EPROTONOSUPPORT);
    if (!call->s->is->network_closed) {
        record_socket(call);
        return SP_CONTINUE;
    }
    if (domain == AF_UNIX &&
        (TYPE(type) == SOCK_STREAM || TYPE(type) == SOCK_SEQPACKET))
        return make_unix(call, type);
    if (inet && TYPE(type) == SOCK_STREAM) {
        record_socket(call); /* inert until connect, bind or listen */
        return SP_CONTINUE;
    }
    if (inet && TYPE(type) == SOCK_DGRAM &&
        (protocol == 0 || protocol == IPPROTO_UDP)) {
        record_socket(call);
        return stand_in(call, type);
    }
    return deny_socket(call, "socket", EACCES);
}

struct sp_answer sp_act_socketpair(struct sp_act_call *call)
{
    if (!call->s->is->network_closed) {
        record_socket(call);
        return SP_CONTINUE;
    }
    if (sp_act_int(call, 0) != AF_UNIX)
        return SP_REFUSE(EOPNOTSUPP);
    return deny_socket(call, "socketpair", EACCES);
}

/* ---- addresses ------------------------------------------------------------------------ */

static struct sp_answer connect_unix(struct sp_act_call *call, const struct address *a)
{
    pid_t tid = (pid_t)call->n->pid;
    sp_auto_fd fd = sp_sockets_take(&call->s->sockets, tid, sp_act_int(call, 0));
    if (fd < 0)
        return fd == -EACCES ? deny(call, SP_ACT_CONNECT, "connect", a->text, a, EACCES)
                             : SP_REFUSE(-fd);
    int result;
    if (a->raw.un.sun_path[0] == '\0') {
        result =
            sp_sockets_connect_abstract(&call->s->sockets, fd, &a->raw.un, a->size);
    } else {
        sp_auto_fd object = sp_guest_open_path(tid, AT_FDCWD, a->text, 0);
        result = object < 0 ? object
                            : sp_sockets_connect_path(&call->s->sockets, fd, object);
    }
    if (result == -EACCES)
        return deny(call, SP_ACT_CONNECT, "connect", a->text, a, EACCES);
    if (result == 0) {
        sp_sockets_settled(&call->s->sockets, fd);
        record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "connect", a, NULL);
    }
    return result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
}

struct sp_answer sp_act_connect(struct sp_act_call *call)
{
    struct address a;
    bool denied = call->s->is->network_closed;
    if (!read_address(call, sp_act_arg(call, 1), sp_act_arg(call, 2), &a))
        return unreadable(call, sp_act_arg(call, 2));
    if (!denied) {
        record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "connect", &a, "observed");
        return SP_CONTINUE;
    }
    if (a.family == AF_UNSPEC) /* dissolves an association: here none ever exists */
        return SP_RETURN(0);
    if (a.family == AF_UNIX && a.size > offsetof(struct sockaddr_un, sun_path))
        return connect_unix(call, &a);
    return deny(call, SP_ACT_CONNECT, "connect", a.text, &a, EACCES);
}

/* Where the network is denied, binding a Unix socket stays the guest's own call: what it binds
 * can be reached by itself only. A thread that changes the address meanwhile gains a bound TCP
 * socket at most (Landlock forbids that too), and listening is judged on the socket. */
struct sp_answer sp_act_bind(struct sp_act_call *call)
{
    struct address a;
    bool denied = call->s->is->network_closed;
    if (!read_address(call, sp_act_arg(call, 1), sp_act_arg(call, 2), &a))
        return unreadable(call, sp_act_arg(call, 2));
    if (denied && a.family != AF_UNIX)
        return deny(call, SP_ACT_CONNECT, "bind", a.text, &a, EACCES);
    record(call, SP_KIND_BIND, SP_ACT_CONNECT, "bind", &a, "observed");
    return SP_CONTINUE;
}

/* Listening opens a port even on a socket that was never bound. It is done on the socket that
 * was judged, since another thread may put a different one under the number. */
struct sp_answer sp_act_listen(struct sp_act_call *call)
{
    if (!call->s->is->network_closed) {
        record(call, SP_KIND_BIND, SP_ACT_NONE, "listen", NULL, NULL);
        return SP_CONTINUE;
    }
    sp_auto_fd fd =
        sp_sockets_take(&call->s->sockets, (pid_t)call->n->pid, sp_act_int(call, 0));
    if (fd == -EACCES)
        return deny(call, SP_ACT_NONE, "listen", "a socket", NULL, EACCES);
    if (fd < 0)
        return SP_REFUSE(-fd);
    if (listen(fd, sp_act_int(call, 1)) != 0)
        return SP_REFUSE(errno);
    sp_sockets_settled(&call->s->sockets, fd);
    record(call, SP_KIND_BIND, SP_ACT_NONE, "listen", NULL, NULL);
    return SP_RETURN(0);
}

/* The address of a message, as it stands in the guest's msghdr. */
static bool message_address(struct sp_act_call *call, struct address *ret_address)
{
    struct msghdr header;
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 1), &header,
                      sizeof header) != 0)
        return false;
    return read_address(call, (uint64_t)(uintptr_t)header.msg_name, header.msg_namelen,
                        ret_address);
}

struct sp_answer sp_act_send(struct sp_act_call *call)
{
    struct address a;
    bool to = call->n->data.nr == SYS_sendto;
    int flags = sp_act_int(call, 3);
    if (call->n->data.nr == SYS_sendmsg)
        flags = sp_act_int(call, 2);
    bool readable =
        to ? read_address(call, sp_act_arg(call, 4), sp_act_arg(call, 5), &a)
           : message_address(call, &a);
    const char *target = readable ? a.text : "an address";
    if ((flags & MSG_FASTOPEN) != 0)
        return deny(call, SP_ACT_CONNECT, "send", target, readable ? &a : NULL,
                    EOPNOTSUPP);
    if (!readable)
        return unreadable(call, sp_act_arg(call, 5));
    if (!call->s->is->network_closed) {
        record(call, SP_KIND_CONNECT, SP_ACT_CONNECT, "send", &a, "observed");
        return SP_CONTINUE;
    }
    /* Unix stream sockets take no address, connected or not: the kernel refuses it. */
    if (a.family == AF_UNIX)
        return SP_REFUSE(EISCONN);
    return deny(call, SP_ACT_CONNECT, "send", target, &a, EACCES);
}

/* Notified are the IP levels and TCP_FASTOPEN_CONNECT. A datagram socket's stand-in takes every
 * IP option and does nothing; on a TCP socket they are the kernel's business. With
 * TCP_FASTOPEN_CONNECT, connect and send would become one call. */
struct sp_answer sp_act_setsockopt(struct sp_act_call *call)
{
    if (sp_act_int(call, 1) != IPPROTO_TCP)
        return sp_sockets_is_stand_in(&call->s->sockets, (pid_t)call->n->pid,
                                      sp_act_int(call, 0))
                   ? SP_RETURN(0)
                   : SP_CONTINUE;
    return deny(call, SP_ACT_SOCKET, "setsockopt", "TCP_FASTOPEN_CONNECT", NULL,
                ENOPROTOOPT);
}
