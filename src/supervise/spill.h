/* Files that found no room among the noted ones: only by how much they grew on disk is kept.
 *
 * The last of them are watched; what one that has to make room has come to is added up. A file
 * that is removed later is noted once more, and counts down again.
 */
#ifndef SP_SUPERVISE_SPILL_H
#define SP_SUPERVISE_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#define SP_SPILL_MAX 256u

struct sp_spilled {
    char *path;
    uint64_t hash;
    uint64_t blocks; /* before */
};

struct sp_spill {
    struct sp_spilled items[SP_SPILL_MAX]; /* a ring */
    uint32_t next;
    int64_t settled_blocks;
};

/* About to be changed. */
void sp_spill_note(struct sp_spill *spill, const char *path, uint64_t hash);

/* Bytes that all of them have grown by. */
uint64_t sp_spill_grown(const struct sp_spill *spill);

void sp_spill_release(struct sp_spill *spill);

#endif
