/* What the formats of an export are made of. Internal to src/read. */
#ifndef SP_READ_EXPORT_FORMAT_H
#define SP_READ_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "read/export.h"

/* What all formats share. */
struct sp_export_context {
    int fd;                               /* borrowed */
    int write_errno;                      /* of the first write that failed */
    struct sp_buffer out;                 /* not written yet */
    struct sp_buffer text;                /* for whoever needs a text for a moment */
    const struct sp_functions *functions; /* borrowed */
    const char *name;                     /* of the trace; owned by the export */
    struct sp_export_losses losses;
    struct sp_fault fault; /* why a call below returned -1 */
};

/* One format. `begin` gives its state, which `free` takes back; the others return 0, or -1 with
 * the context's fault set. */
struct sp_export_ops {
    void *(*begin)(struct sp_export_context *c); /* NULL: no memory */
    int (*add)(void *state, const struct sp_read_event *event);
    int (*finish)(void *state);
    void (*free)(void *state);
};

extern const struct sp_export_ops sp_export_jsonl;
extern const struct sp_export_ops sp_export_chrome;
extern const struct sp_export_ops sp_export_speedscope;
extern const struct sp_export_ops sp_export_collapsed;
extern const struct sp_export_ops sp_export_otlp;
extern const struct sp_export_ops sp_export_ocsf;

/* Sets the fault; returns -1. */
int sp_export_no_memory(struct sp_export_context *c);

/* Writes `out` to the file. 0 or -1. */
int sp_export_flush(struct sp_export_context *c);

/* The same when there is enough of it. */
int sp_export_settle(struct sp_export_context *c);

/* ---- text ----------------------------------------------------------------------------- */

/* A longer text is cut there where a format shows it in passing. */
#define SP_EXPORT_TEXT_MAX 1024u

/* A string of JSON, quotes included, that every reader of JSON takes: a byte that is no UTF-8 is
 * written as the four characters \xNN (the trace has \udcNN, a lone surrogate, which many
 * refuse). */
void sp_export_string(struct sp_buffer *b, const char *text, size_t size);
void sp_export_chars(struct sp_buffer *b, const char *text,
                     size_t size); /* no quotes */

/* The same, cut to SP_EXPORT_TEXT_MAX bytes with "..." behind. */
void sp_export_short_string(struct sp_buffer *b, const char *text, size_t size);

/* Any value of a tape as JSON, texts cut. */
void sp_export_value(struct sp_buffer *b, const struct sp_tape *tape, uint32_t i);

/* Members of the line's object as members of the object begun in `b`, without those that every
 * line begins with. */
void sp_export_members(struct sp_buffer *b, const struct sp_tape *tape);

/* A line may have any members, and the same one twice, which many readers refuse: of each object
 * the first of a name is taken, and no more than so many. `at` is the name's node. */
#define SP_EXPORT_MEMBERS_MAX 64u
bool sp_export_takes(const struct sp_tape *tape, uint32_t object, uint32_t at);

/* Whether a member's name is one of the six that every line begins with. */
bool sp_export_is_head(const struct sp_json_node *name);

/* What a function is called in a stack: "name (file:line)", or "name (module)" without a file;
 * no JSON. NULL: the trace does not name it. */
void sp_export_frame(struct sp_buffer *b, const struct sp_function *f);

/* What an event is about, in a few words: "open /etc/passwd"; no JSON. */
void sp_export_title(struct sp_buffer *b, const struct sp_read_event *event);

/* The words of an array joined by blanks; a text as it is. Appends nothing when there is none. */
void sp_export_joined(struct sp_buffer *b, const struct sp_tape *tape, const char *key);

/* The last part of a path. */
struct sp_text sp_export_basename(struct sp_text path);

/* A text member, size 0 when there is none. */
struct sp_text sp_export_text_of(const struct sp_read_event *event, const char *key);

#endif
