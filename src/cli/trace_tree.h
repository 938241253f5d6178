/* What show --tree works on: the processes and the calls of a trace. */
#ifndef SP_CLI_TRACE_TREE_H
#define SP_CLI_TRACE_TREE_H

#include "cli/trace_view.h"
#include "read/calls.h"
#include "read/processes.h"

struct sp_tree_state {
    struct sp_processes processes;
    struct sp_calls calls;
    uint64_t depth_max; /* 0: the usual */
    uint32_t *tops;     /* owned: those of the calls, by process */
    bool *shown;        /* owned, graph: the children of this node stand above */
    uint64_t *weights;  /* owned, by node: what nodes are sorted by */
    uint64_t *heaviest; /* owned, by top: of its nodes */
};

/* Fills `tops`, `shown`, `weights` and `heaviest`. False: no memory. */
bool sp_tree_order(struct sp_tree_state *state);

/* The first place in `tops` whose process is not less than this. */
uint32_t sp_tree_find(const struct sp_tree_state *state, int64_t pid);

/* Sorts nodes by what matters most. */
void sp_tree_sort(const struct sp_tree_state *state, uint32_t *nodes, uint32_t count);

/* What stands beneath one row, and the calls of the import system that were left out. */
struct sp_tree_children {
    uint32_t *nodes; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct sp_call_node imports; /* sums; the total is their own time, too */
};

/* Of some roots, and of a node's children from the first on. False: no memory. The caller frees
 * ret->nodes either way. */
bool sp_tree_collect(struct sp_tree_state *state, const uint32_t *roots, uint32_t count,
                     uint32_t child, struct sp_tree_children *ret);

void sp_tree_put_text(struct sp_view_out *out, struct sp_tree_state *state);
void sp_tree_put_json(struct sp_view_out *out, const struct sp_tree_state *state);

#endif
