/* The violations of a run: each told once in the trace, repeats counted.
 *
 * Two denials are one when operation, rule, place and target agree. Repeats are told as one
 * line with `count` and `of` at checkpoints and at the end, so that a guest which tries a
 * million times does not fill the trace.
 */
#ifndef SP_SUPERVISE_VIOLATIONS_H
#define SP_SUPERVISE_VIOLATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "event/event.h"

struct sp_trace_writer;

#define SP_VIOLATIONS_MAX   1024u      /* distinct ones that are kept */
#define SP_VIOLATIONS_BYTES (1u << 20) /* of their texts together */

struct sp_violation {
    uint64_t hash;
    uint64_t seq;   /* of the first one's line */
    uint64_t count; /* all of them */
    uint64_t told;  /* how many the trace knows of */
    int pid;
    int tid;
    enum sp_layer layer;
    size_t offset; /* members in `texts` */
    size_t size;
};

struct sp_violations {
    enum sp_kind
        kind; /* VIOLATION, or TAMPER for refusals under a policy that only traces */
    struct sp_violation *items;
    uint32_t count;
    uint64_t total; /* repeats included */
    struct sp_buffer texts;
};

void sp_violations_init(struct sp_violations *v, enum sp_kind kind);
void sp_violations_release(struct sp_violations *v);

/* Tells of one. `key` is what makes two of them the same; `members` its fields as JSON members.
 * Returns whether it is the first of its kind. */
bool sp_violations_add(struct sp_violations *v, struct sp_trace_writer *w,
                       enum sp_layer layer, uint64_t t_ns, int pid, int tid,
                       const struct sp_buffer *key, const struct sp_buffer *members);

/* Tells the trace of the repeats that it does not know of. */
void sp_violations_tell_repeats(struct sp_violations *v, struct sp_trace_writer *w,
                                uint64_t t_ns);

/* All of them as a JSON array, for the result. */
void sp_violations_write(const struct sp_violations *v, struct sp_buffer *to);

#endif
