#include "read/frame_table.h"

#include <stdlib.h>
#include <string.h>

#include "read/functions.h"

void sp_frame_table_init(struct sp_frame_table *t)
{
    *t = (struct sp_frame_table){0};
}

void sp_frame_table_release(struct sp_frame_table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free(t->items[i].data);
    free(t->items);
    free(t->slots);
    free(t->by_id);
    sp_frame_table_init(t);
}

/* FNV-1a: the texts are short, and who makes them collide slows down only their own export. */
static uint32_t hash(const char *text, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ h >> 32);
}

static uint32_t *find(const struct sp_frame_table *t, const char *text, size_t size)
{
    uint32_t i = hash(text, size) & (t->slots_count - 1);
    while (t->slots[i] != 0) {
        const struct sp_frame_text *item = &t->items[t->slots[i] - 1];
        if (item->size == size && memcmp(item->data, text, size) == 0)
            break;
        i = (i + 1) & (t->slots_count - 1);
    }
    return &t->slots[i];
}

static int grow(struct sp_frame_table *t)
{
    const uint32_t capacity = t->capacity == 0 ? 256 : t->capacity * 2;
    struct sp_frame_text *items = realloc(t->items, capacity * sizeof *items);
    if (items == NULL)
        return -1;
    t->items = items;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL)
        return -1;
    free(t->slots);
    t->slots = slots;
    t->slots_count = capacity * 2;
    t->capacity = capacity;
    for (uint32_t i = 0; i < t->count; i++)
        *find(t, items[i].data, items[i].size) = i + 1;
    return 0;
}

uint32_t sp_frame_table_add(struct sp_frame_table *t, const char *text, size_t size)
{
    if (size == 0)
        text = ""; /* an empty buffer has none */
    if (t->count == t->capacity &&
        (t->count == SP_FRAMES_MAX || grow(t) < 0)) /* a full table is still searched */
        return t->count == 0 || *find(t, text, size) == 0 ? SP_FRAME_NONE
                                                          : *find(t, text, size) - 1;
    uint32_t *slot = find(t, text, size);
    if (*slot != 0)
        return *slot - 1;
    char *data = size > SP_FRAMES_BYTES_MAX - t->bytes ? NULL : malloc(size + 1);
    if (data == NULL)
        return SP_FRAME_NONE;
    memcpy(data, text, size);
    t->bytes += size;
    t->items[t->count++] = (struct sp_frame_text){data, (uint32_t)size};
    *slot = t->count;
    return t->count - 1;
}

uint32_t sp_frame_table_of_id(const struct sp_frame_table *t, uint32_t id)
{
    return id < t->by_id_count ? t->by_id[id] - 1 : SP_FRAME_NONE;
}

void sp_frame_table_note(struct sp_frame_table *t, uint32_t id, uint32_t frame)
{
    if (id >= SP_READ_FUNCTIONS_MAX || (id >= t->by_id_count && frame == SP_FRAME_NONE))
        return;
    if (id >= t->by_id_count) {
        uint32_t count = t->by_id_count < 1024 ? 1024 : t->by_id_count * 2;
        if (count <= id)
            count = id + 1;
        uint32_t *by_id = realloc(t->by_id, count * sizeof *by_id);
        if (by_id == NULL)
            return;
        memset(by_id + t->by_id_count, 0, (count - t->by_id_count) * sizeof *by_id);
        t->by_id = by_id;
        t->by_id_count = count;
    }
    t->by_id[id] = frame + 1;
}
