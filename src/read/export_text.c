/* Texts of traces as other programs take them. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/export_format.h"

/* ---- strings -------------------------------------------------------------------------- */

/* \udcXX, which only a byte that is no UTF-8 becomes, gives way to \\xXX, which is shorter. */
static void spell_bytes(struct sp_buffer *b, size_t from)
{
    char *p = b->data;
    size_t to = from;
    for (size_t i = from; i < b->size;) {
        if (p[i] != '\\') {
            p[to++] = p[i++];
        } else if (b->size - i >= 6 && memcmp(p + i, "\\udc", 4) == 0) {
            memcpy(p + to, "\\\\x", 3);
            memmove(p + to + 3, p + i + 4, 2);
            to += 5;
            i += 6;
        } else {
            p[to++] = p[i++];
            p[to++] = p[i++];
        }
    }
    b->size = to;
}

void sp_export_chars(struct sp_buffer *b, const char *text, size_t size)
{
    const size_t from = b->size;
    if (!sp_json_chars(b, text, size, false) && !b->failed)
        spell_bytes(b, from);
}

void sp_export_string(struct sp_buffer *b, const char *text, size_t size)
{
    sp_buffer_append(b, "\"", 1);
    sp_export_chars(b, text, size);
    sp_buffer_append(b, "\"", 1);
}

void sp_export_short_string(struct sp_buffer *b, const char *text, size_t size)
{
    if (size <= SP_EXPORT_TEXT_MAX) {
        sp_export_string(b, text, size);
        return;
    }
    sp_buffer_append(b, "\"", 1);
    sp_export_chars(b, text, sp_json_whole(text, SP_EXPORT_TEXT_MAX));
    sp_buffer_append(b, "...\"", 4);
}

/* ---- values --------------------------------------------------------------------------- */

static void put_list(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *nodes = tape->nodes;
    sp_buffer_append(b, "[", 1);
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at].next) {
        if (at > i + 1)
            sp_buffer_append(b, ",", 1);
        sp_export_value(b, tape, at);
    }
    sp_buffer_append(b, "]", 1);
}

bool sp_export_takes(const struct sp_tape *tape, uint32_t object, uint32_t at)
{
    const struct sp_json_node *nodes = tape->nodes;
    unsigned before = 0;
    for (uint32_t i = object + 1; i < at; i = nodes[i + 1].next)
        if (++before == SP_EXPORT_MEMBERS_MAX ||
            (nodes[i].size == nodes[at].size &&
             memcmp(nodes[i].text, nodes[at].text, nodes[at].size) == 0))
            return false;
    return true;
}

static void put_object(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *nodes = tape->nodes;
    sp_buffer_append(b, "{", 1);
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at + 1].next) {
        if (!sp_export_takes(tape, i, at))
            continue;
        if (at > i + 1)
            sp_buffer_append(b, ",", 1);
        sp_export_string(b, nodes[at].text, nodes[at].size);
        sp_buffer_append(b, ":", 1);
        sp_export_value(b, tape, at + 1);
    }
    sp_buffer_append(b, "}", 1);
}

/* The reader lets nothing through that nests deeper than SP_TAPE_DEPTH_MAX. */
void sp_export_value(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i)
{
    const struct sp_json_node *node = &tape->nodes[i];
    switch (node->type) {
    case SP_JSON_BOOL:
        sp_buffer_text(b, node->boolean ? "true" : "false");
        break;
    case SP_JSON_INT:
        sp_json_int(b, node->integer);
        break;
    case SP_JSON_UINT:
        sp_json_uint(b, node->natural);
        break;
    case SP_JSON_REAL:
        sp_buffer_format(b, "%.17g", node->real);
        break;
    case SP_JSON_STRING:
        sp_export_short_string(b, node->text, node->size);
        break;
    case SP_JSON_ARRAY:
        put_list(b, tape, i);
        break;
    case SP_JSON_OBJECT:
        put_object(b, tape, i);
        break;
    default:
        sp_buffer_text(b, "null");
    }
}

