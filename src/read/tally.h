/* How often each text of a set occurred, in the order of first appearance, in bounded memory:
 * what finds no room is counted without its text. */
#ifndef SP_READ_TALLY_H
#define SP_READ_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_TALLY_ITEMS_MAX 65536u
#define SP_TALLY_TEXT_MAX  1024u /* longer texts are cut */
#define SP_TALLY_BYTES_MAX (8u << 20)

struct sp_tally_item {
    const char *text; /* owned by the tally, not terminated */
    uint32_t size;
    uint64_t count;
};

struct sp_tally {
    struct sp_tally_item *items; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* owned: index + 1 by hash, 0 free; a power of two of them */
    uint32_t slots_count;
    size_t bytes;
    uint64_t total;    /* occurrences */
    uint64_t unlisted; /* of these, ones whose text found no room */
};

void sp_tally_init(struct sp_tally *t);
void sp_tally_release(struct sp_tally *t);
void sp_tally_add(struct sp_tally *t, const char *text, size_t size, uint64_t count);

/* Where in `items` the text stands. False: it does not. */
bool sp_tally_find(const struct sp_tally *t, const char *text, size_t size,
                   uint32_t *ret_index);

#endif
