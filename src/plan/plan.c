#include "plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
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

/* Without Landlock, other processes of the same user can be looked into and signalled: no
 * policy is kept as it should be. */
static int plan_landlock(struct sp_plan *plan, unsigned accepted,
                         struct sp_error *reterr)
{
    if (plan->host.landlock_abi > 0)
        return 0;
    if ((accepted & bit(SP_ABILITY_LANDLOCK)) == 0)
        return refuse(
            SP_ABILITY_LANDLOCK, SP_ABILITY_LANDLOCK,
            "this kernel has no Landlock, which keeps other processes out of reach",
            reterr);
    plan->degraded |= bit(SP_ABILITY_LANDLOCK);
    return 0;
}

/* Without a listener the filter still denies what the policies of today deny; what is missing
 * is the record of it. */
static int plan_listener(struct sp_plan *plan, unsigned accepted,
                         struct sp_error *reterr)
{
    plan->listener = plan->host.listener;
    if (plan->listener)
        return 0;
    if ((accepted & (bit(SP_ABILITY_LISTENER) | bit(SP_ABILITY_RECORD))) == 0)
        return refuse(
            SP_ABILITY_LISTENER, SP_ABILITY_LISTENER,
            "seccomp notification cannot be had here (another sandbox around this one "
            "may hold it), so that the kernel would keep no record",
            reterr);
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
        .devices_scoped = true, /* the policies of today leave devices alone */
        .record = true,
        .listener = plan->listener,
        .tasks_notified =
            sp_limit_plan_has(&plan->limits, SP_LIMIT_PROCESSES, SP_BY_LISTENER),
    };
    return sp_filter_compile(&features, &plan->filter, reterr);
}

/* What no mechanism of this version holds is refused rather than let through. */
static int plan_unenforced(const struct sp_policy *policy, struct sp_error *reterr)
{
    bool unenforced = sp_policy_restricts(policy, SP_LIST_READ) ||
                      sp_policy_restricts(policy, SP_LIST_WRITE) ||
                      sp_policy_restricts(policy, SP_LIST_PROCESS) ||
                      sp_policy_fork(policy).action == SP_DENY ||
                      sp_policy_setting(policy, SP_SETTING_NATIVE) != SP_NATIVE_ALLOW;
    if (!unenforced || sp_policy_observes(policy))
        return 0;
    return sp_fail(reterr, SP_E_POLICY,
                   "the policy '%s' has rules that this version cannot enforce",
                   sp_policy_text(policy, policy->name));
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
    plan->writable_count = 0;
    plan->writable_used = 0;
    /* Whether one is around us already shows only in trying. */
    bool spare = (accepted & (bit(SP_ABILITY_LISTENER) | bit(SP_ABILITY_RECORD))) != 0;
    sp_host_probe(&plan->host, spare ? SP_HOST_FULL : SP_HOST_LAUNCH);
    int code = plan_unenforced(policy, reterr);
    if (code == 0)
        code = plan_landlock(plan, accepted, reterr);
    if (code == 0)
        code = plan_listener(plan, accepted, reterr);
    if (code == 0)
        code = plan_limits(plan, limits, accepted, reterr);
    if (code != 0)
        return code;
    plan->needs_agent = (accepted & bit(SP_ABILITY_AGENT)) == 0;
    struct sp_landlock_features landlock = {.abi = plan->host.landlock_abi,
                                            .network_denied =
                                                plan->reach == SP_REACH_CLOSED};
    sp_landlock_compile(&landlock, &plan->landlock);
    /* What is granted of the network is done by the supervisor, in its own domain. */
    landlock.network_denied = plan->reach != SP_REACH_OPEN;
    landlock.writes_guarded = true;
    sp_landlock_compile(&landlock, &plan->guest);
    return plan_filter(plan, reterr);
}

/* Blanks in a mount's path are written as "\040". */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0'; to++) {
        bool octal = at[0] == '\\' && strspn(at + 1, "01234567") >= 3;
        *to = octal ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'))
                    : *at;
        at += octal ? 4 : 1;
    }
    *to = '\0';
}

