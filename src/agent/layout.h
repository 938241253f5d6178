/* Tells the supervisor where this interpreter keeps its frames (struct sp_ring_frames). */
#ifndef SP_AGENT_LAYOUT_H
#define SP_AGENT_LAYOUT_H

/* Fills ring->frames; once, with the main interpreter's GIL held. */
void sp_layout_publish(void);

#endif
