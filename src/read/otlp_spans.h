/* The spans of an export to OpenTelemetry: those that are still open, and how one is written.
 * Internal to src/read. */
#ifndef SP_READ_OTLP_SPANS_H
#define SP_READ_OTLP_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/call_stacks.h"
#include "read/export_format.h"

#define SP_OTLP_ID_SIZE 17u /* sixteen digits, terminated */
#define SP_OTLP_LINE_MAX                                                               \
    (128u << 20) /* a line of a trace as attributes, at the worst */

/* The run or one of its processes: a span that is still open. */
struct sp_otlp_owner {
    char id[SP_OTLP_ID_SIZE];
    char parent[SP_OTLP_ID_SIZE]; /* "": none */
    uint64_t begin_ns;
    uint64_t last_ns; /* of its calls: their clock may run ahead a little */
    struct sp_buffer name;
    struct sp_buffer attributes;
    struct sp_buffer events; /* not written yet */
    uint32_t events_count;
    uint64_t events_seq; /* of the first of these */
    uint64_t events_begin_ns;
    uint64_t events_end_ns;
    bool failed; /* status ERROR */
};

struct sp_otlp {
    struct sp_export_context *c; /* borrowed */
    struct sp_call_stacks stacks;
    struct sp_pair_map processes; /* owners, owned, by process and 0 */
    struct sp_otlp_owner run;
    struct sp_buffer head;       /* of every line */
    struct sp_buffer attributes; /* of the span in hand */
    struct sp_buffer none;
    unsigned char trace_id[16];
    char trace_hex[33];
    uint64_t time_ns; /* of the start, since 1970 */
    uint64_t last_ns;
    bool ended;
    size_t line_size; /* of the line begun; 0: none is */
    uint64_t waiting; /* bytes of events in all owners */
};

/* A span that is over. */
struct sp_otlp_span {
    const char *id;
    const char *parent;
    struct sp_text name;
    uint64_t begin_ns;
    uint64_t end_ns;
    const struct sp_buffer
        *attributes;                /* of these two, what stands between the brackets */
    const struct sp_buffer *events; /* NULL: none */
    bool failed;
    struct sp_text message; /* of its status */
};

/* The same trace gives the same ids. */
void sp_otlp_span_id(const struct sp_otlp *s, char kind, uint64_t number, char *ret_id);

/* Into the line that is begun, or a new one. 0 or -1. */
int sp_otlp_put_span(struct sp_otlp *s, const struct sp_otlp_span *span);

void sp_otlp_owner_init(struct sp_otlp_owner *o);
void sp_otlp_owner_release(struct sp_otlp_owner *o);
int sp_otlp_put_owner(struct sp_otlp *s, struct sp_otlp_owner *o, uint64_t end_ns,
                      struct sp_text message);

/* Whose an event is: its process, or the run where that is not known. */
struct sp_otlp_owner *sp_otlp_owner_of(struct sp_otlp *s, int64_t pid);

/* An event of its owner's span. 0 or -1. */
int sp_otlp_add_event(struct sp_otlp *s, const struct sp_read_event *event);

struct sp_text sp_otlp_text_in(const struct sp_buffer *b);

#endif
