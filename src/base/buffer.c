#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sp_buffer_init(struct sp_buffer *b, size_t size_max)
{
    *b = (struct sp_buffer){.size_max = size_max};
}

void sp_buffer_release(struct sp_buffer *b)
{
    free(b->data);
    *b = (struct sp_buffer){.size_max = b->size_max};
}

void sp_buffer_clear(struct sp_buffer *b)
{
    b->size = 0;
    b->failed = false;
}

char *sp_buffer_reserve(struct sp_buffer *b, size_t size)
{
    if (b->failed)
        return NULL;
    if (size <= b->capacity - b->size)
        return b->data + b->size;
    if (size > b->size_max || b->size > b->size_max - size) {
        b->failed = true;
        return NULL;
    }
    size_t want = b->capacity < 256 ? 256 : b->capacity * 2;
    if (want < b->size + size)
        want = b->size + size;
    if (want > b->size_max)
        want = b->size_max;
    char *data = realloc(b->data, want);
    if (data == NULL) {
        b->failed = true;
        return NULL;
    }
    b->data = data;
    b->capacity = want;
    return data + b->size;
}

void sp_buffer_append(struct sp_buffer *b, const void *data, size_t size)
{
    if (size == 0)
        return;
    char *to = sp_buffer_reserve(b, size);
    if (to == NULL)
        return;
    memcpy(to, data, size);
    b->size += size;
}

void sp_buffer_text(struct sp_buffer *b, const char *text)
{
    sp_buffer_append(b, text, strlen(text));
}

void sp_buffer_format(struct sp_buffer *b, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n >= 0) {
        char *to = sp_buffer_reserve(b, (size_t)n + 1);
        if (to != NULL) {
            vsnprintf(to, (size_t)n + 1, format, again);
            b->size += (size_t)n;
        }
    }
    va_end(again);
}
