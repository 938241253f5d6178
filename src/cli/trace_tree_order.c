/* What show --tree shows first, and which threads it shows beneath which process. */
#include <stdlib.h>

#include "base/scope.h"
#include "cli/trace_tree.h"

/* ---- which threads belong to a process ------------------------------------------------------ */

static const struct sp_call_top *sorted_tops; /* for qsort */

static int compare_tops(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a;
    const uint32_t other = *(const uint32_t *)b;
    if (sorted_tops[one].pid != sorted_tops[other].pid)
        return sorted_tops[one].pid < sorted_tops[other].pid ? -1 : 1;
    return one < other ? -1 : one > other;
}

static bool sort_tops(struct sp_tree_state *state)
{
    const uint32_t count = state->calls.tops_count;
    state->tops = calloc((size_t)count + 1, sizeof *state->tops);
    state->shown = calloc((size_t)state->calls.count + 1, sizeof *state->shown);
    if (state->tops == NULL || state->shown == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        state->tops[i] = i;
    sorted_tops = state->calls.tops;
    qsort(state->tops, count, sizeof *state->tops, compare_tops);
    return true;
}

uint32_t sp_tree_find(const struct sp_tree_state *state, int64_t pid)
{
    uint32_t low = 0;
    uint32_t high = state->calls.tops_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (state->calls.tops[state->tops[middle]].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- what matters most ---------------------------------------------------------------------- */

/* Of the nodes of a graph that have no time the time of what they called stands for theirs, as far
 * as that is known after so many rounds. */
#define ROUNDS 4u

static void weigh_by_children(struct sp_tree_state *state, uint64_t *sums, bool *heads)
{
    const struct sp_calls *c = &state->calls;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i].child != SP_CALLS_NONE)
            heads[c->nodes[i].child] = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < c->count; i++) {
            if (!heads[i])
                continue;
            sums[i] = 0;
            for (uint32_t k = i; k != SP_CALLS_NONE; k = c->nodes[k].next)
                sums[i] += state->weights[k];
        }
        for (uint32_t i = 0; i < c->count; i++)
            if (c->nodes[i].total_ns == 0 && c->nodes[i].child != SP_CALLS_NONE)
                state->weights[i] = sums[c->nodes[i].child];
    }
}

static bool weigh(struct sp_tree_state *state)
{
    const struct sp_calls *c = &state->calls;
    state->weights = calloc((size_t)c->count + 1, sizeof *state->weights);
    state->heaviest = calloc((size_t)c->tops_count + 1, sizeof *state->heaviest);
    if (state->weights == NULL || state->heaviest == NULL)
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        state->weights[i] = c->nodes[i].total_ns;
    if (c->form == SP_CALLS_GRAPH) {
        sp_auto_free uint64_t *sums = calloc((size_t)c->count + 1, sizeof *sums);
        sp_auto_free bool *heads = calloc((size_t)c->count + 1, sizeof *heads);
        if (sums == NULL || heads == NULL)
            return false;
        weigh_by_children(state, sums, heads);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        uint64_t *heaviest = &state->heaviest[c->nodes[i].top];
        if (state->weights[i] > *heaviest)
            *heaviest = state->weights[i];
    }
    return true;
}

bool sp_tree_order(struct sp_tree_state *state)
{
    return sort_tops(state) && weigh(state);
}

static const struct sp_tree_state *sorted; /* for qsort */

static int compare_nodes(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a;
    const uint32_t k = *(const uint32_t *)b;
    const uint64_t *weights = sorted->weights;
    const struct sp_call_node *nodes = sorted->calls.nodes;
    if (weights[i] != weights[k])
        return weights[i] > weights[k] ? -1 : 1;
    if (nodes[i].count != nodes[k].count)
        return nodes[i].count > nodes[k].count ? -1 : 1;
    return i < k ? -1 : i > k;
}

void sp_tree_sort(const struct sp_tree_state *state, uint32_t *nodes, uint32_t count)
{
    sorted = state;
    qsort(nodes, count, sizeof *nodes, compare_nodes);
}
