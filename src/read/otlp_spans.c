#include "read/otlp_spans.h"

#include <sodium.h>
#include <string.h>

#include "base/json.h"
#include "read/otlp_values.h"

#define LINE_ENOUGH  (1u << 20)   /* bytes: a new request begins */
#define EVENTS_MAX   512u         /* of one span */
#define EVENTS_BYTES (256u << 10) /* of one span */
#define EVENTS_ALL   (32u << 20)  /* bytes of events that wait for their spans */

/* ---- spans -------------------------------------------------------------------------------- */

void sp_otlp_span_id(const struct sp_otlp *s, char kind, uint64_t number, char *ret_id)
{
    unsigned char text[sizeof s->trace_id + 1 + sizeof number];
    unsigned char digest[crypto_generichash_BYTES_MIN];
    memcpy(text, s->trace_id, sizeof s->trace_id);
    text[sizeof s->trace_id] = (unsigned char)kind;
    for (size_t i = 0; i < sizeof number; i++)
        text[sizeof s->trace_id + 1 + i] = (unsigned char)(number >> 8 * i);
    crypto_generichash(digest, sizeof digest, text, sizeof text, NULL, 0);
    digest[0] |= 1; /* an id of zeros is none */
    sodium_bin2hex(ret_id, SP_OTLP_ID_SIZE, digest, 8);
}

static void put_nanoseconds(const struct sp_otlp *s, const char *key, uint64_t t_ns)
{
    sp_json_key(&s->c->out, key);
    sp_buffer_append(&s->c->out, "\"", 1);
    sp_json_uint(&s->c->out, s->time_ns + t_ns);
    sp_buffer_append(&s->c->out, "\"", 1);
}

static void put_list(struct sp_buffer *b, const char *key,
                     const struct sp_buffer *items)
{
    if (items == NULL || items->size == 0)
        return;
    sp_json_key(b, key);
    sp_buffer_append(b, "[", 1);
    sp_buffer_append(b, items->data, items->size);
    sp_buffer_append(b, "]", 1);
}

static void put_status(struct sp_buffer *b, const struct sp_otlp_span *span)
{
    sp_buffer_text(b, ",\"status\":{\"code\":2");
    if (span->message.size > 0) {
        sp_json_key(b, "message");
        sp_export_short_string(b, span->message.data, span->message.size);
    }
    sp_buffer_text(b, "}");
}

int sp_otlp_put_span(struct sp_otlp *s, const struct sp_otlp_span *span)
{
    struct sp_buffer *b = &s->c->out;
    const size_t before = b->size;
    if (s->line_size == 0)
        sp_buffer_append(b, s->head.data, s->head.size);
    else
        sp_buffer_append(b, ",", 1);
    sp_buffer_text(b, "{\"traceId\":\"");
    sp_buffer_text(b, s->trace_hex);
    sp_buffer_text(b, "\",\"spanId\":\"");
    sp_buffer_text(b, span->id);
    if (span->parent[0] != '\0') {
        sp_buffer_text(b, "\",\"parentSpanId\":\"");
        sp_buffer_text(b, span->parent);
    }
    sp_buffer_text(b, "\",\"kind\":1,\"name\":");
    sp_export_short_string(b, span->name.data, span->name.size);
    put_nanoseconds(s, "startTimeUnixNano", span->begin_ns);
    put_nanoseconds(s, "endTimeUnixNano",
                    span->end_ns > span->begin_ns ? span->end_ns : span->begin_ns);
    put_list(b, "attributes", span->attributes);
    put_list(b, "events", span->events);
    if (span->failed)
        put_status(b, span);
    sp_buffer_append(b, "}", 1);
    if (b->failed || span->attributes->failed)
        return sp_export_no_memory(s->c);
    s->line_size += b->size - before;
    if (s->line_size >= LINE_ENOUGH) {
        sp_buffer_text(b, "]}]}]}\n");
        s->line_size = 0;
    }
    return sp_export_settle(s->c);
}

/* ---- owners ------------------------------------------------------------------------------- */

