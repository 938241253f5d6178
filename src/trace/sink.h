/* The file under a trace: whole lines in, buffered, never half a line left in the file.
 *
 * The disk may fill up, by the guest's doing too. Therefore blocks are set aside ahead of
 * what is written, where the file system can do that, so that the last lines always find
 * room. Where it cannot, a write that fails is taken back to the last whole line, and what
 * is buffered is tried again later; until then lines of weight are kept in memory.
 */
#ifndef SP_TRACE_SINK_H
#define SP_TRACE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/packing.h"

#define SP_SINK_BUFFER (64u << 10)

/* Room that ordinary lines leave for the last ones: losses, a checkpoint, the end. */
#define SP_SINK_TAIL (32u << 10)

/* ... and that lines of no great weight leave for those that must not be lost. */
#define SP_SINK_MARGIN (64u << 10)

/* What the buffer holds of them while the disk is full. */
#define SP_SINK_CAPACITY (SP_SINK_BUFFER + SP_SINK_TAIL + SP_SINK_MARGIN)

struct sp_sink {
    int fd;       /* owned; -1: everything is accepted and dropped */
    char *buffer; /* owned, SP_SINK_CAPACITY bytes, starts at a line; NULL with fd -1 */
    size_t used;
    struct sp_packer *packer; /* owned; NULL: the text is not compressed */
    uint64_t text;            /* bytes of lines that are in the file */
    uint64_t
        written; /* bytes in the file: the same, unless they are compressed there */
    uint64_t
        reserved; /* the file has blocks up to this offset; UINT64_MAX: not known */
    bool full;    /* the last attempt to get room failed */
    uint64_t tried_ns; /* when */
    int err;           /* errno of the last failure */
};

/* Takes fd on success. `packed`: the lines are compressed, a buffer at a time. 0, or -1 without
 * memory. */
int sp_sink_init(struct sp_sink *s, int fd, bool packed);
void sp_sink_release(struct sp_sink *s); /* closes fd, drops what is buffered */

/* Bytes accepted so far: the offset of the next line. */
static inline uint64_t sp_sink_size(const struct sp_sink *s)
{
    return s->text + s->used;
}

/* What the file is long at the most, with all that was accepted. */
static inline uint64_t sp_sink_stored(const struct sp_sink *s)
{
    return s->written + s->used + (s->packer != NULL ? SP_PACKING_EXTRA : 0);
}

/* Whether a line of `size` bytes finds room with `keep` more left for later. After a failure
 * it answers no for a while without asking the system again. */
bool sp_sink_room(struct sp_sink *s, size_t size, size_t keep);

/* At the start, where the disk is nearly full: the same. False: it has no room for a trace. */
bool sp_sink_begin(struct sp_sink *s);

/* From now on the disk may fill up at any moment: sets aside what the last lines need. */
void sp_sink_guard(struct sp_sink *s);

/* Accepts one whole line. False: it is not stored, and nothing of it is in the file. */
bool sp_sink_append(struct sp_sink *s, const char *line, size_t size);

/* Writes out what is buffered. False: some is still buffered (see err). */
bool sp_sink_flush(struct sp_sink *s);

/* Flushes and gives back the blocks that were set aside. */
bool sp_sink_finish(struct sp_sink *s);

#endif
