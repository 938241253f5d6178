/* The file format of speedscope.app. From calls of level `all`: a profile of begin and end events
 * for each thread. From folded ones: a profile of weighted samples for each process, a caller and
 * the function it called, with the function's own time.
 *
 * Profiles stand one after the other in the file and grow side by side in the trace: they wait in
 * a spool until the trace ends.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/call_stacks.h"
#include "read/export_format.h"
#include "read/frame_table.h"
#include "read/spool.h"

#define PROFILES_MAX (1u << 20)

/* What the spool holds: a begin or an end, or a sample. */
struct record {
    uint64_t t_ns; /* of a sample: its weight */
    uint32_t frame;
    uint32_t
        other; /* of an event: 1 for a begin; of a sample: the caller, or SP_FRAME_NONE */
};

struct profile {
    int64_t pid;
    int64_t tid;
    bool sampled;
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t weight_ns; /* of all samples */
    struct sp_spool_part part;
};

struct speedscope {
    struct sp_export_context *c; /* borrowed */
    struct sp_call_stacks stacks;
    struct sp_frame_table frames;
    struct sp_spool spool;
    struct profile **profiles; /* owned, in order of appearance */
    uint32_t count;
    uint32_t capacity;
    struct sp_pair_map by_process; /* those of samples */
};

static int spool_failed(struct speedscope *s)
{
    return sp_fault_set(&s->c->fault, 0, 0, "cannot write to a temporary file: %s",
                        strerror(s->spool.err));
}

static struct profile *add_profile(struct speedscope *s, int64_t pid, int64_t tid,
                                   bool sampled)
{
    if (s->count == PROFILES_MAX) {
        sp_fault_set(&s->c->fault, 0, 0, "more threads than speedscope can show");
        return NULL;
    }
    if (s->count == s->capacity) {
        const uint32_t capacity = s->capacity == 0 ? 16 : s->capacity * 2;
        struct profile **profiles =
            realloc(s->profiles, capacity * sizeof(struct profile *));
        if (profiles == NULL)
            return NULL;
        s->profiles = profiles;
        s->capacity = capacity;
    }
    struct profile *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    *p = (struct profile){.pid = pid, .tid = tid, .sampled = sampled};
    sp_spool_part_init(&p->part);
    s->profiles[s->count++] = p;
    return p;
}

static struct profile *new_profile(struct speedscope *s, int64_t pid, int64_t tid,
                                   bool sampled)
{
    sp_export_no_memory(s->c); /* unless something else is said */
    return add_profile(s, pid, tid, sampled);
}

/* ---- frames --------------------------------------------------------------------------- */

static void put_member(struct sp_buffer *b, const char *key, struct sp_text text)
{
    sp_json_key(b, key);
    sp_export_short_string(b, text.data, text.size);
}

/* A frame as it stands in the file. All that find no room share one. */
static uint32_t frame_of(struct speedscope *s, struct sp_text name, struct sp_text file,
                         int64_t line)
{
    struct sp_buffer *text = &s->c->text;
    sp_buffer_text(text, "{");
    put_member(text, "name", name);
    if (file.size > 0)
        put_member(text, "file", file);
    if (line > 0) {
        sp_json_key(text, "line");
        sp_json_int(text, line);
    }
    sp_buffer_text(text, "}");
    uint32_t frame = sp_frame_table_add(&s->frames, text->data, text->size);
    if (frame == SP_FRAME_NONE) {
        frame = 0; /* see begin() */
        s->c->losses.frames++;
    }
    sp_buffer_clear(text);
    return frame;
}

static uint32_t frame_of_function(struct speedscope *s, const struct sp_read_event *e)
{
    const uint32_t id = (uint32_t)e->function_id;
    const struct sp_function *f = e->function;
    if (f == NULL)
        return 1; /* see begin() */
    uint32_t frame = sp_frame_table_of_id(&s->frames, id);
    if (frame == SP_FRAME_NONE) {
        frame = frame_of(s, f->name, f->file.size > 0 ? f->file : f->module, f->line);
        sp_frame_table_note(&s->frames, id, frame);
    }
    return frame;
}

/* ---- calls of level all ---------------------------------------------------------------- */

