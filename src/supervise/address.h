/* An address that a guest handed to a call: copied once, and in words.
 *
 * What is judged and what is done is this copy; what the guest's memory holds afterwards
 * plays no part.
 */
#ifndef SP_SUPERVISE_ADDRESS_H
#define SP_SUPERVISE_ADDRESS_H

#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buffer.h"

struct sp_address {
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

/* "inet", "unix" ...; "other" for what has no name here. */
const char *sp_family_name(int family);
const char *sp_type_name(int type); /* flags of socket(2) are left out */

/* Takes `size` bytes that already lie in address->raw; false when the size makes no sense. */
bool sp_address_take(struct sp_address *address, int size);

/* INET and INET6, long enough for the kernel to take it. */
bool sp_address_is_inet(const struct sp_address *address);

/* Where a connection to "any" address leads: to the loopback address of that family. */
void sp_address_settle(struct sp_address *address);

/* The 16 bytes that a policy judges, IPv4 mapped into IPv6. */
void sp_address_bytes(const struct sp_address *address, uint8_t to[16]);

/* `family`, `address` and `port` as JSON members. */
void sp_address_members(const struct sp_address *address, struct sp_buffer *members);

#endif
