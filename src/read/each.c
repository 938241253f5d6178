#include "read/each.h"

#include <stdlib.h>

#include "read/index.h"
#include "read/line_at.h"

struct walk {
    const struct sp_each *each;
    const struct sp_functions *functions;
    struct sp_window window;
    struct sp_tape tape;
    struct sp_run_view *run;
    size_t within_next; /* the first that was not passed yet */
};

/* Whether one of `count` positions from `first` on is asked for. */
static bool any_within(struct walk *w, uint64_t first, uint64_t count)
{
    const struct sp_each *each = w->each;
    if (each->within == NULL)
        return true;
    while (w->within_next < each->within_count && each->within[w->within_next] < first)
        w->within_next++;
    return w->within_next < each->within_count &&
           each->within[w->within_next] - first < count;
}

static bool wanted(const struct walk *w, int kind)
{
    return w->each->kinds == NULL || (kind >= 0 && w->each->kinds[kind]);
}

static int take_run(struct walk *w, const char *line, size_t size,
                    const struct sp_line_place *place, struct sp_head *head,
                    uint64_t first, struct sp_fault *ret_fault)
{
    struct sp_read_event event;
    struct sp_read_event of_line;
    if (!wanted(w, SP_KIND_CALL) && !wanted(w, SP_READ_RETURN))
        return 0;
    if (sp_line_parse_run(line, size, place, head, &w->tape, w->run, ret_fault) < 0)
        return -1;
    sp_read_event_set(&of_line, head, line, size, place->number, &w->tape);
    for (uint32_t i = 0; i < w->run->count; i++) {
        if (!wanted(w, w->run->ids[i] < 0 ? SP_READ_RETURN : SP_KIND_CALL) ||
            !any_within(w, first + i, 1))
            continue;
        event = of_line;
        sp_read_event_of_run(&event, w->run, i, w->functions);
        if (w->each->take(w->each->to, &event, ret_fault) < 0)
            return -1;
    }
    return 0;
}

static int take_line(struct walk *w, const char *line, size_t size,
                     const struct sp_line_place *place, struct sp_head *head,
                     struct sp_fault *ret_fault)
{
    struct sp_read_event event;
    if (!wanted(w, head->kind))
        return 0;
    if (sp_line_parse(line, size, place, &w->tape, head, ret_fault) < 0)
        return -1;
    sp_read_event_set(&event, head, line, size, place->number, &w->tape);
    return w->each->take(w->each->to, &event, ret_fault);
}

static int take_lines(struct walk *w, struct sp_fault *ret_fault)
{
    struct sp_line_place place = {.number = 1};
    for (uint64_t first = 0;; place.number++) {
        const char *line;
        size_t size;
        struct sp_head head;
        int got = sp_line_at(&w->window, &place, &line, &size, &head, ret_fault);
        if (got <= 0)
            return got;
        if (any_within(w, first, head.count))
            got = head.kind == SP_KIND_RUN
                      ? take_run(w, line, size, &place, &head, first, ret_fault)
                      : take_line(w, line, size, &place, &head, ret_fault);
        if (got < 0)
            return -1;
        first += head.count;
        place.offset += size + 1;
    }
}

int sp_each(const struct sp_index *x, const struct sp_each *each,
            struct sp_fault *ret_fault)
{
    struct walk w = {.each = each, .functions = sp_index_functions(x)};
    w.run = calloc(1, sizeof *w.run);
    if (w.run == NULL)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    sp_window_init(&w.window, sp_index_fd(x));
    sp_tape_init(&w.tape);
    const int result = take_lines(&w, ret_fault);
    sp_window_release(&w.window);
    sp_tape_release(&w.tape);
    free(w.run);
    return result;
}
