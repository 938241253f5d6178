#include "read/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

void sp_calls_init(struct sp_calls *c)
{
    *c = (struct sp_calls){0};
    sp_pair_map_init(&c->top_of);
    sp_pair_map_init(&c->node_of);
    sp_call_stacks_init(&c->stacks, &sp_call_tree_listener, c);
}

void sp_calls_release(struct sp_calls *c)
{
    sp_call_stacks_release(&c->stacks);
    sp_pair_map_release(&c->top_of);
    sp_pair_map_release(&c->node_of);
    sp_tally_release(&c->names);
    sp_tally_release(&c->keys);
    free(c->nodes);
    free(c->tops);
    free(c->roots);
    free(c->named);
    free(c->name_of);
    *c = (struct sp_calls){0};
}

/* ---- nodes and tops ------------------------------------------------------------------------ */

/* Maps hold pointers: an index is kept as one more than it is. */
static void *as_value(uint32_t index)
{
    return (void *)((uintptr_t)index + 1);
}

static uint32_t as_index(const void *value)
{
    return value == NULL ? SP_CALLS_NONE : (uint32_t)((uintptr_t)value - 1);
}

static bool grow(void *items, uint32_t *capacity, uint32_t count, size_t size)
{
    if (count < *capacity)
        return true;
    const uint32_t larger = *capacity == 0 ? 64 : *capacity * 2;
    void **array = items;
    void *made = realloc(*array, larger * size);
    if (made == NULL)
        return false;
    *array = made;
    *capacity = larger;
    return true;
}

uint32_t sp_calls_top(struct sp_calls *c, int64_t pid, int64_t tid)
{
    const uint32_t known = as_index(sp_pair_map_get(&c->top_of, pid, tid));
    if (known != SP_CALLS_NONE)
        return known;
    if (c->tops_count == SP_CALLS_TOPS_MAX ||
        !grow(&c->tops, &c->tops_capacity, c->tops_count, sizeof *c->tops) ||
        !sp_pair_map_add(&c->top_of, pid, tid, as_value(c->tops_count)))
        return SP_CALLS_NONE;
    c->tops[c->tops_count] = (struct sp_call_top){.pid = pid, .tid = tid};
    return c->tops_count++;
}

/* What a node is beneath, as the first number of its pair: its parent, or its top. */
static int64_t above_of(const struct sp_calls *c, uint32_t top, uint32_t parent)
{
    if (c->form == SP_CALLS_GRAPH) /* a caller's name counts in its process only */
        return (int64_t)top << 32 | parent;
    return parent == SP_CALLS_NONE ? -1 - (int64_t)top : (int64_t)parent;
}

uint32_t sp_calls_node(struct sp_calls *c, uint32_t top, uint32_t parent,
                       uint32_t function)
{
    const int64_t above = above_of(c, top, parent);
    const uint32_t known = as_index(sp_pair_map_get(&c->node_of, above, function));
    if (known != SP_CALLS_NONE)
        return known;
    if (c->count == SP_CALLS_NODES_MAX ||
        !grow(&c->nodes, &c->capacity, c->count, sizeof *c->nodes) ||
        !sp_pair_map_add(&c->node_of, above, function, as_value(c->count)))
        return SP_CALLS_NONE;
    c->nodes[c->count] = (struct sp_call_node){.top = top,
                                               .parent = parent,
                                               .child = SP_CALLS_NONE,
                                               .last_child = SP_CALLS_NONE,
                                               .next = SP_CALLS_NONE,
                                               .function = function};
    return c->count++;
}

void sp_calls_link(uint32_t *first, uint32_t *last, struct sp_call_node *nodes,
                   uint32_t node)
{
    if (*first == SP_CALLS_NONE)
        *first = node;
    else
        nodes[*last].next = node;
    *last = node;
}

/* ---- taking in ----------------------------------------------------------------------------- */

static int add_call(struct sp_calls *c, const struct sp_read_event *e,
                    struct sp_fault *ret_fault)
{
    const enum sp_calls_form form = e->tape == NULL ? SP_CALLS_TREE : SP_CALLS_GRAPH;
    if (c->form == SP_CALLS_EMPTY)
        c->form = form;
    if (c->form != form) { /* a trace is of one level */
        c->unlisted += e->kind == SP_KIND_CALL;
        return 0;
    }
    if (form == SP_CALLS_TREE)
        return sp_call_stacks_add(&c->stacks, e, ret_fault);
    sp_call_graph_add(c, e);
    return 0;
}

