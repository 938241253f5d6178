/* Who called what, how often and for how long, from all the calls of a trace.
 *
 * Of level `all` comes a tree: for each thread the functions that were called, beneath each those
 * that it called, with all calls of one way there in one node. Of `folded` and `first` comes a
 * graph: for each process its pairs of caller and function. A node of the graph is such a pair, and
 * its children are the pairs of which its function is the caller, so that several nodes may have
 * the same children, and a node may be its own child. Callers are known by name only: functions of
 * one process that have the same name share their children.
 *
 * In bounded memory: what finds no room is counted.
 */
#ifndef SP_READ_CALLS_H
#define SP_READ_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/call_stacks.h"
#include "read/functions.h"
#include "read/read_event.h"
#include "read/tally.h"

#define SP_CALLS_NODES_MAX (1u << 21)
#define SP_CALLS_TOPS_MAX  65536u
#define SP_CALLS_NONE      UINT32_MAX

enum sp_calls_form {
    SP_CALLS_EMPTY,
    SP_CALLS_TREE,
    SP_CALLS_GRAPH,
};

struct sp_call_node {
    uint32_t top; /* the thread or process it belongs to */
    uint32_t
        parent; /* tree: SP_CALLS_NONE beneath the top. Graph: number of the caller's name */
    uint32_t child;      /* the first, or SP_CALLS_NONE */
    uint32_t last_child; /* while a tree is made */
    uint32_t next;       /* of the same parent, in order of the first call */
    uint32_t function;
    uint64_t count;
    uint64_t resumes;
    uint64_t
        total_ns; /* graph: of all that returned; in a recursion inner calls count again */
    uint64_t self_ns;
};

/* A thread of a tree; a process of a graph. */
struct sp_call_top {
    int64_t pid;
    int64_t tid;       /* graph: 0 */
    uint32_t roots_at; /* in sp_calls.roots: what was called there by nobody else */
    uint32_t roots_count;
};

struct sp_calls {
    enum sp_calls_form form;
    struct sp_call_node *nodes; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct sp_call_top *tops; /* owned */
    uint32_t tops_count;
    uint32_t tops_capacity;
    uint32_t *roots;            /* owned: nodes, by top; from the end on */
    struct sp_pair_map top_of;  /* by process and thread: index + 1 */
    struct sp_pair_map node_of; /* by parent or top, and function: index + 1 */
    struct sp_call_stacks stacks;
    uint64_t unlisted; /* calls without room */
    uint64_t lost;     /* events that the trace says are missing */
    /* Graph: */
    struct sp_tally names; /* of functions and callers */
    struct sp_tally keys;  /* file, zero, line, zero, name of each function */
    struct sp_function
        *named; /* owned: by index in `keys`, texts borrowed from there */
    uint32_t named_capacity;
    uint32_t *name_of; /* owned: by index in `keys`, that in `names` */
    /* Tree: */
    const struct sp_functions *functions; /* borrowed, from the end on */
};

void sp_calls_init(struct sp_calls *c);
void sp_calls_release(struct sp_calls *c);

/* Takes in any event. 0, or -1 with *ret_fault. */
int sp_calls_add(struct sp_calls *c, const struct sp_read_event *event,
                 struct sp_fault *ret_fault);

/* At the end of the trace; `functions` are those that it named and must outlive *c. Nodes can be
 * looked at from here on. 0 or -1. */
int sp_calls_finish(struct sp_calls *c, const struct sp_functions *functions,
                    struct sp_fault *ret_fault);

/* Whether it is a tree, and nothing is missing in it. */
bool sp_calls_exact(const struct sp_calls *c);

/* Of a node. Texts are valid as long as *c is; the name has size 0 where nothing gives it. */
struct sp_function sp_calls_function(const struct sp_calls *c,
                                     const struct sp_call_node *node);
struct sp_text sp_calls_caller(const struct sp_calls *c,
                               const struct sp_call_node *node); /* size 0: none */

/* For calls.c, call_tree.c and call_graph.c. */
uint32_t sp_calls_top(struct sp_calls *c, int64_t pid,
                      int64_t tid); /* SP_CALLS_NONE: no room */
uint32_t sp_calls_node(struct sp_calls *c, uint32_t top, uint32_t parent,
                       uint32_t function);
void sp_calls_link(uint32_t *first, uint32_t *last, struct sp_call_node *nodes,
                   uint32_t node);
extern const struct sp_call_listener sp_call_tree_listener;
void sp_call_graph_add(struct sp_calls *c, const struct sp_read_event *event);
bool sp_call_graph_finish(struct sp_calls *c, bool *roots); /* false: no memory */

#endif
