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
#include "read/otlp_spans.h"
#include "read/otlp_values.h"

#define CALL_NS_MIN   1000000u /* calls that are shorter are no spans */
#define PROCESSES_MAX 32768u   /* alive at once */

/* ---- processes ---------------------------------------------------------------------------- */

/* What it runs, from now on. */
static void name_owner(struct sp_otlp_owner *o, struct sp_text path)
{
    const struct sp_text name = sp_export_basename(path);
    sp_buffer_clear(&o->name);
    sp_buffer_text(&o->name, "process ");
    sp_buffer_append(&o->name, name.data,
                     name.size <= SP_EXPORT_TEXT_MAX
                         ? name.size
                         : sp_json_whole(name.data, SP_EXPORT_TEXT_MAX));
}

static int begin_process(struct sp_otlp *s, const struct sp_read_event *e,
                         const struct sp_otlp_owner *parent)
{
    if (s->processes.count == PROCESSES_MAX ||
        sp_pair_map_get(&s->processes, e->pid, 0) != NULL)
        return 0; /* what it does counts as the run's */
    struct sp_otlp_owner *o = malloc(sizeof *o);
    if (o == NULL)
        return sp_export_no_memory(s->c);
    sp_otlp_owner_init(o);
    if (!sp_pair_map_add(&s->processes, e->pid, 0, o)) {
        free(o);
        return sp_export_no_memory(s->c);
    }
    o->begin_ns = e->t_ns;
    sp_otlp_span_id(s, 'p', e->seq, o->id);
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
static void note_exit(struct sp_otlp_owner *o, const struct sp_read_event *e)
{
    const uint32_t code = sp_tape_find(e->tape, 0, "code");
    const uint32_t signal = sp_tape_find(e->tape, 0, "signal");
    if (code != 0)
        sp_otlp_value(&o->attributes, "process.exit.code", e->tape, code);
    if (signal != 0)
        sp_otlp_value(&o->attributes, "sandpit.signal", e->tape, signal);
    o->failed = signal != 0 || sp_tape_int(e->tape, "code", 0) != 0;
}

static int end_process(struct sp_otlp *s, int64_t pid, uint64_t t_ns)
{
    struct sp_otlp_owner *o = sp_pair_map_get(&s->processes, pid, 0);
    if (o == NULL)
        return 0;
    sp_pair_map_remove(&s->processes, pid, 0);
    const int result = sp_otlp_put_owner(s, o, t_ns, (struct sp_text){"", 0});
    sp_otlp_owner_release(o);
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

static void describe(struct sp_otlp *s, const struct sp_function *f, int64_t tid)
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
    struct sp_otlp *s = context;
    char id[SP_OTLP_ID_SIZE];
    char parent[SP_OTLP_ID_SIZE];
    if (t_ns - call->t_ns < CALL_NS_MIN)
        return 0;
    struct sp_otlp_owner *owner = sp_otlp_owner_of(s, thread->pid);
    if (owner->last_ns < t_ns)
        owner->last_ns = t_ns;
    if (s->last_ns < t_ns)
        s->last_ns = t_ns;
    sp_otlp_span_id(s, 'c', call->data, id);
    if (thread->depth > 1) /* it took as long at least */
        sp_otlp_span_id(s, 'c', call[-1].data, parent);
    else
        memcpy(parent, owner->id, sizeof parent);
    const struct sp_function *f =
        sp_functions_get(s->c->functions, (uint32_t)call->function);
    sp_buffer_clear(&s->attributes);
    describe(s, f, thread->tid);
    if (raised)
        sp_otlp_true(&s->attributes, "sandpit.raised");
    const struct sp_otlp_span span = {
        .id = id,
        .parent = parent,
        .name =
            f != NULL ? f->name : (struct sp_text){"(a function without a name)", 27},
        .begin_ns = call->t_ns,
        .end_ns = t_ns,
        .attributes = &s->attributes};
    return sp_otlp_put_span(s, &span);
}

/* An act that was refused, or would be. */
static int add_refusal(struct sp_otlp *s, const struct sp_read_event *e)
{
    char id[SP_OTLP_ID_SIZE];
    sp_otlp_span_id(s, 'v', e->seq, id);
    sp_buffer_clear(&s->attributes);
    sp_otlp_members(&s->attributes, e);
    struct sp_buffer *text = &s->c->text;
    sp_export_title(text, e);
    const struct sp_otlp_span span = {.id = id,
                                      .parent = sp_otlp_owner_of(s, e->pid)->id,
                                      .name = sp_otlp_text_in(text),
                                      .begin_ns = e->t_ns,
                                      .end_ns = e->t_ns,
                                      .attributes = &s->attributes,
                                      .failed = true,
                                      .message = sp_export_text_of(e, "message")};
    const int result = sp_otlp_put_span(s, &span);
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

static void make_head(struct sp_otlp *s, const struct sp_read_event *e,
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

static int add_start(struct sp_otlp *s, const struct sp_read_event *e)
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
    sp_otlp_span_id(s, 'r', 0, s->run.id);
    sp_otlp_members(&s->run.attributes, e);
    if (begin_process(s, e, &s->run) < 0)
        return -1;
    name_owner(sp_otlp_owner_of(s, e->pid), text_at(e->tape, "interpreter", "path"));
    sp_buffer_text(&s->run.name, "sandpit run ");
    sp_buffer_append(&s->run.name, program.data,
                     program.size <= SP_EXPORT_TEXT_MAX
                         ? program.size
                         : sp_json_whole(program.data, SP_EXPORT_TEXT_MAX));
    return 0;
}

/* The members of an end that the start has none of. */
static void note_end(struct sp_otlp *s, const struct sp_read_event *e)
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

static int add_acts(struct sp_otlp *s, const struct sp_read_event *e)
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
        return begin_process(s, e,
                             sp_otlp_owner_of(s, sp_tape_int(e->tape, "parent", 0)));
    case SP_KIND_EXEC:
        if (sp_otlp_owner_of(s, e->pid) != &s->run)
            name_owner(sp_otlp_owner_of(s, e->pid), sp_export_text_of(e, "path"));
        return sp_otlp_add_event(s, e);
    case SP_KIND_EXIT:
        if (sp_otlp_owner_of(s, e->pid) == &s->run)
            return sp_otlp_add_event(s, e);
        note_exit(sp_otlp_owner_of(s, e->pid), e);
        return end_process(s, e->pid, e->t_ns);
    default:
        return sp_otlp_add_event(s, e);
    }
}

