#include "read/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "read/uses.h"
#include "trace/format.h"

void sp_summary_init(struct sp_summary *s)
{
    *s = (struct sp_summary){0};
    sp_buffer_init(&s->start, SP_TRACE_LINE_MAX + 128);
    sp_buffer_init(&s->end, SP_TRACE_LINE_MAX + 128);
}

void sp_summary_release(struct sp_summary *s)
{
    struct sp_tally *const tallies[] = {
        &s->functions, &s->imports,    &s->read,   &s->changed, &s->failed, &s->hosts,
        &s->programs,  &s->exceptions, &s->limits, &s->tampers, &s->losses, NULL};
    for (struct sp_tally *const *tally = tallies; *tally != NULL; tally++)
        sp_tally_release(*tally);
    sp_read_violations_release(&s->violations);
    sp_buffer_release(&s->start);
    sp_buffer_release(&s->end);
}

static struct sp_text category_of_kind(int kind)
{
    switch (kind) {
    case SP_KIND_IMPORT:
    case SP_KIND_LOADED:
        return (struct sp_text){"import", 6};
    case SP_KIND_OPEN:
    case SP_KIND_FILE:
        return (struct sp_text){"fs", 2};
    case SP_KIND_SOCKET:
    case SP_KIND_CONNECT:
    case SP_KIND_BIND:
    case SP_KIND_RESOLVE:
        return (struct sp_text){"network", 7};
    case SP_KIND_FORK:
    case SP_KIND_EXEC:
    case SP_KIND_EXIT:
        return (struct sp_text){"process", 7};
    case SP_KIND_LIMIT:
        return (struct sp_text){"limits", 6};
    case SP_KIND_TAMPER:
        return (struct sp_text){"integrity", 9};
    default:
        return (struct sp_text){"", 0};
    }
}

struct sp_text sp_event_category(const struct sp_read_event *event)
{
    if (event->kind != SP_KIND_VIOLATION)
        return category_of_kind(event->kind);
    const struct sp_json_node *own = sp_tape_text(event->tape, "category");
    return own == NULL ? (struct sp_text){"", 0}
                       : (struct sp_text){own->text, own->size};
}

static void keep_line(struct sp_buffer *to, const struct sp_read_event *e)
{
    sp_buffer_clear(to);
    sp_buffer_append(to, e->line, e->line_size);
    static const char padding[128];
    sp_buffer_append(to, padding, sizeof padding);
    to->size = to->failed ? 0 : e->line_size;
}

static void add_text(struct sp_tally *t, const struct sp_json_node *text,
                     uint64_t count)
{
    if (text != NULL && text->size > 0)
        sp_tally_add(t, text->text, text->size, count);
}

static void add_host(struct sp_summary *s, const struct sp_tape *tape)
{
    char text[SP_TALLY_TEXT_MAX];
    const struct sp_json_node *host = sp_tape_text(tape, "host");
    const struct sp_json_node *address = sp_tape_text(tape, "address");
    const struct sp_json_node *name = host != NULL && host->size > 0 ? host : address;
    const int64_t port = sp_tape_int(tape, "port", 0);
    if (name == NULL || port <= 0) {
        add_text(&s->hosts, name, 1);
        return;
    }
    const bool colons = memchr(name->text, ':', name->size) != NULL;
    const int n = snprintf(text, sizeof text, "%s%.*s%s:%" PRId64, colons ? "[" : "",
                           (int)(name->size < 900 ? name->size : 900), name->text,
                           colons ? "]" : "", port);
    sp_tally_add(&s->hosts, text, (size_t)n, 1);
}

static void add_exception(struct sp_summary *s, const struct sp_tape *tape)
{
    char text[SP_TALLY_TEXT_MAX];
    const struct sp_json_node *type = sp_tape_text(tape, "type");
    const struct sp_json_node *message = sp_tape_text(tape, "message");
    s->exceptions_raised++;
    if (!sp_tape_true(tape, "ended") || type == NULL)
        return;
    const bool bare = message == NULL || message->size == 0;
    const int n = snprintf(text, sizeof text, "%.*s%s%.*s",
                           (int)(type->size < 200 ? type->size : 200), type->text,
                           bare ? "" : ": ",
                           bare ? 0 : (int)(message->size < 800 ? message->size : 800),
                           bare ? "" : message->text);
    sp_tally_add(&s->exceptions, text, (size_t)n, 1);
}

