#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "sys/guest.h"
#include "sys/landlock.h"

static const char *const ability_names[SP_ABILITY_COUNT] = {
    "landlock", "listener", "agent", "limits", "record"};

const char *sp_ability_name(enum sp_ability ability)
{
    SP_BUG_ON((unsigned)ability >= SP_ABILITY_COUNT);
    return ability_names[ability];
}

int sp_ability_find(const char *name)
{
    for (int i = 0; i < SP_ABILITY_COUNT; i++)
        if (strcmp(ability_names[i], name) == 0)
            return i;
    return -1;
}

static unsigned bit(enum sp_ability ability)
{
    return 1u << ability;
}

static bool has(const struct sp_plan *plan, enum sp_ability ability)
{
    return (plan->degraded & bit(ability)) == 0;
}

static int refuse(enum sp_ability missing, enum sp_ability option, const char *because,
                  struct sp_error *reterr)
{
    (void)sp_fail(reterr, SP_E_HOST, "%s (to run without it: --allow-degraded %s)",
                  because, ability_names[option]);
    return sp_error_what(reterr, ability_names[missing]);
}

static const char *why_no_landlock(int error)
{
    switch (error) {
    case EOPNOTSUPP:
        return "Landlock, which keeps other processes out of reach, was left out of "
               "the "
               "lsm= list when this kernel was booted";
    case EPERM:
        return "Landlock, which keeps other processes out of reach, is forbidden by a "
               "filter around this process";
    default:
        return "this kernel has no Landlock, which keeps other processes out of reach";
    }
}

/* Without Landlock, other processes of the same user can be looked into and signalled: no
 * policy is kept as it should be. */
static int plan_landlock(struct sp_plan *plan, unsigned accepted,
                         struct sp_error *reterr)
{
    if (plan->host.landlock_abi > 0)
        return 0;
    if ((accepted & bit(SP_ABILITY_LANDLOCK)) == 0)
        return refuse(SP_ABILITY_LANDLOCK, SP_ABILITY_LANDLOCK,
                      why_no_landlock(plan->host.landlock_error), reterr);
    plan->degraded |= bit(SP_ABILITY_LANDLOCK);
    return 0;
}

/* Without a listener, filter and domain deny what they can, which is no less than the policy
 * denies; what only the supervisor could let through is denied too, and the record is missing. */
static int plan_listener(struct sp_plan *plan, unsigned accepted,
                         struct sp_error *reterr)
{
    /* What is asked for by address cannot be judged by who may not look there. */
    bool memory = plan->host.process_vm_readv || plan->host.memory_file;
    plan->listener = plan->host.listener && memory;
    if (plan->listener)
        return 0;
    const char *because =
        memory ? "seccomp notification cannot be had here (another sandbox around this "
                 "one may hold it), so that the kernel would keep no record"
               : SP_MEMORY_HIDDEN;
    if ((accepted & (bit(SP_ABILITY_LISTENER) | bit(SP_ABILITY_RECORD))) == 0)
        return refuse(SP_ABILITY_LISTENER, SP_ABILITY_LISTENER, because, reterr);
    plan->degraded |= bit(SP_ABILITY_LISTENER) | bit(SP_ABILITY_RECORD);
    return 0;
}

static int plan_limits(struct sp_plan *plan, const struct sp_limits *limits,
                       unsigned accepted, struct sp_error *reterr)
{
    const struct sp_limit_host host = {
        .listener = plan->listener,
        .accepted = (accepted & bit(SP_ABILITY_LIMITS)) != 0,
    };
    bool missing;
    int code = sp_limit_plan_make(limits, &host, &plan->limits, &missing, reterr);
    if (code == 0 && missing)
        plan->degraded |= bit(SP_ABILITY_LIMITS);
    return code;
}

