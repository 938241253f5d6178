/* Collapsed stacks, "a;b;c 12" a line: what flamegraph.pl, inferno and speedscope read. From calls
 * of level `all`: each stack with the time spent in its innermost function. From folded ones: a
 * caller and the function it called, with the function's own time. All threads and processes
 * together, in microseconds.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "event/event.h"
#include "read/call_stacks.h"
#include "read/export_format.h"
#include "read/frame_table.h"
#include "read/pair_map.h"

#define NODES_MAX (1u << 21) /* different stacks */
#define DEPTH_MAX 2048u      /* frames of one: a line is as long as that */
#define ROOT      0u

/* A function where it was called from: the stack is the way to the root. */
struct node {
    uint64_t self_ns;
    uint32_t parent;
    uint32_t frame;
    uint32_t depth;
};

struct collapsed {
    struct sp_export_context *c; /* borrowed */
    struct sp_call_stacks stacks;
    struct sp_frame_table frames; /* as they stand in the lines */
    struct sp_buffer raw;         /* what a function is called */
    struct node *nodes;           /* owned; the first is the root */
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* owned: number of a node by parent and frame, 0 free */
    uint32_t slots_count;
    uint64_t seed;
};

/* What a thread's `data` points to. */
struct place {
    uint32_t node;    /* where it is */
    uint64_t from_ns; /* since when */
};

/* ---- frames --------------------------------------------------------------------------- */

/* Semicolons part frames and a newline ends a stack; the last blank stands before the number. */
static void put_frame_text(struct sp_buffer *to, const char *text, size_t size)
{
    const size_t from = to->size;
    sp_export_chars(to, text, size);
    for (size_t i = from; i < to->size; i++)
        if (to->data[i] == ';')
            to->data[i] = ',';
}

/* The frame of what stands in `raw`, which is emptied. */
static uint32_t frame_of(struct collapsed *s)
{
    struct sp_buffer *raw = &s->raw;
    struct sp_buffer *text = &s->c->text;
    const size_t size = raw->size <= SP_EXPORT_TEXT_MAX
                            ? raw->size
                            : sp_json_whole(raw->data, SP_EXPORT_TEXT_MAX);
    put_frame_text(text, raw->data, size);
    uint32_t frame = sp_frame_table_add(&s->frames, text->data, text->size);
    if (frame == SP_FRAME_NONE) {
        frame = 0; /* see begin() */
        s->c->losses.frames++;
    }
    sp_buffer_clear(raw);
    sp_buffer_clear(text);
    return frame;
}

static uint32_t frame_of_function(struct collapsed *s, const struct sp_read_event *e)
{
    const uint32_t id = (uint32_t)e->function_id;
    uint32_t frame = sp_frame_table_of_id(&s->frames, id);
    if (frame != SP_FRAME_NONE)
        return frame;
    sp_export_frame(&s->raw, e->function);
    frame = frame_of(s);
    if (e->function != NULL)
        sp_frame_table_note(&s->frames, id, frame);
    return frame;
}

/* ---- stacks ---------------------------------------------------------------------------- */

static uint32_t *slot_of(const struct collapsed *s, uint32_t parent, uint32_t frame)
{
    uint32_t i = (uint32_t)sp_pair_hash(s->seed, parent, frame) & (s->slots_count - 1);
    while (s->slots[i] != 0 && (s->nodes[s->slots[i]].parent != parent ||
                                s->nodes[s->slots[i]].frame != frame))
        i = (i + 1) & (s->slots_count - 1);
    return &s->slots[i];
}

static bool grow(struct collapsed *s)
{
    const uint32_t capacity = s->capacity == 0 ? 1024 : s->capacity * 2;
    struct node *nodes = realloc(s->nodes, capacity * sizeof *nodes);
    if (nodes == NULL)
        return false;
    s->nodes = nodes;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    free(s->slots);
    s->slots = slots;
    s->slots_count = capacity * 2;
    s->capacity = capacity;
    for (uint32_t i = 1; i < s->count; i++)
        *slot_of(s, nodes[i].parent, nodes[i].frame) = i;
    return true;
}

/* The stack `parent` with one more frame; `parent` itself where there is no room. */
static uint32_t step(struct collapsed *s, uint32_t parent, uint32_t frame)
{
    uint32_t *slot = slot_of(s, parent, frame);
    if (*slot != 0)
        return *slot;
    if (s->nodes[parent].depth == DEPTH_MAX ||
        (s->count == s->capacity && (s->count == NODES_MAX || !grow(s)))) {
        s->c->losses.stacks++;
        return parent;
    }
    *slot_of(s, parent, frame) = s->count;
    s->nodes[s->count] = (struct node){
        .parent = parent, .frame = frame, .depth = s->nodes[parent].depth + 1};
    return s->count++;
}

/* Time up to now was spent where the thread is. */
static void account(struct collapsed *s, struct place *place, uint64_t t_ns)
{
    if (place->node != ROOT)
        s->nodes[place->node].self_ns += t_ns - place->from_ns;
    place->from_ns = t_ns;
}

