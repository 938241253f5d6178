/* The trace that tests/format/golden/good.sptrace holds, written by the writer of today. */
#ifndef SP_TEST_GOLDEN_H
#define SP_TEST_GOLDEN_H

#include <string.h>

#include "trace/writer.h"

static inline void golden_start(struct sp_trace_writer *w)
{
    static const char argv[] = "[\"python3\",\"job.py\"]";
    static const char policy[] = "{\"name\":\"no-network\",\"digest\":\"00\"}";
    static const char python[] =
        "{\"path\":\"/usr/bin/python3\",\"version\":\"3.11.7\"}";
    sp_trace_begin(w, SP_KIND_START, SP_LAYER_SUPERVISOR, 0, 100, 100);
    sp_trace_string(w, "sandpit", "0.1.0");
    sp_trace_uint(w, "time", 1767225600000000000u);
    sp_trace_string(w, "program", "script");
    sp_trace_string(w, "script", "/work/job.py");
    sp_trace_json(w, "argv", argv, sizeof argv - 1);
    sp_trace_string(w, "cwd", "/work");
    sp_trace_json(w, "policy", policy, sizeof policy - 1);
    sp_trace_json(w, "interpreter", python, sizeof python - 1);
    sp_trace_string(w, "calls", "all");
    sp_trace_end(w);
}

static inline void golden_functions(struct sp_trace_writer *w)
{
    static const char *const names[] = {"<module>", "Job.run", "len"};
    for (uint64_t id = 1; id <= 3; id++) {
        sp_trace_begin(w, SP_KIND_FUNCTION, SP_LAYER_PYTHON, 1000, 100, 100);
        sp_trace_uint(w, "id", id);
        sp_trace_string(w, "name", names[id - 1]);
        sp_trace_string(w, "module", id == 3 ? "builtins" : "__main__");
        sp_trace_string(w, "file", id == 3 ? NULL : "/work/job.py");
        if (id != 3)
            sp_trace_uint(w, "line", id * 10);
        sp_trace_bool(w, "native", id == 3);
        sp_trace_end(w);
    }
}

static inline void golden_run(struct sp_trace_writer *w)
{
    static const int32_t ids[] = {1, 2, 3, -3, 3, -3, -2, -1};
    static const uint32_t dt[] = {0, 250, 90, 12345, 100, 7, 1, 4000000000u};
    static const uint16_t raised[] = {5, 6};
    static const uint16_t resumed[] = {1};
    sp_trace_run(w, &(struct sp_trace_run){.t_ns = 2000,
                                           .pid = 100,
                                           .tid = 101,
                                           .count = 8,
                                           .ids = ids,
                                           .dt = dt,
                                           .raised = raised,
                                           .raised_count = 2,
                                           .resumed = resumed,
                                           .resumed_count = 1});
}

static inline void golden_open(struct sp_trace_writer *w, uint64_t t_ns, const char *op,
                               const char *path, size_t size)
{
    sp_trace_begin(w, SP_KIND_OPEN, SP_LAYER_KERNEL, t_ns, 100, 100);
    sp_trace_text(w, "path", path, size);
    sp_trace_string(w, "op", op);
    sp_trace_string(w, "args", "observed");
    sp_trace_string(w, "at", "/work/job.py:12");
    sp_trace_end(w);
}

static inline uint64_t golden_violation(struct sp_trace_writer *w, uint64_t t_ns)
{
    static const char stack[] =
        "[\"/work/job.py:14 Job.run\",\"/work/job.py:30 <module>\"]";
    sp_trace_begin(w, SP_KIND_VIOLATION, SP_LAYER_KERNEL, t_ns, 100, 100);
    sp_trace_string(w, "category", "network");
    sp_trace_string(w, "operation", "connect");
    sp_trace_string(w, "target", "192.0.2.1:443");
    sp_trace_string(w, "rule", "network.allow");
    sp_trace_string(w, "source", "no-network.toml:9");
    sp_trace_string(w, "action", "deny");
    sp_trace_string(w, "message", "connect to 192.0.2.1:443 is denied");
    sp_trace_string(w, "hint", "--allow-net 192.0.2.1:443");
    sp_trace_string(w, "file", "/work/job.py");
    sp_trace_int(w, "line", 14);
    sp_trace_string(w, "at", "/work/job.py:14");
    sp_trace_json(w, "stack", stack, sizeof stack - 1);
    sp_trace_string(w, "address", "192.0.2.1");
    sp_trace_int(w, "port", 443);
    return sp_trace_seq(w);
}

static inline void golden_body(struct sp_trace_writer *w)
{
    static const char hostile[] =
        "/tmp/\xff\"\\\n\x1b[31m\x7f\xc2\x9b\xe2\x80\xa8\xc3\xa9\xf0\x9f\x98\x80";
    golden_open(w, 5000, "read", "/work/data.csv", 14);
    golden_open(w, 6000, "write", hostile, sizeof hostile - 1);
    const uint64_t first = golden_violation(w, 7000);
    sp_trace_end(w);
    sp_trace_lost(w, 5, 0, "ring-full");
    golden_open(w, 6500, "read", "/work/late.csv", 14); /* time would run backwards */
    sp_trace_begin(w, SP_KIND_OUTPUT, SP_LAYER_SUPERVISOR, 8000, 100, 100);
    sp_trace_string(w, "stream", "stdout");
    sp_trace_uint(w, "size", 6);
    sp_trace_text(w, "text", "hello\n", 6);
    sp_trace_end(w);
    sp_trace_flush(w, true);
    golden_violation(w, 9000);
    sp_trace_uint(w, "count", 41);
    sp_trace_uint(w, "of", first);
    sp_trace_end(w);
    sp_trace_begin(w, SP_KIND_EXCEPTION, SP_LAYER_PYTHON, 9500, 100, 100);
    sp_trace_string(w, "type", "PermissionError");
    sp_trace_string(w, "message", "connect to 192.0.2.1:443 is denied");
    sp_trace_bool(w, "ended", true);
    sp_trace_string(w, "at", "/work/job.py:14");
    sp_trace_end(w);
}

/* 0 when the end could be written. */
static inline int golden_write(struct sp_trace_writer *w)
{
    golden_start(w);
    golden_functions(w);
    golden_run(w);
    golden_body(w);
    sp_trace_begin_end(w, 10000, 100);
    sp_trace_string(w, "status", "error");
    sp_trace_int(w, "exit_code", 1);
    sp_trace_string(w, "reason", "PermissionError: connect to 192.0.2.1:443 is denied");
    sp_trace_uint(w, "wall_ns", 10000);
    return sp_trace_finish(w, NULL);
}

/* Blocks of some lines, and no checkpoint by time. */
static const struct sp_trace_options golden_options = {
    .checkpoint_bytes = 1000, .checkpoint_interval_ns = UINT64_MAX};

#endif
