/* One line for one event: when, what kind, what it is about, where in the program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/trace_commands.h"

#define TIME_COLUMN  9u
#define KIND_COLUMN  21u
#define TEXT_COLUMN  33u
#define VALUE_MAX    160u /* longest value shown of a member that is not the main one */
#define MEMBERS_LEAD 4u

/* What is shown of each kind without its name, in this order. The others follow by name. */
static const char *const leads[SP_KIND_COUNT][MEMBERS_LEAD] = {
    [SP_KIND_START] = {"argv"},
    [SP_KIND_SOURCE] = {"file"},
    [SP_KIND_IMPORT] = {"module"},
    [SP_KIND_FUNCTION] = {"id", "module", "name"},
    [SP_KIND_CALL] = {"function"},
    [SP_KIND_EXCEPTION] = {"type", "message"},
    [SP_KIND_OPEN] = {"op", "path"},
    [SP_KIND_FILE] = {"op", "path", "to"},
    [SP_KIND_SOCKET] = {"family", "type"},
    [SP_KIND_CONNECT] = {"op", "address", "port"},
    [SP_KIND_BIND] = {"op", "address", "port"},
    [SP_KIND_RESOLVE] = {"host", "address"},
    [SP_KIND_FORK] = {"child"},
    [SP_KIND_EXEC] = {"argv"},
    [SP_KIND_CODE] = {"op", "start"},
    [SP_KIND_LOADED] = {"module", "duration"},
    [SP_KIND_NATIVE] = {"library", "symbol"},
    [SP_KIND_THREAD] = {"op", "function"},
    [SP_KIND_OUTPUT] = {"stream", "text"},
    [SP_KIND_VIOLATION] = {"operation", "target"},
    [SP_KIND_LIMIT] = {"limit"},
    [SP_KIND_LOST] = {"count", "reason"},
    [SP_KIND_TAMPER] = {"what"},
    [SP_KIND_CHECKPOINT] = {"bytes"},
    [SP_KIND_END] = {"status"},
};

/* Too long for a line, told elsewhere in it, or of no use to a reader. */
static bool is_left_out(const struct sp_json_node *name, int kind)
{
    static const char *const everywhere[] = {"seq",  "t",    "kind",  "layer",  "pid",
                                             "tid",  "at",   "stack", "digest", "chain",
                                             "args", "hint", "text",  "format"};
    static const char *const violation[] = {"message", "category", "address", "port",
                                            "path",    "module",   "host",    "file",
                                            "line",    "family"};
    for (size_t i = 0; i < sizeof everywhere / sizeof *everywhere; i++)
        if (sp_node_is(name, everywhere[i]))
            return true;
    if (kind != SP_KIND_VIOLATION)
        return false;
    for (size_t i = 0; i < sizeof violation / sizeof *violation; i++)
        if (sp_node_is(name, violation[i]))
            return true;
    return false;
}

static bool is_lead(const struct sp_json_node *name, int kind)
{
    if (kind < 0 || kind >= SP_KIND_COUNT)
        return false;
    for (size_t i = 0; i < MEMBERS_LEAD && leads[kind][i] != NULL; i++)
        if (sp_node_is(name, leads[kind][i]))
            return true;
    return false;
}

static void put_value(struct sp_screen *s, const struct sp_tape *tape, uint32_t i,
                      size_t size_max)
{
    const struct sp_json_node *node = &tape->nodes[i];
    switch (node->type) {
    case SP_JSON_STRING:
        sp_screen_text(s, node->text, node->size < size_max ? node->size : size_max);
        if (node->size > size_max)
            sp_screen_format(s, "...");
        break;
    case SP_JSON_INT:
        sp_screen_format(s, "%" PRId64, node->integer);
        break;
    case SP_JSON_UINT:
        sp_screen_format(s, "%" PRIu64, node->natural);
        break;
    case SP_JSON_REAL:
        sp_screen_format(s, "%g", node->real);
        break;
    case SP_JSON_BOOL:
        sp_screen_format(s, node->boolean ? "yes" : "no");
        break;
    case SP_JSON_ARRAY:
        for (uint32_t at = i + 1; at < node->next; at = tape->nodes[at].next) {
            if (at > i + 1)
                sp_screen_format(s, " ");
            put_value(s, tape, at, size_max);
        }
        break;
    case SP_JSON_OBJECT:
        for (uint32_t at = i + 1; at < node->next; at = tape->nodes[at + 1].next) {
            sp_screen_text(s, at > i + 1 ? " " : "", at > i + 1);
            sp_screen_text(s, tape->nodes[at].text, tape->nodes[at].size);
            sp_screen_format(s, ":");
            put_value(s, tape, at + 1, size_max);
        }
        break;
    default:
        sp_screen_format(s, "-");
    }
}

