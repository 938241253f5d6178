/* What a fuzzed supervisor reaches the world by: its listener, the network, its resolver. Linked with
 * --wrap for each function that is defined in notify_doors.c.
 */
#ifndef SP_FUZZ_NOTIFY_DOORS_H
#define SP_FUZZ_NOTIFY_DOORS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#define LISTENER_FD 1000   /* never used as a descriptor */
#define ANSWER_AT   0x3000 /* in the guest's memory: what the resolver says */

extern struct notify_door {
    struct seccomp_notif next; /* what the listener gives */
    unsigned answers;          /* of it */
} door;

extern struct notify_outside {
    uint8_t luck;    /* of what is sent and connected, two bits for each time */
    uint32_t serial; /* of the last question to the resolver */
    bool asked;
} outside;

#endif
