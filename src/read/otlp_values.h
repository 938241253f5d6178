/* Attributes of OpenTelemetry in OTLP's JSON. Internal to src/read. */
#ifndef SP_READ_OTLP_VALUES_H
#define SP_READ_OTLP_VALUES_H

#include <stdint.h>

#include "base/buffer.h"
#include "read/functions.h"
#include "read/read_event.h"

/* Each appends {"key":...,"value":...}, with a comma before it unless it is the first. */
void sp_otlp_text(struct sp_buffer *b, const char *key, struct sp_text text);
void sp_otlp_int(struct sp_buffer *b, const char *key, int64_t value);
void sp_otlp_true(struct sp_buffer *b, const char *key);

/* Value `i` of a tape. */
void sp_otlp_value(struct sp_buffer *b, const char *key, const struct sp_tape *tape,
                   uint32_t i);

/* All members of an event's line: under the names that OpenTelemetry has for them, else as
 * "sandpit." and the member's name. */
void sp_otlp_members(struct sp_buffer *b, const struct sp_read_event *event);

#endif
