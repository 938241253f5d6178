/* Events of the program's loader: they come before its agent has reported in, while the trace
 * cannot begin yet, and are written after its `start`.
 */
#ifndef SP_SUPERVISE_EARLY_H
#define SP_SUPERVISE_EARLY_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "event/event.h"

struct sp_trace_writer;

struct sp_early {
    struct sp_buffer events;
    uint64_t lost; /* for which there was no room */
};

void sp_early_init(struct sp_early *early);
void sp_early_release(struct sp_early *early);

/* An event of the kernel's layer. `members` as for sp_trace_members(). */
void sp_early_add(struct sp_early *early, enum sp_kind kind, uint64_t t_ns, pid_t pid,
                  pid_t tid, const struct sp_buffer *members);

/* Writes them all, in order, and gives their memory back. */
void sp_early_tell(struct sp_early *early, struct sp_trace_writer *w);

#endif
