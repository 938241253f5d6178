#include "trace/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "trace/chain.h"
#include "trace/losses.h"
#include "trace/plain.h"
#include "trace/redact.h"
#include "trace/runs.h"
#include "trace/signature.h"
#include "trace/sink.h"

#define CHECKPOINT_BYTES (1u << 20)
#define CHECKPOINT_NS    1000000000u

/* A line buffer that grew beyond this for one long line is given back. */
#define LINE_KEPT (256u << 10)

/* The last part of a size cap, which only vital kinds may use. */
#define VITAL_MARGIN (1u << 20)

enum state {
    STATE_READY,
    STATE_EVENT, /* between begin and end */
    STATE_END,   /* between begin_end and finish */
    STATE_FINISHED,
};

struct sp_trace_writer {
    struct sp_trace_options options;
    struct sp_sink sink;
    struct sp_chain chain;
    struct sp_buffer line; /* the event that is begun */
    struct sp_losses losses;
    enum state state;
    enum sp_kind kind;    /* of the event that is begun */
    bool silent;          /* neither stored nor listened to: lines are not even made */
    uint64_t seq;         /* of the next event */
    uint64_t missing;     /* seq numbers before it that are in no line */
    uint64_t t_ns;        /* of the last line */
    uint64_t block_start; /* offset */
    uint64_t block_t_ns;  /* t of the first line after the checkpoint */
    uint64_t block_clock_ns; /* the clock then */
    uint64_t block_seq;      /* seq after the checkpoint */
    uint64_t lost;
    uint64_t calls; /* of the program that the event in hand stands for */
    bool capped;    /* something found no room below the cap */
    uint64_t counts[SP_KIND_COUNT];
};

int sp_trace_writer_new(int fd, const struct sp_trace_options *options,
                        struct sp_trace_writer **ret_writer, struct sp_error *reterr)
{
    /* libsodium's state wants an alignment that calloc does not give. */
    struct sp_trace_writer *w =
        aligned_alloc(_Alignof(struct sp_trace_writer), sizeof *w);
    if (w == NULL)
        return sp_fail(reterr, SP_E_TRACE, "no memory to write a trace");
    *w = (struct sp_trace_writer){0};
    if (options != NULL)
        w->options = *options;
    if (w->options.checkpoint_bytes == 0)
        w->options.checkpoint_bytes = CHECKPOINT_BYTES;
    if (w->options.checkpoint_interval_ns == 0)
        w->options.checkpoint_interval_ns = CHECKPOINT_NS;
    w->silent = fd < 0 && w->options.on_line == NULL;
    sp_buffer_init(&w->line, SP_TRACE_LINE_MAX);
    w->block_clock_ns = sp_clock_ns();
    if (!w->silent && sp_chain_init(&w->chain) < 0) {
        free(w);
        return sp_fail(reterr, SP_E_TRACE, "libsodium cannot be used");
    }
    if (sp_sink_init(&w->sink, fd, w->options.packed) < 0) {
        free(w);
        return sp_fail(reterr, SP_E_TRACE, "no memory to write a trace");
    }
    if (!sp_sink_begin(&w->sink)) {
        errno = w->sink.err;
        w->sink.fd = -1; /* stays the caller's */
        sp_trace_writer_free(w);
        return sp_fail_errno(reterr, SP_E_TRACE, "there is no room for a trace");
    }
    *ret_writer = w;
    return 0;
}

void sp_trace_writer_free(struct sp_trace_writer *w)
{
    if (w == NULL)
        return;
    sp_sink_release(&w->sink);
    sp_buffer_release(&w->line);
    free(w);
}

/* ---- lines ------------------------------------------------------------------------------ */

static void put_key_uint(struct sp_buffer *b, const char *key, uint64_t value)
{
    sp_json_key(b, key);
    sp_json_uint(b, value);
}

/* `"key":"text"` in one step, for text that needs no escapes, as most does not. */
static void put_plain(struct sp_buffer *b, const char *key, const char *text,
                      size_t size)
{
    const size_t length = strlen(key);
    char *to = sp_buffer_reserve(b, length + size + 6);
    if (to == NULL)
        return;
    memcpy(to, ",\"", 2);
    memcpy(to + 2, key, length);
    memcpy(to + 2 + length, "\":\"", 3);
    memcpy(to + 5 + length, text, size);
    to[5 + length + size] = '"';
    sp_buffer_advance(b, length + size + 6);
}