static int add(void *state, const struct sp_read_event *e)
{
    struct sp_otlp *s = state;
    if (s->last_ns < e->t_ns)
        s->last_ns = e->t_ns;
    /* Calls end before their process does. */
    if (sp_call_stacks_add(&s->stacks, e, &s->c->fault) < 0)
        return -1;
    return e->tape == NULL ? 0 : add_acts(s, e);
}

static int finish(void *state)
{
    struct sp_otlp *s = state;
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
        sp_otlp_put_owner(s, &s->run, s->last_ns, (struct sp_text){"", 0}) < 0)
        return -1;
    if (s->line_size > 0)
        sp_buffer_text(&s->c->out, "]}]}]}\n");
    return 0;
}

static const struct sp_call_listener listener = {.opened = opened, .closed = closed};

static void *begin(struct sp_export_context *c)
{
    struct sp_otlp *s = calloc(1, sizeof *s);
    if (s == NULL || sodium_init() < 0) {
        free(s);
        return NULL;
    }
    s->c = c;
    sp_call_stacks_init(&s->stacks, &listener, s);
    sp_pair_map_init(&s->processes);
    sp_otlp_owner_init(&s->run);
    sp_buffer_init(&s->head, 1u << 20);
    sp_buffer_init(&s->attributes, SP_OTLP_LINE_MAX);
    return s;
}

static void release(void *state)
{
    struct sp_otlp *s = state;
    for (size_t i = 0; i < s->processes.slots_count; i++) {
        struct sp_otlp_owner *o = s->processes.slots[i].value;
        if (o != NULL)
            sp_otlp_owner_release(o);
        free(o);
    }
    sp_pair_map_release(&s->processes);
    sp_call_stacks_release(&s->stacks);
    sp_otlp_owner_release(&s->run);
    sp_buffer_release(&s->head);
    sp_buffer_release(&s->attributes);
    free(s);
}

const struct sp_export_ops sp_export_otlp = {
    .begin = begin, .add = add, .finish = finish, .free = release};
