/* OpenTelemetry traces in OTLP's JSON: a span for the run, one for each process below it, one for
 * each call that took a millisecond or longer, one for each violation. Everything else is an event
 * of its process's span.
 *
 * Each line is a whole ExportTraceServiceRequest, as OTLP's files have it; a short trace is one
 * line, which may be sent as it is.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/call_stacks.h"
#include "read/export_format.h"
#include "read/otlp_values.h"

#define CALL_NS_MIN   1000000u     /* calls that are shorter are no spans */
#define LINE_ENOUGH   (1u << 20)   /* bytes: a new request begins */
#define EVENTS_MAX    512u         /* of one span */
#define EVENTS_BYTES  (256u << 10) /* of one span */
#define EVENTS_ALL    (32u << 20)  /* bytes of events that wait for their spans */
#define LINE_MAX_SIZE (128u << 20) /* a line of a trace as attributes, at the worst */
#define PROCESSES_MAX 32768u       /* alive at once */
#define SPAN_ID_SIZE  17u          /* sixteen digits, terminated */

/* The run or one of its processes: a span that is still open. */
struct owner {
    char id[SPAN_ID_SIZE];
    char parent[SPAN_ID_SIZE]; /* "": none */
    uint64_t begin_ns;
    uint64_t last_ns; /* of its calls: their clock may run ahead a little */
    struct sp_buffer name;
    struct sp_buffer attributes;
    struct sp_buffer events; /* not written yet */
    uint32_t events_count;
    uint64_t events_seq; /* of the first of these */
    uint64_t events_begin_ns;
    uint64_t events_end_ns;
    bool failed; /* status ERROR */
};

struct otlp {
    struct sp_export_context *c; /* borrowed */
    struct sp_call_stacks stacks;
    struct sp_pair_map processes; /* owners, owned, by process and 0 */
    struct owner run;
    struct sp_buffer head;       /* of every line */
    struct sp_buffer attributes; /* of the span in hand */
    struct sp_buffer none;
    unsigned char trace_id[16];
    char trace_hex[33];
    uint64_t time_ns; /* of the start, since 1970 */
    uint64_t last_ns;
    bool ended;
    size_t line_size; /* of the line begun; 0: none is */
    uint64_t waiting; /* bytes of events in all owners */
};

/* ---- spans -------------------------------------------------------------------------------- */

/* The same trace gives the same ids. */
static void span_id(const struct otlp *s, char kind, uint64_t number, char *ret_id)
{
    unsigned char text[sizeof s->trace_id + 1 + sizeof number];
    unsigned char digest[crypto_generichash_BYTES_MIN];
    memcpy(text, s->trace_id, sizeof s->trace_id);
    text[sizeof s->trace_id] = (unsigned char)kind;
    for (size_t i = 0; i < sizeof number; i++)
        text[sizeof s->trace_id + 1 + i] = (unsigned char)(number >> 8 * i);
    crypto_generichash(digest, sizeof digest, text, sizeof text, NULL, 0);
    digest[0] |= 1; /* an id of zeros is none */
    sodium_bin2hex(ret_id, SPAN_ID_SIZE, digest, 8);
}

static void put_nanoseconds(const struct otlp *s, const char *key, uint64_t t_ns)
{
    sp_json_key(&s->c->out, key);
    sp_buffer_append(&s->c->out, "\"", 1);
    sp_json_uint(&s->c->out, s->time_ns + t_ns);
    sp_buffer_append(&s->c->out, "\"", 1);
}

struct span {
    const char *id;
    const char *parent;
    struct sp_text name;
    uint64_t begin_ns;
    uint64_t end_ns;
    const struct sp_buffer
        *attributes;                /* of these two, what stands between the brackets */
    const struct sp_buffer *events; /* NULL: none */
    bool failed;
    struct sp_text message; /* of its status */
};

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

