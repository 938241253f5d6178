/* What the agent says about something, as fields: copied out of shared memory, checked, and
 * safe to use. It stays a claim: good for `at`, `stack` and text, never for a verdict.
 */
#ifndef SP_SUPERVISE_CLAIM_H
#define SP_SUPERVISE_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"
#include "ring/ring.h"

struct sp_trace_writer;

#define SP_CLAIM_FIELDS_MAX 24u
#define SP_CLAIM_BYTES_MAX  SP_ASK_BYTES

struct sp_claim_field {
    uint16_t field;  /* enum sp_field, valid */
    uint16_t size;   /* of text */
    uint32_t offset; /* of text, in bytes */
    int64_t number;  /* INT and BOOL */
};

struct sp_claim {
    uint32_t count;
    struct sp_claim_field fields[SP_CLAIM_FIELDS_MAX];
    uint8_t
        bytes[SP_CLAIM_BYTES_MAX + 1]; /* the fields as they came; a NUL behind them */
};

/* Takes `size` bytes of fields that already lie in claim->bytes. False when malformed: too many
 * fields, an unknown one, one of a wrong type or longer than SP_TEXT_MAX, or cut off. */
bool sp_claim_parse(struct sp_claim *claim, size_t size);

/* Text of a field, *ret_size its bytes (may hold any byte, not terminated); NULL when the claim
 * has none. Valid as long as the claim. */
const char *sp_claim_text(const struct sp_claim *claim, enum sp_field field,
                          size_t *ret_size);

/* Number of an INT or BOOL field, or `otherwise`. */
int64_t sp_claim_number(const struct sp_claim *claim, enum sp_field field,
                        int64_t otherwise);

/* Adds the claim's fields to the event that was begun, AT_FILE and AT_LINE as one `at`.
 * `skip` (may be NULL) is asked for each field; true leaves it out. */
void sp_claim_write(const struct sp_claim *claim, struct sp_trace_writer *w,
                    bool (*skip)(enum sp_field field, void *context), void *context);

#endif