static int opened(void *context, struct sp_call_thread *thread,
                  struct sp_open_call *call, const struct sp_read_event *e)
{
    struct collapsed *s = context;
    struct place *place = thread->data;
    account(s, place, call->t_ns);
    call->data = place->node; /* where the return leads back to */
    place->node = step(s, place->node, frame_of_function(s, e));
    return 0;
}

static int closed(void *context, struct sp_call_thread *thread,
                  const struct sp_open_call *call, uint64_t t_ns, bool raised)
{
    struct place *place = thread->data;
    (void)raised;
    account(context, place, t_ns);
    place->node = (uint32_t)call->data;
    return 0;
}

static int began(void *context, struct sp_call_thread *thread)
{
    struct collapsed *s = context;
    thread->data = calloc(1, sizeof(struct place));
    return thread->data == NULL ? sp_export_no_memory(s->c) : 0;
}

static int ended(void *context, struct sp_call_thread *thread)
{
    (void)context;
    free(thread->data);
    thread->data = NULL;
    return 0;
}

/* ---- events ---------------------------------------------------------------------------- */

static uint64_t microseconds(uint64_t ns)
{
    return ns / 1000 + (ns % 1000 >= 500);
}

static int add_folded(struct collapsed *s, const struct sp_read_event *e)
{
    const int64_t self_ns = sp_tape_int(e->tape, "self", 0);
    const struct sp_text caller = sp_export_text_of(e, "caller");
    const struct sp_function function = {.name = sp_export_text_of(e, "function"),
                                         .file = sp_export_text_of(e, "file"),
                                         .line = sp_tape_int(e->tape, "line", 0)};
    if (self_ns <= 0)
        return 0;
    uint32_t node = ROOT;
    if (caller.size > 0) {
        sp_buffer_append(&s->raw, caller.data, caller.size);
        node = step(s, node, frame_of(s));
    }
    sp_export_frame(&s->raw, &function);
    node = step(s, node, frame_of(s));
    if (node != ROOT)
        s->nodes[node].self_ns += (uint64_t)self_ns;
    return 0;
}

static int add(void *state, const struct sp_read_event *e)
{
    struct collapsed *s = state;
    if (e->kind == SP_KIND_FUNCTION) /* a new name for an old id counts from here on */
        sp_frame_table_note(&s->frames, (uint32_t)sp_tape_int(e->tape, "id", 0),
                            SP_FRAME_NONE);
    if (e->kind == SP_KIND_CALL && e->tape != NULL &&
        sp_tape_find(e->tape, 0, "count") != 0)
        return add_folded(s, e);
    return sp_call_stacks_add(&s->stacks, e, &s->c->fault);
}

static void put_stack(struct collapsed *s, uint32_t i)
{
    struct sp_buffer *b = &s->c->out;
    uint32_t way[DEPTH_MAX];
    uint32_t depth = 0;
    for (uint32_t at = i; at != ROOT; at = s->nodes[at].parent)
        way[depth++] = s->nodes[at].frame;
    while (depth > 0) {
        const struct sp_frame_text *frame = &s->frames.items[way[--depth]];
        sp_buffer_append(b, frame->data, frame->size);
        sp_buffer_append(b, depth > 0 ? ";" : " ", 1);
    }
    sp_json_uint(b, microseconds(s->nodes[i].self_ns));
    sp_buffer_append(b, "\n", 1);
}

static int finish(void *state)
{
    struct collapsed *s = state;
    if (sp_call_stacks_finish(&s->stacks) < 0)
        return -1;
    s->c->losses.deep_calls = s->stacks.hidden;
    for (uint32_t i = 1; i < s->count; i++) {
        if (microseconds(s->nodes[i].self_ns) == 0)
            continue;
        put_stack(s, i);
        if (sp_export_settle(s->c) < 0)
            return -1;
    }
    return 0;
}

static const struct sp_call_listener listener = {
    .began = began, .opened = opened, .closed = closed, .ended = ended};

static void release(void *state)
{
    struct collapsed *s = state;
    for (size_t i = 0; i < s->stacks.threads.slots_count; i++) {
        struct sp_call_thread *thread = s->stacks.threads.slots[i].value;
        if (thread != NULL)
            free(thread->data);
    }
    sp_call_stacks_release(&s->stacks);
    sp_frame_table_release(&s->frames);
    sp_buffer_release(&s->raw);
    free(s->nodes);
    free(s->slots);
    free(s);
}

static void *begin(struct sp_export_context *c)
{
    static const char other[] = "(other functions)";
    struct collapsed *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->c = c;
    s->seed = sp_pair_seed(s);
    sp_call_stacks_init(&s->stacks, &listener, s);
    sp_frame_table_init(&s->frames);
    sp_buffer_init(&s->raw, 64u << 20);
    if (!grow(s) ||
        sp_frame_table_add(&s->frames, other, strlen(other)) == SP_FRAME_NONE) {
        release(s);
        return NULL;
    }
    s->nodes[s->count++] = (struct node){0}; /* the root */
    return s;
}

const struct sp_export_ops sp_export_collapsed = {
    .begin = begin, .add = add, .finish = finish, .free = release};