static void put_of_run(struct sp_screen *s, const struct sp_read_event *e)
{
    const struct sp_function *f = e->function;
    if (f == NULL) {
        sp_screen_format(s, "function %" PRId32, e->function_id);
    } else {
        sp_screen_put(s, f->name);
        if (f->file.size > 0) {
            sp_screen_format(s, "  ");
            sp_screen_put(s, f->file);
            sp_screen_format(s, ":%" PRId64, f->line);
        }
    }
    sp_screen_format(s, "%s%s", e->raised ? "  raised" : "",
                     e->resumed ? "  resumed" : "");
}

bool sp_show_leads(struct sp_screen *s, const struct sp_read_event *e)
{
    const char *separator = "";
    bool any = false;
    if (e->tape == NULL) {
        put_of_run(s, e);
        return true;
    }
    if (e->kind < 0 || e->kind >= SP_KIND_COUNT)
        return false;
    for (size_t i = 0; i < MEMBERS_LEAD && leads[e->kind][i] != NULL; i++) {
        const uint32_t at = sp_tape_find(e->tape, 0, leads[e->kind][i]);
        if (at == 0)
            continue;
        sp_screen_format(s, "%s", separator);
        put_value(s, e->tape, at, 4096);
        any = true;
        separator = strcmp(leads[e->kind][i], "type") == 0 ? ": " : " ";
    }
    return any;
}

/* name=value of what has not been told yet. */
static void put_others(struct sp_screen *s, const struct sp_read_event *e,
                       unsigned column)
{
    const struct sp_json_node *nodes = e->tape->nodes;
    for (uint32_t i = 1; i < nodes[0].next; i = nodes[i + 1].next) {
        if (is_left_out(&nodes[i], e->kind) || is_lead(&nodes[i], e->kind))
            continue;
        if (s->used > column)
            sp_screen_format(s, " ");
        sp_screen_text(s, nodes[i].text, nodes[i].size);
        sp_screen_format(s, "=");
        put_value(s, e->tape, i + 1, VALUE_MAX);
    }
}

enum sp_style sp_show_style(int kind)
{
    switch (kind) {
    case SP_KIND_VIOLATION:
    case SP_KIND_TAMPER:
    case SP_KIND_LOST:
        return SP_STYLE_BAD;
    case SP_KIND_CHECKPOINT:
    case SP_KIND_FUNCTION:
        return SP_STYLE_FAINT;
    default:
        return SP_STYLE_PLAIN;
    }
}

void sp_show_text(struct sp_screen *s, const struct sp_read_event *e, unsigned column)
{
    if (e->tape == NULL) {
        put_of_run(s, e);
        return;
    }
    const struct sp_json_node *at = sp_tape_text(e->tape, "at");
    sp_show_leads(s, e);
    put_others(s, e, column);
    if (at != NULL) {
        sp_screen_format(s, "  ");
        sp_screen_text(s, at->text, at->size);
    }
}

void sp_show_line(struct sp_screen *s, const struct sp_read_event *e)
{
    sp_screen_format(s, "%" PRIu64, e->seq);
    sp_screen_column(s, TIME_COLUMN);
    sp_screen_format(s, "%.6f", (double)e->t_ns / 1e9);
    sp_screen_column(s, KIND_COLUMN);
    sp_screen_style(s, sp_show_style(e->kind));
    sp_screen_put(s, e->kind_name);
    sp_screen_column(s, TEXT_COLUMN);
    sp_show_text(s, e, TEXT_COLUMN);
    sp_screen_end(s);
}
