#include "read/line_parse.h"

#include <stdint.h>

#include "event/event.h"
#include "read/repeats.h"
#include "trace/format.h"
#include "trace/grammar.h"

static int too_much(const struct sp_line_place *place, struct sp_fault *ret_fault)
{
    return sp_fault_set(ret_fault, place->number, place->offset,
                        "more values or deeper nesting than any event has");
}

static int malformed(const char *line, size_t size, const struct sp_line_place *place,
                     struct sp_fault *ret_fault)
{
    size_t bad;
    if (!sp_grammar_check(line, size, &bad))
        return sp_fault_set(ret_fault, place->number, place->offset + bad,
                            "not well-formed JSON");
    return sp_fault_set(ret_fault, place->number, place->offset,
                        "a number that is too large to be read");
}

/* Names without escapes stand in the line itself, the others are known by their line only. */
static int check_repeats(const char *line, size_t size,
                         const struct sp_line_place *place, const struct sp_tape *tape,
                         struct sp_fault *ret_fault)
{
    uint32_t node;
    const enum sp_repeats found = sp_repeats_find(tape, &node);
    if (found == SP_REPEATS_NONE)
        return 0;
    if (found == SP_REPEATS_TOO_MUCH)
        return too_much(place, ret_fault);
    const uintptr_t at = (uintptr_t)tape->nodes[node].text - (uintptr_t)line;
    return sp_fault_set(ret_fault, place->number, place->offset + (at < size ? at : 0),
                        "a member that the line has twice");
}

static int parse_values(const char *line, size_t size,
                        const struct sp_line_place *place, struct sp_tape *tape,
                        struct sp_fault *ret_fault)
{
    switch (sp_tape_parse(tape, line, size)) {
    case SP_TAPE_OK:
        return check_repeats(line, size, place, tape, ret_fault);
    case SP_TAPE_MALFORMED:
        return malformed(line, size, place, ret_fault);
    case SP_TAPE_TOO_MUCH:
        return too_much(place, ret_fault);
    default:
        return sp_fault_set(ret_fault, place->number, place->offset, "no memory");
    }
}

int sp_line_parse(const char *line, size_t size, const struct sp_line_place *place,
                  struct sp_tape *tape, struct sp_head *ret_head,
                  struct sp_fault *ret_fault)
{
    size_t bad;
    struct sp_head head;
    const bool has_head = sp_head_read(line, size, &head, &bad);
    if (has_head && head.kind == SP_KIND_RUN) {
        *ret_head = head;
        return 0;
    }
    if (parse_values(line, size, place, tape, ret_fault) < 0)
        return -1;
    if (!has_head)
        return sp_fault_set(ret_fault, place->number, place->offset + bad,
                            "the line does not begin as an event does");
    *ret_head = head;
    return 0;
}

int sp_line_parse_run(const char *line, size_t size, const struct sp_line_place *place,
                      const struct sp_head *head, struct sp_tape *tape,
                      struct sp_run_view *ret_run, struct sp_fault *ret_fault)
{
    if (sp_run_view_scan(ret_run, line + head->size, size - head->size, head->t_ns))
        return 0;
    if (parse_values(line, size, place, tape, ret_fault) < 0)
        return -1;
    if (!sp_run_view_read(ret_run, tape, head->t_ns) || ret_run->count != head->count)
        return sp_fault_set(ret_fault, place->number, place->offset,
                            "a run that does not hold what it says");
    return 0;
}

int sp_line_check_start(const struct sp_head *head, const struct sp_tape *tape,
                        struct sp_fault *ret_fault)
{
    const int64_t format = sp_tape_int(tape, "format", 0);
    if (head->kind != SP_KIND_START || format < 1)
        return sp_fault_set(ret_fault, 1, 0,
                            "not a trace: the first line is not a start");
    if (format != SP_TRACE_VERSION)
        return sp_fault_set(ret_fault, 1, 0,
                            "a trace of format %lld, which this version cannot read",
                            (long long)format);
    return 0;
}
