/* show --tree for people: what took longest first, of each function what it called beneath. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_process.h"
#include "cli/trace_tree.h"

#define DEPTH_OTHERWISE    6u /* levels that are shown without --depth ... */
#define CHILDREN_OTHERWISE 8u /* ... and functions beneath each */
#define NAME_COLUMN        32u
#define INDENT_MAX         16u /* levels that are shown by their place */

static void put_indent(struct sp_screen *s, uint64_t depth)
{
    for (uint64_t i = 0; i < depth && i < INDENT_MAX; i++)
        sp_screen_format(s, "  ");
    if (depth > INDENT_MAX)
        sp_screen_format(s, "(%" PRIu64 " below) ", depth);
}

static void put_numbers(struct sp_view_out *out, const struct sp_tree_state *state,
                        const struct sp_call_node *node)
{
    const bool timed = state->calls.form == SP_CALLS_TREE || node->total_ns > 0;
    sp_screen_format(
        &out->screen, "%9s %9s %9s", timed ? sp_view_time(node->total_ns) : "-",
        timed ? sp_view_time(node->self_ns) : "-", sp_screen_number(node->count));
    sp_screen_column(&out->screen, NAME_COLUMN);
}

static void put_node(struct sp_view_out *out, const struct sp_tree_state *state,
                     const struct sp_call_node *node, uint64_t depth, bool above)
{
    struct sp_screen *s = &out->screen;
    const struct sp_function f = sp_calls_function(&state->calls, node);
    put_numbers(out, state, node);
    put_indent(s, depth);
    if (f.name.size > 0)
        sp_screen_put(s, f.name);
    else
        sp_screen_format(s, "function %" PRIu32, node->function);
    if (above)
        sp_screen_format(s, " (see above)");
    if (f.file.size > 0 && sp_screen_left(s) > 8) {
        char line[24];
        const int size = snprintf(line, sizeof line, ":%" PRId64, f.line);
        const unsigned width = s->width;
        sp_screen_format(s, "  ");
        sp_screen_style(s, SP_STYLE_FAINT);
        if (width > (unsigned)size + s->used)
            s->width = width - (unsigned)size; /* the line's number is kept */
        sp_view_put_path(out, f.file, false);
        s->width = width;
        sp_screen_format(s, "%s", line);
        sp_screen_style(s, SP_STYLE_PLAIN);
    }
    sp_screen_end(s);
}

static void put_rest(struct sp_view_out *out, const struct sp_tree_state *state,
                     const uint32_t *nodes, uint32_t count, uint64_t depth)
{
    struct sp_call_node sum = {0};
    for (uint32_t i = 0; i < count; i++) {
        sum.count += state->calls.nodes[nodes[i]].count;
        sum.total_ns += state->calls.nodes[nodes[i]].total_ns;
        sum.self_ns += state->calls.nodes[nodes[i]].self_ns;
    }
    sp_screen_style(&out->screen, SP_STYLE_FAINT);
    put_numbers(out, state, &sum);
    put_indent(&out->screen, depth);
    sp_screen_format(&out->screen, "+%s more", sp_screen_number(count));
    sp_screen_end(&out->screen);
}

/* How many of some sorted nodes are shown. Without --depth those that took a hundredth of the
 * longest, and not too many. */
static uint32_t count_shown(const struct sp_tree_state *state, const uint32_t *nodes,
                            uint32_t count)
{
    uint32_t shown = 0;
    if (state->depth_max > 0 || count == 0)
        return count;
    const uint64_t least = state->heaviest[state->calls.nodes[nodes[0]].top] / 100;
    while (shown < count && shown < CHILDREN_OTHERWISE &&
           state->weights[nodes[shown]] >= least)
        shown++;
    return shown;
}

static void put_nodes(struct sp_view_out *out, struct sp_tree_state *state,
                      struct sp_tree_children *list, uint64_t depth);

/* What a node called, those that took longest first. Recursion ends at the depth that was asked
 * for, SP_SHOW_DEPTH_MAX at the most. */
static void put_children(struct sp_view_out *out, struct sp_tree_state *state,
                         const uint32_t *roots, uint32_t count, uint32_t child,
                         uint64_t depth)
{
    struct sp_tree_children list;
    if (sp_tree_collect(state, roots, count, child, &list))
        put_nodes(out, state, &list, depth);
    free(list.nodes);
}

static void put_imports(struct sp_view_out *out, const struct sp_tree_state *state,
                        const struct sp_tree_children *list, uint64_t depth)
{
    if (list->imports.count == 0)
        return;
    sp_screen_style(&out->screen, SP_STYLE_FAINT);
    put_numbers(out, state, &list->imports);
    put_indent(&out->screen, depth);
    sp_screen_format(&out->screen, "(the import system itself)");
    sp_screen_end(&out->screen);
}

