/* The trace event format of Chrome, which ui.perfetto.dev and chrome://tracing open: calls as
 * begin and end events, everything else as instants. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "event/event.h"
#include "read/call_stacks.h"
#include "read/export_format.h"
#include "read/summary.h"

struct chrome {
    struct sp_export_context *c; /* borrowed */
    struct sp_call_stacks stacks;
    struct sp_buffer other; /* members of otherData */
    bool has_start;         /* in `other` */
    bool has_end;
    bool any; /* there is an event in the array already */
};

/* Microseconds, with the nanoseconds as a fraction. */
static void put_time(struct sp_buffer *b, uint64_t t_ns)
{
    const unsigned ns = (unsigned)(t_ns % 1000);
    char fraction[4] = {'.', (char)('0' + ns / 100), (char)('0' + ns / 10 % 10),
                        (char)('0' + ns % 10)};
    sp_json_uint(b, t_ns / 1000);
    sp_buffer_append(b, fraction, sizeof fraction);
}

/* Begins an event: what all of them have. */
static void put_head(struct chrome *s, const char *phase, int64_t pid, int64_t tid,
                     uint64_t t_ns)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, s->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    sp_buffer_text(b, phase);
    sp_buffer_text(b, "\",\"pid\":");
    sp_json_int(b, pid);
    sp_buffer_text(b, ",\"tid\":");
    sp_json_int(b, tid);
    sp_buffer_text(b, ",\"ts\":");
    put_time(b, t_ns);
    s->any = true;
}

static void put_text(struct chrome *s)
{
    sp_export_short_string(&s->c->out, s->c->text.data, s->c->text.size);
    sp_buffer_clear(&s->c->text);
}

/* ---- calls ---------------------------------------------------------------------------- */

static int opened(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *e)
{
    struct chrome *s = context;
    struct sp_buffer *b = &s->c->out;
    put_head(s, "B", thread->pid, thread->tid, call->t_ns);
    sp_buffer_text(b, ",\"cat\":");
    sp_buffer_text(b, e->function != NULL && e->function->native ? "\"native\""
                                                                 : "\"python\"");
    sp_buffer_text(b, ",\"name\":");
    sp_export_frame(&s->c->text, e->function);
    put_text(s);
    sp_buffer_text(b, e->resumed ? ",\"args\":{\"resumed\":true}}" : "}");
    return 0;
}

static int closed(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised)
{
    struct chrome *s = context;
    (void)call;
    put_head(s, "E", thread->pid, thread->tid, t_ns);
    sp_buffer_text(&s->c->out, raised ? ",\"args\":{\"raised\":true}}" : "}");
    return sp_export_settle(s->c);
}

/* ---- names ---------------------------------------------------------------------------- */

static void put_name(struct chrome *s, const char *what, int64_t pid, int64_t tid,
                     const char *text, size_t size)
{
    struct sp_buffer *b = &s->c->out;
    put_head(s, "M", pid, tid, 0);
    sp_buffer_text(b, ",\"name\":\"");
    sp_buffer_text(b, what);
    sp_buffer_text(b, "\",\"args\":{\"name\":");
    sp_export_short_string(b, text, size);
    sp_buffer_text(b, "}}");
}

static int began(void *context, struct sp_call_thread *thread)
{
    struct chrome *s = context;
    char name[40];
    const bool is_main = thread->pid == thread->tid;
    const int n = snprintf(name, sizeof name, is_main ? "main thread" : "thread %lld",
                           (long long)thread->tid);
    put_name(s, "thread_name", thread->pid, thread->tid, name, (size_t)n);
    return 0;
}

/* A process is called by what it runs, from its start on, and anew when that changes. */
static void name_process(struct chrome *s, const struct sp_read_event *e)
{
    struct sp_buffer *text = &s->c->text;
    if (e->kind == SP_KIND_FORK)
        sp_buffer_format(text, "fork of %lld",
                         (long long)sp_tape_int(e->tape, "parent", 0));
    else
        sp_export_joined(text, e->tape, "argv");
    if (text->size == 0) {
        const struct sp_text path = sp_export_text_of(e, "path");
        sp_buffer_append(text, path.data, path.size);
    }
    if (text->size > 0)
        put_name(s, "process_name", e->pid, e->pid, text->data, text->size);
    sp_buffer_clear(text);
}

