/* Judging an act against a policy: pure, shared by the supervisor and the agent. */
#include <stdio.h>
#include <string.h>

#include "policy/judge.h"

static bool texts_end(const struct sp_policy *p, const uint32_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (offsets[i] >= p->size)
            return false;
    return true;
}

static bool heads_sound(const struct sp_policy *p)
{
    uint32_t offsets[4 + 2 * SP_LIST_COUNT + 2 * SP_SETTING_COUNT + SP_LIMIT_COUNT];
    size_t n = 0;
    offsets[n++] = p->name;
    offsets[n++] = p->source;
    offsets[n++] = p->description;
    offsets[n++] = p->digest;
    for (int i = 0; i < SP_LIST_COUNT; i++) {
        offsets[n++] = p->lists[i].key;
        offsets[n++] = p->lists[i].spot.source;
    }
    for (int i = 0; i < SP_SETTING_COUNT; i++) {
        offsets[n++] = p->settings[i].key;
        offsets[n++] = p->settings[i].spot.source;
    }
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        offsets[n++] = p->limits[i].spot.source;
    return texts_end(p, offsets, n);
}

bool sp_policy_sound(const struct sp_policy *p, size_t size)
{
    if (size < sizeof *p || p->size != size || ((const char *)p)[size - 1] != '\0' ||
        !heads_sound(p))
        return false;
    if (p->rules_offset % _Alignof(struct sp_policy_rule) != 0 ||
        p->rules_offset > size ||
        p->rules_count > (size - p->rules_offset) / sizeof(struct sp_policy_rule))
        return false;
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const uint32_t offsets[] = {rules[i].pattern, rules[i].written, rules[i].key,
                                    rules[i].spot.source};
        if (!texts_end(p, offsets, sizeof offsets / sizeof *offsets) ||
            rules[i].fixed >= size - rules[i].pattern)
            return false;
    }
    return true;
}

#define FIT_FIRST (1u << 31)

void sp_judge_offer(struct sp_best *best, const struct sp_policy_rule *rule, sp_fit fit)
{
    if (fit != 0 && rule->first)
        fit |= FIT_FIRST;
    if (fit == 0 || fit < best->fit)
        return;
    if (fit == best->fit && best->rule->action == SP_DENY)
        return;
    best->fit = fit;
    best->rule = rule;
}

struct sp_verdict sp_judge_rule(const struct sp_policy *p,
                                const struct sp_policy_rule *rule)
{
    struct sp_verdict v = {.action = rule->action,
                           .by_rule = true,
                           .source = sp_policy_text(p, rule->spot.source),
                           .line = rule->spot.line,
                           .list = rule->list};
    snprintf(v.rule, sizeof v.rule, "%s \"%s\"", sp_policy_text(p, rule->key),
             sp_policy_text(p, rule->written));
    return v;
}

struct sp_verdict sp_judge_best(const struct sp_policy *p, enum sp_list list,
                                const struct sp_best *best)
{
    if (best->rule != NULL)
        return sp_judge_rule(p, best->rule);
    const struct sp_policy_list *given = &p->lists[list];
    struct sp_verdict v = {.action = SP_ALLOW,
                           .source = sp_policy_text(p, p->source),
                           .list = (uint8_t)list};
    if (given->allow_given == 0)
        return v;
    v.action = SP_DENY;
    v.by_rule = true;
    v.source = sp_policy_text(p, given->spot.source);
    v.line = given->spot.line;
    snprintf(v.rule, sizeof v.rule, "%s", sp_policy_text(p, given->key));
    return v;
}

struct sp_verdict sp_judge_setting(const struct sp_policy *p, enum sp_setting setting,
                                   enum sp_list list, const char *value)
{
    const struct sp_policy_setting *given = &p->settings[setting];
    struct sp_verdict v = {.action = SP_DENY,
                           .by_rule = true,
                           .source = sp_policy_text(p, given->spot.source),
                           .line = given->spot.line,
                           .list = (uint8_t)list};
    snprintf(v.rule, sizeof v.rule, "%s = %s", sp_policy_text(p, given->key), value);
    return v;
}

bool sp_policy_restricts(const struct sp_policy *p, enum sp_list list)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    if (p->lists[list].allow_given != 0)
        return true;
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].list == list && rules[i].action == SP_DENY &&
            rules[i].shape != SP_SHAPE_NEVER)
            return true;
    return false;
}

struct sp_verdict sp_policy_fork(const struct sp_policy *p)
{
    if (sp_policy_setting(p, SP_SETTING_FORK) == SP_DENY)
        return sp_judge_setting(p, SP_SETTING_FORK, SP_LIST_PROCESS, "false");
    return (struct sp_verdict){.action = SP_ALLOW,
                               .source = sp_policy_text(p, p->source),
                               .list = SP_LIST_PROCESS};
}