static int plan_filter(struct sp_plan *plan, struct sp_error *reterr)
{
    const struct sp_filter_features features = {
        .network_denied = plan->reach != SP_REACH_OPEN,
        .network_judged = plan->reach == SP_REACH_JUDGED,
        .trace_only = plan->policy->traces_only != 0,
        .signals_scoped = sp_landlock_scoped(&plan->landlock),
        .devices_scoped = true, /* no policy has rules about devices */
        .reads_notified =
            plan->reads_judged || plan->hidden != NULL ||
            sp_policy_setting(plan->policy, SP_SETTING_FILES) == SP_FILES_ALL,
        .attributes_judged = plan->writes_judged &&
                             (plan->listener || !sp_policy_observes(plan->policy)),
        .truncation_refused = plan->writes_judged && !plan->listener &&
                              !sp_policy_observes(plan->policy) &&
                              plan->host.landlock_abi < 3,
        .record = true,
        .listener = plan->listener,
        .tasks_notified =
            sp_limit_plan_has(&plan->limits, SP_LIMIT_PROCESSES, SP_BY_LISTENER),
        .forks_denied = sp_policy_fork(plan->policy).action == SP_DENY &&
                        (plan->listener || !sp_policy_observes(plan->policy)),
        .code_notified =
            sp_policy_setting(plan->policy, SP_SETTING_NATIVE) != SP_NATIVE_ALLOW,
    };
    return sp_filter_compile(&features, &plan->filter, reterr);
}

bool sp_plan_reads_bound(const struct sp_plan *plan)
{
    return plan->hidden != NULL ||
           (plan->reads_judged && !sp_policy_observes(plan->policy));
}

static void plan_guest(struct sp_plan *plan)
{
    /* What is granted of the network is done by the supervisor, in its own domain. */
    const struct sp_landlock_features landlock = {
        .abi = plan->host.landlock_abi,
        .network_denied = plan->reach != SP_REACH_OPEN,
        .writes_guarded = true,
        .reads_judged = sp_plan_reads_bound(plan),
        .writes_judged = plan->writes_judged && !sp_policy_observes(plan->policy),
        .programs_guarded = plan->programs.bounded};
    sp_landlock_compile(&landlock, &plan->guest);
}

int sp_plan_make(const struct sp_policy *policy, const struct sp_limits *limits,
                 enum sp_calls_level calls, unsigned accepted, struct sp_plan *ret_plan,
                 struct sp_error *reterr)
{
    struct sp_plan *plan = ret_plan;
    /* Field by field: its texts are large, and clearing them costs page faults. */
    plan->policy = policy;
    plan->reach = sp_policy_observes(policy) ? SP_REACH_OPEN : sp_policy_reach(policy);
    plan->calls = calls;
    plan->degraded = 0;
    plan->hidden = NULL;
    plan->writable.count = plan->readable.count = 0;
    plan->reads_judged = sp_policy_restricts(policy, SP_LIST_READ);
    plan->writes_judged = sp_policy_restricts(policy, SP_LIST_WRITE);
    /* Whether one is around us already shows only in trying. */
    bool spare = (accepted & (bit(SP_ABILITY_LISTENER) | bit(SP_ABILITY_RECORD))) != 0;
    sp_host_probe(&plan->host, spare ? SP_HOST_FULL : SP_HOST_LAUNCH);
    int code = plan_landlock(plan, accepted, reterr);
    if (code == 0)
        code = plan_listener(plan, accepted, reterr);
    if (code == 0)
        code = plan_limits(plan, limits, accepted, reterr);
    if (code != 0)
        return code;
    plan->needs_agent = (accepted & bit(SP_ABILITY_AGENT)) == 0;
    const struct sp_landlock_features landlock = {.abi = plan->host.landlock_abi,
                                                  .network_denied =
                                                      plan->reach == SP_REACH_CLOSED};
    sp_landlock_compile(&landlock, &plan->landlock);
    sp_programs_plan(policy, &plan->programs);
    plan_guest(plan);
    return plan_filter(plan, reterr);
}

int sp_plan_hide(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    if (plan->host.landlock_abi < 1 && !plan->listener)
        return sp_fail(
            reterr, SP_E_HOST,
            "without Landlock and without a listener, nothing would keep the "
            "program from reading the key '%.200s'",
            path);
    plan->hidden = path;
    plan_guest(plan);
    return plan_filter(plan, reterr);
}

int sp_plan_grant_programs(struct sp_plan *plan, const struct sp_places *places,
                           const char *interpreter, struct sp_error *reterr)
{
    if (plan->host.landlock_abi < 1)
        return 0;
    return sp_programs_grant(&plan->programs, plan->policy, places, interpreter,
                             &plan->guest, reterr);
}

struct claim {
    const char *section;
    bool landlock;
    bool listener;
    bool filter;
    bool agent;
};

