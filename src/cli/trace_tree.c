/* show --tree: the processes of a run as a tree, beneath each who called what. */
#include <stdlib.h>

#include "base/json.h"
#include "cli/trace_commands.h"
#include "cli/trace_tree.h"

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_json_text(struct sp_buffer *b, const char *key, struct sp_text text)
{
    if (text.size == 0)
        return;
    sp_json_key(b, key);
    sp_json_string(b, text.data, text.size);
}

static void put_json_uint(struct sp_buffer *b, const char *key, uint64_t value)
{
    sp_json_key(b, key);
    sp_json_uint(b, value);
}

static void put_json(struct sp_view_out *out, const struct sp_tree_state *state,
                     uint32_t i, uint64_t depth)
{
    const struct sp_call_node *node = &state->calls.nodes[i];
    const struct sp_function f = sp_calls_function(&state->calls, node);
    const struct sp_call_top *top = &state->calls.tops[node->top];
    const bool tree = state->calls.form == SP_CALLS_TREE;
    struct sp_buffer *b = &out->json;
    sp_buffer_text(b, "{");
    sp_json_key(b, "pid");
    sp_json_int(b, top->pid);
    if (tree) {
        sp_json_key(b, "tid");
        sp_json_int(b, top->tid);
        put_json_uint(b, "node", i);
        if (node->parent != SP_CALLS_NONE)
            put_json_uint(b, "parent", node->parent);
        put_json_uint(b, "depth", depth);
    }
    put_json_text(b, "caller", sp_calls_caller(&state->calls, node));
    put_json_text(b, "function", f.name);
    put_json_text(b, "module", f.module);
    put_json_text(b, "file", f.file);
    if (f.line > 0)
        put_json_uint(b, "line", (uint64_t)f.line);
    if (f.native)
        sp_buffer_text(b, ",\"native\":true");
    put_json_uint(b, "count", node->count);
    put_json_uint(b, "resumes", node->resumes);
    put_json_uint(b, "total_ns", node->total_ns);
    put_json_uint(b, "self_ns", node->self_ns);
    sp_json_key(b, "exact");
    sp_buffer_text(b, sp_calls_exact(&state->calls) ? "true" : "false");
    sp_view_row(out);
}

/* A tree from its roots down, without recursion; a graph in the order of its pairs. */
void sp_tree_put_json(struct sp_view_out *out, const struct sp_tree_state *state)
{
    const struct sp_calls *c = &state->calls;
    const uint64_t depth_max = state->depth_max > 0 ? state->depth_max : UINT64_MAX;
    if (c->form == SP_CALLS_GRAPH) {
        for (uint32_t i = 0; i < c->count; i++)
            put_json(out, state, i, 0);
        return;
    }
    for (uint32_t root = 0; root < c->count; root++) {
        if (c->nodes[root].parent != SP_CALLS_NONE)
            continue;
        uint64_t depth = 0;
        for (uint32_t i = root;;) {
            put_json(out, state, i, depth);
            if (c->nodes[i].child != SP_CALLS_NONE && depth + 1 < depth_max) {
                i = c->nodes[i].child;
                depth++;
                continue;
            }
            while (i != root && c->nodes[i].next == SP_CALLS_NONE) {
                i = c->nodes[i].parent;
                depth--;
            }
            if (i == root)
                break;
            i = c->nodes[i].next;
        }
    }
}

/* ---- the view ------------------------------------------------------------------------------- */

static void *make(const void *options)
{
    const struct sp_show_options *chosen = options;
    struct sp_tree_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    sp_processes_init(&state->processes);
    sp_calls_init(&state->calls);
    state->depth_max = chosen->depth;
    return state;
}

static int take(void *of, struct sp_view_out *out, const struct sp_read_event *e,
                struct sp_fault *ret_fault)
{
    struct sp_tree_state *state = of;
    (void)out;
    sp_processes_add(&state->processes, e);
    return sp_calls_add(&state->calls, e, ret_fault);
}

static int print(void *of, struct sp_view_out *out, struct sp_fault *ret_fault)
{
    struct sp_tree_state *state = of;
    if (sp_calls_finish(&state->calls, out->functions, ret_fault) < 0)
        return -1;
    if (out->as_json)
        sp_tree_put_json(out, state);
    else if (sp_tree_order(state))
        sp_tree_put_text(out, state);
    else
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    return 0;
}

static void dispose(void *of)
{
    struct sp_tree_state *state = of;
    sp_processes_release(&state->processes);
    sp_calls_release(&state->calls);
    free(state->tops);
    free(state->shown);
    free(state->weights);
    free(state->heaviest);
    free(state);
}

const struct sp_view sp_view_tree = {.name = "--tree",
                                     .structure = true,
                                     .make = make,
                                     .take = take,
                                     .print = print,
                                     .dispose = dispose};