/* The first of some members that says what the event is about. */
static const struct sp_json_node *first_text(const struct sp_tape *tape, const char *a,
                                             const char *b)
{
    const struct sp_json_node *found = sp_tape_text(tape, a);
    return found != NULL ? found : sp_tape_text(tape, b);
}

static void add_output(struct sp_summary *s, const struct sp_tape *tape)
{
    const struct sp_json_node *text = first_text(tape, "text", "data");
    const int64_t size = sp_tape_int(tape, "size", text != NULL ? text->size : 0);
    s->output_bytes += size > 0 ? (uint64_t)size : 0;
}

static void add_import(struct sp_summary *s, const struct sp_tape *tape)
{
    const uint32_t direct = sp_tape_find(tape, 0, "direct");
    if (direct == 0 || sp_tape_true(tape, "direct"))
        add_text(&s->imports, sp_tape_text(tape, "module"), 1);
}

static void add_loss(struct sp_summary *s, const struct sp_tape *tape)
{
    const int64_t count = sp_tape_int(tape, "count", 0);
    if (count > 0)
        add_text(&s->losses, sp_tape_text(tape, "reason"), (uint64_t)count);
}

/* What failed changed nothing, and was not read either. */
static void add_file(struct sp_summary *s, const struct sp_read_event *e)
{
    const struct sp_tape *tape = e->tape;
    const bool failed =
        sp_tape_int(tape, "errno", 0) > 0 || sp_tape_true(tape, "expected");
    const bool change = e->kind == SP_KIND_FILE || sp_open_changes(tape);
    struct sp_tally *to = failed ? &s->failed : change ? &s->changed : &s->read;
    add_text(to, first_text(tape, "to", "path"), 1);
}

static void add_line(struct sp_summary *s, const struct sp_read_event *e)
{
    const struct sp_tape *tape = e->tape;
    switch (e->kind) {
    case SP_KIND_START:
        keep_line(&s->start, e);
        break;
    case SP_KIND_END:
        keep_line(&s->end, e);
        break;
    case SP_KIND_IMPORT:
        add_import(s, tape);
        break;
    case SP_KIND_OPEN:
    case SP_KIND_FILE:
        add_file(s, e);
        break;
    case SP_KIND_CONNECT:
    case SP_KIND_RESOLVE:
        add_host(s, tape);
        break;
    case SP_KIND_FORK:
        s->processes++;
        break;
    case SP_KIND_EXEC:
        add_text(&s->programs, sp_tape_text(tape, "path"), 1);
        break;
    case SP_KIND_EXCEPTION:
        add_exception(s, tape);
        break;
    case SP_KIND_OUTPUT:
        add_output(s, tape);
        break;
    case SP_KIND_VIOLATION:
        sp_read_violations_add(&s->violations, e);
        break;
    case SP_KIND_LIMIT:
        add_text(&s->limits, first_text(tape, "limit", "name"), 1);
        break;
    case SP_KIND_TAMPER:
        add_text(&s->tampers, first_text(tape, "what", "operation"), 1);
        break;
    case SP_KIND_LOST:
        add_loss(s, tape);
        break;
    default:
        break;
    }
}

void sp_summary_add(struct sp_summary *s, const struct sp_read_event *event)
{
    uint64_t count = 1;
    s->events++;
    if (event->t_ns > s->t_ns)
        s->t_ns = event->t_ns;
    if (event->kind == SP_READ_UNKNOWN) {
        s->unknown++;
        return;
    }
    if (event->tape != NULL) {
        add_line(s, event);
        if (event->kind == SP_KIND_CALL) {
            const int64_t folded = sp_tape_int(event->tape, "count", 1);
            count = folded > 0 ? (uint64_t)folded : 0;
            add_text(&s->functions, sp_tape_text(event->tape, "function"), count);
        }
    }
    s->counts[event->kind] += count;
}
