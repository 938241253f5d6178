/* Writing an .sptrace file: one JSON object a line, numbered, in checkpointed and chained
 * blocks. Only the supervisor has one. See docs/trace-format.md.
 *
 * An event is begun, its fields are added in order, and it is ended:
 *
 *     sp_trace_begin(w, SP_KIND_OPEN, SP_LAYER_KERNEL, t_ns, pid, tid);
 *     sp_trace_text(w, "path", path, strlen(path));
 *     sp_trace_end(w);
 *
 * Nothing here fails towards the caller: an event that cannot be written (disk full, size cap,
 * longer than SP_TRACE_LINE_MAX) keeps its number and is counted, and a `lost` line says so
 * as soon as, and where, it can. Keys are ours, values may be hostile bytes. The `t` of a line
 * never runs backwards: an earlier time is set to that of the line before.
 *
 * Not for several threads at once.
 */
#ifndef SP_TRACE_WRITER_H
#define SP_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "event/event.h"
#include "trace/format.h"

struct sp_signing_key;

struct sp_trace_options {
    uint64_t size_max_bytes; /* 0: no cap. The last lines may pass it by a little */
    uint64_t
        checkpoint_bytes; /* a checkpoint at the latest after so many bytes; 0: 1 MiB */
    uint64_t checkpoint_interval_ns; /* ... and so much time; 0: 1 s */
    void (*on_line)(void *context, const char *line,
                    size_t size); /* each line that is stored,
                                        with its newline; with fd -1 each line. NULL: nobody
                                        listens */
    void *context;
    bool
        packed; /* compress what is stored. The cap counts stored bytes, offsets those of the text */
    /* Signs the trace: `start` names the key, `end` carries the signature. Borrowed until finish,
     * and looked at in begin(start) and finish() only. NULL: it is not signed. */
    const struct sp_signing_key *key;
};

struct sp_trace_writer;

/* Takes `fd` (open for writing, empty) on success. fd -1: nothing is stored, events are
 * counted and go to on_line. `options` NULL: all defaults. */
int sp_trace_writer_new(int fd, const struct sp_trace_options *options,
                        struct sp_trace_writer **ret_writer, struct sp_error *reterr)
    SP_MUST_CHECK;

/* NULL accepted; closes fd. What is buffered and not flushed is dropped. */
void sp_trace_writer_free(struct sp_trace_writer *w);

/* Begins an event. One of kind `start` gets its `"format":1` by this, and `signer`. */
void sp_trace_begin(struct sp_trace_writer *w, enum sp_kind kind, enum sp_layer layer,
                    uint64_t t_ns, int pid, int tid);
void sp_trace_text(struct sp_trace_writer *w, const char *key, const char *text,
                   size_t size);
void sp_trace_string(struct sp_trace_writer *w, const char *key,
                     const char *text); /* NULL: left out */
void sp_trace_int(struct sp_trace_writer *w, const char *key, int64_t value);
void sp_trace_uint(struct sp_trace_writer *w, const char *key, uint64_t value);
void sp_trace_bool(struct sp_trace_writer *w, const char *key, bool value);
void sp_trace_json(struct sp_trace_writer *w, const char *key, const char *json,
                   size_t size); /* ours, well-formed */

/* Whole members, `"a":1,"b":2`: ours, well-formed, without a comma in front. */
void sp_trace_members(struct sp_trace_writer *w, const char *members, size_t size);

/* The key is written; the caller appends exactly one JSON value to the buffer, before anything
 * else is called. */
struct sp_buffer *sp_trace_value(struct sp_trace_writer *w, const char *key);
uint64_t sp_trace_end(struct sp_trace_writer *w); /* returns the event's seq */

/* The seq of the event that is begun, or that the next one will have at the least. */
uint64_t sp_trace_seq(const struct sp_trace_writer *w);

/* The event that is begun stands for so many calls of the program: told of it, should it be lost. */
void sp_trace_calls(struct sp_trace_writer *w, uint64_t calls);

/* Gives up the event that was begun; its seq is given again. */
void sp_trace_cancel(struct sp_trace_writer *w);

/* One `run` of `count` (1..4,096) calls and returns: takes that many seq numbers. Words as in
 * ring.h, function ids already global in `ids` (never 0; a negative value is a return), `dt`
 * nanoseconds since the one before, the first one's since `t_ns`. `raised` and `resumed`:
 * positions in the run (from 0), ascending. */
struct sp_trace_run {
    uint64_t t_ns;
    int pid;
    int tid;
    uint32_t count;
    uint32_t calls; /* of the count: without returns and resumes */
    const int32_t *ids;
    const uint32_t *dt;
    const uint16_t *raised;
    uint32_t raised_count;
    const uint16_t *resumed;
    uint32_t resumed_count;
};
void sp_trace_run(struct sp_trace_writer *w, const struct sp_trace_run *run);

/* Counts events as lost that never reached the writer (a ring that could not hold them, and
 * the like), and the calls of the program among what they stood for. A `lost` line tells of them, by
 * reason, before the next checkpoint. */
void sp_trace_lost(struct sp_trace_writer *w, uint64_t count, uint64_t calls,
                   const char *reason);

/* Writes out what is buffered; with a checkpoint when one is due, or when `force` and there
 * was any event since the last. Called by the supervisor's loop when it is idle, never
 * between begin and end. */
void sp_trace_flush(struct sp_trace_writer *w, bool force);

/* The run may fill the disk from now on: room is set aside for what must not be lost. */
void sp_trace_guard(struct sp_trace_writer *w);

/* Events so far of a kind (a run counts as the events in it, those that were lost by the writer
 * count too); events lost so far; bytes stored so far. */
uint64_t sp_trace_count(const struct sp_trace_writer *w, enum sp_kind kind);
uint64_t sp_trace_lost_count(const struct sp_trace_writer *w);
uint64_t sp_trace_bytes(const struct sp_trace_writer *w);
bool sp_trace_capped(
    const struct sp_trace_writer *w); /* something found no room below the cap */

/* The `end` record. Its own fields are added by the caller between begin_end and finish; counts
 * per kind, losses and the final digest are added by finish. After it nothing can be written. */
void sp_trace_begin_end(struct sp_trace_writer *w, uint64_t t_ns, int pid);

/* SP_E_TRACE when the end could not be written: the file is then sound up to its last
 * checkpoint. */
int sp_trace_finish(struct sp_trace_writer *w, struct sp_error *reterr) SP_MUST_CHECK;

#endif
