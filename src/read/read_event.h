/* One event as readers give it: a line of the trace, or one of the calls and returns that a run
 * holds. */
#ifndef SP_READ_READ_EVENT_H
#define SP_READ_READ_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "event/event.h"
#include "read/functions.h"
#include "read/run_view.h"
#include "read/tape.h"
#include "trace/head.h"

/* A kind that stands in no line: the other half of what runs hold. */
#define SP_READ_RETURN  SP_KIND_COUNT
#define SP_READ_UNKNOWN (-1)

/* One event. Pointers are valid until the reader is asked for the next. */
struct sp_read_event {
    uint64_t seq;
    uint64_t t_ns;
    int64_t pid;
    int64_t tid;
    int kind; /* enum sp_kind, SP_READ_RETURN or SP_READ_UNKNOWN; never SP_KIND_RUN */
    struct sp_text kind_name;
    struct sp_text layer;
    uint64_t line_number; /* from 1 */
    const char *line;     /* the line it stands in, without newline */
    size_t line_size;
    const struct sp_tape *tape; /* the line's values; NULL for one out of a run */
    /* one out of a run: */
    int32_t function_id;                /* > 0; 0 for any other */
    const struct sp_function *function; /* NULL: the trace does not name it */
    bool raised;
    bool resumed;
};

/* The number of a kind, "return" too, or SP_READ_UNKNOWN. */
int sp_read_kind_find(const char *name);

/* Fills *e from a line; or makes it the i-th of the run that stands in that line. */
void sp_read_event_set(struct sp_read_event *e, const struct sp_head *head,
                       const char *line, size_t size, uint64_t line_number,
                       const struct sp_tape *tape);
void sp_read_event_of_run(struct sp_read_event *e, const struct sp_run_view *run,
                          uint32_t i, const struct sp_functions *functions);

/* Appends the event as one line of JSON, newline included: its own line, or what that of a single
 * call or return would be. What could act on a terminal is escaped. */
void sp_read_event_json(const struct sp_read_event *e, struct sp_buffer *to);

/* Appends JSON with what could act on a terminal in its strings escaped. */
void sp_read_put_harmless(struct sp_buffer *to, const char *json, size_t json_size);

#endif
