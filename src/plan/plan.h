/* What this machine will do about a policy, worked out before anything starts: which layer
 * enforces and which records what, and why not.
 */
#ifndef SP_PLAN_PLAN_H
#define SP_PLAN_PLAN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "plan/limit_plan.h"
#include "policy/policy.h"
#include "ring/ring.h"
#include "seal/landlock/ruleset.h"
#include "seal/seccomp/filter.h"
#include "sys/host.h"

/* What can be given up by name; the same words everywhere. */
enum sp_ability {
    SP_ABILITY_LANDLOCK,
    SP_ABILITY_LISTENER,
    SP_ABILITY_AGENT,
    SP_ABILITY_LIMITS,
    SP_ABILITY_RECORD,
    SP_ABILITY_COUNT
};
const char *sp_ability_name(enum sp_ability ability);
int sp_ability_find(const char *name); /* -1: unknown */

/* Folders and files that the guest may write by itself; any other write is the broker's. */
#define SP_WRITABLE_MAX 8u

struct sp_plan {
    const struct sp_policy *policy; /* bound to the run */
    enum sp_reach reach;            /* of the network, as it is enforced */
    enum sp_calls_level calls;
    struct sp_host host;
    unsigned
        degraded; /* bits of enum sp_ability: missing, and accepted by the caller */
    struct sp_landlock landlock; /* the supervisor's domain (D1) */
    struct sp_landlock guest;    /* the guest's (D2) */
    const char
        *writable[SP_WRITABLE_MAX]; /* what D2 lets it write by itself, canonical */
    size_t writable_count;
    char writable_text[3 * PATH_MAX];
    size_t writable_used;
    struct sp_filter filter;
    struct sp_limit_plan limits;
    bool listener;
    bool needs_agent;
};

/* `accepted`: bits of what the caller can do without. Fails with SP_E_HOST, `what` naming the
 * first missing ability, when the policy cannot be enforced or recorded as it should. */
int sp_plan_make(const struct sp_policy *policy, const struct sp_limits *limits,
                 enum sp_calls_level calls, unsigned accepted, struct sp_plan *ret_plan,
                 struct sp_error *reterr) SP_MUST_CHECK;

/* Adds the grants that depend on where the run is: the current folder, the temporary folder, and
 * nodes that hold nothing. To be called in the folder of the run. */
int sp_plan_grant_writes(struct sp_plan *plan, struct sp_error *reterr) SP_MUST_CHECK;

/* Who enforces and who records, as JSON objects: {"network":["listener","landlock"],...}. */
void sp_plan_enforced_by(const struct sp_plan *plan, struct sp_buffer *to);
void sp_plan_recorded_by(const struct sp_plan *plan, struct sp_buffer *to);
/* The abilities that were given up, as a JSON array. */
void sp_plan_degraded(const struct sp_plan *plan, struct sp_buffer *to);

#endif
