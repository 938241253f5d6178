#include "read/denials.h"

#include <stdlib.h>
#include <string.h>

#include "read/read_event.h"

void sp_read_violations_init(struct sp_read_violations *v)
{
    *v = (struct sp_read_violations){0};
}

void sp_read_violations_release(struct sp_read_violations *v)
{
    for (uint32_t i = 0; i < v->count; i++)
        free((char *)v->items[i].category.data);
    free(v->items);
    sp_read_violations_init(v);
}

/* A trace's seq only grows, so the items are in order. */
static struct sp_read_violation *find(const struct sp_read_violations *v, uint64_t seq)
{
    uint32_t low = 0;
    uint32_t high = v->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (v->items[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->count && v->items[low].seq == seq ? &v->items[low] : NULL;
}

static struct sp_read_violation *add_item(struct sp_read_violations *v, uint64_t seq)
{
    if (v->count == SP_READ_VIOLATIONS_MAX ||
        (v->count > 0 && v->items[v->count - 1].seq >= seq))
        return NULL;
    if (v->count == v->capacity) {
        const uint32_t capacity = v->capacity == 0 ? 16 : v->capacity * 2;
        struct sp_read_violation *items = realloc(v->items, capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        v->items = items;
        v->capacity = capacity;
    }
    return &v->items[v->count];
}

static bool take_texts(struct sp_read_violation *item, const struct sp_tape *tape)
{
    static const char *const keys[] = {"category", "operation", "target",
                                       "rule",     "source",    "action",
                                       "message",  "hint",      "at"};
    struct sp_text *const texts[] = {&item->category, &item->operation, &item->target,
                                     &item->rule,     &item->source,    &item->action,
                                     &item->message,  &item->hint,      &item->at};
    const size_t count = sizeof keys / sizeof *keys;
    size_t size = 1;
    for (size_t i = 0; i < count; i++) {
        const struct sp_json_node *node = sp_tape_text(tape, keys[i]);
        *texts[i] = (struct sp_text){"", 0};
        if (node != NULL)
            *texts[i] =
                (struct sp_text){node->text, node->size < SP_READ_VIOLATION_TEXT_MAX
                                                 ? node->size
                                                 : SP_READ_VIOLATION_TEXT_MAX};
        size += texts[i]->size;
    }
    char *to = malloc(size);
    if (to == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        memcpy(to, texts[i]->data, texts[i]->size);
        texts[i]->data = to;
        to += texts[i]->size;
    }
    return true;
}

void sp_read_violations_add(struct sp_read_violations *v,
                            const struct sp_read_event *event)
{
    int64_t count = sp_tape_int(event->tape, "count", 1);
    if (count < 1)
        count = 1;
    v->total += (uint64_t)count;
    const int64_t of = sp_tape_int(event->tape, "of", -1);
    struct sp_read_violation *first = of < 0 ? NULL : find(v, (uint64_t)of);
    if (first != NULL) {
        first->count += (uint64_t)count;
        return;
    }
    /* A repeat of one that is not here, as after a loss, stands for itself. */
    struct sp_read_violation *item = add_item(v, event->seq);
    if (item == NULL || !take_texts(item, event->tape)) {
        v->unlisted += (uint64_t)count;
        return;
    }
    item->seq = event->seq;
    item->count = (uint64_t)count;
    v->count++;
}
