/* Where a blocked thread of the guest stands in its Python code, read from outside.
 *
 * The agent has published where its interpreter keeps thread states and frames (a claim). The
 * walk copies a struct at a time with process_vm_readv, is bounded in frames and bytes, and
 * believes nothing: a guest can make it say anything about itself, and nothing else.
 */
#ifndef SP_SUPERVISE_FRAMES_H
#define SP_SUPERVISE_FRAMES_H

#include <stdint.h>
#include <sys/types.h>

#include "ring/ring.h"

#define SP_FRAMES_MAX     64u
#define SP_FRAME_FILE_MAX 512u
#define SP_FRAME_NAME_MAX 160u

struct sp_frame {
    int line; /* 0: unknown */
    char file
        [SP_FRAME_FILE_MAX]; /* UTF-8, cut at a character, NUL-terminated; may hold any */
    char name
        [SP_FRAME_NAME_MAX]; /* character, so escape it. The qualified name from 3.11 on */
};

/* Frames of thread `tid` of process `pid`, innermost first, at most `max` (and SP_FRAMES_MAX).
 * Returns how many; 0 when there are none or nothing could be read. The thread must be
 * stopped (in a notification) for the result to mean something. */
unsigned sp_frames_walk(const struct sp_ring_frames *layout, pid_t pid, pid_t tid,
                        struct sp_frame *ret_frames, unsigned max);

/* sp_ring_spot() of the instruction that the thread is at; 0: not known. As above. */
uint64_t sp_frames_spot(const struct sp_ring_frames *layout, pid_t pid, pid_t tid);

#endif
