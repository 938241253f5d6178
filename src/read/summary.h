/* What a trace says in all: what the program was, did, tried and was denied, and how it ended.
 * Made from one reading, in bounded memory.
 */
#ifndef SP_READ_SUMMARY_H
#define SP_READ_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/denials.h"
#include "read/read_event.h"
#include "read/tally.h"
#include "trace/fault.h"

/* Kinds as readers give them, "return" too. */
#define SP_SUMMARY_KINDS (SP_READ_RETURN + 1)

struct sp_summary {
    uint64_t events;
    uint64_t counts
        [SP_SUMMARY_KINDS];    /* a folded call counts as all the calls it stands for */
    uint64_t unknown;          /* events of kinds not known here */
    uint64_t t_ns;             /* of the last event */
    struct sp_buffer start;    /* the line of the start event, terminated; for a tape */
    struct sp_buffer end;      /* the end's; empty when the run was cut */
    struct sp_tally imports;   /* by reviewed code: modules */
    struct sp_tally read;      /* paths only read ... */
    struct sp_tally changed;   /* ... written, created, removed, renamed */
    struct sp_tally failed;    /* ... where nothing was, or that would not open */
    struct sp_tally hosts;     /* reached or looked up: names, addresses with port */
    struct sp_tally programs;  /* started by exec: paths */
    struct sp_tally functions; /* called, by name; runs do not add to it */
    struct sp_tally exceptions; /* "Type: message", of those that ended a program */
    struct sp_tally limits;     /* reached: what the event says */
    struct sp_tally tampers;
    struct sp_tally losses; /* reason, events */
    struct sp_read_violations violations;
    uint64_t processes; /* beside the first */
    uint64_t exceptions_raised;
    uint64_t output_bytes;
};

void sp_summary_init(struct sp_summary *s);
void sp_summary_release(struct sp_summary *s);

/* Takes in one event. */
void sp_summary_add(struct sp_summary *s, const struct sp_read_event *event);

/* Which of the categories of violations an event belongs to ("fs", "network", ...); of a
 * violation its own. Size 0: none. */
struct sp_text sp_event_category(const struct sp_read_event *event);

#endif
