/* Ends a system call of our own that waits though it should not.
 *
 * What a descriptor that is shared with the guest says about waiting (O_NONBLOCK, timeouts,
 * lingering) the guest can change at any moment. So calls on such descriptors are made under
 * a timer whose signal breaks them off: each waits a few milliseconds at most.
 */
#ifndef SP_SYS_WATCHDOG_H
#define SP_SYS_WATCHDOG_H

#include <stdbool.h>

/* From here to the end, a call that waits fails with EINTR soon. Can be nested; what was begun
 * is ended. false: there is no timer, and nothing that may wait must be called. */
bool sp_watchdog_begin(void);
void sp_watchdog_end(void);

#endif
