/* Building an event's fields. */
#include <string.h>

#include "agent/lane.h"

void sp_record_begin(struct sp_lane_record *r, enum sp_kind kind)
{
    r->event = (struct sp_ring_event){
        .ticks = sp_clock_ticks(),
        .tid = sp_lane_tid(),
        .kind = (uint16_t)kind,
    };
}

static void append(struct sp_lane_record *r, enum sp_field field, const void *data,
                   size_t size)
{
    struct sp_ring_field head = {.field = (uint16_t)field, .size = (uint16_t)size};
    uint8_t *at = r->fields + r->event.size;
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, data, size);
    r->event.size += (uint32_t)(sizeof head + size);
}

static size_t room(const struct sp_lane_record *r)
{
    size_t used = r->event.size + sizeof(struct sp_ring_field);
    return used < sizeof r->fields ? sizeof r->fields - used : 0;
}

void sp_record_text(struct sp_lane_record *r, enum sp_field field, const char *text,
                    size_t size)
{
    size_t left = room(r);
    if (size > SP_TEXT_MAX)
        size = SP_TEXT_MAX;
    if (size > left)
        size = left;
    if (left > 0)
        append(r, field, text, size);
}

void sp_record_string(struct sp_lane_record *r, enum sp_field field, const char *text)
{
    sp_record_text(r, field, text, strlen(text));
}

void sp_record_int(struct sp_lane_record *r, enum sp_field field, int64_t value)
{
    if (room(r) >= sizeof value)
        append(r, field, &value, sizeof value);
}
