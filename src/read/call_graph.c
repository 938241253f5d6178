/* The graph of callers and functions, made of `call` lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/calls.h"

#define TEXT_MAX 480u /* of a name and of a file; longer ones are cut */

static uint32_t take_name(struct sp_calls *c, const struct sp_json_node *name)
{
    uint32_t i;
    const size_t size = name->size < TEXT_MAX ? name->size : TEXT_MAX;
    sp_tally_add(&c->names, name->text, size, 1);
    return sp_tally_find(&c->names, name->text, size, &i) ? i : SP_CALLS_NONE;
}

static bool make_room(struct sp_calls *c, uint32_t index)
{
    if (index < c->named_capacity)
        return true;
    const uint32_t capacity = c->named_capacity == 0 ? 256 : c->named_capacity * 2;
    struct sp_function *named = realloc(c->named, capacity * sizeof *named);
    if (named == NULL)
        return false;
    c->named = named;
    uint32_t *name_of = realloc(c->name_of, capacity * sizeof *name_of);
    if (name_of == NULL)
        return false;
    c->name_of = name_of;
    c->named_capacity = capacity;
    return true;
}

/* The number of the function that a line is about: its file, line and name. Where one without
 * Python code is called singly, file and line are its caller's. */
static uint32_t take_function(struct sp_calls *c, const struct sp_tape *tape)
{
    char key[2 * TEXT_MAX + 40];
    uint32_t i;
    const struct sp_json_node *name = sp_tape_text(tape, "function");
    const bool native = sp_tape_true(tape, "native");
    const struct sp_json_node *file = native ? NULL : sp_tape_text(tape, "file");
    const int64_t line = native ? 0 : sp_tape_int(tape, "line", 0);
    const uint32_t number = name == NULL ? SP_CALLS_NONE : take_name(c, name);
    if (number == SP_CALLS_NONE)
        return SP_CALLS_NONE;
    const size_t file_size = file == NULL            ? 0
                             : file->size < TEXT_MAX ? file->size
                                                     : TEXT_MAX;
    const size_t name_size = name->size < TEXT_MAX ? name->size : TEXT_MAX;
    if (file_size > 0)
        memcpy(key, file->text, file_size);
    size_t size = file_size;
    size += (size_t)snprintf(key + size, 40, "%c%" PRId64 "%c", 0, line, 0);
    const size_t name_at = size;
    memcpy(key + size, name->text, name_size);
    size += name_size;
    const uint32_t before = c->keys.count;
    sp_tally_add(&c->keys, key, size, 1);
    if (!sp_tally_find(&c->keys, key, size, &i))
        return SP_CALLS_NONE;
    if (c->keys.count > before || i >= c->named_capacity) {
        if (!make_room(c, i))
            return SP_CALLS_NONE;
        const char *text = c->keys.items[i].text;
        c->named[i] =
            (struct sp_function){.name = {text + name_at, (uint32_t)name_size},
                                 .module = {"", 0},
                                 .file = {text, (uint32_t)file_size},
                                 .line = line,
                                 .native = native,
                                 .known = true};
        c->name_of[i] = number;
    }
    return i;
}

static uint64_t natural(const struct sp_tape *tape, const char *key, int64_t otherwise)
{
    const int64_t value = sp_tape_int(tape, key, otherwise);
    return value > 0 ? (uint64_t)value : 0;
}

void sp_call_graph_add(struct sp_calls *c, const struct sp_read_event *e)
{
    const struct sp_json_node *caller = sp_tape_text(e->tape, "caller");
    const uint64_t count = natural(e->tape, "count", 1);
    const uint32_t top = sp_calls_top(c, e->pid, 0);
    const uint32_t function = take_function(c, e->tape);
    const uint32_t from = caller == NULL ? SP_CALLS_NONE : take_name(c, caller);
    if (top == SP_CALLS_NONE || function == SP_CALLS_NONE ||
        (caller != NULL && from == SP_CALLS_NONE)) {
        c->unlisted += count;
        return;
    }
    const uint32_t i = sp_calls_node(c, top, from, function);
    if (i == SP_CALLS_NONE) {
        c->unlisted += count;
        return;
    }
    c->nodes[i].count += count;
    c->nodes[i].resumes += natural(e->tape, "resumes", 0);
    c->nodes[i].total_ns += natural(e->tape, "total", 0);
    c->nodes[i].self_ns += natural(e->tape, "self", 0);
}

