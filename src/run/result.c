#include "run/result.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "run/run.h"
#include "trace/writer.h"

#define PIECE (48u << 10) /* of captured text; a multiple of 3, for base64 */

struct sink {
    int fd;
    int failed; /* errno, 0: none */
    struct sp_buffer buffer;
};

static void flush(struct sink *sink)
{
    const char *at = sink->buffer.data;
    size_t left = sink->buffer.size;
    while (left > 0 && sink->failed == 0) {
        ssize_t n = write(sink->fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            sink->failed = errno;
            break;
        }
        at += n;
        left -= (size_t)n;
    }
    sp_buffer_clear(&sink->buffer);
}

static void text(struct sink *sink, const char *key, const char *value)
{
    sp_json_key(&sink->buffer, key);
    if (value == NULL)
        sp_buffer_text(&sink->buffer, "null");
    else
        sp_json_string(&sink->buffer, value, strlen(value));
}

static void integer(struct sink *sink, const char *key, int64_t value)
{
    sp_json_key(&sink->buffer, key);
    sp_json_int(&sink->buffer, value);
}

static void boolean(struct sink *sink, const char *key, bool value)
{
    sp_json_key(&sink->buffer, key);
    sp_buffer_text(&sink->buffer, value ? "true" : "false");
}

static void seconds(struct sink *sink, const char *key, uint64_t ns)
{
    sp_json_key(&sink->buffer, key);
    sp_buffer_format(&sink->buffer, "%llu.%06llu",
                     (unsigned long long)(ns / 1000000000u),
                     (unsigned long long)(ns % 1000000000u / 1000u));
}

static void json(struct sink *sink, const char *key, const struct sp_buffer *value)
{
    const char *data = value->size > 0 ? value->data : "null";
    size_t size = value->size > 0 ? value->size : 4;
    sp_json_key(&sink->buffer, key);
    sp_buffer_append(&sink->buffer, data, size - 1);
    flush(sink);
    /* The last byte stays: whether the next key needs a comma depends on it. */
    sp_buffer_append(&sink->buffer, data + size - 1, 1);
}

/* As text; false when some of it was none. */
static bool captured_text(struct sink *sink, const struct sp_stream_outcome *stream)
{
    static char piece[PIECE];
    bool clean = true;
    uint64_t at = 0;
    sp_buffer_text(&sink->buffer, "\"");
    while (at < stream->kept_bytes) {
        ssize_t n = pread(stream->captured, piece, sizeof piece, (off_t)at);
        if (n <= 0)
            break;
        bool last = at + (uint64_t)n >= stream->kept_bytes;
        size_t size = last ? (size_t)n : sp_json_whole(piece, (size_t)n);
        clean &= sp_json_chars(&sink->buffer, piece, size, true);
        at += size;
        flush(sink);
    }
    sp_buffer_text(&sink->buffer, "\"");
    return clean;
}

static void captured_base64(struct sink *sink, const struct sp_stream_outcome *stream)
{
    static char piece[PIECE];
    static char encoded[PIECE / 3 * 4 + 8];
    sp_buffer_text(&sink->buffer, "\"");
    for (uint64_t at = 0; at < stream->kept_bytes;) {
        ssize_t n = pread(stream->captured, piece, sizeof piece, (off_t)at);
        if (n <= 0)
            break;
        sodium_bin2base64(encoded, sizeof encoded, (const unsigned char *)piece,
                          (size_t)n, sodium_base64_VARIANT_ORIGINAL);
        sp_buffer_text(&sink->buffer, encoded);
        at += (uint64_t)n;
        flush(sink);
    }
    sp_buffer_text(&sink->buffer, "\"");
}

static void stream_members(struct sink *sink, const char *name,
                           const struct sp_stream_outcome *stream)
{
    char key[32];
    snprintf(key, sizeof key, "%s", name);
    sp_json_key(&sink->buffer, key);
    if (!captured_text(sink, stream)) {
        snprintf(key, sizeof key, "%s_base64", name);
        sp_json_key(&sink->buffer, key);
        captured_base64(sink, stream);
    }
    snprintf(key, sizeof key, "%s_bytes_total", name);
    integer(sink, key, (int64_t)stream->total_bytes);
    snprintf(key, sizeof key, "%s_truncated", name);
    boolean(sink, key, stream->kept_bytes < stream->total_bytes);
}

static void summary(struct sink *sink, const struct sp_run *run)
{
    sp_json_key(&sink->buffer, "summary");
    sp_buffer_text(&sink->buffer, "{");
    for (int kind = 0; kind < SP_KIND_COUNT; kind++) {
        uint64_t count = sp_trace_count(run->writer, (enum sp_kind)kind);
        if (count == 0)
            continue;
        sp_json_key(&sink->buffer, sp_kind_name((enum sp_kind)kind));
        sp_json_uint(&sink->buffer, count);
    }
    sp_buffer_text(&sink->buffer, "}");
}