static void put_key_name(struct sp_buffer *b, const char *key, const char *name)
{
    put_plain(b, key, name, strlen(name));
}

static void put_head(struct sp_trace_writer *w, enum sp_kind kind, enum sp_layer layer,
                     uint64_t t_ns, int pid, int tid)
{
    if (t_ns > w->t_ns)
        w->t_ns = t_ns;
    struct sp_buffer *b = &w->line;
    sp_buffer_clear(b);
    sp_buffer_append(b, "{", 1);
    put_key_uint(b, "seq", w->seq);
    put_key_uint(b, "t", w->t_ns);
    put_key_name(b, "kind", sp_kind_name(kind));
    put_key_name(b, "layer", sp_layer_name(layer));
    sp_json_key(b, "pid");
    sp_json_int(b, pid);
    sp_json_key(b, "tid");
    sp_json_int(b, tid);
}

static void drop_long_buffer(struct sp_trace_writer *w)
{
    if (w->line.capacity > LINE_KEPT)
        sp_buffer_release(&w->line);
}

/* Stores the line in hand, which takes `count` seq numbers. */
static bool store(struct sp_trace_writer *w, uint64_t count)
{
    struct sp_buffer *b = &w->line;
    if (b->failed || !sp_sink_append(&w->sink, b->data, b->size))
        return false;
    sp_chain_add(&w->chain, b->data, b->size);
    if (w->options.on_line != NULL)
        w->options.on_line(w->options.context, b->data, b->size);
    w->seq += count;
    return true;
}

/* What a guest must not be able to push out of the record by filling it with noise. */
static bool is_vital(enum sp_kind kind)
{
    switch (kind) {
    case SP_KIND_VIOLATION:
    case SP_KIND_TAMPER:
    case SP_KIND_LIMIT:
    case SP_KIND_FORK:
    case SP_KIND_EXEC:
    case SP_KIND_EXIT:
    case SP_KIND_CONNECT:
    case SP_KIND_BIND:
        return true;
    default:
        return false;
    }
}

/* Kinds whose texts come from outside and may hold secrets; calls and functions, which are many, hold
 * names out of source. */