/* ---- at the end ---------------------------------------------------------------------------- */

/* All nodes of one process with the same caller, linked by `next`. */
struct group {
    uint32_t first;
    uint32_t last;
    bool called;  /* its caller is the function of some node */
    bool reached; /* from a root */
};

struct groups {
    struct sp_pair_map of; /* by top and name: index + 1 */
    struct group *items;   /* owned: room for as many as there are nodes */
    uint32_t count;
    uint32_t *waiting; /* owned: groups that were reached, and not gone through yet */
};

static struct group *find_group(const struct groups *g, uint32_t top, uint32_t name)
{
    const void *value = sp_pair_map_get(&g->of, top, name);
    return value == NULL ? NULL : &g->items[(uintptr_t)value - 1];
}

static struct group *children_of(const struct sp_calls *c, const struct groups *g,
                                 uint32_t i)
{
    return find_group(g, c->nodes[i].top, c->name_of[c->nodes[i].function]);
}

static bool make_groups(struct sp_calls *c, struct groups *g)
{
    for (uint32_t i = 0; i < c->count; i++) {
        struct sp_call_node *node = &c->nodes[i];
        struct group *group = find_group(g, node->top, node->parent);
        if (group == NULL) {
            group = &g->items[g->count];
            if (!sp_pair_map_add(&g->of, node->top, node->parent,
                                 (void *)((uintptr_t)g->count + 1)))
                return false;
            *group = (struct group){.first = SP_CALLS_NONE, .last = SP_CALLS_NONE};
            g->count++;
        }
        sp_calls_link(&group->first, &group->last, c->nodes, i);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        struct group *below = children_of(c, g, i);
        if (below != NULL) {
            c->nodes[i].child = below->first;
            below->called = true;
        }
    }
    return true;
}

/* Marks what can be reached from a group; each is gone through once. */
static void reach(const struct sp_calls *c, struct groups *g, struct group *group)
{
    uint32_t waiting = 0;
    group->reached = true;
    for (;;) {
        for (uint32_t i = group->first; i != SP_CALLS_NONE; i = c->nodes[i].next) {
            struct group *below = children_of(c, g, i);
            if (below == NULL || below->reached)
                continue;
            below->reached = true;
            g->waiting[waiting++] = (uint32_t)(below - g->items);
        }
        if (waiting == 0)
            return;
        group = &g->items[g->waiting[--waiting]];
    }
}

/* Roots are what nobody called, and one way into what only calls itself in a circle. */
static void find_roots(const struct sp_calls *c, struct groups *g, bool *roots)
{
    for (int circles = 0; circles < 2; circles++)
        for (uint32_t i = 0; i < g->count; i++) {
            struct group *group = &g->items[i];
            if (group->reached || (group->called && circles == 0))
                continue;
            for (uint32_t n = group->first; n != SP_CALLS_NONE; n = c->nodes[n].next)
                roots[n] = true;
            reach(c, g, group);
        }
}

bool sp_call_graph_finish(struct sp_calls *c, bool *roots)
{
    struct groups g = {0};
    sp_pair_map_init(&g.of);
    g.items = calloc((size_t)c->count + 1, sizeof *g.items);
    g.waiting = calloc((size_t)c->count + 1, sizeof *g.waiting);
    const bool made = g.items != NULL && g.waiting != NULL && make_groups(c, &g);
    if (made)
        find_roots(c, &g, roots);
    sp_pair_map_release(&g.of);
    free(g.items);
    free(g.waiting);
    return made;
}
