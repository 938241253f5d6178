/* A trace written in the formats of other programs, event by event, in bounded memory.
 *
 *     struct sp_export *x;
 *     if (sp_export_open(format, fd, name, sp_reader_functions(r), &x, &fault) < 0) ...
 *     while ((got = sp_reader_next(r, &event, &fault)) > 0)
 *         if (sp_export_add(x, &event, &fault) < 0) ...
 *     sp_export_finish(x, &fault);
 *     sp_export_free(x);
 *
 * docs/export.md says what each format holds.
 */
#ifndef SP_READ_EXPORT_H
#define SP_READ_EXPORT_H

#include <stdint.h>

#include "read/functions.h"
#include "read/read_event.h"
#include "trace/fault.h"

enum sp_export_format {
    SP_EXPORT_JSONL, /* as `show --json` */
    SP_EXPORT_CHROME,
    SP_EXPORT_SPEEDSCOPE,
    SP_EXPORT_COLLAPSED,
    SP_EXPORT_OTLP,
    SP_EXPORT_OCSF,
    SP_EXPORT_FORMATS
};

/* What an export could not hold. */
struct sp_export_losses {
    uint64_t deep_calls; /* calls nested deeper than can be followed */
    uint64_t stacks; /* calls whose stack found no room: they count to their caller */
    uint64_t frames; /* functions that found no room, each time one is met */
};

struct sp_export;

/* `fd` and `functions` are borrowed, and used until the export is freed. `name` is what the
 * trace is called, copied. 0, or -1 with *ret_fault. */
int sp_export_open(enum sp_export_format format, int fd, const char *name,
                   const struct sp_functions *functions, struct sp_export **ret_export,
                   struct sp_fault *ret_fault);
void sp_export_free(struct sp_export *x); /* NULL accepted */

/* The events of a trace, in order, the start first. 0, or -1 with *ret_fault. */
int sp_export_add(struct sp_export *x, const struct sp_read_event *event,
                  struct sp_fault *ret_fault);

/* Ends the document, also that of a trace which stops in the middle, and writes it out. */
int sp_export_finish(struct sp_export *x, struct sp_fault *ret_fault);

/* The errno of a failed write; 0: what failed was something else. */
int sp_export_write_errno(const struct sp_export *x);
const struct sp_export_losses *sp_export_losses_of(const struct sp_export *x);

#endif
