#include "supervise/claim.h"

#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "trace/writer.h"

_Static_assert(SP_FIELD_COUNT <= 64, "fields seen are kept in a 64-bit set");

static bool parse_number(struct sp_claim_field *f, const uint8_t *at)
{
    if (f->size != sizeof f->number)
        return false;
    memcpy(&f->number, at, sizeof f->number);
    if (sp_field_type(f->field) == SP_TYPE_BOOL)
        f->number = f->number != 0;
    return true;
}

bool sp_claim_parse(struct sp_claim *claim, size_t size)
{
    size_t at = 0;
    uint64_t seen = 0;
    claim->count = 0;
    if (size > SP_CLAIM_BYTES_MAX)
        return false;
    claim->bytes[size] = 0;
    while (at < size) {
        struct sp_ring_field head;
        if (size - at < sizeof head || claim->count == SP_CLAIM_FIELDS_MAX)
            return false;
        memcpy(&head, claim->bytes + at, sizeof head);
        at += sizeof head;
        if (head.size > size - at || head.size > SP_TEXT_MAX ||
            !sp_field_key(head.field) || (seen & (1ull << head.field)))
            return false;
        seen |= 1ull << head.field;
        struct sp_claim_field *f = &claim->fields[claim->count++];
        *f = (struct sp_claim_field){head.field, head.size, (uint32_t)at, 0};
        if (sp_field_type(head.field) != SP_TYPE_TEXT &&
            !parse_number(f, claim->bytes + at))
            return false;
        at += head.size;
    }
    return true;
}

static const struct sp_claim_field *find(const struct sp_claim *claim,
                                         enum sp_field field)
{
    for (uint32_t i = 0; i < claim->count; i++)
        if (claim->fields[i].field == field)
            return &claim->fields[i];
    return NULL;
}

const char *sp_claim_text(const struct sp_claim *claim, enum sp_field field,
                          size_t *ret_size)
{
    const struct sp_claim_field *f = find(claim, field);
    if (!f || sp_field_type(field) != SP_TYPE_TEXT)
        return NULL;
    *ret_size = f->size;
    return (const char *)claim->bytes + f->offset;
}

int64_t sp_claim_number(const struct sp_claim *claim, enum sp_field field,
                        int64_t otherwise)
{
    const struct sp_claim_field *f = find(claim, field);
    return f && sp_field_type(field) != SP_TYPE_TEXT ? f->number : otherwise;
}

static void write_at(const struct sp_claim *claim, const struct sp_claim_field *f,
                     struct sp_trace_writer *w)
{
    char text[SP_TEXT_MAX + 24];
    const struct sp_claim_field *line = find(claim, SP_FIELD_AT_LINE);
    struct sp_buffer b = {
        .data = text, .capacity = sizeof text, .size_max = sizeof text};
    sp_buffer_append(&b, claim->bytes + f->offset, f->size);
    if (line && line->number > 0) {
        sp_buffer_append(&b, ":", 1);
        sp_json_int(&b, line->number);
    }
    sp_trace_text(w, "at", text, b.size);
}

void sp_claim_write(const struct sp_claim *claim, struct sp_trace_writer *w,
                    bool (*skip)(enum sp_field field, void *context), void *context)
{
    for (uint32_t i = 0; i < claim->count; i++) {
        const struct sp_claim_field *f = &claim->fields[i];
        const char *key = sp_field_key(f->field);
        if (f->field == SP_FIELD_AT_LINE || (skip && skip(f->field, context)))
            continue;
        if (f->field == SP_FIELD_AT_FILE)
            write_at(claim, f, w);
        else if (sp_field_type(f->field) == SP_TYPE_TEXT)
            sp_trace_text(w, key, (const char *)claim->bytes + f->offset, f->size);
        else if (sp_field_type(f->field) == SP_TYPE_BOOL)
            sp_trace_bool(w, key, f->number != 0);
        else
            sp_trace_int(w, key, f->number);
    }
}