/* Whether the kernel itself, or devices, can be written to somewhere below the folder: procfs
 * mounted for a root folder that is being put together, for example. */
static bool system_below(const char *path)
{
    static const char *const kinds[] = {
        "proc",    "sysfs",      "cgroup",  "cgroup2",  "devtmpfs",   "debugfs",
        "tracefs", "securityfs", "bpf",     "configfs", "efivarfs",   "pstore",
        "fusectl", "selinuxfs",  "smackfs", "mqueue",   "binfmt_misc"};
    char *line = NULL;
    size_t room = 0;
    size_t length = strlen(path);
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    bool found = mounts == NULL;
    while (!found && getline(&line, &room, mounts) > 0) {
        char place[PATH_MAX];
        char kind[32];
        const char *rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1 ||
            sscanf(rest, " - %31s", kind) != 1)
            continue;
        unescape(place);
        if (strncmp(place, path, length) != 0 || place[length] != '/')
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            found |= strcmp(kind, kinds[i]) == 0;
    }
    free(line);
    if (mounts != NULL)
        fclose(mounts);
    return found;
}

/* A folder above the system's own is no place to write in unwatched. */
static bool grantable(const char *path)
{
    static const char *const system[] = {"/proc", "/sys", "/dev"};
    if (strcmp(path, "/") == 0)
        return false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) {
        size_t length = strlen(system[i]);
        if (strncmp(path, system[i], length) == 0 &&
            (path[length] == '\0' || path[length] == '/'))
            return false;
    }
    return !system_below(path);
}

static int grant(struct sp_plan *plan, const char *path, struct sp_error *reterr)
{
    for (size_t i = 0; i < plan->writable_count; i++)
        if (strcmp(plan->writable[i], path) == 0)
            return 0;
    size_t size = strlen(path) + 1;
    if (plan->writable_count == SP_WRITABLE_MAX ||
        size > sizeof plan->writable_text - plan->writable_used)
        return sp_fail(reterr, SP_E_INTERNAL, "no room for what may be written");
    char *text = plan->writable_text + plan->writable_used;
    memcpy(text, path, size);
    plan->writable_used += size;
    plan->writable[plan->writable_count++] = text;
    return sp_landlock_grant(&plan->guest, text, SP_FS_WRITE_FILE | SP_FS_TRUNCATE,
                             reterr);
}

int sp_plan_grant_writes(struct sp_plan *plan, struct sp_error *reterr)
{
    static const char *const nodes[] = {"/dev/shm", "/dev/null", "/dev/tty",
                                        "/dev/pts"};
    const char *temporary = getenv("TMPDIR");
    char path[PATH_MAX];
    int code = 0;
    if (plan->host.landlock_abi < 1)
        return 0;
    if (realpath(".", path) != NULL && grantable(path))
        code = grant(plan, path, reterr);
    if (temporary == NULL || temporary[0] == '\0')
        temporary = "/tmp";
    if (code == 0 && realpath(temporary, path) != NULL && grantable(path))
        code = grant(plan, path, reterr);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes && code == 0; i++)
        code = grant(plan, nodes[i], reterr);
    return code;
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
    bool tcp = net && plan->host.landlock_abi >= 4;
    bool scoped = sp_landlock_scoped(&plan->landlock);
    const struct claim claims[] = {
        {.section = "integrity", .listener = true, .filter = true, .landlock = true},
        {.section = "process", .listener = true, .filter = true, .landlock = scoped},
        {.section = net ? "network" : NULL,
         .listener = true,
         .filter = true,
         .landlock = tcp},
        {.section = net ? "imports" : NULL, .agent = true},
    };
    write_claims(plan, claims, sizeof claims / sizeof *claims, to);
    if (!sp_limit_plan_any(&plan->limits))
        return;
    to->size--; /* the brace */
    sp_buffer_text(to, ",\"limits\":");
    sp_limit_plan_enforced_by(&plan->limits, to);
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
