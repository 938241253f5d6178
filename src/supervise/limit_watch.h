/* The limits of a run, as far as the supervisor keeps them or must learn that the kernel did.
 *
 * What ends the run is looked at when it can have been reached: processor time not before all
 * processors together could have used what is left, memory and disk every few milliseconds. A
 * look takes at most a twentieth of the time, however many processes there are. Where no limit
 * needs it, nothing is looked at.
 *
 * What only fails a call is refused by the kernel, which does not tell us. It shows in the
 * counters of a control group, in what was reached when it is looked at, and in the exception
 * that the program dies of; the last is the guest's word.
 */
#ifndef SP_SUPERVISE_LIMIT_WATCH_H
#define SP_SUPERVISE_LIMIT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plan/limit_plan.h"
#include "sys/usage.h"

struct sp_supervisor;
struct sp_outcome;

/* New tasks that were let through and may not be there yet. */
#define SP_PERMITS_MAX 1024u

struct sp_limit_watch {
    const struct sp_limit_plan *plan;
    uint64_t
        measured[SP_LIMIT_COUNT]; /* the most that was seen; ns, bytes, or a count */
    bool reached[SP_LIMIT_COUNT];
    bool told[SP_LIMIT_COUNT];
    bool by_claim[SP_LIMIT_COUNT]; /* only the guest says so */
    bool claimed[SP_LIMIT_COUNT];  /* an exception says so; not yet told */
    enum sp_limit ended_by;        /* SP_LIMIT_COUNT: none */
    bool looks;                    /* some limit needs looking at the processes */
    unsigned processors;
    uint64_t look_ns;        /* when the next look is due; UINT64_MAX: never */
    uint64_t share_ns;       /* when shares of memory may be asked for again */
    uint64_t share_resident; /* the sum at that time */
    uint64_t share;
    uint64_t nameless_ns; /* when files without a name are looked for again */
    uint64_t named_ns;    /* when files with names are looked at again */
    uint32_t file_next;
    uint64_t named;        /* bytes that files with names have grown by */
    uint64_t named_memory; /* ... of files in memory */
    uint64_t nameless_memory;
    uint64_t nameless_disk;
    uint64_t printed;
    struct sp_usage usage;
    struct {
        pid_t tid;
        int nr; /* of the call */
        uint64_t until_ns;
    } permits[SP_PERMITS_MAX];
    unsigned permits_count;
    uint64_t tasks_seen; /* at the last count, outstanding permits included; 0: none */
    uint64_t permits_since; /* given since then */
    uint64_t count_again_ns;
};

/* `s->limits` is the watch. */
void sp_limits_open(struct sp_supervisor *s, const struct sp_limit_plan *plan);
void sp_limits_close(struct sp_supervisor *s);

/* When the loop has to look next; UINT64_MAX: never. */
static inline uint64_t sp_limits_due_ns(const struct sp_limit_watch *w)
{
    return w->look_ns;
}
/* Looks, if it is due. */
void sp_limits_look(struct sp_supervisor *s, uint64_t now_ns);
/* Everything that is due, for whoever keeps the loop waiting. */
void sp_limits_look_now(struct sp_supervisor *s);
/* What needs no more than a look now and then: counters of control groups, sizes of files. */
void sp_limits_keep_up(struct sp_supervisor *s);

/* A process was met. */
void sp_limits_process(struct sp_supervisor *s, pid_t pid);

/* A process is about to end: what it used counts, though nobody may ever gather it. */
void sp_limits_exiting(struct sp_supervisor *s, pid_t pid);

/* So many bytes were printed; how many of them are within the limit. */
size_t sp_limits_print(struct sp_supervisor *s, size_t size);

/* A limit was reached, `measured` being what was seen. The first time it is told in the trace;
 * one that ends the run does. `claim`: only the guest says so. */
void sp_limits_reach(struct sp_supervisor *s, enum sp_limit limit, uint64_t measured,
                     bool claim);

/* "the memory limit of 64 MiB was reached: its processes used 70 MiB" */
void sp_limits_sentence(const struct sp_limit_watch *w, enum sp_limit limit, char *to,
                        size_t size);

/* Writes the event and the violation. */
void sp_limits_tell(struct sp_supervisor *s, enum sp_limit limit);

static inline bool sp_limits_ended(const struct sp_limit_watch *w)
{
    return w->ended_by != SP_LIMIT_COUNT;
}

/* A line of the trace: an exception may be a limit's doing. */
void sp_limits_claim(struct sp_supervisor *s, const char *line, size_t size);

/* Whether what was counted fits such a claim. */
bool sp_limits_fits(const struct sp_limit_watch *w, enum sp_limit limit);

/* The last look, while the processes are still there. */
void sp_limits_finish(struct sp_supervisor *s);

/* Turns how the program ended into a limit's status, where a limit is behind it. To be called
 * after everything else was judged; `exception` is the one that ended it, as JSON. */
void sp_limits_judge(struct sp_supervisor *s, struct sp_outcome *o);

/* Each limit, as a JSON object: asked, in force, measured, by what means. */
void sp_limits_write(const struct sp_limit_watch *w, struct sp_buffer *to);

#endif