static int put_record(struct speedscope *s, struct profile *p, uint64_t t_ns,
                      uint32_t frame, uint32_t other)
{
    const struct record record = {t_ns, frame, other};
    return sp_spool_append(&s->spool, &p->part, &record, sizeof record) < 0
               ? spool_failed(s)
               : 0;
}

static int opened(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *e)
{
    struct speedscope *s = context;
    struct profile *p = thread->data;
    if (p == NULL) {
        p = new_profile(s, thread->pid, thread->tid, false);
        if (p == NULL)
            return -1;
        thread->data = p;
        p->first_ns = call->t_ns;
    }
    call->data = frame_of_function(s, e);
    p->last_ns = call->t_ns;
    return put_record(s, p, call->t_ns, (uint32_t)call->data, 1);
}

static int closed(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised)
{
    struct profile *p = thread->data;
    (void)raised;
    p->last_ns = t_ns;
    return put_record(context, p, t_ns, (uint32_t)call->data, 0);
}

static int ended(void *context, struct sp_call_thread *thread)
{
    struct speedscope *s = context;
    struct profile *p = thread->data;
    return p != NULL && sp_spool_end(&s->spool, &p->part) < 0 ? spool_failed(s) : 0;
}

/* ---- folded calls ---------------------------------------------------------------------- */

static int add_folded(struct speedscope *s, const struct sp_read_event *e)
{
    const int64_t self_ns = sp_tape_int(e->tape, "self", 0);
    const struct sp_text caller = sp_export_text_of(e, "caller");
    if (self_ns <= 0)
        return 0;
    struct profile *p = sp_pair_map_get(&s->by_process, e->pid, 0);
    if (p == NULL) {
        p = new_profile(s, e->pid, e->pid, true);
        if (p == NULL)
            return -1;
        if (!sp_pair_map_add(&s->by_process, e->pid, 0, p))
            return sp_export_no_memory(s->c);
    }
    const uint32_t frame =
        frame_of(s, sp_export_text_of(e, "function"), sp_export_text_of(e, "file"),
                 sp_tape_int(e->tape, "line", 0));
    const uint32_t above = caller.size == 0
                               ? SP_FRAME_NONE
                               : frame_of(s, caller, (struct sp_text){"", 0}, 0);
    p->weight_ns += (uint64_t)self_ns;
    return put_record(s, p, (uint64_t)self_ns, frame, above);
}

static int add(void *state, const struct sp_read_event *e)
{
    struct speedscope *s = state;
    if (e->kind == SP_KIND_FUNCTION) /* a new name for an old id counts from here on */
        sp_frame_table_note(&s->frames, (uint32_t)sp_tape_int(e->tape, "id", 0),
                            SP_FRAME_NONE);
    if (e->kind == SP_KIND_CALL && e->tape != NULL &&
        sp_tape_find(e->tape, 0, "count") != 0)
        return add_folded(s, e);
    return sp_call_stacks_add(&s->stacks, e, &s->c->fault);
}

/* ---- the file -------------------------------------------------------------------------- */

enum column { EVENTS, SAMPLES, WEIGHTS };

static void put_one(struct sp_buffer *b, const struct record *r, enum column column)
{
    switch (column) {
    case EVENTS:
        sp_buffer_text(b, r->other == 1 ? "{\"type\":\"O\",\"frame\":"
                                        : "{\"type\":\"C\",\"frame\":");
        sp_json_uint(b, r->frame);
        sp_buffer_text(b, ",\"at\":");
        sp_json_uint(b, r->t_ns);
        sp_buffer_append(b, "}", 1);
        break;
    case SAMPLES:
        sp_buffer_append(b, "[", 1);
        if (r->other != SP_FRAME_NONE) {
            sp_json_uint(b, r->other);
            sp_buffer_append(b, ",", 1);
        }
        sp_json_uint(b, r->frame);
        sp_buffer_append(b, "]", 1);
        break;
    case WEIGHTS:
        sp_json_uint(b, r->t_ns);
        break;
    }
}

static int put_column(struct speedscope *s, const struct profile *p, const char *key,
                      enum column column)
{
    struct sp_buffer *b = &s->c->out;
    _Alignas(struct record) char block[SP_SPOOL_BLOCK];
    int size;
    sp_json_key(b, key);
    sp_buffer_append(b, "[", 1);
    for (uint32_t i = 0; (size = sp_spool_read(&s->spool, &p->part, i, block)) > 0;
         i++) {
        for (int at = 0; at < size; at += (int)sizeof(struct record)) {
            if (i > 0 || at > 0)
                sp_buffer_append(b, ",", 1);
            put_one(b, (const struct record *)(const void *)(block + at), column);
        }
        if (sp_export_settle(s->c) < 0)
            return -1;
    }
    sp_buffer_append(b, "]", 1);
    return size < 0 ? spool_failed(s) : 0;
}

