#include "read/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "read/line_parse.h"
#include "read/run_view.h"
#include "trace/format.h"
#include "trace/lines.h"

struct sp_reader {
    int fd; /* owned */
    struct sp_lines lines;
    struct sp_tape tape;
    struct sp_functions functions;
    const char *next; /* in the batch in hand */
    const char *batch_end;
    uint64_t offset;            /* of `next` */
    struct sp_line_place place; /* of the line in hand */
    const char *line;
    size_t line_size;
    struct sp_head head;
    struct sp_run_view run;         /* of the line in hand when it is one */
    struct sp_read_event run_event; /* what its events have in common */
    uint32_t run_next; /* position of the next event in it; run.count: none left */
    bool ended;
    bool pending; /* the line in hand was read but not given yet */
};

/* The next line into r->line. 1, 0 at the end, or -1. */
static int next_line(struct sp_reader *r, struct sp_fault *ret_fault)
{
    if (r->next == r->batch_end) {
        const char *data;
        size_t size;
        switch (sp_lines_read(&r->lines, &data, &size)) {
        case SP_LINES_MORE:
            r->next = data;
            r->batch_end = data + size;
            break;
        case SP_LINES_END: /* half a line may be left: what a cut run leaves */
            return r->place.number > 0
                       ? 0
                       : sp_fault_set(ret_fault, 1, 0,
                                      size == 0 ? "an empty file, not a trace"
                                                : "not a trace");
        case SP_LINES_TOO_LONG:
            return sp_fault_set(ret_fault, r->place.number + 1, r->offset,
                                r->place.number == 0
                                    ? "not a trace"
                                    : "a line longer than any event can be");
        case SP_LINES_ERROR:
            return sp_fault_set(ret_fault, errno == EBADMSG ? r->place.number + 1 : 0,
                                r->offset, "%s", sp_content_problem(errno));
        }
    }
    const char *newline = memchr(r->next, '\n', (size_t)(r->batch_end - r->next));
    r->line = r->next;
    r->line_size = (size_t)(newline - r->next);
    r->place.number++;
    r->place.offset = r->offset;
    r->offset += r->line_size + 1;
    r->next = newline + 1;
    return 1;
}

static void event_of_line(const struct sp_reader *r, struct sp_read_event *ret_event)
{
    sp_read_event_set(ret_event, &r->head, r->line, r->line_size, r->place.number,
                      &r->tape);
}

/* Reads a line and takes in what it says about others. 1, 0 or -1. */
static int take_line(struct sp_reader *r, struct sp_fault *ret_fault)
{
    const int got = next_line(r, ret_fault);
    if (got <= 0)
        return got;
    if (sp_line_parse(r->line, r->line_size, &r->place, &r->tape, &r->head, ret_fault) <
        0)
        return -1;
    if (r->head.kind == SP_KIND_FUNCTION && !sp_functions_add(&r->functions, &r->tape))
        return sp_fault_set(
            ret_fault, r->place.number, r->place.offset,
            "a function without a usable id, or more than there can be");
    if (r->head.kind == SP_KIND_RUN) {
        if (sp_line_parse_run(r->line, r->line_size, &r->place, &r->head, &r->tape,
                              &r->run, ret_fault) < 0)
            return -1;
        r->run_next = 0;
        event_of_line(r, &r->run_event);
    }
    r->ended = r->head.kind == SP_KIND_END;
    return 1;
}

int sp_reader_open_fd(int fd, struct sp_reader **ret_reader, struct sp_fault *ret_fault)
{
    struct sp_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sp_fault_set(ret_fault, 0, 0, "no memory");
    r->fd = -1;
    sp_lines_init(&r->lines, fd);
    sp_tape_init(&r->tape);
    sp_functions_init(&r->functions);
    const int got = take_line(r, ret_fault);
    if (got < 0 || sp_line_check_start(&r->head, &r->tape, ret_fault) < 0) {
        if (got < 0 && r->line != NULL)
            sp_fault_set(ret_fault, 1, 0, "not a trace");
        sp_reader_free(r);
        return -1;
    }
    r->fd = fd;
    r->pending = true;
    *ret_reader = r;
    return 0;
}

int sp_reader_open(const char *path, struct sp_reader **ret_reader,
                   struct sp_fault *ret_fault)
{
    sp_auto_fd fd = sp_lines_open(path);
    if (fd < 0)
        return sp_fault_set(ret_fault, 0, 0, "%s",
                            errno == EINVAL ? "not a regular file" : strerror(errno));
    if (sp_reader_open_fd(fd, ret_reader, ret_fault) < 0)
        return -1;
    sp_steal_fd(&fd);
    return 0;
}

void sp_reader_free(struct sp_reader *r)
{
    if (r == NULL)
        return;
    sp_lines_release(&r->lines);
    sp_tape_release(&r->tape);
    sp_functions_release(&r->functions);
    sp_close_fd(&r->fd);
    free(r);
}

int sp_reader_next(struct sp_reader *r, struct sp_read_event *ret_event,
                   struct sp_fault *ret_fault)
{
    if (!r->pending && (r->head.kind != SP_KIND_RUN || r->run_next == r->run.count)) {
        const int got = take_line(r, ret_fault);
        if (got <= 0)
            return got;
    }
    r->pending = false;
    if (r->head.kind == SP_KIND_RUN) {
        *ret_event = r->run_event;
        sp_read_event_of_run(ret_event, &r->run, r->run_next++, &r->functions);
    } else {
        event_of_line(r, ret_event);
    }
    return 1;
}

bool sp_reader_was_cut(const struct sp_reader *r)
{
    return !r->ended;
}

const struct sp_functions *sp_reader_functions(const struct sp_reader *r)
{
    return &r->functions;
}
