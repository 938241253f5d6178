/* A growing byte buffer with a hard maximum. Once an append fails, `failed` stays set and
 * later appends do nothing, so that a series of appends needs one check at its end.
 */
#ifndef SP_BASE_BUFFER_H
#define SP_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_buffer {
    char *data;
    size_t size;
    size_t capacity;
    size_t size_max;
    bool failed;
};

void sp_buffer_init(struct sp_buffer *b, size_t size_max);
void sp_buffer_release(struct sp_buffer *b);
void sp_buffer_clear(struct sp_buffer *b); /* empty and reusable, memory kept */

/* Room for `size` more bytes; NULL when the maximum is reached or memory is out. The bytes
 * count only after sp_buffer_advance(). */
char *sp_buffer_reserve(struct sp_buffer *b, size_t size);
static inline void sp_buffer_advance(struct sp_buffer *b, size_t size)
{
    b->size += size;
}

void sp_buffer_append(struct sp_buffer *b, const void *data, size_t size);
void sp_buffer_text(struct sp_buffer *b, const char *text);
void sp_buffer_format(struct sp_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define sp_auto_buffer __attribute__((cleanup(sp_buffer_release))) struct sp_buffer

#endif