static int put_profile(struct speedscope *s, const struct profile *p)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, p->sampled ? "{\"type\":\"sampled\"" : "{\"type\":\"evented\"");
    sp_json_key(b, "name");
    if (p->sampled || p->pid == p->tid)
        sp_buffer_format(b, "\"process %" PRId64 "%s\"", p->pid,
                         p->sampled ? ", callers and their calls" : "");
    else
        sp_buffer_format(b, "\"process %" PRId64 ", thread %" PRId64 "\"", p->pid,
                         p->tid);
    sp_buffer_text(b, ",\"unit\":\"nanoseconds\",\"startValue\":");
    sp_json_uint(b, p->sampled ? 0 : p->first_ns);
    sp_buffer_text(b, ",\"endValue\":");
    sp_json_uint(b, p->sampled ? p->weight_ns : p->last_ns);
    const int result = !p->sampled ? put_column(s, p, "events", EVENTS)
                       : put_column(s, p, "samples", SAMPLES) < 0
                           ? -1
                           : put_column(s, p, "weights", WEIGHTS);
    sp_buffer_append(b, "}", 1);
    return result;
}

static int put_frames(struct speedscope *s)
{
    struct sp_buffer *b = &s->c->out;
    sp_buffer_text(b, "],\n\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < s->frames.count; i++) {
        sp_buffer_text(b, i > 0 ? ",\n" : "\n");
        sp_buffer_append(b, s->frames.items[i].data, s->frames.items[i].size);
        if (sp_export_settle(s->c) < 0)
            return -1;
    }
    sp_buffer_text(b, "\n]}}\n");
    return 0;
}

static int finish(void *state)
{
    struct speedscope *s = state;
    struct sp_buffer *b = &s->c->out;
    if (sp_call_stacks_finish(&s->stacks) < 0)
        return -1;
    s->c->losses.deep_calls = s->stacks.hidden;
    if (s->count == 0 && new_profile(s, 0, 0, false) == NULL)
        return -1; /* its readers want one at least */
    sp_buffer_text(b, "{\"$schema\":\"https://www.speedscope.app/"
                      "file-format-schema.json\",\"exporter\":\"sandpit " SP_VERSION
                      "\",\"name\":");
    sp_export_short_string(b, s->c->name, strlen(s->c->name));
    sp_buffer_text(b, ",\"activeProfileIndex\":0,\n\"profiles\":[");
    for (uint32_t i = 0; i < s->count; i++) {
        sp_buffer_text(b, i > 0 ? ",\n" : "\n");
        if (put_profile(s, s->profiles[i]) < 0)
            return -1;
    }
    return put_frames(s);
}

static const struct sp_call_listener listener = {
    .opened = opened, .closed = closed, .ended = ended};

static void *begin(struct sp_export_context *c)
{
    struct speedscope *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->c = c;
    sp_call_stacks_init(&s->stacks, &listener, s);
    sp_frame_table_init(&s->frames);
    sp_spool_init(&s->spool);
    sp_pair_map_init(&s->by_process);
    static const char *const names[] = {"(other functions)",
                                        "(a function without a name)"};
    for (uint32_t i = 0; i < 2; i++)
        frame_of(s, (struct sp_text){names[i], (uint32_t)strlen(names[i])},
                 (struct sp_text){"", 0}, 0);
    return s;
}

static void release(void *state)
{
    struct speedscope *s = state;
    for (uint32_t i = 0; i < s->count; i++) {
        sp_spool_part_release(&s->profiles[i]->part);
        free(s->profiles[i]);
    }
    free(s->profiles);
    sp_pair_map_release(&s->by_process);
    sp_spool_release(&s->spool);
    sp_frame_table_release(&s->frames);
    sp_call_stacks_release(&s->stacks);
    free(s);
}

const struct sp_export_ops sp_export_speedscope = {
    .begin = begin, .add = add, .finish = finish, .free = release};
