/* The agents' way to us where there is no listener: a socket, on which each call brings the
 * socket that its answer goes to. Who calls is known from the kernel (SCM_CREDENTIALS), what
 * is said remains a claim.
 */
#ifndef SP_SUPERVISE_CHANNEL_H
#define SP_SUPERVISE_CHANNEL_H

#include <stdbool.h>

#include "base/error.h"

struct sp_supervisor;

/* Makes the pair: ours into s->channel, the guest's into *ret_guest. */
int sp_channel_make(struct sp_supervisor *s, int *ret_guest, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Takes one call and answers it. false when nobody is at the other end any more. */
bool sp_channel_take(struct sp_supervisor *s);

#endif
