/* Judging ends of connections, and names. */
#include <string.h>
#include <strings.h>

#include "policy/judge.h"

/* Host or address with its port, without; a longer range, a shorter one; loopback; any. */
#define FIT_PORT     1u
#define FIT_ANY      (1u << 16)
#define FIT_LOOPBACK (2u << 16)
#define FIT_RANGE    (3u << 16) /* and twice the bits */
#define FIT_GLOB     (4u << 16)
#define FIT_HOST     (5u << 16)

static bool loopback(const uint8_t address[16])
{
    static const uint8_t mapped[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
    static const uint8_t v6[16] = {[15] = 1};
    return memcmp(address, mapped, sizeof mapped) == 0 ||
           memcmp(address, v6, sizeof v6) == 0;
}

static bool is_v4(const uint8_t address[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(address, mapped, sizeof mapped) == 0;
}

static bool in_range(const struct sp_policy_rule *rule, const uint8_t address[16])
{
    /* Every IPv4 address lies in ::/0 as we write it, but nobody who writes ::/0 means that. */
    if (rule->bits < 96 && is_v4(address))
        return false;
    unsigned bytes = rule->bits / 8u;
    unsigned rest = rule->bits % 8u;
    if (memcmp(rule->address, address, bytes) != 0)
        return false;
    unsigned mask = rest == 0 ? 0 : 0xffu << (8 - rest) & 0xffu;
    return rest == 0 || ((rule->address[bytes] ^ address[bytes]) & mask) == 0;
}

static sp_fit fit_host(const struct sp_policy *p, const struct sp_policy_rule *rule,
                       const char *host)
{
    const char *pattern = sp_policy_text(p, rule->pattern);
    switch (rule->shape) {
    case SP_SHAPE_ANY:
        return FIT_ANY;
    case SP_SHAPE_LOOPBACK:
        return strcmp(host, "localhost") == 0 ? FIT_LOOPBACK : 0;
    case SP_SHAPE_PLAIN:
        return strcmp(pattern, host) == 0 ? FIT_HOST : 0;
    case SP_SHAPE_GLOB:
        return sp_pattern_glob(pattern, host) ? FIT_GLOB : 0;
    default:
        return 0;
    }
}

static sp_fit fit_address(const struct sp_policy *p, const struct sp_policy_rule *rule,
                          const struct sp_endpoint *e)
{
    sp_fit fit = 0;
    switch (rule->shape) {
    case SP_SHAPE_ANY:
        return FIT_ANY;
    case SP_SHAPE_LOOPBACK:
        return loopback(e->address) ? FIT_LOOPBACK : 0;
    case SP_SHAPE_ADDRESS:
        if (!in_range(rule, e->address))
            return 0;
        return rule->bits == 128 ? FIT_HOST : FIT_RANGE + 2u * rule->bits;
    default:
        for (const char *const *host = e->hosts; host != NULL && *host != NULL;
             host++) {
            sp_fit one = fit_host(p, rule, *host);
            fit = one > fit ? one : fit;
        }
        return fit;
    }
}

static sp_fit fit_unix(const struct sp_policy *p, const struct sp_policy_rule *rule,
                       const char *name)
{
    const char *pattern = sp_policy_text(p, rule->pattern);
    if (rule->shape == SP_SHAPE_ANY)
        return rule->port == 0 ? FIT_ANY : 0;
    if (rule->shape != SP_SHAPE_UNIX)
        return 0;
    bool glob = strpbrk(pattern, "*?[") != NULL;
    if (name[0] == '@' || pattern[0] == '@')
        return (glob ? sp_pattern_glob(pattern, name) : strcmp(pattern, name) == 0)
                   ? FIT_HOST
                   : 0;
    sp_fit fit =
        sp_pattern_fit_path(glob ? SP_SHAPE_GLOB : SP_SHAPE_PLAIN, pattern, name);
    return fit == 0 ? 0 : FIT_RANGE + fit;
}

struct sp_verdict sp_policy_endpoint(const struct sp_policy *p,
                                     const struct sp_endpoint *endpoint)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const struct sp_policy_rule *rule = &rules[i];
        if (rule->list != SP_LIST_NETWORK ||
            (rule->port != 0 && rule->port != endpoint->port))
            continue;
        sp_fit fit = endpoint->unix_name != NULL
                         ? fit_unix(p, rule, endpoint->unix_name)
                         : fit_address(p, rule, endpoint);
        sp_judge_offer(&best, rule, fit == 0 ? 0 : 2 * fit + (rule->port != 0));
    }
    return sp_judge_best(p, SP_LIST_NETWORK, &best);
}

/* The rule on one port of a host; 0: a port that no rule names. */
static struct sp_best best_on_port(const struct sp_policy *p, const char *host,
                                   uint16_t port)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const struct sp_policy_rule *rule = &rules[i];
        if (rule->list != SP_LIST_NETWORK || (rule->port != 0 && rule->port != port))
            continue;
        sp_fit fit = fit_host(p, rule, host);
        sp_judge_offer(&best, rule, fit == 0 ? 0 : 2 * fit + (rule->port != 0));
    }
    return best;
}

struct sp_verdict sp_policy_host(const struct sp_policy *p, const char *host)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = best_on_port(p, host, 0);
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const struct sp_policy_rule *rule = &rules[i];
        if (rule->list != SP_LIST_NETWORK || rule->action != SP_ALLOW ||
            rule->port == 0 || fit_host(p, rule, host) == 0)
            continue;
        struct sp_best one = best_on_port(p, host, rule->port);
        bool denied = sp_judge_best(p, SP_LIST_NETWORK, &best).action == SP_DENY;
        if (one.rule != NULL && one.rule->action == SP_ALLOW &&
            (denied || one.fit > best.fit))
            best = one;
    }
    return sp_judge_best(p, SP_LIST_NETWORK, &best);
}

enum sp_reach sp_policy_reach(const struct sp_policy *p)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    if (!sp_policy_restricts(p, SP_LIST_NETWORK))
        return SP_REACH_OPEN;
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].list == SP_LIST_NETWORK && rules[i].action == SP_ALLOW)
            return SP_REACH_JUDGED;
    return sp_policy_network(p).action == SP_DENY ? SP_REACH_CLOSED : SP_REACH_JUDGED;
}

struct sp_verdict sp_policy_network(const struct sp_policy *p)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].list == SP_LIST_NETWORK && rules[i].shape == SP_SHAPE_ANY &&
            rules[i].port == 0)
            sp_judge_offer(&best, &rules[i], FIT_ANY);
    return sp_judge_best(p, SP_LIST_NETWORK, &best);
}

static bool is_host(const struct sp_policy_rule *rule)
{
    return rule->list == SP_LIST_NETWORK &&
           (rule->shape == SP_SHAPE_PLAIN || rule->shape == SP_SHAPE_GLOB);
}

bool sp_policy_names_host(const struct sp_policy *p, const char *host)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (is_host(&rules[i]) && fit_host(p, &rules[i], host) != 0)
            return true;
    return false;
}

bool sp_policy_has_hosts(const struct sp_policy *p)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (is_host(&rules[i]))
            return true;
    return false;
}

bool sp_policy_grants_inet(const struct sp_policy *p)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    if (sp_policy_network(p).action == SP_ALLOW)
        return true;
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].list == SP_LIST_NETWORK && rules[i].action == SP_ALLOW &&
            rules[i].shape != SP_SHAPE_UNIX && rules[i].shape != SP_SHAPE_NEVER)
            return true;
    return false;
}