/* ---- events --------------------------------------------------------------------------- */

static void put_instant(struct chrome *s, const struct sp_read_event *e)
{
    struct sp_buffer *b = &s->c->out;
    const struct sp_text category = sp_event_category(e);
    const bool is_bad = e->kind == SP_KIND_VIOLATION || e->kind == SP_KIND_TAMPER ||
                        e->kind == SP_KIND_LIMIT || e->kind == SP_KIND_LOST;
    put_head(s, "i", e->pid, e->tid, e->t_ns);
    sp_buffer_text(b, is_bad ? ",\"s\":\"p\",\"cname\":\"terrible\",\"cat\":"
                             : ",\"s\":\"t\",\"cat\":");
    if (category.size > 0)
        sp_export_short_string(b, category.data, category.size);
    else
        sp_export_short_string(b, e->kind_name.data, e->kind_name.size);
    sp_buffer_text(b, ",\"name\":");
    sp_export_title(&s->c->text, e);
    put_text(s);
    sp_buffer_text(b, ",\"args\":{\"seq\":");
    sp_json_uint(b, e->seq);
    sp_export_members(b, e->tape);
    sp_buffer_text(b, "}}");
}

/* What the trace says of the whole run goes beside the events. */
static void keep_other(struct chrome *s, const struct sp_read_event *e)
{
    bool *has = e->kind == SP_KIND_START ? &s->has_start : &s->has_end;
    if (*has)
        return;
    *has = true;
    if (s->other.size > 0)
        sp_buffer_append(&s->other, ",", 1);
    sp_buffer_text(&s->other, e->kind == SP_KIND_START ? "\"start\":{" : "\"end\":{");
    sp_export_members(&s->other, e->tape);
    sp_buffer_append(&s->other, "}", 1);
}

static int add(void *state, const struct sp_read_event *e)
{
    struct chrome *s = state;
    switch (e->kind) {
    case SP_KIND_SOURCE:
    case SP_KIND_FUNCTION:
    case SP_KIND_CHECKPOINT:
        return 0;
    case SP_KIND_START:
        name_process(s, e);
        keep_other(s, e);
        return 0;
    case SP_KIND_END:
        keep_other(s, e);
        return 0;
    case SP_KIND_CALL: /* totals of many calls have no place on a time line */
        if (e->tape != NULL && sp_tape_find(e->tape, 0, "count") != 0)
            return 0;
        break;
    case SP_KIND_FORK:
    case SP_KIND_EXEC:
        name_process(s, e);
        break;
    default:
        break;
    }
    if (sp_call_stacks_add(&s->stacks, e, &s->c->fault) < 0)
        return -1;
    if (e->tape != NULL)
        put_instant(s, e);
    return 0;
}

static int finish(void *state)
{
    struct chrome *s = state;
    if (sp_call_stacks_finish(&s->stacks) < 0)
        return -1;
    s->c->losses.deep_calls = s->stacks.hidden;
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{");
    sp_buffer_append(b, s->other.data, s->other.size);
    sp_buffer_text(b, "}}\n");
    return s->other.failed ? sp_export_no_memory(s->c) : 0;
}

static const struct sp_call_listener listener = {
    .began = began, .opened = opened, .closed = closed};

static void *begin(struct sp_export_context *c)
{
    struct chrome *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->c = c;
    sp_call_stacks_init(&s->stacks, &listener, s);
    sp_buffer_init(&s->other, 64u << 20);
    sp_buffer_text(&c->out, "{\"traceEvents\":[");
    return s;
}

static void release(void *state)
{
    struct chrome *s = state;
    sp_call_stacks_release(&s->stacks);
    sp_buffer_release(&s->other);
    free(s);
}

const struct sp_export_ops sp_export_chrome = {
    .begin = begin, .add = add, .finish = finish, .free = release};