static void put_nodes(struct sp_view_out *out, struct sp_tree_state *state,
                      struct sp_tree_children *list, uint64_t depth)
{
    const uint64_t depth_max =
        state->depth_max > 0 ? state->depth_max : DEPTH_OTHERWISE;
    sp_tree_sort(state, list->nodes, list->count);
    const uint32_t shown = count_shown(state, list->nodes, list->count);
    for (uint32_t i = 0; i < shown; i++) {
        const struct sp_call_node *node = &state->calls.nodes[list->nodes[i]];
        const bool below = node->child != SP_CALLS_NONE;
        const bool above = below && state->shown[node->child];
        put_node(out, state, node, depth, above);
        if (!below || above || depth + 1 >= depth_max)
            continue;
        state->shown[node->child] = state->calls.form == SP_CALLS_GRAPH;
        put_children(out, state, NULL, 0, node->child, depth + 1);
    }
    if (shown < list->count)
        put_rest(out, state, list->nodes + shown, list->count - shown, depth);
    put_imports(out, state, list, depth);
}

static void put_top(struct sp_view_out *out, struct sp_tree_state *state, uint32_t i,
                    bool name)
{
    const struct sp_call_top *top = &state->calls.tops[i];
    if (name) {
        sp_screen_column(&out->screen, NAME_COLUMN);
        sp_screen_style(&out->screen, SP_STYLE_STRONG);
        sp_screen_format(&out->screen, "thread %" PRId64, top->tid);
        sp_screen_end(&out->screen);
    }
    put_children(out, state, state->calls.roots + top->roots_at, top->roots_count,
                 SP_CALLS_NONE, 0);
}

/* All threads of a process, the first without its name. */
static void put_calls(struct sp_view_out *out, struct sp_tree_state *state, int64_t pid)
{
    for (uint32_t i = sp_tree_find(state, pid);
         i < state->calls.tops_count && state->calls.tops[state->tops[i]].pid == pid;
         i++) {
        const struct sp_call_top *top = &state->calls.tops[state->tops[i]];
        put_top(out, state, state->tops[i], top->tid != 0 && top->tid != pid);
    }
}

static void put_process(struct sp_view_out *out, const struct sp_tree_state *state,
                        const struct sp_process *one, unsigned depth)
{
    struct sp_screen *s = &out->screen;
    for (unsigned i = 0; i < depth && i < INDENT_MAX; i++)
        sp_screen_format(s, "> ");
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "%" PRId64, one->pid);
    sp_screen_style(s, SP_STYLE_PLAIN);
    sp_screen_format(s, "  %s, ",
                     sp_view_time(sp_process_duration(&state->processes, one)));
    sp_process_put_end(s, one);
    sp_screen_format(s, "  ");
    sp_process_put_program(s, one);
    sp_screen_end(s);
}

/* Calls of processes whose start the trace does not tell. */
static void put_others(struct sp_view_out *out, struct sp_tree_state *state)
{
    int64_t before = 0;
    for (uint32_t i = 0; i < state->calls.tops_count; i++) {
        const int64_t pid = state->calls.tops[state->tops[i]].pid;
        if (pid == before || sp_processes_find(&state->processes, pid) != NULL)
            continue;
        before = pid;
        sp_screen_format(&out->screen, "%" PRId64 "  (its start is not told)", pid);
        sp_screen_end(&out->screen);
        put_calls(out, state, pid);
    }
}

void sp_tree_put_text(struct sp_view_out *out, struct sp_tree_state *state)
{
    const struct sp_processes *p = &state->processes;
    unsigned depth = 0;
    sp_screen_style(&out->screen, SP_STYLE_STRONG);
    sp_screen_format(&out->screen, "%9s %9s %9s", "total", "self", "calls");
    sp_screen_column(&out->screen, NAME_COLUMN);
    sp_screen_format(&out->screen, "function");
    sp_screen_end(&out->screen);
    for (uint32_t i = sp_processes_first(p); i != SP_PROCESSES_NONE;
         i = sp_processes_behind(p, i, &depth)) {
        put_process(out, state, &p->items[i], depth);
        if (sp_processes_find(p, p->items[i].pid) == &p->items[i])
            put_calls(out, state, p->items[i].pid);
    }
    put_others(out, state);
    const uint64_t missing = state->calls.unlisted + state->calls.stacks.hidden;
    if (missing > 0) {
        sp_screen_format(&out->screen, "and %s calls, which found no room",
                         sp_screen_number(missing));
        sp_screen_end(&out->screen);
    }
}
