/* Supervising one run: from the sealed launch to the last process's end.
 *
 * Theory of operation: one process, one thread, one loop (loop.c). It waits for system calls
 * that the guest's filter hands over (notify.c looks up who handles which), for what the
 * guest prints, for processes that end, for signals and for time. It decides, answers and
 * writes; it never waits for the guest, nor for whoever reads the output. An error of its
 * own ends the run: the guest dies with the supervisor.
 */
#ifndef SP_SUPERVISE_SUPERVISE_H
#define SP_SUPERVISE_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/buffer.h"
#include "base/error.h"
#include "event/event.h"
#include "launch/launch.h"
#include "policy/policy.h"
#include "ring/ring.h"

struct sp_event_stream;
struct sp_limit_plan;
struct sp_source;
struct sp_trace_writer;

enum sp_status {
    SP_STATUS_OK,
    SP_STATUS_ERROR,
    SP_STATUS_SIGNAL,
    SP_STATUS_TIMEOUT, /* the wall limit */
    SP_STATUS_CPU_LIMIT,
    SP_STATUS_MEMORY_LIMIT,
    SP_STATUS_OUTPUT_LIMIT,
    SP_STATUS_DISK_LIMIT,
    SP_STATUS_PROCESS_LIMIT,
    SP_STATUS_FILE_LIMIT, /* of size, or of how many are open */
    SP_STATUS_CANCELLED,
    SP_STATUS_STOPPED, /* at the first violation, where the policy says so */
};
const char *sp_status_name(enum sp_status status);
static inline bool sp_status_limit(enum sp_status status)
{
    return status >= SP_STATUS_TIMEOUT && status <= SP_STATUS_FILE_LIMIT;
}

/* Canonical folders and files: what they are, and what is below them. */
#define SP_GRANTED_MAX 256u
struct sp_granted {
    const char *const *paths;
    size_t count;
};

/* A file that the guest reads under no policy. Its domain grants everything but that; the path is
 * canonical, and by what it is the file is known under any other. */
struct sp_hidden {
    const char *path; /* NULL: there is none */
    dev_t device;
    ino_t inode;
};

/* What a run is, once everything about it was worked out. All borrowed for the run. */
struct sp_supervision {
    const struct sp_policy *policy;   /* in force */
    const struct sp_policy *observed; /* judged and recorded only; NULL: none */
    struct sp_launch *launch;         /* stdio is filled in by the supervisor */
    struct sp_granted writable; /* what the guest's domain lets it write by itself */
    struct sp_granted readable; /* ... and read; only where reads are judged */
    struct sp_granted own;      /* sandpit's own files, which no guest changes */
    struct sp_hidden hidden;    /* ... and the one of them that none reads */
    bool reads_judged;  /* the policy, or the one that is observed, may deny a read */
    bool writes_judged; /* ... a change */
    const char *private_folder; /* of the run, gone afterwards; NULL: none */
    const char *resolver;       /* path of the program that looks names up */
    enum sp_reach reach;        /* of the network, as it is enforced */
    bool writes_guarded; /* the domain restricts writes at all (Landlock is there) */
    struct sp_granted
        interpreters;        /* loaders and interpreters of allowed programs: files that
                                       are no programs of their own */
    bool interpreters_known; /* the domain lets no other interpreters be executed */
    bool truncation_guarded; /* ... and truncation (ABI 3) */
    bool moves_granted;      /* moves between folders of like rights pass (ABI 2) */
    bool needs_agent;        /* a program whose agent does not report in ends the run */
    bool signals_scoped;     /* Landlock keeps signals inside */
    bool keep_sockets;       /* no pidfd_getfd on this host */
    enum sp_calls_level calls;
    const void *config; /* struct sp_ring_config, for the agents */
    size_t config_size;
    struct sp_trace_writer *writer;
    struct sp_event_stream
        *events;       /* gets the writer's lines from its owner; pushed on here */
    uint64_t start_ns; /* sp_clock_ns() at which the trace begins */
    const struct sp_limit_plan *limits;
    pid_t keeper;
    const int *stdio;     /* the caller's 0, 1 and 2; -1: closed */
    bool capture;         /* keep what the guest prints instead of passing it on */
    uint64_t capture_max; /* bytes a stream */
    int control;          /* the API's socket, -1: none */
    bool debug;
    const struct sp_source *source; /* the program's; NULL: not known */
    /* Writes the fields of the `start` record, which the supervisor has begun. */
    void (*write_start)(void *context, struct sp_trace_writer *w,
                        uint32_t python_version);
    /* The program has begun (may be NULL). */
    void (*on_started)(void *context, pid_t pid);
    void *context;
    const sigset_t *signals; /* blocked, to be taken from a signalfd */
};

struct sp_stream_outcome {
    int captured; /* memfd with what was kept, -1: none */
    uint64_t kept_bytes;
    uint64_t total_bytes;
    int lost; /* errno with which the caller's stream failed, 0: none */
};

struct sp_outcome {
    enum sp_status status;
    int exit_code; /* what `sandpit run` ends with, but for --fail-on-violation */
    int signal;    /* 0: none */
    const char *exited_by; /* a fixed word */
    char reason[SP_SENTENCE_BYTES + 64];
    uint64_t wall_ns;
    uint64_t startup_ns; /* until the program itself began */
    struct rusage usage; /* of the program and what it waited for */
    struct sp_stream_outcome streams[2];
    struct sp_buffer violations; /* JSON array */
    struct sp_buffer exception;  /* JSON object, empty: none */
    struct sp_buffer files;      /* JSON object */
    struct sp_buffer limits;     /* JSON object */
    uint32_t violation_count;
    uint32_t python_version; /* PY_VERSION_HEX of the program, 0: unknown */
    pid_t pid;
};

/* Runs to the end. On failure (nothing was run, or an error of ours) the guest is gone too. */
int sp_supervise(const struct sp_supervision *supervision,
                 struct sp_outcome *ret_outcome, struct sp_error *reterr) SP_MUST_CHECK;

/* To be told of every line that the trace writer writes (its on_line). */
void sp_supervise_line(const char *line, size_t size);

void sp_outcome_release(struct sp_outcome *outcome);

#endif
