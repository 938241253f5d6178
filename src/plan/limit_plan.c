#include "plan/limit_plan.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sys/host.h"
#include "sys/usage.h"

/* Thread pools of numerical libraries reserve memory for each processor that most programs never
 * use; RLIMIT_DATA counts what is reserved. */
#define RESERVED_PER_PROCESSOR (UINT64_C(40) << 20)
#define PROCESSORS_FREE        2

static const struct {
    enum sp_limit_means means;
    const char *word;
} words[] = {
    {SP_BY_TIMER, "timer"},         {SP_BY_RELAY, "relay"},
    {SP_BY_WRITER, "writer"},       {SP_BY_CGROUP, "cgroup"},
    {SP_BY_NAMESPACE, "namespace"}, {SP_BY_LISTENER, "listener"},
    {SP_BY_RLIMIT, "rlimit"},       {SP_BY_SAMPLING, "sampling"},
};

struct making {
    struct sp_limit_plan *plan;
    const struct sp_limit_host *host;
    struct sp_host forced; /* what SANDPIT_FORCE leaves */
    char name[64];
    enum sp_limit missing; /* SP_LIMIT_COUNT: none */
    const char *because;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t hard_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 ||
        limit.rlim_max == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_max;
}

/* A limit of the process's own, lowered to what it may be at most. */
static uint64_t add_rlimit(struct sp_limit_plan *plan, int resource, uint64_t value,
                           uint64_t extra)
{
    uint64_t most = hard_limit(resource);
    uint64_t in_force = least(value, most);
    sp_limits_seal_add(&plan->seal, resource, least(value + extra, most),
                       least(value + extra, most));
    return in_force;
}

static void hold(struct making *m, enum sp_limit limit, uint64_t value, unsigned means)
{
    m->plan->limits.value[limit] = value;
    m->plan->means[limit] |= (uint8_t)means;
}

static void miss(struct making *m, enum sp_limit limit, const char *because)
{
    m->plan->limits.value[limit] = 0;
    m->plan->means[limit] = 0;
    if (m->missing != SP_LIMIT_COUNT)
        return;
    m->missing = limit;
    m->because = because;
}

static bool has_group(struct making *m, enum sp_cgroup_controller controller,
                      enum sp_limit limit)
{
    struct sp_limit_plan *plan = m->plan;
    uint64_t value = plan->asked.value[limit];
    struct sp_cgroup *group = &plan->groups[controller];
    if (!m->forced.cgroup_writable ||
        sp_cgroup_make(NULL, controller, m->name, value, group, &value) != 0)
        return false;
    if (group->unified)
        plan->seal.group = group->enter;
    else
        plan->seal.tasks[controller] = group->enter;
    hold(m, limit, value, SP_BY_CGROUP);
    return true;
}

/* Looking at the tree needs the lists of children that the kernel keeps. */
static bool can_look(struct making *m, enum sp_limit limit)
{
    if (sp_usage_possible())
        return true;
    miss(m, limit,
         "this kernel does not tell of a process's children (CONFIG_PROC_CHILDREN)");
    return false;
}

static uint64_t reserved_by_pools(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > PROCESSORS_FREE
               ? (uint64_t)(count - PROCESSORS_FREE) * RESERVED_PER_PROCESSOR
               : 0;
}

static void plan_memory(struct making *m)
{
    uint64_t value = m->plan->asked.value[SP_LIMIT_MEMORY];
    if (value == 0 || has_group(m, SP_CGROUP_MEMORY, SP_LIMIT_MEMORY) ||
        !can_look(m, SP_LIMIT_MEMORY))
        return;
    value = add_rlimit(m->plan, RLIMIT_DATA, value, reserved_by_pools());
    hold(m, SP_LIMIT_MEMORY, value, SP_BY_RLIMIT | SP_BY_SAMPLING);
}

/* RLIMIT_NPROC does not bind the kernel's own user 0, in whichever namespace. */
static bool has_namespace(struct making *m, uint64_t value)
{
    if (geteuid() == 0 || getuid() == 0 || !m->forced.user_namespaces ||
        !sp_user_namespace_counts())
        return false;
    sp_user_namespace_prepare(&m->plan->seal.space);
    m->plan->seal.own_namespace = true;
    value = add_rlimit(m->plan, RLIMIT_NPROC, value, 0);
    hold(m, SP_LIMIT_PROCESSES, value, SP_BY_NAMESPACE);
    return true;
}

static void plan_processes(struct making *m)
{
    uint64_t value = m->plan->asked.value[SP_LIMIT_PROCESSES];
    if (value == 0 || has_group(m, SP_CGROUP_PIDS, SP_LIMIT_PROCESSES) ||
        has_namespace(m, value))
        return;
    if (m->host->listener && sp_usage_possible())
        hold(m, SP_LIMIT_PROCESSES, value, SP_BY_LISTENER);
    else
        miss(m, SP_LIMIT_PROCESSES,
             "there is no control group that may be written to, no user namespace that "
             "may be made, and no listener");
}

static void plan_cpu(struct making *m)
{
    uint64_t value = m->plan->asked.value[SP_LIMIT_CPU];
    if (value == 0 || !can_look(m, SP_LIMIT_CPU))
        return;
    /* Should we be kept from looking: each process ends by itself a little later. */
    uint64_t s = (value + 999999999u) / 1000000000u;
    uint64_t most = hard_limit(RLIMIT_CPU);
    sp_limits_seal_add(&m->plan->seal, RLIMIT_CPU, least(s + 1, most),
                       least(s + 2, most));
    if (most != UINT64_MAX)
        value = least(value, most * 1000000000u);
    hold(m, SP_LIMIT_CPU, value, SP_BY_SAMPLING | SP_BY_RLIMIT);
}

