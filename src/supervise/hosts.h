/* Which names that were looked up led to which addresses.
 *
 * Only what our own resolver answered for a name that the policy grants or denies by name is
 * put down here: a connection to such an address is judged by the name as well.
 */
#ifndef SP_SUPERVISE_HOSTS_H
#define SP_SUPERVISE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define SP_HOST_BYTES   256u  /* a name, with its NUL */
#define SP_HOSTS_MAX    1024u /* past that the oldest goes */
#define SP_HOSTS_OF_ONE 16u   /* names of one address that are told */

struct sp_host_entry {
    uint8_t address[16];
    char name[SP_HOST_BYTES];
};

struct sp_hosts {
    struct sp_host_entry *items; /* made at the first entry */
    unsigned count;
    unsigned next;
    const char *found[SP_HOSTS_OF_ONE + 1];
};

void sp_hosts_release(struct sp_hosts *hosts);

/* In the form that policies hold: lower case, without a dot at the end. false: it is no name
 * that could be granted (empty, too long, or not ASCII). */
bool sp_host_normal(const char *name, char to[SP_HOST_BYTES]);

/* Puts down that `name` (in normal form) led to the address. */
void sp_hosts_add(struct sp_hosts *hosts, const char *name, const uint8_t address[16]);

/* The names that led there, NULL ends; valid until the next call. */
const char *const *sp_hosts_of(struct sp_hosts *hosts, const uint8_t address[16]);

#endif
