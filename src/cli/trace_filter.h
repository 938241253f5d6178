/* Which events `show` was asked for: by kind, category and file. */
#ifndef SP_CLI_TRACE_FILTER_H
#define SP_CLI_TRACE_FILTER_H

#include <stdbool.h>

#include "read/summary.h"

struct sp_show_options;

struct sp_event_filter {
    const struct sp_show_options *options; /* borrowed */
    bool kinds[SP_SUMMARY_KINDS];
    bool any_kind;
};

void sp_event_filter_make(const struct sp_show_options *options,
                          struct sp_event_filter *ret_filter);
bool sp_event_filter_matches(const struct sp_event_filter *f,
                             const struct sp_read_event *e);

#endif