static void put_status(struct sp_buffer *b, const struct span *span)
{
    sp_buffer_text(b, ",\"status\":{\"code\":2");
    if (span->message.size > 0) {
        sp_json_key(b, "message");
        sp_export_short_string(b, span->message.data, span->message.size);
    }
    sp_buffer_text(b, "}");
}

static int put_span(struct otlp *s, const struct span *span)
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

static void init_owner(struct owner *o)
{
    *o = (struct owner){0};
    sp_buffer_init(&o->name, 8u << 10);
    sp_buffer_init(&o->attributes, LINE_MAX_SIZE);
    sp_buffer_init(&o->events, LINE_MAX_SIZE);
}

static void release_owner(struct owner *o)
{
    sp_buffer_release(&o->name);
    sp_buffer_release(&o->attributes);
    sp_buffer_release(&o->events);
}

static struct sp_text text_in(const struct sp_buffer *b)
{
    return (struct sp_text){b->size > 0 ? b->data : "", (uint32_t)b->size};
}

static void forget_events(struct otlp *s, struct owner *o)
{
    s->waiting -= o->events.size;
    sp_buffer_release(&o->events);
    o->events_count = 0;
}

/* Events that are too many for one span go ahead in a span of their own. */
static int put_events(struct otlp *s, struct owner *o)
{
    char id[SPAN_ID_SIZE];
    if (o->events_count == 0)
        return 0;
    span_id(s, 'e', o->events_seq, id);
    const struct span span = {.id = id,
                              .parent = o->id,
                              .name = {"events", 6},
                              .begin_ns = o->events_begin_ns,
                              .end_ns = o->events_end_ns,
                              .attributes = &s->none,
                              .events = &o->events};
    const int result = put_span(s, &span);
    forget_events(s, o);
    return result;
}

static int put_all_events(struct otlp *s)
{
    if (put_events(s, &s->run) < 0)
        return -1;
    for (size_t i = 0; i < s->processes.slots_count; i++) {
        struct owner *o = s->processes.slots[i].value;
        if (o != NULL && put_events(s, o) < 0)
            return -1;
    }
    return 0;
}

static int put_owner(struct otlp *s, struct owner *o, uint64_t end_ns,
                     struct sp_text message)
{
    const struct span span = {.id = o->id,
                              .parent = o->parent,
                              .name = text_in(&o->name),
                              .begin_ns = o->begin_ns,
                              .end_ns = end_ns > o->last_ns ? end_ns : o->last_ns,
                              .attributes = &o->attributes,
                              .events = &o->events,
                              .failed = o->failed,
                              .message = message};
    const int result = put_span(s, &span);
    forget_events(s, o);
    return result;
}

/* Whose an event is: its process, or the run where that is not known. */
static struct owner *owner_of(struct otlp *s, int64_t pid)
{
    struct owner *o = sp_pair_map_get(&s->processes, pid, 0);
    return o != NULL ? o : &s->run;
}

