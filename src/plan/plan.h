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
#include "plan/programs.h"
#include "policy/bind.h"
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

#define SP_PLAN_PATHS_MAX  240u
#define SP_PLAN_TEXT_BYTES (32u * 1024u)

/* Canonical paths, each with what is below it. */
struct sp_plan_paths {
    const char *items[SP_PLAN_PATHS_MAX];
    size_t count;
};

struct sp_plan {
    const struct sp_policy *policy; /* bound to the run */
    enum sp_reach reach;            /* of the network, as it is enforced */
    enum sp_calls_level calls;
    struct sp_host host;
    unsigned
        degraded; /* bits of enum sp_ability: missing, and accepted by the caller */
    struct sp_landlock landlock;   /* the supervisor's domain (D1) */
    struct sp_landlock guest;      /* the guest's (D2) */
    struct sp_plan_paths writable; /* what D2 lets it write by itself */
    struct sp_plan_paths readable; /* ... and read; only where reads are judged */
    bool reads_judged;             /* the policy may deny a read */
    bool writes_judged;            /* ... a change */
    char text[SP_PLAN_TEXT_BYTES]; /* the paths */
    size_t text_used;
    const char *hidden; /* no guest reads it; NULL: there is none. See sp_plan_hide() */
    const char *const *own; /* while it is granted */
    size_t own_count;
    struct sp_filter filter;
    struct sp_limit_plan limits;
    struct sp_programs programs;
    bool listener;
    bool needs_agent;
};

/* `accepted`: bits of what the caller can do without. Fails with SP_E_HOST, `what` naming the
 * first missing ability, when the policy cannot be enforced or recorded as it should. */
int sp_plan_make(const struct sp_policy *policy, const struct sp_limits *limits,
                 enum sp_calls_level calls, unsigned accepted, struct sp_plan *ret_plan,
                 struct sp_error *reterr) SP_MUST_CHECK;

/* Keeps a file from being read by the guest, whatever the policy says, and in observe mode too:
 * `path`, canonical and borrowed, is not granted in its domain, and opens are notified. Before
 * sp_plan_grant(), whose `own` must hold it as well. SP_E_HOST where nothing here can do that. */
int sp_plan_hide(struct sp_plan *plan, const char *path, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Whether the guest's domain is to restrict reading. */
bool sp_plan_reads_bound(const struct sp_plan *plan);

/* Adds the grants that depend on where the run is: what the policy allows as a whole. `own`:
 * sandpit's own files, which are in no folder that may be written unwatched. */
int sp_plan_grant(struct sp_plan *plan, const struct sp_places *places,
                  const char *const *own, size_t own_count, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Whether the kernel can read there under the guest's domain, as it does a program that is started.
 * After sp_plan_grant(). */
bool sp_plan_kernel_reads(const struct sp_plan *plan, const char *path);

/* Grants the programs that the policy allows. To be called in the folder of the run. */
int sp_plan_grant_programs(struct sp_plan *plan, const struct sp_places *places,
                           const char *interpreter, struct sp_error *reterr)
    SP_MUST_CHECK;

/* Who enforces and who records, as JSON objects: {"network":["listener","landlock"],...}. */
void sp_plan_enforced_by(const struct sp_plan *plan, struct sp_buffer *to);
void sp_plan_recorded_by(const struct sp_plan *plan, struct sp_buffer *to);
/* The abilities that were given up, as a JSON array. */
void sp_plan_degraded(const struct sp_plan *plan, struct sp_buffer *to);

#endif