static void write_claim(const struct sp_plan *plan, const struct claim *claim,
                        struct sp_buffer *to)
{
    const struct {
        bool said;
        const char *name;
    } layers[] = {
        {claim->listener && plan->listener, "listener"},
        {claim->filter && (!plan->listener || !claim->listener), "filter"},
        {claim->landlock && has(plan, SP_ABILITY_LANDLOCK), "landlock"},
        {claim->agent && has(plan, SP_ABILITY_AGENT), "agent"},
    };
    bool first = true;
    sp_buffer_format(to, "%s\"%s\":[", to->data[to->size - 1] == '{' ? "" : ",",
                     claim->section);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        if (!layers[i].said)
            continue;
        sp_buffer_format(to, "%s\"%s\"", first ? "" : ",", layers[i].name);
        first = false;
    }
    sp_buffer_text(to, "]");
}

static void write_claims(const struct sp_plan *plan, const struct claim *claims,
                         size_t count, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    for (size_t i = 0; i < count; i++)
        if (claims[i].section != NULL)
            write_claim(plan, &claims[i], to);
    sp_buffer_text(to, "}");
}

void sp_plan_enforced_by(const struct sp_plan *plan, struct sp_buffer *to)
{
    bool net = plan->reach != SP_REACH_OPEN;
    bool fs = (plan->reads_judged || plan->writes_judged) &&
              !sp_policy_observes(plan->policy);
    bool tcp = net && plan->host.landlock_abi >= 4;
    bool scoped = sp_landlock_scoped(&plan->landlock);
    bool imports = net || sp_policy_restricts(plan->policy, SP_LIST_IMPORTS);
    bool native = sp_policy_setting(plan->policy, SP_SETTING_NATIVE) != SP_NATIVE_ALLOW;
    const struct claim claims[] = {
        {.section = "integrity", .listener = true, .filter = true, .landlock = true},
        {.section = "process",
         .listener = true,
         .filter = true,
         .landlock = scoped || plan->programs.bounded},
        {.section = net ? "network" : NULL,
         .listener = true,
         .filter = true,
         .landlock = tcp},
        {.section = imports || native ? "imports" : NULL,
         .listener = native,
         .agent = true},
        {.section = fs ? "fs" : NULL, .listener = true, .landlock = true},
    };
    write_claims(plan, claims, sizeof claims / sizeof *claims, to);
    to->size--; /* the brace */
    if (sp_policy_restricts(plan->policy, SP_LIST_ENV) &&
        !sp_policy_observes(plan->policy))
        sp_buffer_text(to, ",\"env\":[\"supervisor\"]");
    if (sp_limit_plan_any(&plan->limits)) {
        sp_buffer_text(to, ",\"limits\":");
        sp_limit_plan_enforced_by(&plan->limits, to);
    }
    sp_buffer_text(to, "}");
}

void sp_plan_recorded_by(const struct sp_plan *plan, struct sp_buffer *to)
{
    static const struct claim claims[] = {
        {.section = "open",
         .listener = true,
         .agent = true}, /* read-only ones by the agent */
        {.section = "file", .listener = true},
        {.section = "socket", .listener = true},
        {.section = "connect", .listener = true},
        {.section = "bind", .listener = true},
        {.section = "resolve", .listener = true, .agent = true},
        {.section = "fork", .listener = true},
        {.section = "exec", .listener = true},
        {.section = "exit", .listener = true},
        {.section = "import", .agent = true},
        {.section = "call", .agent = true},
        {.section = "code", .agent = true},
        {.section = "exception", .agent = true},
        {.section = "native", .agent = true},
        {.section = "thread", .agent = true},
    };
    write_claims(plan, claims, sizeof claims / sizeof *claims, to);
    if (!sp_limit_plan_any(&plan->limits))
        return;
    to->size--; /* the brace */
    sp_buffer_text(to, ",\"limit\":");
    sp_limit_plan_recorded_by(&plan->limits, has(plan, SP_ABILITY_AGENT), to);
    sp_buffer_text(to, "}");
}

void sp_plan_degraded(const struct sp_plan *plan, struct sp_buffer *to)
{
    bool first = true;
    sp_buffer_text(to, "[");
    for (int i = 0; i < SP_ABILITY_COUNT; i++) {
        if ((plan->degraded & bit((enum sp_ability)i)) == 0)
            continue;
        sp_buffer_format(to, "%s\"%s\"", first ? "" : ",", ability_names[i]);
        first = false;
    }
    sp_buffer_text(to, "]");
}
