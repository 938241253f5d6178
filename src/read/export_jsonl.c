/* Flat JSON Lines: every event its own line, calls and returns of runs too, as `show --json`
 * gives them. Nothing is left out, and bytes that are no UTF-8 stay \udcXX as in the trace. */
#include "read/export_format.h"

static void *begin(struct sp_export_context *c)
{
    return c;
}

static int add(void *state, const struct sp_read_event *e)
{
    struct sp_export_context *c = state;
    sp_read_event_json(e, &c->out);
    return 0;
}

static void release(void *state)
{
    (void)state;
}

const struct sp_export_ops sp_export_jsonl = {
    .begin = begin, .add = add, .free = release};
