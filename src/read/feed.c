#include "read/feed.h"

#include <stdlib.h>
#include <string.h>

#include "read/line_parse.h"
#include "read/run_view.h"
#include "trace/format.h"
#include "trace/lines.h"

#define CAPACITY_FIRST (64u << 10)

struct sp_feed {
    char *data; /* owned; SP_LINES_PADDING bytes behind `capacity` */
    size_t capacity;
    size_t start; /* of the first line that was not taken */
    size_t end;
    size_t looked;              /* no newline from `start` up to here */
    struct sp_line_place place; /* of the next line, `number` of the one before */
    struct sp_tape tape;
    struct sp_functions functions;
    struct sp_head head;
    struct sp_run_view run;
    struct sp_read_event run_event; /* what the events of the run have in common */
    uint32_t run_next; /* position of the next of them; run.count: none left */
    bool in_run;
    char layer[SP_HEAD_NAME_MAX + 1]; /* of the run, whose line may move meanwhile */
    bool failed;
};

struct sp_feed *sp_feed_new(void)
{
    struct sp_feed *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    sp_tape_init(&f->tape);
    sp_functions_init(&f->functions);
    return f;
}

void sp_feed_free(struct sp_feed *f)
{
    if (f == NULL)
        return;
    sp_tape_release(&f->tape);
    sp_functions_release(&f->functions);
    free(f->data);
    free(f);
}

/* Moves what was not taken to the front, and grows. */
static bool make_room(struct sp_feed *f, size_t size)
{
    if (f->start > 0) {
        memmove(f->data, f->data + f->start, f->end - f->start);
        f->end -= f->start;
        f->looked -= f->start;
        f->start = 0;
    }
    size_t capacity = f->capacity > 0 ? f->capacity : CAPACITY_FIRST;
    while (capacity - f->end < size)
        capacity *= 2;
    if (capacity == f->capacity)
        return true;
    char *data = realloc(f->data, capacity + SP_LINES_PADDING);
    if (data == NULL)
        return false;
    memset(data + capacity, 0, SP_LINES_PADDING);
    f->data = data;
    f->capacity = capacity;
    return true;
}

bool sp_feed_put(struct sp_feed *f, const char *data, size_t size)
{
    if (f->capacity - f->end < size && !make_room(f, size))
        return false;
    if (size > 0)
        memcpy(f->data + f->end, data, size);
    f->end += size;
    return true;
}

/* The next whole line. 1, 0 or -1. */
static int next_line(struct sp_feed *f, const char **ret_line, size_t *ret_size,
                     struct sp_fault *ret_fault)
{
    const char *line = f->data + f->start;
    const char *newline = f->end > f->looked
                              ? memchr(f->data + f->looked, '\n', f->end - f->looked)
                              : NULL;
    if (newline == NULL) {
        f->looked = f->end;
        if (f->end - f->start <= SP_TRACE_LINE_MAX)
            return 0;
        return sp_fault_set(ret_fault, f->place.number + 1, f->place.offset,
                            "a line longer than any event can be");
    }
    *ret_line = line;
    *ret_size = (size_t)(newline - line);
    f->place.number++;
    f->start += *ret_size + 1;
    f->looked = f->start;
    return 1;
}

static int take_in(struct sp_feed *f, const char *line, size_t size,
                   struct sp_fault *ret_fault)
{
    if (sp_line_parse(line, size, &f->place, &f->tape, &f->head, ret_fault) < 0)
        return -1;
    f->in_run = f->head.kind == SP_KIND_RUN;
    if (f->head.kind == SP_KIND_START &&
        sp_line_check_start(&f->head, &f->tape, ret_fault) < 0)
        return -1;
    if (f->head.kind == SP_KIND_FUNCTION && !sp_functions_add(&f->functions, &f->tape))
        return sp_fault_set(
            ret_fault, f->place.number, f->place.offset,
            "a function without a usable id, or more than there can be");
    if (!f->in_run)
        return 0;
    f->run_next = 0;
    return sp_line_parse_run(line, size, &f->place, &f->head, &f->tape, &f->run,
                             ret_fault);
}

static void begin_run(struct sp_feed *f)
{
    sp_read_event_set(&f->run_event, &f->head, NULL, 0, f->place.number, &f->tape);
    memcpy(f->layer, f->head.layer_name, f->head.layer_size);
    f->run_event.layer.data = f->layer;
}

static int next_of_run(struct sp_feed *f, struct sp_read_event *ret_event)
{
    *ret_event = f->run_event;
    sp_read_event_of_run(ret_event, &f->run, f->run_next++, &f->functions);
    f->in_run = f->run_next < f->run.count;
    return 1;
}

int sp_feed_next(struct sp_feed *f, struct sp_read_event *ret_event,
                 struct sp_fault *ret_fault)
{
    const char *line = NULL;
    size_t size = 0;
    if (f->failed)
        return sp_fault_set(ret_fault, f->place.number, f->place.offset,
                            "nothing can be read behind a fault");
    if (f->in_run)
        return next_of_run(f, ret_event);
    const int got = next_line(f, &line, &size, ret_fault);
    if (got == 0)
        return 0;
    if (got < 0 || take_in(f, line, size, ret_fault) < 0) {
        f->failed = true;
        return -1;
    }
    f->place.offset += size + 1;
    if (!f->in_run) {
        sp_read_event_set(ret_event, &f->head, line, size, f->place.number, &f->tape);
        return 1;
    }
    begin_run(f);
    return next_of_run(f, ret_event);
}
