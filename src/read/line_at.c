#include "read/line_at.h"

#include <errno.h>

int sp_line_at(struct sp_window *w, const struct sp_line_place *place,
               const char **ret_line, size_t *ret_size, struct sp_head *ret_head,
               struct sp_fault *ret_fault)
{
    size_t bad;
    switch (sp_window_line(w, place->offset, ret_line, ret_size)) {
    case SP_WINDOW_LINE:
        break;
    case SP_WINDOW_END:
        return 0;
    case SP_WINDOW_TOO_LONG:
        return sp_fault_set(ret_fault, place->number, place->offset,
                            place->number == 1 ? "not a trace"
                                               : "a line longer than any event can be");
    case SP_WINDOW_ERROR:
        return sp_fault_set(ret_fault, errno == EBADMSG ? place->number : 0,
                            place->offset, "%s", sp_content_problem(errno));
    }
    if (!sp_head_read(*ret_line, *ret_size, ret_head, &bad))
        return sp_fault_set(ret_fault, place->number, place->offset + bad,
                            place->number == 1
                                ? "not a trace"
                                : "the line does not begin as an event does");
    return 1;
}
