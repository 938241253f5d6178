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

void sp_tree_put_text(struct sp_view_out *out, struct sp_tree_state *state);
void sp_tree_put_json(struct sp_view_out *out, const struct sp_tree_state *state);

#endif
