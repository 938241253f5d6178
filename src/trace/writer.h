/* Writing an .sptrace file: one JSON object a line, numbered, in checkpointed and chained
 * blocks. Only the supervisor has one. See docs/trace-format.md.
 *
 * An event is begun, its fields are added in order, and it is ended:
 *
 *     sp_trace_begin(w, SP_KIND_OPEN, SP_LAYER_KERNEL, t_ns, pid, tid);
 *     sp_trace_text(w, "path", path, strlen(path));
 *     sp_trace_end(w);
 *
 * Nothing here fails towards the caller: an event that cannot be written (disk full, size cap)
 * is counted and a `lost` line says so as soon as, and where, it can. Keys are ours, values
 * may be hostile bytes. Times that run backwards are set to the one before.
 */
#ifndef SP_TRACE_WRITER_H
#define SP_TRACE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "event/event.h"

#define SP_TRACE_VERSION 1

struct sp_trace_options {
    uint64_t size_max_bytes;         /* 0: no cap */
    uint64_t checkpoint_bytes;       /* a checkpoint at the latest after so many bytes (1 MiB) */
    uint64_t checkpoint_interval_ns; /* ... and so much time (1 s) */
    void (*on_line)(void *context, const char *line, size_t size); /* each written line, with
                                        its newline; NULL: nobody listens */
    void *context;
};

struct sp_trace_writer;

/* Takes `fd` (open for writing at offset 0). fd -1: nothing is stored, events are only counted. */
int sp_trace_writer_new(int fd, const struct sp_trace_options *options,
                        struct sp_trace_writer **ret_writer, struct sp_error *reterr) SP_MUST_CHECK;
void sp_trace_writer_free(struct sp_trace_writer *w); /* NULL accepted; closes fd */

void sp_trace_begin(struct sp_trace_writer *w, enum sp_kind kind, enum sp_layer layer,
                    uint64_t t_ns, int pid, int tid);
void sp_trace_text(struct sp_trace_writer *w, const char *key, const char *text, size_t size);
void sp_trace_string(struct sp_trace_writer *w, const char *key, const char *text); /* NULL: left out */
void sp_trace_int(struct sp_trace_writer *w, const char *key, int64_t value);
void sp_trace_uint(struct sp_trace_writer *w, const char *key, uint64_t value);
void sp_trace_bool(struct sp_trace_writer *w, const char *key, bool value);
void sp_trace_json(struct sp_trace_writer *w, const char *key, const char *json, size_t size); /* ours, well-formed */
struct sp_buffer *sp_trace_value(struct sp_trace_writer *w, const char *key); /* append one JSON value to it */
uint64_t sp_trace_end(struct sp_trace_writer *w); /* returns the event's seq */

/* Gives up the event that was begun. */
void sp_trace_cancel(struct sp_trace_writer *w);

/* One `run` of `count` (1..4,096) calls and returns: takes that many seq numbers. Words as in
 * ring.h, function ids already global in `ids` (never 0; a negative value is a return), `dt`
 * nanoseconds since the one before. `raised` and `resumed`: positions, ascending. */
struct sp_trace_run {
    uint64_t t_ns;
    int pid;
    int tid;
    uint32_t count;
    const int32_t *ids;
    const uint32_t *dt;
    const uint16_t *raised;
    uint32_t raised_count;
    const uint16_t *resumed;
    uint32_t resumed_count;
};
void sp_trace_run(struct sp_trace_writer *w, const struct sp_trace_run *run);

/* Counts events as lost (for a ring that could not hold them, and the like). */
void sp_trace_lost(struct sp_trace_writer *w, uint64_t count, const char *reason);

/* Writes out what is buffered; with a checkpoint when one is due or `force`. Called by the
 * supervisor's loop when it is idle. */
void sp_trace_flush(struct sp_trace_writer *w, bool force);

/* Events written so far of a kind; events lost so far. */
uint64_t sp_trace_count(const struct sp_trace_writer *w, enum sp_kind kind);
uint64_t sp_trace_lost_count(const struct sp_trace_writer *w);
uint64_t sp_trace_bytes(const struct sp_trace_writer *w);

/* The `end` record. Its own fields are added by the caller between begin_end and finish; counts
 * per kind, losses and the final digest are added by finish. After it nothing can be written. */
void sp_trace_begin_end(struct sp_trace_writer *w, uint64_t t_ns, int pid);
int sp_trace_finish(struct sp_trace_writer *w, struct sp_error *reterr) SP_MUST_CHECK;

#endif
