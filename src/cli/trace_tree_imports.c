/* What show --tree makes of the import system: from an import to the body of the module that is
 * imported there are five or more functions of importlib each time, which would fill the few levels
 * that are shown. They are left out, with the C functions that they call, and what they called
 * stands beneath their own caller: a module's body beneath the one that imported it.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/trace_tree.h"

static bool is_importlib(const struct sp_function *f)
{
    static const char files[] = "<frozen importlib";
    return f->file.size >= sizeof files - 1 &&
           memcmp(f->file.data, files, sizeof files - 1) == 0;
}

/* `within`: called by the import system. */
static bool is_left_out(const struct sp_calls *c, const struct sp_call_node *node,
                        bool within)
{
    const struct sp_function f = sp_calls_function(c, node);
    return is_importlib(&f) || (within && f.native);
}

static bool add(struct sp_tree_children *to, uint32_t node)
{
    if (to->count == to->capacity) {
        const uint32_t capacity = to->capacity == 0 ? 16 : to->capacity * 2;
        uint32_t *nodes = realloc(to->nodes, capacity * sizeof *nodes);
        if (nodes == NULL)
            return false;
        to->nodes = nodes;
        to->capacity = capacity;
    }
    to->nodes[to->count++] = node;
    return true;
}

/* Of a graph, where nodes have the same children, each list of children is gone through once. */
static bool is_new(struct sp_tree_state *state, uint32_t child)
{
    if (child == SP_CALLS_NONE || state->shown[child])
        return false;
    state->shown[child] = state->calls.form == SP_CALLS_GRAPH;
    return true;
}

/* Takes a node, or leaves it out and notes its children in `waiting`. */
static bool take(struct sp_tree_state *state, uint32_t i, bool within,
                 struct sp_tree_children *to, struct sp_tree_children *waiting)
{
    const struct sp_call_node *node = &state->calls.nodes[i];
    if (state->depth_max > 0 || !is_left_out(&state->calls, node, within))
        return add(to, i);
    to->imports.count += node->count;
    to->imports.self_ns += node->self_ns;
    to->imports.total_ns += node->self_ns;
    return !is_new(state, node->child) || add(waiting, node->child);
}

bool sp_tree_collect(struct sp_tree_state *state, const uint32_t *roots, uint32_t count,
                     uint32_t child, struct sp_tree_children *ret)
{
    const struct sp_call_node *nodes = state->calls.nodes;
    struct sp_tree_children waiting = {0};
    bool done = true;
    *ret = (struct sp_tree_children){0};
    for (uint32_t i = 0; i < count && done; i++)
        done = take(state, roots[i], false, ret, &waiting);
    for (uint32_t i = child; i != SP_CALLS_NONE && done; i = nodes[i].next)
        done = take(state, i, false, ret, &waiting);
    while (waiting.count > 0 && done)
        for (uint32_t i = waiting.nodes[--waiting.count]; i != SP_CALLS_NONE && done;
             i = nodes[i].next)
            done = take(state, i, true, ret, &waiting);
    free(waiting.nodes);
    return done;
}