static uint64_t trace_bytes(uint64_t asked)
{
    return asked < SP_TRACE_BYTES_MIN ? SP_TRACE_BYTES_MIN
                                      : least(asked, SP_TRACE_BYTES_MAX);
}

static void plan_others(struct making *m)
{
    struct sp_limit_plan *plan = m->plan;
    const uint64_t *asked = plan->asked.value;
    if (asked[SP_LIMIT_WALL] != 0)
        hold(m, SP_LIMIT_WALL, asked[SP_LIMIT_WALL], SP_BY_TIMER);
    if (asked[SP_LIMIT_OUTPUT] != 0)
        hold(m, SP_LIMIT_OUTPUT, asked[SP_LIMIT_OUTPUT], SP_BY_RELAY);
    if (asked[SP_LIMIT_TRACE] != 0)
        hold(m, SP_LIMIT_TRACE, trace_bytes(asked[SP_LIMIT_TRACE]), SP_BY_WRITER);
    if (asked[SP_LIMIT_OPEN_FILES] != 0)
        hold(m, SP_LIMIT_OPEN_FILES,
             add_rlimit(plan, RLIMIT_NOFILE, asked[SP_LIMIT_OPEN_FILES], 0),
             SP_BY_RLIMIT);
    if (asked[SP_LIMIT_FILE_SIZE] != 0)
        hold(m, SP_LIMIT_FILE_SIZE,
             add_rlimit(plan, RLIMIT_FSIZE, asked[SP_LIMIT_FILE_SIZE], 0),
             SP_BY_RLIMIT);
    if (asked[SP_LIMIT_DISK] != 0) {
        if (m->host->listener && sp_usage_possible())
            hold(m, SP_LIMIT_DISK, asked[SP_LIMIT_DISK], SP_BY_SAMPLING);
        else
            miss(m, SP_LIMIT_DISK, "without a listener nobody tells of files");
    }
}

static int refuse(const struct making *m, struct sp_error *reterr)
{
    (void)sp_fail(reterr, SP_E_HOST,
                  "the limit '%s' cannot be held here: %s (to run without it: "
                  "--allow-degraded limits)",
                  sp_limit_name(m->missing), m->because);
    return sp_error_what(reterr, "limits");
}

int sp_limit_plan_make(const struct sp_limits *asked, const struct sp_limit_host *host,
                       struct sp_limit_plan *ret_plan, bool *ret_missing,
                       struct sp_error *reterr)
{
    struct making m = {.plan = ret_plan, .host = host, .missing = SP_LIMIT_COUNT};
    *ret_plan = (struct sp_limit_plan){.asked = *asked, .seal = SP_LIMITS_SEAL_NONE};
    for (unsigned i = 0; i < SP_GROUPS_MAX; i++)
        ret_plan->groups[i] = SP_CGROUP_NONE;
    m.forced = (struct sp_host){.cgroup_writable = true, .user_namespaces = true};
    sp_host_lower(&m.forced, getenv("SANDPIT_FORCE"));
    sp_cgroup_name(m.name, sizeof m.name);
    plan_memory(&m);
    plan_processes(&m);
    plan_cpu(&m);
    plan_others(&m);
    *ret_missing = m.missing != SP_LIMIT_COUNT;
    if (!*ret_missing || host->accepted)
        return 0;
    sp_limit_plan_remove(ret_plan);
    sp_limit_plan_close(ret_plan);
    return refuse(&m, reterr);
}

bool sp_limit_plan_any(const struct sp_limit_plan *plan)
{
    unsigned means = 0;
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        means |= plan->means[i];
    return means != 0;
}

void sp_limit_plan_close(struct sp_limit_plan *plan)
{
    for (unsigned i = 0; i < SP_GROUPS_MAX; i++)
        if (plan->groups[i].folder[0] != '\0')
            sp_cgroup_close(&plan->groups[i]);
}

void sp_limit_plan_remove(const struct sp_limit_plan *plan)
{
    for (unsigned i = 0; i < SP_GROUPS_MAX; i++)
        sp_cgroup_remove(&plan->groups[i]);
}

static void write_words(unsigned means, struct sp_buffer *to)
{
    bool first = true;
    sp_buffer_text(to, "[");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((means & words[i].means) == 0)
            continue;
        sp_buffer_format(to, "%s\"%s\"", first ? "" : ",", words[i].word);
        first = false;
    }
    sp_buffer_text(to, "]");
}

void sp_limit_plan_enforced_by(const struct sp_limit_plan *plan, struct sp_buffer *to)
{
    unsigned means = 0;
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        means |= plan->means[i];
    write_words(means, to);
}

void sp_limit_plan_recorded_by(const struct sp_limit_plan *plan, bool agent,
                               struct sp_buffer *to)
{
    unsigned means = 0;
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        means |= plan->means[i];
    bool refused = (means & SP_BY_RLIMIT) != 0;
    write_words(means & ~(unsigned)SP_BY_RLIMIT, to);
    if (!refused || !agent)
        return;
    to->size--; /* the bracket */
    sp_buffer_text(to, to->data[to->size - 1] == '[' ? "\"agent\"]" : ",\"agent\"]");
}

void sp_limit_plan_means(const struct sp_limit_plan *plan, enum sp_limit limit,
                         struct sp_buffer *to)
{
    write_words(plan->means[limit], to);
}
