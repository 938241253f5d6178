/* Sockets: made, and set up.
 *
 * Where the network is open, each act is recorded and left to the kernel. Where it is closed,
 * or some of it is denied and each act is judged, nothing is left to the kernel that rests on
 * memory which a second thread can change: an address is copied once and judged, and what is
 * granted is done by us on the guest's own open file description (connect_acts.c, bind_acts.c,
 * send_acts.c). INET datagram sockets exist only where an INET address is granted; elsewhere
 * they are unconnected Unix stream sockets in disguise, on which every send fails.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "supervise/network.h"
#include "sys/guest.h"
#include "sys/watchdog.h"

#define TYPE(type) ((type) & 0xf)

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

static void record_socket(struct sp_act_call *call)
{
    struct sp_place place;
    struct sp_buffer members;
    sp_buffer_init(&members, 64u << 10);
    sp_place_find(call, SP_ACT_SOCKET, NULL, &place, NULL);
    sp_member_text(&members, "family", sp_family_name(sp_act_int(call, 0)));
    sp_member_text(&members, "type", sp_type_name(sp_act_int(call, 1)));
    sp_member_int(&members, "protocol", sp_act_int(call, 2));
    sp_place_members(&place, &members);
    sp_record_begin(call, SP_KIND_SOCKET);
    sp_trace_members(call->s->writer, members.data, members.size);
    sp_trace_end(call->s->writer);
    sp_place_release(&place);
    sp_buffer_release(&members);
}

static struct sp_address describe(const struct sp_act_call *call)
{
    struct sp_address a = {.family = sp_act_int(call, 0)};
    snprintf(a.text, sizeof a.text, "%s %s", sp_family_name(sp_act_int(call, 0)),
             sp_type_name(sp_act_int(call, 1)));
    return a;
}

static struct sp_answer deny_socket(struct sp_act_call *call, const char *operation,
                                    int err)
{
    struct sp_address a = describe(call);
    return sp_network_deny(call, SP_ACT_SOCKET, operation, a.text, &a, NULL, err);
}

static bool observe_socket(struct sp_act_call *call)
{
    struct sp_address a = describe(call);
    return sp_network_observe_socket(call, a.text, &a);
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

static struct sp_answer make(struct sp_act_call *call)
{
    int type = sp_act_int(call, 1);
    int made = sp_sockets_make(&call->s->sockets, sp_act_int(call, 0),
                               type & ~SOCK_CLOEXEC, sp_act_int(call, 2));
    if (made >= 0)
        record_socket(call);
    return give(made, type);
}

/* TCP sockets are inert until connect, bind or listen. */
static struct sp_answer make_stream(struct sp_act_call *call)
{
    int protocol = sp_act_int(call, 2);
    if (protocol != 0 && protocol != IPPROTO_TCP)
        return deny_socket(call, "socket", EPROTONOSUPPORT);
    if (call->s->reach == SP_REACH_JUDGED && call->s->sockets.keep_dups)
        return make(call);
    record_socket(call);
    return SP_CONTINUE;
}

/* Without pidfd_getfd nobody could act on a datagram socket for as long as it lives. */
static struct sp_answer make_datagram(struct sp_act_call *call)
{
    const struct sp_supervisor *s = call->s;
    int protocol = sp_act_int(call, 2);
    if (protocol != 0 && protocol != IPPROTO_UDP)
        return deny_socket(call, "socket", EACCES);
    record_socket(call);
    bool real = s->reach == SP_REACH_JUDGED && s->inet_granted && !s->sockets.keep_dups;
    return real ? SP_CONTINUE : stand_in(call, sp_act_int(call, 1));
}

static struct sp_answer make_unix(struct sp_act_call *call)
{
    int type = TYPE(sp_act_int(call, 1));
    bool datagrams = call->s->reach == SP_REACH_JUDGED && !call->s->sockets.keep_dups;
    if (type == SOCK_STREAM || type == SOCK_SEQPACKET ||
        (type == SOCK_DGRAM && datagrams))
        return make(call);
    return deny_socket(call, "socket", EACCES);
}

