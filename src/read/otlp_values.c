#include "read/otlp_values.h"

#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/export_format.h"

/* What OpenTelemetry's semantic conventions call a member of a kind. */
static const struct {
    int kind;
    const char *member;
    const char *attribute;
} conventions[] = {
    {SP_KIND_OPEN, "path", "file.path"},
    {SP_KIND_FILE, "path", "file.path"},
    {SP_KIND_CONNECT, "address", "network.peer.address"},
    {SP_KIND_CONNECT, "port", "network.peer.port"},
    {SP_KIND_BIND, "address", "network.local.address"},
    {SP_KIND_BIND, "port", "network.local.port"},
    {SP_KIND_RESOLVE, "host", "dns.question.name"},
    {SP_KIND_EXEC, "path", "process.executable.path"},
    {SP_KIND_EXEC, "argv", "process.command_args"},
    {SP_KIND_EXCEPTION, "type", "exception.type"},
    {SP_KIND_EXCEPTION, "message", "exception.message"},
    {SP_KIND_EXCEPTION, "stack", "exception.stacktrace"},
};

static void put_comma(struct sp_buffer *b)
{
    if (b->size > 0 && b->data[b->size - 1] != '[')
        sp_buffer_append(b, ",", 1);
}

static void begin(struct sp_buffer *b, const char *key)
{
    put_comma(b);
    sp_buffer_text(b, "{\"key\":");
    sp_export_short_string(b, key, strlen(key));
    sp_buffer_text(b, ",\"value\":");
}

void sp_otlp_text(struct sp_buffer *b, const char *key, struct sp_text text)
{
    begin(b, key);
    sp_buffer_text(b, "{\"stringValue\":");
    sp_export_short_string(b, text.data, text.size);
    sp_buffer_text(b, "}}");
}

/* 64-bit numbers are texts in the JSON of Protocol Buffers. */
void sp_otlp_int(struct sp_buffer *b, const char *key, int64_t value)
{
    begin(b, key);
    sp_buffer_text(b, "{\"intValue\":\"");
    sp_json_int(b, value);
    sp_buffer_text(b, "\"}}");
}

void sp_otlp_true(struct sp_buffer *b, const char *key)
{
    begin(b, key);
    sp_buffer_text(b, "{\"boolValue\":true}}");
}

static void put_any(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i);

static void put_list(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *nodes = tape->nodes;
    sp_buffer_text(b, "{\"arrayValue\":{\"values\":[");
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at].next) {
        put_comma(b);
        put_any(b, tape, at);
    }
    sp_buffer_text(b, "]}}");
}

static void put_object(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *nodes = tape->nodes;
    sp_buffer_text(b, "{\"kvlistValue\":{\"values\":[");
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at + 1].next) {
        if (!sp_export_takes(tape, i, at))
            continue;
        put_comma(b);
        sp_buffer_text(b, "{\"key\":");
        sp_export_short_string(b, nodes[at].text, nodes[at].size);
        sp_buffer_text(b, ",\"value\":");
        put_any(b, tape, at + 1);
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]}}");
}

static void put_any(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *node = &tape->nodes[i];
    switch (node->type) {
    case SP_JSON_BOOL:
        sp_buffer_text(b, node->boolean ? "{\"boolValue\":true}"
                                        : "{\"boolValue\":false}");
        break;
    case SP_JSON_INT:
        sp_buffer_text(b, "{\"intValue\":\"");
        sp_json_int(b, node->integer);
        sp_buffer_text(b, "\"}");
        break;
    case SP_JSON_UINT: /* larger than any number it has */
        sp_buffer_text(b, "{\"stringValue\":\"");
        sp_json_uint(b, node->natural);
        sp_buffer_text(b, "\"}");
        break;
    case SP_JSON_REAL:
        sp_buffer_format(b, "{\"doubleValue\":%.17g}", node->real);
        break;
    case SP_JSON_STRING:
        sp_buffer_text(b, "{\"stringValue\":");
        sp_export_short_string(b, node->text, node->size);
        sp_buffer_text(b, "}");
        break;
    case SP_JSON_ARRAY:
        put_list(b, tape, i);
        break;
    case SP_JSON_OBJECT:
        put_object(b, tape, i);
        break;
    default:
        sp_buffer_text(b, "{}");
    }
}

void sp_otlp_value(struct sp_buffer *b, const char *key, const struct sp_tape *tape,
                   uint32_t i)
{
    begin(b, key);
    put_any(b, tape, i);
    sp_buffer_text(b, "}");
}

static const char *convention(const struct sp_read_event *e,
                              const struct sp_json_node *name)
{
    for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++)
        if (conventions[i].kind == e->kind && sp_node_is(name, conventions[i].member))
            return conventions[i].attribute;
    return NULL;
}

void sp_otlp_members(struct sp_buffer *b, const struct sp_read_event *e)
{
    const struct sp_json_node *nodes = e->tape->nodes;
    sp_otlp_int(b, "sandpit.seq", (int64_t)e->seq);
    sp_otlp_text(b, "sandpit.layer", e->layer);
    if (e->tid != 0)
        sp_otlp_int(b, "thread.id", e->tid);
    for (uint32_t at = 1; at < nodes[0].next; at = nodes[at + 1].next) {
        if (sp_export_is_head(&nodes[at]) || !sp_export_takes(e->tape, 0, at))
            continue;
        const char *known = convention(e, &nodes[at]);
        if (known != NULL) {
            sp_otlp_value(b, known, e->tape, at + 1);
            continue;
        }
        put_comma(b);
        sp_buffer_text(b, "{\"key\":\"sandpit.");
        sp_export_chars(b, nodes[at].text, nodes[at].size);
        sp_buffer_text(b, "\",\"value\":");
        put_any(b, e->tape, at + 1);
        sp_buffer_text(b, "}");
    }
}