static bool may_tell(enum sp_kind kind)
{
    switch (kind) {
    case SP_KIND_START:
    case SP_KIND_SOURCE:
    case SP_KIND_EXCEPTION:
    case SP_KIND_OPEN:
    case SP_KIND_FILE:
    case SP_KIND_CONNECT:
    case SP_KIND_BIND:
    case SP_KIND_RESOLVE:
    case SP_KIND_EXEC:
    case SP_KIND_CODE:
    case SP_KIND_OUTPUT:
    case SP_KIND_VIOLATION:
        return true;
    default:
        return false;
    }
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether a line of an ordinary or a vital kind is to be stored. */
static bool has_room(struct sp_trace_writer *w, size_t size, bool vital)
{
    const uint64_t cap = w->options.size_max_bytes;
    const uint64_t tail = least(cap / 4, SP_SINK_TAIL);
    const uint64_t margin = vital ? 0 : least(cap / 8, VITAL_MARGIN);
    if (cap != 0 && sp_sink_stored(&w->sink) + size + tail + margin > cap)
        return false;
    return sp_sink_room(&w->sink, size, SP_SINK_TAIL + (vital ? 0 : SP_SINK_MARGIN));
}

static const char *why_no_room(const struct sp_trace_writer *w)
{
    if (w->line.failed)
        return "too-long";
    return w->sink.full ? "disk-full" : "size-cap";
}

/* ---- losses ------------------------------------------------------------------------------- */

static void put_loss(struct sp_trace_writer *w, const struct sp_loss *loss)
{
    put_head(w, SP_KIND_LOST, SP_LAYER_SUPERVISOR, w->t_ns, 0, 0);
    put_key_uint(&w->line, "count", loss->count);
    sp_json_key(&w->line, "reason");
    sp_json_string(&w->line, loss->reason, strlen(loss->reason));
    if (loss->calls > 0)
        put_key_uint(&w->line, "calls", loss->calls);
    if (w->missing > 0)
        put_key_uint(&w->line, "missing", w->missing);
    sp_buffer_append(&w->line, "}\n", 2);
}

/* For whom room is made. */
enum urgency {
    ORDINARY,
    VITAL,
    LAST, /* the room that is kept for the end may be used */
};

/* One line for each reason; the first of them accounts for the seq numbers that are in no
 * line. */
static void tell_losses(struct sp_trace_writer *w, enum urgency urgency)
{
    size_t told = 0;
    for (; told < w->losses.count; told++) {
        put_loss(w, &w->losses.entries[told]);
        if (urgency != LAST && !has_room(w, w->line.size, urgency == VITAL))
            break;
        if (!store(w, 1))
            break;
        w->missing = 0;
        w->counts[SP_KIND_LOST]++;
    }
    w->losses.count -= told;
    memmove(w->losses.entries, w->losses.entries + told,
            w->losses.count * sizeof w->losses.entries[0]);
}

/* The line in hand is given up: its numbers stay taken. */
static void swallow(struct sp_trace_writer *w, uint64_t count)
{
    w->capped |= !w->line.failed && !w->sink.full;
    sp_losses_add(&w->losses, count, w->calls, why_no_room(w));
    w->lost += count;
    w->missing += count;
    w->seq += count;
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* Ends the line in hand with the digest of the block, which reaches up to here: into this
 * very line, so that no byte of a trace is left out but the digests themselves. The chain has
 * `added` bytes of the line already. */
static void close_block(struct sp_trace_writer *w, size_t added)
{
    struct sp_buffer *b = &w->line;
    struct sp_chain_link link;
    const uint64_t bytes = sp_sink_size(&w->sink) + b->size;
    sp_chain_add(&w->chain, b->data + added, b->size - added);
    sp_chain_close(&w->chain, &link);
    put_key_uint(b, "bytes", bytes);
    put_key_name(b, "digest", link.digest);
    put_key_name(b, "chain", link.chain);
    sp_buffer_append(b, "}\n", 2);
}

/* As store(), for a line that close_block() ended. */
static bool store_closed(struct sp_trace_writer *w, size_t covered)
{
    struct sp_buffer *b = &w->line;
    if (b->failed || !sp_sink_append(&w->sink, b->data, b->size))
        return false;
    sp_chain_add(&w->chain, b->data + covered, b->size - covered);
    if (w->options.on_line != NULL)
        w->options.on_line(w->options.context, b->data, b->size);
    w->seq++;
    return true;
}

static void checkpoint(struct sp_trace_writer *w)
{
    if (w->losses.count > 0)
        tell_losses(w, VITAL);
    put_head(w, SP_KIND_CHECKPOINT, SP_LAYER_SUPERVISOR, w->t_ns, 0, 0);
    const size_t covered = w->line.size;
    if (!has_room(w, covered + 256, true)) /* a later one covers this block too */
        return;
    const struct sp_chain before = w->chain;
    close_block(w, 0);
    if (!store_closed(w, covered)) {
        w->chain = before;
        return;
    }
    w->counts[SP_KIND_CHECKPOINT]++;
    w->block_start = sp_sink_size(&w->sink);
    w->block_t_ns = w->t_ns;
    w->block_clock_ns = sp_clock_ns();
    w->block_seq = w->seq;
}

static void checkpoint_if_due(struct sp_trace_writer *w)
{
    if (sp_sink_size(&w->sink) - w->block_start >= w->options.checkpoint_bytes ||
        w->t_ns - w->block_t_ns >= w->options.checkpoint_interval_ns)
        checkpoint(w);
}

/* ---- events ------------------------------------------------------------------------------- */

static void begin(struct sp_trace_writer *w, enum sp_kind kind, enum sp_layer layer,
                  uint64_t t_ns, int pid, int tid)
{
    SP_BUG_ON(w->state != STATE_READY);
    w->state = STATE_EVENT;
    w->kind = kind;
    w->calls = 0;
    if (w->silent)
        return;
    if (w->missing > 0)
        tell_losses(w, is_vital(kind) ? VITAL : ORDINARY);
    put_head(w, kind, layer, t_ns, pid, tid);
}

static void put_signer(struct sp_trace_writer *w)
{
    struct sp_public_key key;
    char text[SP_KEY_TEXT + 1];
    sp_signing_key_public(w->options.key, &key);
    sp_key_to_text(key.bytes, text);
    sp_trace_string(w, "signer", text);
}

void sp_trace_begin(struct sp_trace_writer *w, enum sp_kind kind, enum sp_layer layer,
                    uint64_t t_ns, int pid, int tid)
{
    SP_BUG_ON((unsigned)kind >= SP_KIND_COUNT || kind == SP_KIND_RUN ||
              kind == SP_KIND_LOST || kind == SP_KIND_CHECKPOINT ||
              kind == SP_KIND_END);
    begin(w, kind, layer, t_ns, pid, tid);
    if (kind != SP_KIND_START)
        return;
    sp_trace_uint(w, "format", SP_TRACE_VERSION);
    if (w->options.key != NULL)
        put_signer(w);
}

void sp_trace_text(struct sp_trace_writer *w, const char *key, const char *text,
                   size_t size)
{
    if (w->silent)
        return;
    if (sp_plain_all(text, size)) {
        put_plain(&w->line, key, text, size);
        return;
    }
    sp_json_key(&w->line, key);
    sp_json_string(&w->line, text, size);
}

void sp_trace_string(struct sp_trace_writer *w, const char *key, const char *text)
{
    if (text != NULL)
        sp_trace_text(w, key, text, strlen(text));
}

void sp_trace_int(struct sp_trace_writer *w, const char *key, int64_t value)
{
    if (w->silent)
        return;
    sp_json_key(&w->line, key);
    sp_json_int(&w->line, value);
}

void sp_trace_uint(struct sp_trace_writer *w, const char *key, uint64_t value)
{
    if (w->silent)
        return;
    put_key_uint(&w->line, key, value);
}

void sp_trace_bool(struct sp_trace_writer *w, const char *key, bool value)
{
    sp_trace_json(w, key, value ? "true" : "false", value ? 4 : 5);
}

void sp_trace_json(struct sp_trace_writer *w, const char *key, const char *json,
                   size_t size)
{
    if (w->silent)
        return;
    sp_json_key(&w->line, key);
    sp_buffer_append(&w->line, json, size);
}

void sp_trace_members(struct sp_trace_writer *w, const char *members, size_t size)
{
    if (w->silent || size == 0)
        return;
    sp_buffer_append(&w->line, ",", 1);
    sp_buffer_append(&w->line, members, size);
}

struct sp_buffer *sp_trace_value(struct sp_trace_writer *w, const char *key)
{
    if (w->silent)
        sp_buffer_clear(&w->line);
    sp_json_key(&w->line, key);
    return &w->line;
}

/* Ends the event in hand: it is stored, or counted as lost. */
static void end(struct sp_trace_writer *w, enum sp_kind kind, uint64_t count)
{
    w->state = STATE_READY;
    w->counts[kind] += count;
    if (w->silent) {
        w->seq += count;
        return;
    }
    unsigned redacted =
        may_tell(kind) && !w->line.failed ? sp_redact(w->line.data, &w->line.size) : 0;
    if (redacted > 0)
        put_key_uint(&w->line, "redacted", redacted);
    sp_buffer_append(&w->line, "}\n", 2);
    /* After something was lost, nothing is stored before a line has told of it. */
    if (w->missing == 0 && !w->line.failed &&
        has_room(w, w->line.size, is_vital(kind)) && store(w, count))
        checkpoint_if_due(w);
    else
        swallow(w, count);
    drop_long_buffer(w);
}

uint64_t sp_trace_end(struct sp_trace_writer *w)
{
    SP_BUG_ON(w->state != STATE_EVENT);
    const uint64_t seq = w->seq;
    end(w, w->kind, 1);
    return seq;
}

uint64_t sp_trace_seq(const struct sp_trace_writer *w)
{
    return w->seq;
}

void sp_trace_cancel(struct sp_trace_writer *w)
{
    SP_BUG_ON(w->state != STATE_EVENT);
    w->state = STATE_READY;
}

void sp_trace_run(struct sp_trace_writer *w, const struct sp_trace_run *run)
{
    SP_BUG_ON(run->count == 0 || run->count > SP_TRACE_RUN_MAX);
    begin(w, SP_KIND_RUN, SP_LAYER_PYTHON, run->t_ns, run->pid, run->tid);
    w->calls = run->calls;
    if (!w->silent)
        sp_runs_append(&w->line, run);
    end(w, SP_KIND_RUN, run->count);
}

void sp_trace_calls(struct sp_trace_writer *w, uint64_t calls)
{
    w->calls = calls;
}

void sp_trace_lost(struct sp_trace_writer *w, uint64_t count, uint64_t calls,
                   const char *reason)
{
    w->lost += count;
    if (!w->silent)
        sp_losses_add(&w->losses, count, calls, reason);
}

void sp_trace_guard(struct sp_trace_writer *w)
{
    sp_sink_guard(&w->sink);
}

void sp_trace_flush(struct sp_trace_writer *w, bool force)
{
    SP_BUG_ON(w->state == STATE_EVENT || w->state == STATE_END);
    if (w->silent || w->state == STATE_FINISHED)
        return;
    if (w->missing > 0)
        tell_losses(w, ORDINARY);
    const bool due =
        sp_clock_ns() - w->block_clock_ns >= w->options.checkpoint_interval_ns;
    const bool any = w->seq > w->block_seq || w->losses.count > 0;
    if (any && w->missing == 0 && (force || due))
        checkpoint(w);
    sp_sink_flush(&w->sink);
}

/* ---- the end ------------------------------------------------------------------------------ */

void sp_trace_begin_end(struct sp_trace_writer *w, uint64_t t_ns, int pid)
{
    SP_BUG_ON(w->state != STATE_READY);
    w->state = STATE_END;
    if (w->silent)
        return;
    tell_losses(w, LAST);
    put_head(w, SP_KIND_END, SP_LAYER_SUPERVISOR, t_ns, pid, pid);
}

static void put_counts(struct sp_trace_writer *w)
{
    struct sp_buffer *b = &w->line;
    sp_json_key(b, "counts");
    sp_buffer_append(b, "{", 1);
    for (int kind = 0; kind < SP_KIND_COUNT; kind++)
        if (w->counts[kind] > 0)
            put_key_uint(b, sp_kind_name((enum sp_kind)kind), w->counts[kind]);
    sp_buffer_append(b, "}", 1);
}

/* Signs all that was written, the line in hand included. How many of its bytes the chain has now. */
static size_t put_signature(struct sp_trace_writer *w)
{
    const size_t added = w->line.size;
    uint8_t chain[SP_CHAIN_BYTES];
    char signature[SP_SIGNATURE_TEXT + 1];
    sp_chain_add(&w->chain, w->line.data, added);
    sp_chain_peek(&w->chain, chain);
    sp_signature_make(w->options.key, chain, signature);
    put_key_name(&w->line, "signature", signature);
    return added;
}

int sp_trace_finish(struct sp_trace_writer *w, struct sp_error *reterr)
{
    SP_BUG_ON(w->state != STATE_END);
    w->state = STATE_FINISHED;
    w->counts[SP_KIND_END]++;
    if (w->silent) {
        w->seq++;
        return 0;
    }
    put_counts(w);
    put_key_uint(&w->line, "lost", w->lost);
    const size_t added = w->options.key != NULL ? put_signature(w) : 0;
    const size_t covered = w->line.size;
    close_block(w, added);
    if (w->line.failed)
        return sp_fail(reterr, SP_E_TRACE,
                       "the trace's end is longer than a line may be");
    if (w->missing > 0 || !store_closed(w, covered) || !sp_sink_finish(&w->sink)) {
        errno = w->sink.err;
        return sp_fail_errno(reterr, SP_E_TRACE,
                             "the trace's end could not be written");
    }
    return 0;
}

uint64_t sp_trace_count(const struct sp_trace_writer *w, enum sp_kind kind)
{
    SP_BUG_ON((unsigned)kind >= SP_KIND_COUNT);
    return w->counts[kind];
}

uint64_t sp_trace_lost_count(const struct sp_trace_writer *w)
{
    return w->lost;
}

bool sp_trace_capped(const struct sp_trace_writer *w)
{
    return w->capped;
}

uint64_t sp_trace_bytes(const struct sp_trace_writer *w)
{
    return sp_sink_stored(&w->sink);
}
