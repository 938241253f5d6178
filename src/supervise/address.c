#include "supervise/address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "supervise/record.h"

/* What the kernel asks of an IPv6 address at least (RFC 2133's form, without a scope). */
#define IN6_SIZE_MIN 24u

const char *sp_family_name(int family)
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

const char *sp_type_name(int type)
{
    static const char *const names[] = {"0",   "stream",    "dgram", "raw",
                                        "rdm", "seqpacket", "dccp"};
    type &= 0xf;
    return type < (int)(sizeof names / sizeof *names) ? names[type] : "other";
}

static void describe(struct sp_address *a)
{
    snprintf(a->text, sizeof a->text, "a %s address", sp_family_name(a->family));
    if (a->family == AF_INET && a->size >= sizeof a->raw.in) {
        inet_ntop(AF_INET, &a->raw.in.sin_addr, a->host, sizeof a->host);
        a->port = ntohs(a->raw.in.sin_port);
        snprintf(a->text, sizeof a->text, "%s:%d", a->host, a->port);
    } else if (a->family == AF_INET6 && a->size >= IN6_SIZE_MIN) {
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

bool sp_address_take(struct sp_address *address, int size)
{
    if (size < (int)sizeof(sa_family_t) || size > (int)sizeof address->raw)
        return false;
    memset(address->raw.bytes + size, 0, sizeof address->raw - (size_t)size);
    address->size = (socklen_t)size;
    address->family = address->raw.sa.sa_family;
    address->port = 0;
    address->host[0] = '\0';
    describe(address);
    return true;
}

bool sp_address_is_inet(const struct sp_address *address)
{
    return address->host[0] != '\0';
}

void sp_address_settle(struct sp_address *address)
{
    if (!sp_address_is_inet(address))
        return;
    if (address->family == AF_INET && address->raw.in.sin_addr.s_addr == INADDR_ANY)
        address->raw.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (address->family != AF_INET6)
        return;
    struct in6_addr *in6 = &address->raw.in6.sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(in6))
        *in6 = in6addr_loopback;
    else if (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr32[3] == INADDR_ANY)
        in6->s6_addr32[3] = htonl(INADDR_LOOPBACK);
}

void sp_address_bytes(const struct sp_address *address, uint8_t to[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (address->family == AF_INET6) {
        memcpy(to, &address->raw.in6.sin6_addr, 16);
        return;
    }
    memcpy(to, mapped, sizeof mapped);
    memcpy(to + sizeof mapped, &address->raw.in.sin_addr, 4);
}

void sp_address_members(const struct sp_address *address, struct sp_buffer *members)
{
    sp_member_text(members, "family", sp_family_name(address->family));
    if (address->family == AF_INET || address->family == AF_INET6) {
        sp_member_text(members, "address", address->host);
        sp_member_int(members, "port", address->port);
    } else {
        sp_member_text(members, "address", address->text);
    }
}