bool sp_export_is_head(const struct sp_json_node *name)
{
    static const char *const heads[] = {"seq", "t", "kind", "layer", "pid", "tid"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (sp_node_is(name, heads[i]))
            return true;
    return false;
}

void sp_export_members(struct sp_buffer *b, const struct sp_tape *tape)
{
    const struct sp_json_node *nodes = tape->nodes;
    for (uint32_t at = 1; at < nodes[0].next; at = nodes[at + 1].next) {
        if (sp_export_is_head(&nodes[at]) || !sp_export_takes(tape, 0, at))
            continue;
        if (b->size > 0 && b->data[b->size - 1] != '{')
            sp_buffer_append(b, ",", 1);
        sp_export_string(b, nodes[at].text, nodes[at].size);
        sp_buffer_append(b, ":", 1);
        sp_export_value(b, tape, at + 1);
    }
}

/* ---- names ---------------------------------------------------------------------------- */

void sp_export_frame(struct sp_buffer *b, const struct sp_function *f)
{
    if (f == NULL || f->name.size == 0)
        sp_buffer_text(b, "(a function without a name)");
    else
        sp_buffer_append(b, f->name.data, f->name.size);
    if (f == NULL)
        return;
    if (f->file.size > 0) {
        sp_buffer_append(b, " (", 2);
        sp_buffer_append(b, f->file.data, f->file.size);
        if (f->line > 0)
            sp_buffer_format(b, ":%lld", (long long)f->line);
        sp_buffer_append(b, ")", 1);
    } else if (f->module.size > 0) {
        sp_buffer_append(b, " (", 2);
        sp_buffer_append(b, f->module.data, f->module.size);
        sp_buffer_append(b, ")", 1);
    }
}

struct sp_text sp_export_text_of(const struct sp_read_event *e, const char *key)
{
    const struct sp_json_node *node =
        e->tape == NULL ? NULL : sp_tape_text(e->tape, key);
    return node == NULL ? (struct sp_text){"", 0}
                        : (struct sp_text){node->text, node->size};
}

struct sp_text sp_export_basename(struct sp_text path)
{
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    if (slash == NULL || slash == path.data + path.size - 1)
        return path;
    const uint32_t before = (uint32_t)(slash + 1 - path.data);
    return (struct sp_text){slash + 1, path.size - before};
}

void sp_export_joined(struct sp_buffer *b, const struct sp_tape *tape, const char *key)
{
    const uint32_t i = sp_tape_find(tape, 0, key);
    const struct sp_json_node *nodes = tape->nodes;
    if (i == 0)
        return;
    if (nodes[i].type == SP_JSON_STRING)
        sp_buffer_append(b, nodes[i].text, nodes[i].size);
    if (nodes[i].type != SP_JSON_ARRAY)
        return;
    for (uint32_t at = i + 1; at < nodes[i].next; at = nodes[at].next) {
        if (nodes[at].type != SP_JSON_STRING)
            continue;
        if (at > i + 1)
            sp_buffer_append(b, " ", 1);
        sp_buffer_append(b, nodes[at].text, nodes[at].size);
    }
}

/* What an event of each kind is about: the members that are there, in this order. */
static const char *const subjects[SP_KIND_COUNT][3] = {
    [SP_KIND_START] = {"script"},
    [SP_KIND_IMPORT] = {"module"},
    [SP_KIND_LOADED] = {"module"},
    [SP_KIND_CALL] = {"function"},
    [SP_KIND_EXCEPTION] = {"type", "message"},
    [SP_KIND_OPEN] = {"path"},
    [SP_KIND_FILE] = {"op", "path", "to"},
    [SP_KIND_SOCKET] = {"family", "type"},
    [SP_KIND_CONNECT] = {"address", "port"},
    [SP_KIND_BIND] = {"address", "port"},
    [SP_KIND_RESOLVE] = {"host", "address"},
    [SP_KIND_FORK] = {"child"},
    [SP_KIND_EXEC] = {"path"},
    [SP_KIND_EXIT] = {"code", "signal"},
    [SP_KIND_CODE] = {"op", "file"},
    [SP_KIND_NATIVE] = {"op", "library", "symbol"},
    [SP_KIND_THREAD] = {"op", "function"},
    [SP_KIND_OUTPUT] = {"stream"},
    [SP_KIND_VIOLATION] = {"operation", "target"},
    [SP_KIND_LIMIT] = {"limit"},
    [SP_KIND_LOST] = {"count", "reason"},
    [SP_KIND_TAMPER] = {"what"},
    [SP_KIND_END] = {"status"},
};

void sp_export_title(struct sp_buffer *b, const struct sp_read_event *e)
{
    if (e->kind == SP_KIND_VIOLATION)
        sp_buffer_text(b, sp_node_is(sp_tape_text(e->tape, "action"), "observe")
                              ? "would be denied:"
                              : "denied:");
    else
        sp_buffer_append(b, e->kind_name.data, e->kind_name.size);
    if (e->kind < 0 || e->kind >= SP_KIND_COUNT || e->tape == NULL)
        return;
    for (size_t i = 0; i < 3 && subjects[e->kind][i] != NULL; i++) {
        const uint32_t at = sp_tape_find(e->tape, 0, subjects[e->kind][i]);
        const struct sp_json_node *node = &e->tape->nodes[at];
        if (at == 0)
            continue;
        if (node->type == SP_JSON_STRING) {
            sp_buffer_append(b, " ", 1);
            sp_buffer_append(b, node->text,
                             node->size <= SP_EXPORT_TEXT_MAX
                                 ? node->size
                                 : sp_json_whole(node->text, SP_EXPORT_TEXT_MAX));
        } else if (node->type == SP_JSON_INT) {
            sp_buffer_format(b, " %lld", (long long)node->integer);
        }
    }
}
