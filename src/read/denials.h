/* The violations of a trace, repeats added to the first of them. Bounded: what finds no room
 * is counted. */
#ifndef SP_READ_DENIALS_H
#define SP_READ_DENIALS_H

#include <stddef.h>
#include <stdint.h>

#include "read/functions.h"

#define SP_READ_VIOLATIONS_MAX     65536u
#define SP_READ_VIOLATION_TEXT_MAX 1024u

struct sp_read_event;

/* Texts are owned, in one block that begins at `category`; size 0 where the event had none. */
struct sp_read_violation {
    uint64_t seq;   /* of the first */
    uint64_t count; /* the first and its repeats */
    struct sp_text category;
    struct sp_text operation;
    struct sp_text target;
    struct sp_text rule;
    struct sp_text source;
    struct sp_text action;
    struct sp_text message;
    struct sp_text hint;
    struct sp_text at;
};

struct sp_read_violations {
    struct sp_read_violation *items; /* owned, by seq */
    uint32_t count;
    uint32_t capacity;
    uint64_t total;    /* repeats counted */
    uint64_t unlisted; /* of these, ones without room */
};

void sp_read_violations_init(struct sp_read_violations *v);
void sp_read_violations_release(struct sp_read_violations *v);
void sp_read_violations_add(struct sp_read_violations *v,
                            const struct sp_read_event *event);

#endif