static void plan_members(struct sink *sink, const struct sp_run *run)
{
    struct sp_buffer *b = &sink->buffer;
    sp_json_key(b, "policy");
    sp_policy_choice_write(run->written, b);
    sp_json_key(b, "enforced_by");
    sp_plan_enforced_by(&run->plan, b);
    sp_json_key(b, "recorded_by");
    sp_plan_recorded_by(&run->plan, b);
    sp_json_key(b, "degraded");
    sp_plan_degraded(&run->plan, b);
}

static uint64_t cpu_ns(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

static void outcome_members(struct sink *sink, const struct sp_outcome *o,
                            int exit_code)
{
    text(sink, "status", sp_status_name(o->status));
    integer(sink, "exit_code", exit_code);
    sp_json_key(&sink->buffer, "signal");
    if (o->signal != 0)
        sp_json_int(&sink->buffer, o->signal);
    else
        sp_buffer_text(&sink->buffer, "null");
    text(sink, "exited_by", o->exited_by);
    text(sink, "reason", o->reason);
    seconds(sink, "wall_s", o->wall_ns);
    seconds(sink, "cpu_s", cpu_ns(&o->usage));
    seconds(sink, "startup_s", o->startup_ns);
    integer(sink, "peak_memory_bytes", (int64_t)o->usage.ru_maxrss * 1024);
}

/* What the reader of the live events did not get. */
static void events_members(struct sink *sink, const struct sp_event_stream *events)
{
    sp_json_key(&sink->buffer, "events");
    sp_buffer_text(&sink->buffer, "{");
    integer(sink, "lost", (int64_t)events->lost);
    text(sink, "error", events->failed != 0 ? strerror(events->failed) : NULL);
    sp_buffer_text(&sink->buffer, "}");
}

int sp_result_write(int fd, const struct sp_run *run, const struct sp_outcome *outcome,
                    int exit_code)
{
    struct sink sink = {.fd = fd};
    sp_buffer_init(&sink.buffer, 8u << 20);
    sp_buffer_text(&sink.buffer, "{");
    outcome_members(&sink, outcome, exit_code);
    if (run->request->capture) {
        stream_members(&sink, "stdout", &outcome->streams[0]);
        stream_members(&sink, "stderr", &outcome->streams[1]);
    }
    json(&sink, "exception", &outcome->exception);
    json(&sink, "files", &outcome->files);
    json(&sink, "violations", &outcome->violations);
    json(&sink, "limits", &outcome->limits);
    summary(&sink, run);
    plan_members(&sink, run);
    text(&sink, "trace", run->trace.fd >= 0 ? run->trace.path : NULL);
    if (run->events.asked)
        events_members(&sink, &run->events);
    sp_buffer_text(&sink.buffer, "}");
    flush(&sink);
    sp_buffer_release(&sink.buffer);
    return -sink.failed;
}

static void problem_members(struct sink *sink, const struct sp_problems *problems)
{
    struct sp_buffer *b = &sink->buffer;
    sp_json_key(b, "problems");
    sp_buffer_text(b, "[");
    for (unsigned i = 0; problems != NULL && i < sp_problems_kept(problems); i++) {
        const struct sp_problem *p = &problems->items[i];
        if (p->warning)
            continue;
        sp_buffer_text(b, b->data[b->size - 1] == '[' ? "{" : ",{");
        text(sink, "source", p->source);
        integer(sink, "line", p->line);
        integer(sink, "column", p->column);
        text(sink, "message", p->message);
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]");
}

int sp_error_write(int fd, const struct sp_error *error,
                   const struct sp_problems *problems)
{
    static const char *const slugs[] = {"internal",  "usage", "policy",  "host",
                                        "not-found", "trace", "internal"};
    struct sink sink = {.fd = fd};
    int index = -error->code;
    sp_buffer_init(&sink.buffer, 512u << 10);
    sp_buffer_text(&sink.buffer, "{");
    text(&sink, "slug", index > 0 && index < 7 ? slugs[index] : "internal");
    text(&sink, "message", error->message);
    sp_json_key(&sink.buffer, "missing");
    sp_buffer_text(&sink.buffer, "[");
    if (error->code == SP_E_HOST && error->what[0] != '\0')
        sp_json_string(&sink.buffer, error->what, strlen(error->what));
    sp_buffer_text(&sink.buffer, "]");
    integer(&sink, "line", error->line);
    integer(&sink, "column", error->column);
    problem_members(&sink, problems);
    sp_buffer_text(&sink.buffer, "}");
    flush(&sink);
    sp_buffer_release(&sink.buffer);
    return -sink.failed;
}