void sp_otlp_owner_init(struct sp_otlp_owner *o)
{
    *o = (struct sp_otlp_owner){0};
    sp_buffer_init(&o->name, 8u << 10);
    sp_buffer_init(&o->attributes, SP_OTLP_LINE_MAX);
    sp_buffer_init(&o->events, SP_OTLP_LINE_MAX);
}

void sp_otlp_owner_release(struct sp_otlp_owner *o)
{
    sp_buffer_release(&o->name);
    sp_buffer_release(&o->attributes);
    sp_buffer_release(&o->events);
}

struct sp_text sp_otlp_text_in(const struct sp_buffer *b)
{
    return (struct sp_text){b->size > 0 ? b->data : "", (uint32_t)b->size};
}

static void forget_events(struct sp_otlp *s, struct sp_otlp_owner *o)
{
    s->waiting -= o->events.size;
    sp_buffer_release(&o->events);
    o->events_count = 0;
}

/* Events that are too many for one span go ahead in a span of their own. */
static int put_events(struct sp_otlp *s, struct sp_otlp_owner *o)
{
    char id[SP_OTLP_ID_SIZE];
    if (o->events_count == 0)
        return 0;
    sp_otlp_span_id(s, 'e', o->events_seq, id);
    const struct sp_otlp_span span = {.id = id,
                                      .parent = o->id,
                                      .name = {"events", 6},
                                      .begin_ns = o->events_begin_ns,
                                      .end_ns = o->events_end_ns,
                                      .attributes = &s->none,
                                      .events = &o->events};
    const int result = sp_otlp_put_span(s, &span);
    forget_events(s, o);
    return result;
}

static int put_all_events(struct sp_otlp *s)
{
    if (put_events(s, &s->run) < 0)
        return -1;
    for (size_t i = 0; i < s->processes.slots_count; i++) {
        struct sp_otlp_owner *o = s->processes.slots[i].value;
        if (o != NULL && put_events(s, o) < 0)
            return -1;
    }
    return 0;
}

int sp_otlp_put_owner(struct sp_otlp *s, struct sp_otlp_owner *o, uint64_t end_ns,
                      struct sp_text message)
{
    const struct sp_otlp_span span = {.id = o->id,
                                      .parent = o->parent,
                                      .name = sp_otlp_text_in(&o->name),
                                      .begin_ns = o->begin_ns,
                                      .end_ns =
                                          end_ns > o->last_ns ? end_ns : o->last_ns,
                                      .attributes = &o->attributes,
                                      .events = &o->events,
                                      .failed = o->failed,
                                      .message = message};
    const int result = sp_otlp_put_span(s, &span);
    forget_events(s, o);
    return result;
}

struct sp_otlp_owner *sp_otlp_owner_of(struct sp_otlp *s, int64_t pid)
{
    struct sp_otlp_owner *o = sp_pair_map_get(&s->processes, pid, 0);
    return o != NULL ? o : &s->run;
}

int sp_otlp_add_event(struct sp_otlp *s, const struct sp_read_event *e)
{
    struct sp_otlp_owner *o = sp_otlp_owner_of(s, e->pid);
    struct sp_buffer *b = &o->events;
    const size_t before = b->size;
    if (o->events_count == 0) {
        o->events_seq = e->seq;
        o->events_begin_ns = e->t_ns;
    } else {
        sp_buffer_append(b, ",", 1);
    }
    o->events_end_ns = e->t_ns;
    o->events_count++;
    sp_buffer_text(b, "{\"timeUnixNano\":\"");
    sp_json_uint(b, s->time_ns + e->t_ns);
    sp_buffer_text(b, "\",\"name\":");
    sp_export_string(b, e->kind_name.data, e->kind_name.size);
    sp_buffer_text(b, ",\"attributes\":[");
    sp_otlp_members(b, e);
    sp_buffer_text(b, "]}");
    if (b->failed)
        return sp_export_no_memory(s->c);
    s->waiting += b->size - before;
    if (s->waiting >= EVENTS_ALL)
        return put_all_events(s);
    return o->events_count >= EVENTS_MAX || b->size >= EVENTS_BYTES ? put_events(s, o)
                                                                    : 0;
}