static int add_event(struct otlp *s, const struct sp_read_event *e)
{
    struct owner *o = owner_of(s, e->pid);
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

/* ---- processes ---------------------------------------------------------------------------- */

/* What it runs, from now on. */
static void name_owner(struct owner *o, struct sp_text path)
{
    const struct sp_text name = sp_export_basename(path);
    sp_buffer_clear(&o->name);
    sp_buffer_text(&o->name, "process ");
    sp_buffer_append(&o->name, name.data,
                     name.size <= SP_EXPORT_TEXT_MAX
                         ? name.size
                         : sp_json_whole(name.data, SP_EXPORT_TEXT_MAX));
}

static int begin_process(struct otlp *s, const struct sp_read_event *e,
                         const struct owner *parent)
{
    if (s->processes.count == PROCESSES_MAX ||
        sp_pair_map_get(&s->processes, e->pid, 0) != NULL)
        return 0; /* what it does counts as the run's */
    struct owner *o = malloc(sizeof *o);
    if (o == NULL)
        return sp_export_no_memory(s->c);
    init_owner(o);
    if (!sp_pair_map_add(&s->processes, e->pid, 0, o)) {
        free(o);
        return sp_export_no_memory(s->c);
    }
    o->begin_ns = e->t_ns;
    span_id(s, 'p', e->seq, o->id);
    memcpy(o->parent, parent->id, sizeof o->parent);
    if (parent == &s->run)
        sp_buffer_text(&o->name, "process");
    else
        sp_buffer_append(&o->name, parent->name.data, parent->name.size);
    sp_otlp_int(&o->attributes, "process.pid", e->pid);
    if (e->kind == SP_KIND_FORK)
        sp_otlp_int(&o->attributes, "process.parent_pid",
                    sp_tape_int(e->tape, "parent", 0));
    return 0;
}

/* The last program that it became is told of in its span; those before stand in its events. */
static void note_exit(struct owner *o, const struct sp_read_event *e)
{
    const uint32_t code = sp_tape_find(e->tape, 0, "code");
    const uint32_t signal = sp_tape_find(e->tape, 0, "signal");
    if (code != 0)
        sp_otlp_value(&o->attributes, "process.exit.code", e->tape, code);
    if (signal != 0)
        sp_otlp_value(&o->attributes, "sandpit.signal", e->tape, signal);
    o->failed = signal != 0 || sp_tape_int(e->tape, "code", 0) != 0;
}

static int end_process(struct otlp *s, int64_t pid, uint64_t t_ns)
{
    struct owner *o = sp_pair_map_get(&s->processes, pid, 0);
    if (o == NULL)
        return 0;
    sp_pair_map_remove(&s->processes, pid, 0);
    const int result = put_owner(s, o, t_ns, (struct sp_text){"", 0});
    release_owner(o);
    free(o);
    return result;
}

/* ---- calls and violations ----------------------------------------------------------------- */

static int opened(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *e)
{
    (void)context;
    (void)thread;
    call->data = e->seq;
    return 0;
}

static void describe(struct otlp *s, const struct sp_function *f, int64_t tid)
{
    struct sp_buffer *b = &s->attributes;
    sp_otlp_int(b, "thread.id", tid);
    if (f == NULL)
        return;
    if (f->file.size > 0)
        sp_otlp_text(b, "code.file.path", f->file);
    if (f->line > 0)
        sp_otlp_int(b, "code.line.number", f->line);
    sp_otlp_text(b, "code.function.name", f->name);
    if (f->module.size > 0)
        sp_otlp_text(b, "sandpit.module", f->module);
}

static int closed(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised)
{
    struct otlp *s = context;
    char id[SPAN_ID_SIZE];
    char parent[SPAN_ID_SIZE];
    if (t_ns - call->t_ns < CALL_NS_MIN)
        return 0;
    struct owner *owner = owner_of(s, thread->pid);
    if (owner->last_ns < t_ns)
        owner->last_ns = t_ns;
    if (s->last_ns < t_ns)
        s->last_ns = t_ns;
    span_id(s, 'c', call->data, id);
    if (thread->depth > 1) /* it took as long at least */
        span_id(s, 'c', call[-1].data, parent);
    else
        memcpy(parent, owner->id, sizeof parent);
    const struct sp_function *f =
        sp_functions_get(s->c->functions, (uint32_t)call->function);
    sp_buffer_clear(&s->attributes);
    describe(s, f, thread->tid);
    if (raised)
        sp_otlp_true(&s->attributes, "sandpit.raised");
    const struct span span = {
        .id = id,
        .parent = parent,
        .name =
            f != NULL ? f->name : (struct sp_text){"(a function without a name)", 27},
        .begin_ns = call->t_ns,
        .end_ns = t_ns,
        .attributes = &s->attributes};
    return put_span(s, &span);
}

/* An act that was refused, or would be. */
static int add_refusal(struct otlp *s, const struct sp_read_event *e)
{
    char id[SPAN_ID_SIZE];
    span_id(s, 'v', e->seq, id);
    sp_buffer_clear(&s->attributes);
    sp_otlp_members(&s->attributes, e);
    struct sp_buffer *text = &s->c->text;
    sp_export_title(text, e);
    const struct span span = {.id = id,
                              .parent = owner_of(s, e->pid)->id,
                              .name = text_in(text),
                              .begin_ns = e->t_ns,
                              .end_ns = e->t_ns,
                              .attributes = &s->attributes,
                              .failed = true,
                              .message = sp_export_text_of(e, "message")};
    const int result = put_span(s, &span);
    sp_buffer_clear(text);
    return result;
}

/* ---- the run ------------------------------------------------------------------------------ */

static struct sp_text text_at(const struct sp_tape *tape, const char *object,
                              const char *key)
{
    const uint32_t i = sp_tape_find(tape, 0, object);
    const uint32_t at = i == 0 ? 0 : sp_tape_find(tape, i, key);
    const struct sp_json_node *node = &tape->nodes[at];
    return at != 0 && node->type == SP_JSON_STRING
               ? (struct sp_text){node->text, node->size}
               : (struct sp_text){"", 0};
}

static void make_head(struct otlp *s, const struct sp_read_event *e,
                      struct sp_text program)
{
    struct sp_buffer *b = &s->head;
    const struct sp_text version = text_at(e->tape, "interpreter", "version");
    const struct sp_text kernel = text_at(e->tape, "host", "kernel");
    sp_buffer_text(b, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    sp_otlp_text(b, "service.name", program);
    sp_otlp_text(b, "os.type", (struct sp_text){"linux", 5});
    if (kernel.size > 0)
        sp_otlp_text(b, "os.version", kernel);
    sp_otlp_text(b, "process.runtime.name", (struct sp_text){"cpython", 7});
    if (version.size > 0)
        sp_otlp_text(b, "process.runtime.version", version);
    sp_buffer_text(b, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"sandpit\",\"version\":"
                      "\"" SP_VERSION "\"},\"spans\":[");
}

static int add_start(struct otlp *s, const struct sp_read_event *e)
{
    if (s->head.size > 0) /* a second one is no trace's */
        return 0;
    const int64_t time = sp_tape_int(e->tape, "time", 0);
    struct sp_text program = sp_export_basename(sp_export_text_of(e, "script"));
    s->time_ns = time > 0 ? (uint64_t)time : 0;
    if (program.size == 0)
        program = (struct sp_text){"python", 6};
    crypto_generichash(s->trace_id, sizeof s->trace_id, (const unsigned char *)e->line,
                       e->line_size, NULL, 0);
    s->trace_id[0] |= 1;
    sodium_bin2hex(s->trace_hex, sizeof s->trace_hex, s->trace_id, sizeof s->trace_id);
    make_head(s, e, program);
    span_id(s, 'r', 0, s->run.id);
    sp_otlp_members(&s->run.attributes, e);
    if (begin_process(s, e, &s->run) < 0)
        return -1;
    name_owner(owner_of(s, e->pid), text_at(e->tape, "interpreter", "path"));
    sp_buffer_text(&s->run.name, "sandpit run ");
    sp_buffer_append(&s->run.name, program.data,
                     program.size <= SP_EXPORT_TEXT_MAX
                         ? program.size
                         : sp_json_whole(program.data, SP_EXPORT_TEXT_MAX));
    return 0;
}

/* The members of an end that the start has none of. */
static void note_end(struct otlp *s, const struct sp_read_event *e)
{
    static const char *const members[][2] = {
        {"status", "sandpit.status"},
        {"exit_code", "sandpit.exit_code"},
        {"signal", "sandpit.signal"},
        {"exited_by", "sandpit.exited_by"},
        {"reason", "sandpit.reason"},
        {"wall_ns", "sandpit.wall_ns"},
        {"cpu_ns", "sandpit.cpu_ns"},
        {"peak_memory_bytes", "sandpit.peak_memory_bytes"},
        {"violations", "sandpit.violations"},
        {"lost", "sandpit.lost"},
    };
    if (s->ended) /* a second one is no trace's */
        return;
    s->ended = true;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const uint32_t at = sp_tape_find(e->tape, 0, members[i][0]);
        if (at != 0)
            sp_otlp_value(&s->run.attributes, members[i][1], e->tape, at);
    }
    s->run.failed = !sp_node_is(sp_tape_text(e->tape, "status"), "ok");
}

static int add_acts(struct otlp *s, const struct sp_read_event *e)
{
    switch (e->kind) {
    case SP_KIND_SOURCE:
    case SP_KIND_FUNCTION:
    case SP_KIND_CALL:
    case SP_KIND_CHECKPOINT:
        return 0;
    case SP_KIND_START:
        return add_start(s, e);
    case SP_KIND_VIOLATION:
    case SP_KIND_TAMPER:
        return add_refusal(s, e);
    case SP_KIND_END:
        note_end(s, e);
        return 0;
    case SP_KIND_FORK:
        return begin_process(s, e, owner_of(s, sp_tape_int(e->tape, "parent", 0)));
    case SP_KIND_EXEC:
        if (owner_of(s, e->pid) != &s->run)
            name_owner(owner_of(s, e->pid), sp_export_text_of(e, "path"));
        return add_event(s, e);
    case SP_KIND_EXIT:
        if (owner_of(s, e->pid) == &s->run)
            return add_event(s, e);
        note_exit(owner_of(s, e->pid), e);
        return end_process(s, e->pid, e->t_ns);
    default:
        return add_event(s, e);
    }
}

static int add(void *state, const struct sp_read_event *e)
{
    struct otlp *s = state;
    if (s->last_ns < e->t_ns)
        s->last_ns = e->t_ns;
    /* Calls end before their process does. */
    if (sp_call_stacks_add(&s->stacks, e, &s->c->fault) < 0)
        return -1;
    return e->tape == NULL ? 0 : add_acts(s, e);
}

static int finish(void *state)
{
    struct otlp *s = state;
    if (sp_call_stacks_finish(&s->stacks) < 0)
        return -1;
    s->c->losses.deep_calls = s->stacks.hidden;
    while (s->processes.count > 0)
        for (size_t i = 0; i < s->processes.slots_count; i++) {
            const struct sp_pair_slot slot = s->processes.slots[i];
            if (slot.value != NULL && end_process(s, slot.first, s->last_ns) < 0)
                return -1;
        }
    if (s->head.size > 0 &&
        put_owner(s, &s->run, s->last_ns, (struct sp_text){"", 0}) < 0)
        return -1;
    if (s->line_size > 0)
        sp_buffer_text(&s->c->out, "]}]}]}\n");
    return 0;
}

static const struct sp_call_listener listener = {.opened = opened, .closed = closed};

static void *begin(struct sp_export_context *c)
{
    struct otlp *s = calloc(1, sizeof *s);
    if (s == NULL || sodium_init() < 0) {
        free(s);
        return NULL;
    }
    s->c = c;
    sp_call_stacks_init(&s->stacks, &listener, s);
    sp_pair_map_init(&s->processes);
    init_owner(&s->run);
    sp_buffer_init(&s->head, 1u << 20);
    sp_buffer_init(&s->attributes, LINE_MAX_SIZE);
    return s;
}

static void release(void *state)
{
    struct otlp *s = state;
    for (size_t i = 0; i < s->processes.slots_count; i++) {
        struct owner *o = s->processes.slots[i].value;
        if (o != NULL)
            release_owner(o);
        free(o);
    }
    sp_pair_map_release(&s->processes);
    sp_call_stacks_release(&s->stacks);
    release_owner(&s->run);
    sp_buffer_release(&s->head);
    sp_buffer_release(&s->attributes);
    free(s);
}

const struct sp_export_ops sp_export_otlp = {
    .begin = begin, .add = add, .finish = finish, .free = release};