struct sp_answer sp_act_socket(struct sp_act_call *call)
{
    int domain = sp_act_int(call, 0);
    int type = TYPE(sp_act_int(call, 1));
    int protocol = sp_act_int(call, 2);
    bool inet = domain == AF_INET || domain == AF_INET6;
    bool route = domain == AF_NETLINK && protocol == 0;
    if (!(inet || domain == AF_UNIX || route) || (inet && type == SOCK_RAW))
        return deny_socket(call, "socket",
                           domain == AF_NETLINK ? EACCES : EAFNOSUPPORT);
    if (inet && (protocol == IPPROTO_MPTCP || protocol == IPPROTO_SCTP))
        return deny_socket(call, "socket", EPROTONOSUPPORT);
    if (call->s->reach == SP_REACH_OPEN) {
        if (!route || !observe_socket(call))
            record_socket(call);
        return SP_CONTINUE;
    }
    if (domain == AF_UNIX)
        return make_unix(call);
    if (inet && type == SOCK_STREAM)
        return make_stream(call);
    if (inet && type == SOCK_DGRAM)
        return make_datagram(call);
    return deny_socket(call, "socket", EACCES);
}

struct sp_answer sp_act_socketpair(struct sp_act_call *call)
{
    bool judged = call->s->reach == SP_REACH_JUDGED && !call->s->sockets.keep_dups;
    bool local = sp_act_int(call, 0) == AF_UNIX;
    if (call->s->reach == SP_REACH_OPEN ||
        (judged && local && TYPE(sp_act_int(call, 1)) == SOCK_DGRAM)) {
        record_socket(call);
        return SP_CONTINUE;
    }
    if (!local)
        return SP_REFUSE(EOPNOTSUPP);
    return deny_socket(call, "socketpair", EACCES);
}

/* ---- options -------------------------------------------------------------------------- */

/* Options that would carry an address past its judgement: which group is joined is judged as
 * an address; routes of the sender's choice are denied. Numbers are the kernel's. */
enum effect { HARMLESS, JOINS, ROUTES, JOINS_IN_PARTS, BINDS };

static enum effect effect_of(int level, int option)
{
    if (level == IPPROTO_IP) {
        if (option == 35) /* IP_ADD_MEMBERSHIP */
            return JOINS;
        if (option == 4) /* IP_OPTIONS */
            return ROUTES;
        return option >= 37 && option <= 48 && option != 40 ? JOINS_IN_PARTS : HARMLESS;
    }
    if (option == 20) /* IPV6_JOIN_GROUP */
        return JOINS;
    if (option == 26) /* IPV6_V6ONLY: whether binding takes IPv4 addresses as well */
        return BINDS;
    if (option == 57 || option == 6) /* IPV6_RTHDR, IPV6_2292PKTOPTIONS */
        return ROUTES;
    bool parts =
        option == 27 || (option >= 42 && option <= 48); /* JOIN_ANYCAST, MCAST_* */
    return parts ? JOINS_IN_PARTS : HARMLESS;
}

/* What the guest asks for, done on its socket with the value that was judged. */
static struct sp_answer set_option(struct sp_act_call *call, const void *value,
                                   socklen_t size)
{
    if (!sp_watchdog_begin()) {
        sp_watchdog_end();
        return SP_REFUSE(EAGAIN);
    }
    int fd = sp_sockets_take_any(&call->s->sockets, call->process->pidfd,
                                 (pid_t)call->n->pid, sp_act_int(call, 0));
    int result = fd < 0 ? fd : 0;
    if (fd >= 0 &&
        setsockopt(fd, sp_act_int(call, 1), sp_act_int(call, 2), value, size) != 0)
        result = -errno;
    sp_close_fd(&fd);
    sp_watchdog_end();
    return result == 0 ? SP_RETURN(0) : SP_REFUSE(-result);
}

