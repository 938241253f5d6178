#include "read/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/scope.h"
#include "read/line_at.h"
#include "read/line_parse.h"
#include "trace/lines.h"

#define LINES_PER_MARK 32u

/* Where a line stands, and what it is the first event of. */
struct mark {
    uint64_t first; /* position of its first event */
    uint64_t offset;
};

struct sp_index {
    int fd;             /* owned */
    struct mark *marks; /* owned: one for every LINES_PER_MARK lines */
    size_t marks_count;
    size_t marks_capacity;
    bool built;
    uint64_t lines;
    uint64_t events;
    struct sp_functions functions;
    /* for get(): */
    struct sp_window window;
    struct sp_tape tape;
    struct mark at;          /* the line in hand ... */
    uint64_t at_line;        /* ... its number, from 1; 0: none in hand */
    struct sp_head head;     /* of it */
    struct sp_run_view *run; /* owned; the last run that was taken apart ... */
    uint64_t run_offset;     /* ... stands here; UINT64_MAX: none */
};

/* ---- building --------------------------------------------------------------------------- */

static int add_mark(struct sp_index *x, uint64_t offset)
{
    if (x->marks_count == x->marks_capacity) {
        const size_t capacity = x->marks_capacity == 0 ? 64 : x->marks_capacity * 2;
        struct mark *marks = realloc(x->marks, capacity * sizeof *marks);
        if (marks == NULL)
            return -1;
        x->marks = marks;
        x->marks_capacity = capacity;
    }
    x->marks[x->marks_count++] = (struct mark){.first = x->events, .offset = offset};
    return 0;
}

/* Takes in what a line says about others. */
static int learn(struct sp_index *x, const char *line, size_t size,
                 const struct sp_line_place *place, const struct sp_head *head,
                 struct sp_fault *ret_fault)
{
    struct sp_head again;
    if (place->number != 1 && head->kind != SP_KIND_FUNCTION)
        return 0;
    if (sp_line_parse(line, size, place, &x->tape, &again, ret_fault) < 0)
        return -1;
    if (place->number == 1)
        return sp_line_check_start(head, &x->tape, ret_fault);
    if (!sp_functions_add(&x->functions, &x->tape))
        return sp_fault_set(
            ret_fault, place->number, place->offset,
            "a function without a usable id, or more than there can be");
    return 0;
}

/* Goes through at most `lines_max` lines. */
static int scan(struct sp_index *x, uint64_t lines_max, struct sp_fault *ret_fault)
{
    struct sp_line_place place = {.number = 1};
    for (; place.number <= lines_max; place.number++) {
        const char *line;
        size_t size;
        struct sp_head head;
        const int got = sp_line_at(&x->window, &place, &line, &size, &head, ret_fault);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        if (learn(x, line, size, &place, &head, ret_fault) < 0)
            return -1;
        if (x->lines++ % LINES_PER_MARK == 0 && add_mark(x, place.offset) < 0)
            return sp_fault_set(ret_fault, place.number, place.offset, "no memory");
        x->events += head.count;
        place.offset += size + 1;
    }
    if (x->lines == 0)
        return sp_fault_set(ret_fault, 1, 0,
                            x->window.size == 0 ? "an empty file, not a trace"
                                                : "not a trace");
    return 0;
}

static void forget(struct sp_index *x)
{
    x->marks_count = 0;
    x->lines = 0;
    x->events = 0;
    sp_functions_release(&x->functions);
}

int sp_index_build(struct sp_index *x, struct sp_fault *ret_fault)
{
    if (x->built)
        return 0;
    forget(x);
    x->built = scan(x, UINT64_MAX, ret_fault) == 0;
    return x->built ? 0 : -1;
}

int sp_index_open_fd(int fd, struct sp_index **ret_index, struct sp_fault *ret_fault)
{
    struct sp_index *x = calloc(1, sizeof *x);
    if (x == NULL)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    x->fd = -1;
    x->run_offset = UINT64_MAX;
    sp_window_init(&x->window, fd);
    sp_tape_init(&x->tape);
    sp_functions_init(&x->functions);
    if (scan(x, 1, ret_fault) < 0) {
        sp_index_free(x);
        return -1;
    }
    x->fd = fd;
    *ret_index = x;
    return 0;
}

void sp_index_free(struct sp_index *x)
{
    if (x == NULL)
        return;
    sp_window_release(&x->window);
    sp_tape_release(&x->tape);
    sp_functions_release(&x->functions);
    free(x->marks);
    free(x->run);
    sp_close_fd(&x->fd);
    free(x);
}

uint64_t sp_index_count(const struct sp_index *x)
{
    return x->events;
}

int sp_index_fd(const struct sp_index *x)
{
    return x->fd;
}

const struct sp_functions *sp_index_functions(const struct sp_index *x)
{
    return &x->functions;
}

/* ---- one event -------------------------------------------------------------------------- */

/* Number of the last mark that is not behind position i. */
static size_t find_mark(const struct sp_index *x, uint64_t i)
{
    size_t low = 0;
    size_t high = x->marks_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (x->marks[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Takes the line in hand that position i lies in: onwards from where we are, or from the
 * nearest mark. */
static int go_to(struct sp_index *x, uint64_t i, const char **ret_line,
                 size_t *ret_size, struct sp_fault *ret_fault)
{
    const size_t mark = find_mark(x, i);
    if (x->at_line == 0 || x->at.first > i || x->at.first < x->marks[mark].first) {
        x->at = x->marks[mark];
        x->at_line = (uint64_t)mark * LINES_PER_MARK + 1;
    }
    for (;;) {
        const struct sp_line_place place = {x->at_line, x->at.offset};
        const int got =
            sp_line_at(&x->window, &place, ret_line, ret_size, &x->head, ret_fault);
        if (got == 0)
            sp_fault_set(ret_fault, place.number, place.offset,
                         "the file is shorter than it was");
        if (got <= 0) {
            x->at_line = 0;
            return -1;
        }
        if (i - x->at.first < x->head.count)
            return 0;
        x->at.first += x->head.count;
        x->at.offset += *ret_size + 1;
        x->at_line++;
    }
}

static int take_run(struct sp_index *x, const char *line, size_t size,
                    const struct sp_line_place *place, struct sp_fault *ret_fault)
{
    if (x->run_offset == place->offset)
        return 0;
    x->run_offset = UINT64_MAX;
    if (x->run == NULL)
        x->run = malloc(sizeof *x->run);
    if (x->run == NULL)
        return sp_fault_set(ret_fault, place->number, place->offset, "no memory");
    if (sp_line_parse_run(line, size, place, &x->head, &x->tape, x->run, ret_fault) < 0)
        return -1;
    x->run_offset = place->offset;
    return 0;
}

int sp_index_get(struct sp_index *x, uint64_t i, struct sp_read_event *ret_event,
                 struct sp_fault *ret_fault)
{
    const char *line;
    size_t size;
    SP_BUG_ON(!x->built || i >= x->events);
    if (go_to(x, i, &line, &size, ret_fault) < 0)
        return -1;
    const struct sp_line_place place = {x->at_line, x->at.offset};
    const bool is_run = x->head.kind == SP_KIND_RUN;
    if (is_run ? take_run(x, line, size, &place, ret_fault) < 0
               : sp_line_parse(line, size, &place, &x->tape, &x->head, ret_fault) < 0)
        return -1;
    sp_read_event_set(ret_event, &x->head, line, size, place.number, &x->tape);
    if (is_run)
        sp_read_event_of_run(ret_event, x->run, (uint32_t)(i - x->at.first),
                             &x->functions);
    return 0;
}
