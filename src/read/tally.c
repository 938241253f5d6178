#include "read/tally.h"

#include <stdlib.h>
#include <string.h>

void sp_tally_init(struct sp_tally *t)
{
    *t = (struct sp_tally){0};
}

void sp_tally_release(struct sp_tally *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        free((char *)t->items[i].text);
    free(t->items);
    free(t->slots);
    sp_tally_init(t);
}

/* FNV-1a: an attacker who makes texts collide slows down the reading of that one trace, by at
 * most the number of items. */
static uint32_t hash_of(const char *text, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* The slot that holds the text, or the free one where it belongs. */
static uint32_t *find_slot(const struct sp_tally *t, const char *text, size_t size)
{
    const uint32_t mask = t->slots_count - 1;
    uint32_t i = hash_of(text, size) & mask;
    for (; t->slots[i] != 0; i = (i + 1) & mask) {
        const struct sp_tally_item *item = &t->items[t->slots[i] - 1];
        if (item->size == size && memcmp(item->text, text, size) == 0)
            break;
    }
    return &t->slots[i];
}

/* Keeps the slots at most half full. */
static bool grow(struct sp_tally *t)
{
    if (t->count < t->capacity)
        return true;
    const uint32_t capacity = t->capacity == 0 ? 32 : t->capacity * 2;
    struct sp_tally_item *items = realloc(t->items, capacity * sizeof *items);
    if (items == NULL)
        return false;
    t->items = items;
    uint32_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (slots == NULL)
        return false;
    free(t->slots);
    t->slots = slots;
    t->slots_count = 2 * capacity;
    t->capacity = capacity;
    for (uint32_t i = 0; i < t->count; i++)
        *find_slot(t, items[i].text, items[i].size) = i + 1;
    return true;
}

static bool insert(struct sp_tally *t, const char *text, size_t size, uint64_t count)
{
    if (t->count == SP_TALLY_ITEMS_MAX || size > SP_TALLY_BYTES_MAX - t->bytes ||
        !grow(t))
        return false;
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text, size);
    *find_slot(t, text, size) = t->count + 1;
    t->items[t->count++] =
        (struct sp_tally_item){.text = copy, .size = (uint32_t)size, .count = count};
    t->bytes += size;
    return true;
}

void sp_tally_add(struct sp_tally *t, const char *text, size_t size, uint64_t count)
{
    if (size > SP_TALLY_TEXT_MAX)
        size = SP_TALLY_TEXT_MAX;
    t->total += count;
    if (t->count > 0) {
        const uint32_t found = *find_slot(t, text, size);
        if (found != 0) {
            t->items[found - 1].count += count;
            return;
        }
    }
    if (!insert(t, text, size, count))
        t->unlisted += count;
}

bool sp_tally_find(const struct sp_tally *t, const char *text, size_t size,
                   uint32_t *ret_index)
{
    if (size > SP_TALLY_TEXT_MAX)
        size = SP_TALLY_TEXT_MAX;
    const uint32_t found = t->count == 0 ? 0 : *find_slot(t, text, size);
    if (found != 0)
        *ret_index = found - 1;
    return found != 0;
}