/* Joining tells the network around about the group: the group, any port, must be granted. */
static struct sp_answer join(struct sp_act_call *call)
{
    union {
        struct ip_mreqn v4;
        struct ipv6_mreq v6;
        unsigned char bytes[32];
    } value = {0};
    bool v4 = sp_act_int(call, 1) == IPPROTO_IP;
    int size = sp_act_int(call, 4);
    int least = (int)(v4 ? sizeof(struct ip_mreq) : sizeof value.v6);
    if (size < least)
        return SP_REFUSE(EINVAL);
    if (size > (int)sizeof value.bytes)
        size = (int)sizeof value.bytes;
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 3), value.bytes,
                      (size_t)size) != 0 ||
        !sp_notify_valid(call))
        return sp_act_unreadable(call, EFAULT);
    struct sp_address group = {.raw.sa.sa_family = v4 ? AF_INET : AF_INET6};
    if (v4)
        group.raw.in.sin_addr = value.v4.imr_multiaddr;
    else
        group.raw.in6.sin6_addr = value.v6.ipv6mr_multiaddr;
    sp_address_take(&group, v4 ? (int)sizeof group.raw.in : (int)sizeof group.raw.in6);
    struct sp_verdict verdict = sp_network_judge(call, &group);
    if (verdict.action == SP_DENY)
        return sp_network_deny(call, SP_ACT_NONE, "join", group.text, &group, &verdict,
                               EACCES);
    return set_option(call, &value, (socklen_t)size);
}

/* Done by us, so that it cannot change while what is bound is judged. */
static struct sp_answer set_number(struct sp_act_call *call)
{
    int value;
    if (sp_act_int(call, 4) < (int)sizeof value)
        return SP_REFUSE(EINVAL);
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 3), &value, sizeof value) !=
        0)
        return sp_act_unreadable(call, EFAULT);
    return set_option(call, &value, sizeof value);
}

/* Only what keeps the socket a TCP one: the kernel's own TLS. */
static struct sp_answer layer(struct sp_act_call *call)
{
    char name[16] = "";
    int size = sp_act_int(call, 4);
    if (size <= 0)
        return SP_REFUSE(EINVAL);
    size = size < (int)sizeof name ? size : (int)sizeof name - 1;
    if (sp_guest_read((pid_t)call->n->pid, sp_act_arg(call, 3), name, (size_t)size) !=
        0)
        return sp_act_unreadable(call, EFAULT);
    if (strcmp(name, "tls") != 0)
        return sp_network_deny(call, SP_ACT_NONE, "setsockopt", "TCP_ULP", NULL, NULL,
                               ENOPROTOOPT);
    return set_option(call, name, 3);
}

/* Notified are the IP levels, TCP_FASTOPEN_CONNECT and TCP_ULP. A datagram socket's stand-in
 * takes every IP option and does nothing; on a TCP socket they are the kernel's business. With
 * TCP_FASTOPEN_CONNECT, connect and send would become one call. */
struct sp_answer sp_act_setsockopt(struct sp_act_call *call)
{
    int level = sp_act_int(call, 1);
    int option = sp_act_int(call, 2);
    if (level == IPPROTO_TCP && option == TCP_ULP)
        return layer(call);
    if (level == IPPROTO_TCP)
        return sp_network_deny(call, SP_ACT_SOCKET, "setsockopt",
                               "TCP_FASTOPEN_CONNECT", NULL, NULL, ENOPROTOOPT);
    if (sp_sockets_is_stand_in(&call->s->sockets, (pid_t)call->n->pid,
                               sp_act_int(call, 0)))
        return SP_RETURN(0);
    if (call->s->reach != SP_REACH_JUDGED)
        return SP_CONTINUE;
    switch (effect_of(level, option)) {
    case JOINS:
        return join(call);
    case ROUTES:
        if (sp_act_int(call, 4) == 0) /* clears them */
            return SP_CONTINUE;
        return sp_network_deny(call, SP_ACT_NONE, "setsockopt", "a route of its own",
                               NULL, NULL, EACCES);
    case JOINS_IN_PARTS:
        return sp_network_deny(call, SP_ACT_NONE, "setsockopt",
                               "a group with chosen sources", NULL, NULL, EACCES);
    case BINDS:
        return set_number(call);
    case HARMLESS:
        break;
    }
    return SP_CONTINUE;
}
