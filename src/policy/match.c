/* Judging an act against a policy: pure, shared by the supervisor and the agent. */
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

bool sp_policy_sound(const struct sp_policy *p, size_t size)
{
    if (size < sizeof *p || p->size != size || ((const char *)p)[size - 1] != '\0')
        return false;
    uint32_t texts[] = {p->name, p->source, p->description, p->digest};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] >= size)
            return false;
    if (p->rules_offset % _Alignof(struct sp_policy_rule) != 0 ||
        p->rules_offset > size ||
        p->rules_count > (size - p->rules_offset) / sizeof(struct sp_policy_rule))
        return false;
    const struct sp_policy_rule *rules =
        (const void *)((const char *)p + p->rules_offset);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].pattern >= size || rules[i].key >= size)
            return false;
    return true;
}

/* A name covers its submodules: "xml" matches "xml" and "xml.dom", not "xmlrpc". */
static bool covers(const char *pattern, const char *module)
{
    size_t n = strlen(pattern);
    return strncmp(pattern, module, n) == 0 && (module[n] == '\0' || module[n] == '.');
}

static struct sp_verdict decided(const struct sp_policy *p,
                                 const struct sp_policy_rule *rule)
{
    struct sp_verdict v = {.action = SP_ALLOW, .source = sp_policy_text(p, p->source)};
    if (rule == NULL)
        return v;
    v.action = rule->action;
    v.line = rule->line;
    v.expected = p->expected;
    snprintf(v.rule, sizeof v.rule, "%s \"%s\"", sp_policy_text(p, rule->key),
             sp_policy_text(p, rule->pattern));
    return v;
}

struct sp_verdict sp_policy_import(const struct sp_policy *p, const char *module,
                                   bool direct)
{
    const struct sp_policy_rule *rules =
        (const void *)((const char *)p + p->rules_offset);
    const struct sp_policy_rule *best = NULL;
    size_t best_length = 0;
    for (uint32_t i = 0; direct && i < p->rules_count; i++) {
        const char *pattern = sp_policy_text(p, rules[i].pattern);
        size_t length = strlen(pattern);
        if (rules[i].section == SP_SECTION_IMPORTS && length > best_length &&
            covers(pattern, module)) {
            best = &rules[i];
            best_length = length;
        }
    }
    return decided(p, best);
}

struct sp_verdict sp_policy_network(const struct sp_policy *p)
{
    const struct sp_policy_rule *rules =
        (const void *)((const char *)p + p->rules_offset);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].section == SP_SECTION_NETWORK &&
            strcmp(sp_policy_text(p, rules[i].pattern), "*") == 0)
            return decided(p, &rules[i]);
    return decided(p, NULL);
}
