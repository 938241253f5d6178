/* The functions that a profile shows, each once, by their numbers from 0. */
#ifndef SP_READ_FRAME_TABLE_H
#define SP_READ_FRAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define SP_FRAMES_MAX       (1u << 20)
#define SP_FRAMES_BYTES_MAX (128u << 20)
#define SP_FRAME_NONE       UINT32_MAX

/* A text, which says all there is of a function. */
struct sp_frame_text {
    char *data; /* owned */
    uint32_t size;
};

struct sp_frame_table {
    struct sp_frame_text *items; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* owned: number + 1 by hash of the text, 0 free */
    uint32_t slots_count;
    size_t bytes;
    uint32_t
        *by_id; /* owned: number + 1 by the id of a function in the trace, 0 unknown */
    uint32_t by_id_count;
};

void sp_frame_table_init(struct sp_frame_table *t);
void sp_frame_table_release(struct sp_frame_table *t);

/* The number of a text, a new one for a new text. SP_FRAME_NONE: there is no room. */
uint32_t sp_frame_table_add(struct sp_frame_table *t, const char *text, size_t size);

/* What was noted for an id; SP_FRAME_NONE: nothing. Noting SP_FRAME_NONE forgets. */
uint32_t sp_frame_table_of_id(const struct sp_frame_table *t, uint32_t id);
void sp_frame_table_note(struct sp_frame_table *t, uint32_t id, uint32_t frame);

#endif
