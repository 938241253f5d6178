/* Judging imports. */
#include <string.h>

#include "policy/judge.h"

/* More specific than the exact name: whoever allows "xml.dom" allows "xml" to be imported for it,
 * though no other part of it. */
#define FIT_PARENT (4u << 20)

static bool is_parent(const char *module, const char *pattern)
{
    size_t n = strlen(module);
    return strncmp(module, pattern, n) == 0 && pattern[n] == '.';
}

/* The best rule of a list of module names. */
static struct sp_best best_of(const struct sp_policy *p, enum sp_list list,
                              const char *module)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const char *pattern = sp_policy_text(p, rules[i].pattern);
        if (rules[i].list == list && rules[i].action == SP_ALLOW &&
            rules[i].shape == SP_SHAPE_PLAIN && is_parent(module, pattern))
            sp_judge_offer(&best, &rules[i], FIT_PARENT);
        else if (rules[i].list == list)
            sp_judge_offer(&best, &rules[i],
                           sp_pattern_fit_name((enum sp_shape)rules[i].shape, pattern,
                                               module, '.'));
    }
    return best;
}

/* Whoever may call any native code is past `native`; a rule that names such a module wins. What a
 * library wants it for, it can do without. */
static bool denied_as_native(const struct sp_policy *p, const char *module)
{
    if (sp_policy_setting(p, SP_SETTING_NATIVE) == SP_NATIVE_ALLOW ||
        !sp_native_calls_any(module))
        return false;
    /* `_ctypes` is what `ctypes` is made of. */
    const char *public = strstr(module, "cffi") != NULL ? "cffi" : "ctypes";
    struct sp_best best = best_of(p, SP_LIST_IMPORTS, public);
    return best.rule == NULL || best.rule->shape == SP_SHAPE_ANY ||
           best.rule->action == SP_DENY;
}

struct sp_verdict sp_policy_import(const struct sp_policy *p, const char *module,
                                   bool direct)
{
    struct sp_best best = best_of(p, SP_LIST_IMPORTS, module);
    bool judged = direct || sp_policy_setting(p, SP_SETTING_SCOPE) == SP_SCOPE_ALL;
    if (denied_as_native(p, module)) {
        struct sp_verdict v = sp_judge_native(p);
        v.expected = !judged;
        return v;
    }
    if (!judged)
        return (struct sp_verdict){.action = SP_ALLOW,
                                   .source = sp_policy_text(p, p->source),
                                   .list = SP_LIST_IMPORTS};
    /* A network client is of no use where no network is granted; a rule that names it wins. */
    if (best.rule == NULL && direct && sp_policy_reach(p) == SP_REACH_CLOSED) {
        best = best_of(p, SP_LIST_CLIENTS, module);
        if (best.rule != NULL)
            return sp_judge_rule(p, best.rule);
    }
    return sp_judge_best(p, SP_LIST_IMPORTS, &best);
}
