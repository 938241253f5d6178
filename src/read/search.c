#include "read/search.h"

#include <stdlib.h>
#include <string.h>

#include "event/event.h"
#include "read/index.h"
#include "read/line_at.h"

struct search {
    const struct sp_question *question;
    const struct sp_functions *functions; /* borrowed from the index */
    struct sp_window window;
    struct sp_tape tape;
    struct sp_run_view *run;
    const uint64_t *within; /* NULL: any position */
    size_t within_count;
    size_t within_next; /* the first that was not passed yet */
    uint64_t *found;    /* owned */
    size_t count;
    size_t capacity;
};

static bool add(struct search *s, uint64_t position)
{
    if (s->count == s->capacity) {
        const size_t capacity = s->capacity == 0 ? 256 : s->capacity * 2;
        uint64_t *found = realloc(s->found, capacity * sizeof *found);
        if (found == NULL)
            return false;
        s->found = found;
        s->capacity = capacity;
    }
    s->found[s->count++] = position;
    return true;
}

/* ---- what an event must be ---------------------------------------------------------------- */

static bool equal(struct sp_text text, const char *to, size_t size)
{
    return text.size == size && memcmp(text.data, to, size) == 0;
}

static bool kind_wanted(const struct sp_question *q, const char *name, size_t size)
{
    for (size_t i = 0; i < q->kinds_count; i++)
        if (equal(q->kinds[i], name, size))
            return true;
    return q->kinds_count == 0;
}

static bool time_wanted(const struct sp_question *q, uint64_t t_ns)
{
    return t_ns >= q->from_ns && (t_ns < q->until_ns || q->until_ns == UINT64_MAX);
}

/* What holds for a whole line, a run too. */
static bool line_wanted(const struct sp_question *q, const struct sp_head *head)
{
    return (!q->has_pid || head->pid == q->pid) &&
           (!q->has_tid || head->tid == q->tid) &&
           (q->layer.size == 0 || equal(q->layer, head->layer_name, head->layer_size));
}

static bool holds(struct sp_text text, const char *data, size_t size)
{
    return memmem(data, size, text.data, text.size) != NULL;
}

/* Whether a value is such a text or has one in it. Depth is bounded by the tape. */
static bool value_holds(const struct sp_tape *tape, uint32_t i, struct sp_text text)
{
    const struct sp_json_node *node = &tape->nodes[i];
    const bool object = node->type == SP_JSON_OBJECT;
    if (node->type == SP_JSON_STRING)
        return holds(text, node->text, node->size);
    if (node->type != SP_JSON_ARRAY && !object)
        return false;
    for (uint32_t at = i + 1; at < node->next;) {
        const uint32_t value = object ? at + 1 : at;
        if (value_holds(tape, value, text))
            return true;
        at = tape->nodes[value].next;
    }
    return false;
}

static bool members_hold(const struct sp_tape *tape, struct sp_text text)
{
    const struct sp_json_node *nodes = tape->nodes;
    for (uint32_t i = 1; i < nodes[0].next; i = nodes[i + 1].next)
        if (!sp_node_is(&nodes[i], "kind") && !sp_node_is(&nodes[i], "layer") &&
            value_holds(tape, i + 1, text))
            return true;
    return false;
}

static bool function_holds(const struct sp_function *f, struct sp_text text)
{
    return f != NULL && (holds(text, f->name.data, f->name.size) ||
                         holds(text, f->module.data, f->module.size) ||
                         holds(text, f->file.data, f->file.size));
}

/* ---- going through the file --------------------------------------------------------------- */

/* Whether a position, greater than any that was asked for before, is one of `within`. */
static bool is_within(struct search *s, uint64_t position)
{
    if (s->within == NULL)
        return true;
    while (s->within_next < s->within_count && s->within[s->within_next] < position)
        s->within_next++;
    return s->within_next < s->within_count && s->within[s->within_next] == position;
}

/* Whether any of `count` positions from `first` on is. */
static bool any_within(struct search *s, uint64_t first, uint64_t count)
{
    return is_within(s, first) || (s->within_next < s->within_count &&
                                   s->within[s->within_next] - first < count);
}

static int search_run(struct search *s, const char *line, size_t size,
                      const struct sp_line_place *place, const struct sp_head *head,
                      uint64_t first, struct sp_fault *ret_fault)
{
    const struct sp_question *q = s->question;
    const bool calls = kind_wanted(q, "call", 4);
    const bool returns = kind_wanted(q, "return", 6);
    if ((!calls && !returns) || head->t_ns >= q->until_ns)
        return 0;
    if (sp_line_parse_run(line, size, place, head, &s->tape, s->run, ret_fault) < 0)
        return -1;
    for (uint32_t i = 0; i < s->run->count; i++) {
        const int32_t id = s->run->ids[i];
        if (!(id < 0 ? returns : calls) || !time_wanted(q, s->run->t_ns[i]) ||
            !is_within(s, first + i))
            continue;
        const uint32_t function = (uint32_t)(id < 0 ? -id : id);
        if (q->text.size > 0 &&
            !function_holds(sp_functions_get(s->functions, function), q->text))
            continue;
        if (!add(s, first + i))
            return sp_fault_set(ret_fault, place->number, place->offset, "no memory");
    }
    return 0;
}

static int search_line(struct search *s, const char *line, size_t size,
                       const struct sp_line_place *place, const struct sp_head *head,
                       uint64_t first, struct sp_fault *ret_fault)
{
    const struct sp_question *q = s->question;
    struct sp_head again;
    if (!time_wanted(q, head->t_ns) ||
        !kind_wanted(q, head->kind_name, head->kind_size))
        return 0;
    if (q->text.size > 0) {
        if (sp_line_parse(line, size, place, &s->tape, &again, ret_fault) < 0)
            return -1;
        if (!members_hold(&s->tape, q->text))
            return 0;
    }
    return add(s, first)
               ? 0
               : sp_fault_set(ret_fault, place->number, place->offset, "no memory");
}

static int search_lines(struct search *s, struct sp_fault *ret_fault)
{
    struct sp_line_place place = {.number = 1};
    for (uint64_t first = 0;; place.number++) {
        const char *line;
        size_t size;
        struct sp_head head = {.kind_name = "", .layer_name = ""};
        int got = sp_line_at(&s->window, &place, &line, &size, &head, ret_fault);
        if (got <= 0)
            return got;
        if (line_wanted(s->question, &head) && any_within(s, first, head.count))
            got = (head.kind == SP_KIND_RUN ? search_run : search_line)(
                s, line, size, &place, &head, first, ret_fault);
        if (got < 0)
            return -1;
        first += head.count;
        place.offset += size + 1;
    }
}

int sp_search(const struct sp_index *x, const struct sp_question *question,
              const uint64_t *within, size_t within_count, uint64_t **ret_positions,
              size_t *ret_count, struct sp_fault *ret_fault)
{
    struct search s = {.question = question,
                       .functions = sp_index_functions(x),
                       .within = within,
                       .within_count = within_count};
    s.run = calloc(1, sizeof *s.run);
    if (s.run == NULL)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    sp_window_init(&s.window, sp_index_fd(x));
    sp_tape_init(&s.tape);
    const int result = search_lines(&s, ret_fault);
    sp_window_release(&s.window);
    sp_tape_release(&s.tape);
    free(s.run);
    if (result < 0) {
        free(s.found);
        return -1;
    }
    *ret_positions = s.found;
    *ret_count = s.count;
    return 0;
}