int sp_calls_add(struct sp_calls *c, const struct sp_read_event *e,
                 struct sp_fault *ret_fault)
{
    switch (e->kind) {
    case SP_KIND_CALL:
    case SP_READ_RETURN:
        return add_call(c, e, ret_fault);
    case SP_KIND_EXIT:
    case SP_KIND_EXEC:
    case SP_KIND_THREAD:
        return c->form == SP_CALLS_TREE ? sp_call_stacks_add(&c->stacks, e, ret_fault)
                                        : 0;
    case SP_KIND_LOST: {
        const int64_t count = sp_tape_int(e->tape, "count", 1);
        c->lost += count > 0 ? (uint64_t)count : 1;
        return 0;
    }
    default:
        return 0;
    }
}

/* Of a tree: what calls took without those that they made. These lie wholly within them. */
static void subtract_children(struct sp_calls *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        c->nodes[i].self_ns = c->nodes[i].total_ns;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint32_t parent = c->nodes[i].parent;
        if (parent == SP_CALLS_NONE)
            continue;
        uint64_t *self_ns = &c->nodes[parent].self_ns;
        *self_ns -= c->nodes[i].total_ns < *self_ns ? c->nodes[i].total_ns : *self_ns;
    }
}

/* Sorts the roots by the threads or processes they belong to. */
static bool keep_roots(struct sp_calls *c, const bool *roots)
{
    uint32_t at = 0;
    c->roots = calloc((size_t)c->count + 1, sizeof *c->roots);
    if (c->roots == NULL)
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        c->tops[c->nodes[i].top].roots_count += roots[i];
    for (uint32_t i = 0; i < c->tops_count; i++) {
        c->tops[i].roots_at = at;
        at += c->tops[i].roots_count;
        c->tops[i].roots_count = 0;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        struct sp_call_top *top = &c->tops[c->nodes[i].top];
        if (roots[i])
            c->roots[top->roots_at + top->roots_count++] = i;
    }
    return true;
}

int sp_calls_finish(struct sp_calls *c, const struct sp_functions *functions,
                    struct sp_fault *ret_fault)
{
    sp_auto_free bool *roots = calloc((size_t)c->count + 1, sizeof *roots);
    c->functions = functions;
    if (roots == NULL || sp_call_stacks_finish(&c->stacks) < 0)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    if (c->form == SP_CALLS_GRAPH && !sp_call_graph_finish(c, roots))
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    if (c->form == SP_CALLS_TREE) {
        subtract_children(c);
        for (uint32_t i = 0; i < c->count; i++)
            roots[i] = c->nodes[i].parent == SP_CALLS_NONE;
    }
    return keep_roots(c, roots) ? 0 : sp_fault_set(ret_fault, 0, 0, "no memory");
}

/* ---- looking ------------------------------------------------------------------------------- */

bool sp_calls_exact(const struct sp_calls *c)
{
    return c->form == SP_CALLS_TREE && c->unlisted == 0 && c->lost == 0 &&
           c->stacks.hidden == 0;
}

struct sp_function sp_calls_function(const struct sp_calls *c,
                                     const struct sp_call_node *node)
{
    static const struct sp_function unknown = {
        .name = {"", 0}, .module = {"", 0}, .file = {"", 0}};
    if (c->form == SP_CALLS_GRAPH)
        return c->named[node->function];
    const struct sp_function *f = sp_functions_get(c->functions, node->function);
    return f == NULL ? unknown : *f;
}

struct sp_text sp_calls_caller(const struct sp_calls *c,
                               const struct sp_call_node *node)
{
    if (node->parent == SP_CALLS_NONE)
        return (struct sp_text){"", 0};
    if (c->form == SP_CALLS_TREE)
        return sp_calls_function(c, &c->nodes[node->parent]).name;
    const struct sp_tally_item *item = &c->names.items[node->parent];
    return (struct sp_text){item->text, item->size};
}
