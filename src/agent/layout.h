/* Tells the supervisor where this interpreter keeps its frames (struct sp_ring_frames). */
#ifndef SP_AGENT_LAYOUT_H
#define SP_AGENT_LAYOUT_H

#include <stdint.h>

/* Fills ring->frames; once, with the main interpreter's GIL held. */
void sp_layout_publish(void);

/* sp_ring_spot() of the instruction that this thread executes; 0 when it holds no GIL. */
uint64_t sp_layout_spot(void);

#endif
