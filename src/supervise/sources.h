/* `source` lines: the text of the program, and of what it compiled, once each, by its digest.
 *
 * A run keeps so much text and no more: what finds no room is told of by its digest only, where
 * it was compiled.
 */
#ifndef SP_SUPERVISE_SOURCES_H
#define SP_SUPERVISE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "event/event.h"

struct sp_trace_writer;

#define SP_SOURCE_DIGEST_BYTES 32u
#define SP_SOURCE_BYTES_MAX    (1u << 20)  /* of one text; what follows is cut off */
#define SP_SOURCES_BYTES_MAX   (16u << 20) /* of all texts of a run */
#define SP_SOURCES_MAX         4096u

/* One text. Borrowed. */
struct sp_source {
    const char *file; /* as code objects name it; not terminated */
    size_t file_size;
    const char *text; /* its beginning: all of it, or SP_SOURCE_BYTES_MAX */
    size_t size;
    uint64_t whole_size;                    /* of the whole text */
    uint8_t digest[SP_SOURCE_DIGEST_BYTES]; /* BLAKE2b-256 of the whole text */
};

/* Which texts of a run have their line. All zero: none. */
struct sp_sources {
    uint8_t (*known)[SP_SOURCE_DIGEST_BYTES]; /* hashed, NULL: none yet */
    bool *taken;
    size_t count;
    uint64_t bytes;
};

/* Writes the text's line unless it has one. false: there is no room for it. */
bool sp_sources_tell(struct sp_sources *sources, struct sp_trace_writer *w,
                     const struct sp_source *source, enum sp_layer layer, uint64_t t_ns,
                     pid_t pid, pid_t tid);
void sp_sources_release(struct sp_sources *sources);

#endif
