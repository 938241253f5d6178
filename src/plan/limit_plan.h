/* By what each limit of a run will be held on this machine, and with which value.
 *
 *     memory      a control group; else each process's own limit on data, and looking at the
 *                 whole tree every few milliseconds
 *     processes   a control group; else, for an ordinary user, a user namespace of the run's own
 *                 with RLIMIT_NPROC; else the supervisor is asked about each new task
 *     cpu, disk   looking at the whole tree
 */
#ifndef SP_PLAN_LIMIT_PLAN_H
#define SP_PLAN_LIMIT_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "policy/limit.h"
#include "seal/limits/limit_seal.h"
#include "sys/cgroup.h"

/* Several may hold one limit: bits. */
enum sp_limit_means {
    SP_BY_TIMER = 1,
    SP_BY_RELAY = 2,  /* what is printed passes through the supervisor */
    SP_BY_WRITER = 4, /* the trace's */
    SP_BY_SAMPLING = 8,
    SP_BY_RLIMIT = 16,
    SP_BY_CGROUP = 32,
    SP_BY_NAMESPACE = 64, /* RLIMIT_NPROC in a user namespace of its own */
    SP_BY_LISTENER = 128, /* new tasks are notified */
};

/* A trace is never without a cap, and one that is any has room for its start and its end. */
#define SP_TRACE_BYTES_MAX (UINT64_C(4) << 30)
#define SP_TRACE_BYTES_MIN (UINT64_C(64) << 10)

struct sp_limit_plan {
    struct sp_limits asked;
    struct sp_limits limits;       /* in force */
    uint8_t means[SP_LIMIT_COUNT]; /* 0: none asked for, or not held */
    struct sp_limits_seal seal;
    struct sp_cgroup groups[SP_GROUPS_MAX]; /* by enum sp_cgroup_controller */
};

/* What the machine lends itself to. */
struct sp_limit_host {
    bool listener;
    bool accepted; /* the caller can do without limits that cannot be held */
};

/* Makes the control groups that it plans with; `release` removes them. Fails with SP_E_HOST when
 * a limit cannot be held and the caller did not accept that; *ret_missing says whether one is not
 * held. */
int sp_limit_plan_make(const struct sp_limits *asked, const struct sp_limit_host *host,
                       struct sp_limit_plan *ret_plan, bool *ret_missing,
                       struct sp_error *reterr) SP_MUST_CHECK;

/* Closes what is open here; the groups stay. */
void sp_limit_plan_close(struct sp_limit_plan *plan);
/* Removes the groups, once nobody is in them. */
void sp_limit_plan_remove(const struct sp_limit_plan *plan);

static inline bool sp_limit_plan_has(const struct sp_limit_plan *plan,
                                     enum sp_limit limit, enum sp_limit_means means)
{
    return (plan->means[limit] & means) != 0;
}

/* Whether any is held. */
bool sp_limit_plan_any(const struct sp_limit_plan *plan);

/* The means of all limits together, as a JSON array of words. */
void sp_limit_plan_enforced_by(const struct sp_limit_plan *plan, struct sp_buffer *to);
/* Who notices that one was reached, likewise: what the kernel refuses by itself shows in the
 * exception that the agent sees. */
void sp_limit_plan_recorded_by(const struct sp_limit_plan *plan, bool agent,
                               struct sp_buffer *to);
/* Those of one. */
void sp_limit_plan_means(const struct sp_limit_plan *plan, enum sp_limit limit,
                         struct sp_buffer *to);

#endif
