/* How a run ended: the last record of its trace, and what the caller is told. */
#include "supervise/outcome.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/scope.h"
#include "trace/redact.h"

const char *sp_status_name(enum sp_status status)
{
    static const char *const names[] = {"ok",           "error",      "signal",
                                        "timeout",      "cpu-limit",  "memory-limit",
                                        "output-limit", "disk-limit", "process-limit",
                                        "file-limit",   "cancelled",  "stopped"};
    return names[status];
}

static void judge_end(const struct sp_supervisor *s, struct sp_outcome *o)
{
    if (s->stopped) {
        o->status = SP_STATUS_STOPPED;
        o->exit_code = 126;
        o->exited_by = "killed";
        snprintf(o->reason, sizeof o->reason, "stopped at its first violation: %s",
                 s->stopped_by);
    } else if (s->cancelled) {
        o->status = SP_STATUS_CANCELLED;
        o->exit_code = 128 + s->cancel_signal;
        o->exited_by = "killed";
        snprintf(o->reason, sizeof o->reason, "the run was %s",
                 s->cancel_signal == SIGINT ? "interrupted" : "cancelled");
    } else if (WIFSIGNALED(s->wait_status)) {
        o->status = SP_STATUS_SIGNAL;
        o->signal = WTERMSIG(s->wait_status);
        o->exit_code = 128 + o->signal;
        o->exited_by = "signal";
        snprintf(o->reason, sizeof o->reason, "the program was ended by signal %d (%s)",
                 o->signal, strsignal(o->signal));
    } else {
        o->exit_code = WEXITSTATUS(s->wait_status);
        o->status = o->exit_code == 0 ? SP_STATUS_OK : SP_STATUS_ERROR;
        o->exited_by = s->exited_by;
        snprintf(o->reason, sizeof o->reason, "the program ended with exit code %d",
                 o->exit_code);
    }
}

static void take_stream(struct sp_supervisor *s, int number,
                        struct sp_stream_outcome *to)
{
    struct sp_stream *stream = s->relay.streams[number];
    *to = (struct sp_stream_outcome){.captured = -1};
    if (stream == NULL)
        return;
    to->captured = sp_steal_fd(&stream->captured);
    to->kept_bytes = stream->kept_bytes;
    to->total_bytes = stream->total_bytes;
    to->lost = stream->lost;
}

void sp_outcome_write(struct sp_supervisor *s, const struct sp_outcome *o)
{
    struct sp_trace_writer *w = s->writer;
    sp_violations_tell_repeats(&s->violations, w, sp_supervisor_t(s));
    sp_violations_tell_repeats(&s->refusals, w, sp_supervisor_t(s));
    sp_trace_begin_end(w, sp_supervisor_t(s), s->guest.pid);
    sp_trace_string(w, "status", sp_status_name(o->status));
    sp_trace_int(w, "exit_code", o->exit_code);
    if (o->signal != 0)
        sp_trace_int(w, "signal", o->signal);
    sp_trace_string(w, "exited_by", o->exited_by);
    sp_trace_string(w, "reason", o->reason);
    sp_trace_uint(w, "wall_ns", o->wall_ns);
    sp_trace_uint(
        w, "cpu_ns",
        (uint64_t)(o->usage.ru_utime.tv_sec + o->usage.ru_stime.tv_sec) * 1000000000u +
            (uint64_t)(o->usage.ru_utime.tv_usec + o->usage.ru_stime.tv_usec) * 1000u);
    sp_trace_uint(w, "peak_memory_bytes", (uint64_t)o->usage.ru_maxrss * 1024u);
    sp_trace_uint(w, "stdout_bytes", o->streams[0].total_bytes);
    sp_trace_uint(w, "stderr_bytes", o->streams[1].total_bytes);
    sp_trace_uint(w, "violations", s->violations.total);
}

void sp_outcome_fill(struct sp_supervisor *s, struct sp_outcome *ret_outcome)
{
    struct sp_outcome *o = ret_outcome;
    *o = (struct sp_outcome){.pid = s->guest.pid, .python_version = s->python_version};
    o->wall_ns = sp_clock_ns() - s->is->start_ns;
    o->startup_ns = s->begun_ns != 0 ? s->begun_ns - s->is->start_ns : 0;
    o->usage = s->usage;
    sp_buffer_init(&o->violations, SP_VIOLATIONS_BYTES * 2);
    sp_buffer_init(&o->files, SP_FILES_BYTES * 8);
    sp_buffer_init(&o->limits, 64u << 10);
    judge_end(s, o);
    sp_limits_judge(s, o);
    sp_limits_write(&s->limits, &o->limits);
    take_stream(s, 1, &o->streams[0]);
    take_stream(s, 2, &o->streams[1]);
    sp_buffer_init(&o->exception, s->exception.size + 1);
    sp_buffer_append(&o->exception, s->exception.data, s->exception.size);
    sp_violations_write(&s->violations, &o->violations);
    (void)sp_redact(o->violations.data, &o->violations.size); /* as in the trace */
    o->violation_count =
        (uint32_t)(s->violations.total > UINT32_MAX ? UINT32_MAX : s->violations.total);
    sp_files_write(&s->files, s->is->private_folder, &o->files);
}

void sp_outcome_release(struct sp_outcome *o)
{
    sp_close_fd(&o->streams[0].captured);
    sp_close_fd(&o->streams[1].captured);
    sp_buffer_release(&o->violations);
    sp_buffer_release(&o->exception);
    sp_buffer_release(&o->files);
    sp_buffer_release(&o->limits);
}
