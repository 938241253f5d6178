/* The views of `show`: what a whole trace, or those of its events that are asked for, says about
 * one matter.
 */
#ifndef SP_CLI_TRACE_VIEW_H
#define SP_CLI_TRACE_VIEW_H

#include <stdbool.h>

#include "cli/screen.h"
#include "read/read_event.h"
#include "trace/fault.h"

/* Where the rows of a view go, and what is known of the run. */
struct sp_view_out {
    struct sp_screen screen;
    struct sp_buffer json; /* an object in hand; used when `as_json` */
    struct sp_buffer row;  /* the same, harmless to a terminal */
    bool as_json;
    struct sp_buffer folder; /* that the run began in */
    int64_t pid;             /* of the program's first process; 0: not told */
    const struct sp_functions *functions; /* borrowed: that the trace named */
};

/* One view: a state of its own that events are given to, and that is printed at the end. What
 * can fail gives 0, or -1 with *ret_fault. */
struct sp_view {
    const char *name;
    bool structure;                     /* processes are told of whatever the filters */
    void *(*make)(const void *options); /* struct sp_show_options; NULL: no memory */
    int (*take)(void *state, struct sp_view_out *out, const struct sp_read_event *e,
                struct sp_fault *ret_fault);
    int (*print)(void *state, struct sp_view_out *out, struct sp_fault *ret_fault);
    void (*dispose)(void *state);
};

extern const struct sp_view sp_view_files;
extern const struct sp_view sp_view_network;
extern const struct sp_view sp_view_processes;
extern const struct sp_view sp_view_tree;
extern const struct sp_view sp_view_timeline;
extern const struct sp_view sp_view_source;

/* Writes the object in hand as a line. */
void sp_view_row(struct sp_view_out *out);

/* A path of the run's folder as "./name", any other as it is. The line of a place stays. */
struct sp_text sp_view_shortened(const struct sp_view_out *out, struct sp_text path,
                                 bool *ret_own);
void sp_view_put_path(struct sp_view_out *out, struct sp_text path, bool dot);

/* Whether a file is the interpreter's or a package's: there are hundreds, and they tell little. */
bool sp_view_is_library(struct sp_text path);

/* Of a duration, with its unit, into one of a few static buffers. */
const char *sp_view_time(uint64_t ns);

#endif
