/* Writing a compressed trace: each piece of text becomes a Zstandard frame (RFC 8878) of its own,
 * that says how long the text is and carries a checksum. The frames of a file, unpacked one after
 * the other, are the trace.
 */
#ifndef SP_TRACE_PACKING_H
#define SP_TRACE_PACKING_H

#include <stdbool.h>
#include <stddef.h>

struct sp_packer;

/* NULL: no memory. */
struct sp_packer *sp_packer_new(void);
void sp_packer_free(struct sp_packer *p);

/* So much longer than its text a frame is at the most, for a text of up to SP_SINK_CAPACITY. */
#define SP_PACKING_EXTRA 64u

/* Packs a text into one frame, and hands it on piece by piece. `put` returns false to stop.
 * false: `put` stopped it, or there is no memory (errno ENOMEM). */
bool sp_packer_frame(struct sp_packer *p, const char *text, size_t size,
                     bool (*put)(void *context, const char *data, size_t size),
                     void *context);

/* Whether a file of that name is to be compressed: it ends in .zst. */
bool sp_packing_wanted(const char *name);

#endif
