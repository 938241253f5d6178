/* Emptying a folder that somebody hostile filled. */
#ifndef SP_SYS_ERASE_H
#define SP_SYS_ERASE_H

#include <stdbool.h>
#include <stdint.h>

/* Removes all that is in the folder, whatever its modes and however deep; follows no link, waits
 * on no pipe. Nobody may be changing things in there any more.
 *
 * fd: of the folder, stays open and its position as it is.
 * deadline_ns: by sp_clock_ns(), when to stop; 0: never.
 *
 * Whether it is empty now. Where it is not, the deadline came, or something cannot be removed. */
bool sp_erase_content(int fd, uint64_t deadline_ns, bool *ret_late);

#endif
