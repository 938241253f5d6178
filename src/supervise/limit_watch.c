#include "supervise/limit_watch.h"

#include <sched.h>

#include "supervise/supervisor.h"

#define LOOK_MIN_NS 5000000u
#define LOOK_MAX_NS 100000000u
/* Faster than any processor can fill memory, or a disk. */
#define FILL_BYTES_PER_NS 10u
#define NAMELESS_NS       100000000u
/* Files whose size is looked at, ten times a second. */
#define FILES_A_TIME 128u
/* A look may take this part of the time. */
#define SHARE_OF_TIME 20u

static uint64_t value_of(const struct sp_limit_watch *w, enum sp_limit limit)
{
    return w->plan->limits.value[limit];
}

static bool held_by(const struct sp_limit_watch *w, enum sp_limit limit,
                    enum sp_limit_means means)
{
    return sp_limit_plan_has(w->plan, limit, means);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- reaching ---------------------------------------------------------------------------------- */

/* Once it was told, it stays as it was told. */
static void measure(struct sp_limit_watch *w, enum sp_limit limit, uint64_t measured)
{
    if (!w->reached[limit] && measured > w->measured[limit])
        w->measured[limit] = measured;
}

void sp_limits_reach(struct sp_supervisor *s, enum sp_limit limit, uint64_t measured,
                     bool claim)
{
    struct sp_limit_watch *w = &s->limits;
    measure(w, limit, measured);
    if (sp_limit_ends(limit) && !sp_limits_ended(w) && !claim)
        w->ended_by = limit;
    if (w->reached[limit])
        return;
    w->reached[limit] = true;
    w->by_claim[limit] = claim;
    if (s->phase >= SP_PHASE_RUNNING)
        sp_limits_tell(
            s, limit); /* else there is no record yet, and perhaps never will be */
}

/* ---- looking ------------------------------------------------------------------------------- */

static bool samples(const struct sp_limit_watch *w, enum sp_limit limit)
{
    return held_by(w, limit, SP_BY_SAMPLING);
}

void sp_limits_open(struct sp_supervisor *s, const struct sp_limit_plan *plan)
{
    struct sp_limit_watch *w = &s->limits;
    cpu_set_t set;
    w->plan = plan;
    w->ended_by = SP_LIMIT_COUNT;
    w->look_ns = UINT64_MAX;
    w->usage.children = -1;
    w->looks = samples(w, SP_LIMIT_CPU) || samples(w, SP_LIMIT_MEMORY) ||
               samples(w, SP_LIMIT_DISK) ||
               held_by(w, SP_LIMIT_PROCESSES, SP_BY_LISTENER) ||
               held_by(w, SP_LIMIT_PROCESSES, SP_BY_NAMESPACE);
    if (!w->looks)
        return;
    sp_usage_init(&w->usage);
    w->processors =
        sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    if (samples(w, SP_LIMIT_CPU) || samples(w, SP_LIMIT_MEMORY) ||
        samples(w, SP_LIMIT_DISK))
        w->look_ns = sp_clock_ns() + LOOK_MIN_NS;
}

void sp_limits_close(struct sp_supervisor *s)
{
    if (s->limits.looks)
        sp_usage_release(&s->limits.usage);
}

void sp_limits_process(struct sp_supervisor *s, pid_t pid)
{
    if (s->limits.looks)
        sp_usage_note(&s->limits.usage, pid);
}

void sp_limits_exiting(struct sp_supervisor *s, pid_t pid)
{
    if (samples(&s->limits, SP_LIMIT_CPU))
        sp_usage_see(&s->limits.usage, pid);
}

/* How long it takes at least until `used` has become `value`, at so much a nanosecond on each
 * processor. */
static uint64_t time_to(uint64_t used, uint64_t value, uint64_t speed)
{
    return used < value ? (value - used) / speed : 0;
}

static uint64_t look_at_cpu(struct sp_supervisor *s)
{
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = value_of(w, SP_LIMIT_CPU);
    measure(w, SP_LIMIT_CPU, w->usage.cpu_ns);
    if (w->usage.cpu_ns >= value)
        sp_limits_reach(s, SP_LIMIT_CPU, w->usage.cpu_ns, false);
    return time_to(w->usage.cpu_ns, value, w->processors);
}

static void look_at_files(struct sp_supervisor *s, uint64_t now_ns)
{
    struct sp_limit_watch *w = &s->limits;
    uint64_t from = sp_clock_ns();
    if (now_ns >= w->named_ns) {
        sp_files_grown(&s->files, &w->named, &w->named_memory);
        w->named_ns = now_ns + (sp_clock_ns() - from) * SHARE_OF_TIME;
    }
    if (now_ns < w->nameless_ns)
        return;
    from = sp_clock_ns();
    sp_usage_nameless(&w->usage, &w->nameless_memory, &w->nameless_disk);
    bool some = w->nameless_memory + w->nameless_disk > 0;
    w->nameless_ns =
        now_ns + (some ? 0 : NAMELESS_NS) + (sp_clock_ns() - from) * SHARE_OF_TIME;
}

/* The sum of what each has in memory is never less than what they use together: only when it
 * is above the limit are shares asked for, and again when it has grown by what was left, or after
 * a while, since shared pages become their own when they are written to. */
static uint64_t memory_used(struct sp_limit_watch *w, uint64_t now_ns, uint64_t value)
{
    uint64_t resident = w->usage.resident;
    uint64_t in_files = w->nameless_memory + w->named_memory;
    if (resident + in_files < value) {
        w->share_ns = 0;
        return resident + in_files;
    }
    bool grown = resident > w->share_resident &&
                 resident - w->share_resident + w->share >= value;
    if (now_ns >= w->share_ns || (grown && now_ns + LOOK_MAX_NS >= w->share_ns)) {
        uint64_t from = sp_clock_ns();
        struct sp_usage_memory used = sp_usage_memory(&w->usage);
        /* A file in memory shows as shared memory where it is mapped. */
        w->share = used.own + (used.shared > in_files ? used.shared : in_files);
        w->share_resident = resident;
        w->share_ns = now_ns + (sp_clock_ns() - from) * SHARE_OF_TIME;
    }
    return w->share;
}

static uint64_t look_at_memory(struct sp_supervisor *s, uint64_t now_ns)
{
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = value_of(w, SP_LIMIT_MEMORY);
    uint64_t used = memory_used(w, now_ns, value);
    measure(w, SP_LIMIT_MEMORY, used);
    if (used >= value)
        sp_limits_reach(s, SP_LIMIT_MEMORY, used, false);
    return time_to(used, value, FILL_BYTES_PER_NS * w->processors);
}

static uint64_t look_at_disk(struct sp_supervisor *s)
{
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = value_of(w, SP_LIMIT_DISK);
    uint64_t used = w->named + w->nameless_disk;
    measure(w, SP_LIMIT_DISK, used);
    if (used >= value)
        sp_limits_reach(s, SP_LIMIT_DISK, used, false);
    return time_to(used, value, FILL_BYTES_PER_NS);
}

void sp_limits_look(struct sp_supervisor *s, uint64_t now_ns)
{
    struct sp_limit_watch *w = &s->limits;
    if (now_ns < w->look_ns)
        return;
    uint64_t next = LOOK_MAX_NS;
    sp_usage_look(&w->usage, now_ns);
    if (samples(w, SP_LIMIT_MEMORY) || samples(w, SP_LIMIT_DISK))
        look_at_files(s, now_ns);
    if (samples(w, SP_LIMIT_CPU))
        next = least(next, look_at_cpu(s));
    if (samples(w, SP_LIMIT_MEMORY))
        next = least(next, look_at_memory(s, now_ns));
    if (samples(w, SP_LIMIT_DISK))
        next = least(next, look_at_disk(s));
    uint64_t end = sp_clock_ns();
    uint64_t rest = (end - now_ns) * SHARE_OF_TIME;
    next = next > LOOK_MIN_NS ? next : LOOK_MIN_NS;
    w->look_ns = end + (next > rest ? next : least(rest, LOOK_MAX_NS));
    if (w->usage.beyond && s->failure.code == 0)
        (void)sp_fail(&s->failure, SP_E_HOST,
                      "the run has more than %u processes: its limits cannot be held",
                      SP_USAGE_PROCESSES_MAX);
}

static void look_at_group(struct sp_supervisor *s, enum sp_limit limit,
                          enum sp_cgroup_controller controller)
{
    struct sp_limit_watch *w = &s->limits;
    const struct sp_cgroup *group = &w->plan->groups[controller];
    if (!held_by(w, limit, SP_BY_CGROUP) || w->reached[limit])
        return;
    if (sp_cgroup_hits(group) == 0)
        return;
    /* It never holds more than its limit: what was asked for beyond is not told. */
    uint64_t peak = sp_cgroup_peak(group);
    uint64_t value = value_of(w, limit);
    sp_limits_reach(s, limit, peak > value ? peak : value, false);
}

/* EAGAIN has other causes too. The one that was refused is not there, nor is, when it died of it,
 * the one that asked. */
bool sp_limits_fits(const struct sp_limit_watch *w, enum sp_limit limit)
{
    return limit != SP_LIMIT_PROCESSES || w->reached[limit] ||
           w->measured[limit] + 1 >= value_of(w, limit);
}

static void look_at_claims(struct sp_supervisor *s)
{
    struct sp_limit_watch *w = &s->limits;
    for (int i = 0; i < SP_LIMIT_COUNT; i++) {
        enum sp_limit limit = (enum sp_limit)i;
        uint64_t value = value_of(w, limit);
        bool kept = w->measured[i] != 0 && limit != SP_LIMIT_PROCESSES;
        if (w->claimed[i] && !w->reached[i] && sp_limits_fits(w, limit))
            sp_limits_reach(s, limit, kept ? w->measured[i] : value, true);
    }
}

void sp_limits_keep_up(struct sp_supervisor *s)
{
    struct sp_limit_watch *w = &s->limits;
    look_at_group(s, SP_LIMIT_MEMORY, SP_CGROUP_MEMORY);
    look_at_group(s, SP_LIMIT_PROCESSES, SP_CGROUP_PIDS);
    if (held_by(w, SP_LIMIT_PROCESSES, SP_BY_NAMESPACE) &&
        !w->reached[SP_LIMIT_PROCESSES]) {
        sp_usage_look(&w->usage, sp_clock_ns());
        measure(w, SP_LIMIT_PROCESSES, w->usage.tasks);
        if (w->usage.tasks >= value_of(w, SP_LIMIT_PROCESSES))
            sp_limits_reach(s, SP_LIMIT_PROCESSES, w->usage.tasks, false);
    }
    uint64_t size = value_of(w, SP_LIMIT_FILE_SIZE);
    if (size != 0 && !w->reached[SP_LIMIT_FILE_SIZE] &&
        sp_files_reached(&s->files, size, &w->file_next,
                         s->reaped ? UINT32_MAX : FILES_A_TIME))
        sp_limits_reach(s, SP_LIMIT_FILE_SIZE, size, false);
    look_at_claims(s);
    if (w->plan->asked.value[SP_LIMIT_TRACE] != 0 && sp_trace_capped(s->writer))
        sp_limits_reach(s, SP_LIMIT_TRACE, sp_trace_bytes(s->writer), false);
}

void sp_limits_look_now(struct sp_supervisor *s)
{
    uint64_t now = sp_clock_ns();
    if (s->deadline_ns != 0 && now >= s->deadline_ns)
        sp_limits_reach(s, SP_LIMIT_WALL, now - s->is->start_ns, false);
    sp_limits_look(s, now);
    sp_limits_keep_up(s);
}

size_t sp_limits_print(struct sp_supervisor *s, size_t size)
{
    struct sp_limit_watch *w = &s->limits;
    uint64_t value = value_of(w, SP_LIMIT_OUTPUT);
    uint64_t left = value > w->printed ? value - w->printed : 0;
    w->printed += size;
    if (value == 0)
        return size;
    measure(w, SP_LIMIT_OUTPUT, w->printed);
    if (w->printed > value)
        sp_limits_reach(s, SP_LIMIT_OUTPUT, w->printed, false);
    return size < left ? size : (size_t)left;
}

/* Those that were reached before the record began. */
static void tell_belated(struct sp_supervisor *s)
{
    for (int i = 0; i < SP_LIMIT_COUNT && s->phase >= SP_PHASE_RUNNING; i++)
        if (s->limits.reached[i] && !s->limits.told[i])
            sp_limits_tell(s, (enum sp_limit)i);
}

/* A program that came to its own end did so within its limits. */
void sp_limits_finish(struct sp_supervisor *s)
{
    struct sp_limit_watch *w = &s->limits;
    if (samples(w, SP_LIMIT_CPU)) {
        sp_usage_look(&w->usage, sp_clock_ns());
        measure(w, SP_LIMIT_CPU, w->usage.cpu_ns);
    }
    if (held_by(w, SP_LIMIT_MEMORY, SP_BY_CGROUP))
        measure(w, SP_LIMIT_MEMORY, sp_cgroup_peak(&w->plan->groups[SP_CGROUP_MEMORY]));
    if (held_by(w, SP_LIMIT_PROCESSES, SP_BY_CGROUP))
        measure(w, SP_LIMIT_PROCESSES,
                sp_cgroup_peak(&w->plan->groups[SP_CGROUP_PIDS]));
    sp_limits_keep_up(s);
    tell_belated(s);
}
