/* The commands of `sandpit-trace`, which read traces and run nothing. */
#ifndef SP_CLI_TRACE_COMMANDS_H
#define SP_CLI_TRACE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "cli/screen.h"
#include "read/read_event.h"

#define SP_SHOW_DEPTH_MAX 1000u

struct sp_show_options {
    struct sp_texts kinds;
    const char *category; /* NULL: any */
    const char *file;     /* a glob; NULL: any */
    bool json;
    bool follow; /* a stream that is being written */
    bool files;  /* which view; one at most */
    bool network;
    bool processes;
    bool tree;
    bool timeline;
    bool source;
    const char *source_of; /* what stands behind the trace; NULL: nothing */
    uint64_t depth;        /* levels of calls; 0: not given */
    int color;             /* enum sp_color_when */
};

struct sp_verify_options {
    const char
        *key; /* file of the public key that must have signed; NULL: any, or none */
    bool json;
    bool quiet;
};

struct sp_export_options {
    int format;         /* enum sp_export_format */
    const char *output; /* NULL or "-": standard output */
};

extern const struct sp_option sp_show_table[];
extern const struct sp_option sp_export_table[];
extern const struct sp_option sp_verify_table[];

bool sp_category_known(const char *name);
const char *sp_category_nearest(const char *name); /* NULL: none is close */

int sp_cli_show(const void *options, int argc, char **argv);
int sp_cli_export(const void *options, int argc, char **argv);
int sp_cli_verify(const void *options, int argc, char **argv);

/* One file that is no good: a line on stderr with line and byte. Returns the exit code 2. */
struct sp_fault;
int sp_trace_complain(const char *path, const struct sp_fault *fault);

/* What `show` prints: one line for an event, or the summary of a whole trace. */
struct sp_summary;
struct sp_verify;
void sp_show_line(struct sp_screen *s, const struct sp_read_event *event);

/* What stands in that line behind the kind, from a column on; and how its kind is shown. */
void sp_show_text(struct sp_screen *s, const struct sp_read_event *event,
                  unsigned column);
bool sp_show_leads(
    struct sp_screen *s,
    const struct sp_read_event *event); /* the most telling; false: none */
enum sp_style sp_show_style(int kind);
void sp_show_summary(
    struct sp_screen *s, const char *path, const struct sp_summary *summary,
    const struct sp_verify *verify); /* verify NULL: it was not checked */

#endif
