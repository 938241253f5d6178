#include "read/uses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sp_uses_init(struct sp_uses *u)
{
    *u = (struct sp_uses){0};
}

void sp_uses_release(struct sp_uses *u)
{
    sp_tally_release(&u->names);
    sp_tally_release(&u->places);
    sp_tally_release(&u->hosts);
    sp_tally_release(&u->looked);
    free(u->host_of);
    free(u->uses);
    sp_uses_init(u);
}

/* Index of a text, which is added when there is room. */
static bool take_in(struct sp_tally *t, const char *text, size_t size,
                    uint32_t *ret_index)
{
    sp_tally_add(t, text, size, 1);
    return sp_tally_find(t, text, size, ret_index);
}

static struct sp_use *use_of(struct sp_uses *u, const char *name, size_t size)
{
    uint32_t i;
    if (!take_in(&u->names, name, size, &i))
        return NULL;
    if (i >= u->capacity) {
        const uint32_t capacity = u->capacity == 0 ? 64 : u->capacity * 2;
        struct sp_use *uses = realloc(u->uses, capacity * sizeof *uses);
        if (uses == NULL)
            return NULL; /* room is missing, for this one and those behind it */
        memset(uses + u->capacity, 0, (capacity - u->capacity) * sizeof *uses);
        u->uses = uses;
        u->capacity = capacity;
    }
    return &u->uses[i];
}

static void add_place(struct sp_uses *u, struct sp_use *use, const char *text,
                      size_t size)
{
    uint32_t place;
    if (!take_in(&u->places, text, size, &place)) {
        use->elsewhere++;
        return;
    }
    for (uint32_t i = 0; i < use->places_count; i++)
        if (use->places[i].place == place) {
            use->places[i].count += use->places[i].count < UINT32_MAX;
            return;
        }
    if (use->places_count == SP_USE_PLACES_MAX) {
        use->elsewhere++;
        return;
    }
    use->places[use->places_count].place = place;
    use->places[use->places_count++].count = 1;
}

/* Where the program did it: `at`, or what a violation has. */
static void add_place_of(struct sp_uses *u, struct sp_use *use,
                         const struct sp_read_event *e)
{
    char text[SP_TALLY_TEXT_MAX];
    const struct sp_json_node *at = sp_tape_text(e->tape, "at");
    const struct sp_json_node *file = sp_tape_text(e->tape, "file");
    const int64_t line = sp_tape_int(e->tape, "line", 0);
    if (at != NULL && at->size > 0) {
        add_place(u, use, at->text, at->size);
    } else if (file != NULL && file->size > 0 && file->size < 900 && line > 0) {
        const int n = snprintf(text, sizeof text, "%.*s:%" PRId64, (int)file->size,
                               file->text, line);
        add_place(u, use, text, (size_t)n);
    }
}

struct sp_use *sp_uses_add(struct sp_uses *u, const char *name, size_t size,
                           unsigned way, const struct sp_read_event *event)
{
    struct sp_use *use = use_of(u, name, size);
    if (use == NULL)
        return NULL;
    uint64_t count = 1;
    if (event->kind == SP_KIND_VIOLATION) { /* repeats come in one event */
        const int64_t told = sp_tape_int(event->tape, "count", 1);
        count = told > 0 ? (uint64_t)told : 1;
    }
    use->counts[way] += count;
    add_place_of(u, use, event);
    return use;
}
