/* The one way to the supervisor: a call with a small result.
 *
 * Under the filter it is a system call that no kernel implements and that the supervisor
 * answers. Without the filter (degraded runs, tests) it goes over a SOCK_SEQPACKET Unix
 * socket that SANDPIT_CHANNEL names:
 *
 *   request  struct sp_channel_request, and as SCM_RIGHTS one descriptor: the socket on
 *            which this call's answer is awaited (each call brings its own, so that threads
 *            and forked children that share the channel never read each other's answers);
 *            KICK, which needs no answer, brings none
 *   answer   int64_t; for HELLO with the ring's descriptor as SCM_RIGHTS
 *
 * The caller's process is known by SCM_CREDENTIALS, never from the request.
 */
#ifndef SP_AGENT_CHANNEL_H
#define SP_AGENT_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

#define SP_CHANNEL_VARIABLE "SANDPIT_CHANNEL"

struct sp_channel_request {
    uint64_t op; /* enum sp_call_op */
    uint64_t a1;
    uint64_t a2;
    uint64_t a3;
};

/* Says HELLO (EXEC) and so finds out which way there is. Returns the ring's descriptor, or
 * a negative errno: nobody is there, all later calls return -ENOSYS at once. */
int64_t sp_channel_open(uint32_t version_hex);

/* Whether calls go over the socket: there is no listener. */
bool sp_channel_degraded(void);

/* Result or negative errno. Leaves errno alone, repeats when a signal interrupts. Any
 * thread; in a forked child too. */
int64_t sp_call(enum sp_call_op op, uint64_t a1, uint64_t a2, uint64_t a3);

#endif
