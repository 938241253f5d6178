/* Judging paths: reading, writing, starting programs. */
#include <string.h>

#include "policy/judge.h"

/* Who may write somewhere may read there, unless a rule on reading is as specific. */
static bool applies(const struct sp_policy_rule *rule, enum sp_list list)
{
    return rule->list == list || (list == SP_LIST_READ && rule->list == SP_LIST_WRITE &&
                                  rule->action == SP_ALLOW);
}

/* Whether the rule may fit, seen from where the fixed part of its pattern ends: most do not, and a
 * policy may have thousands. */
static bool may_fit(const struct sp_policy *p, const struct sp_policy_rule *rule,
                    const char *path, size_t size)
{
    size_t fixed = rule->fixed;
    if (rule->shape == SP_SHAPE_ANY || fixed <= 1)
        return true;
    if (fixed > size || path[fixed - 1] != sp_policy_text(p, rule->pattern)[fixed - 1])
        return false;
    return rule->shape != SP_SHAPE_PLAIN || path[fixed] == '/' || path[fixed] == '\0';
}

struct sp_verdict sp_policy_path(const struct sp_policy *p, enum sp_list list,
                                 const char *path)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    size_t size = strlen(path);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (applies(&rules[i], list) && may_fit(p, &rules[i], path, size))
            sp_judge_offer(&best, &rules[i],
                           sp_pattern_fit_path(rules[i].shape,
                                               sp_policy_text(p, rules[i].pattern),
                                               path));
    return sp_judge_best(p, list, &best);
}

struct sp_verdict sp_policy_program(const struct sp_policy *p, const char *path)
{
    return sp_policy_path(p, SP_LIST_PROCESS, path);
}

struct sp_verdict sp_policy_unread_program(const struct sp_policy *p)
{
    /* It is allowed, or named, as a program: the grant that it lacks goes by that list. */
    return (struct sp_verdict){.action = SP_DENY,
                               .by_rule = true,
                               .rule = "fs.deny_read, for what lies beside it",
                               .source = sp_policy_text(p, p->source),
                               .list = SP_LIST_PROCESS};
}

/* Whether the rule may match something below the folder that it does not match as a whole. */
static bool matches_inside(const struct sp_policy *p, const struct sp_policy_rule *rule,
                           const char *folder)
{
    const char *pattern = sp_policy_text(p, rule->pattern);
    if (rule->shape == SP_SHAPE_PLAIN)
        return strcmp(pattern, folder) != 0 && sp_pattern_below(pattern, folder);
    return rule->shape == SP_SHAPE_GLOB && sp_pattern_reaches(pattern, folder);
}

enum sp_cover sp_policy_cover(const struct sp_policy *p, enum sp_list list,
                              const char *folder)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    enum sp_action action = sp_policy_path(p, list, folder).action;
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (applies(&rules[i], list) && rules[i].action != action &&
            matches_inside(p, &rules[i], folder))
            return SP_COVER_MIXED;
    /* What lies below is covered by the folders above it: by the same ones, or, where the
     * folder itself is named by a glob of its last part only, by others. */
    char inside[SP_PATTERN_TEXT_MAX];
    size_t size = strlen(folder);
    if (size + 3 > sizeof inside)
        return SP_COVER_MIXED;
    memcpy(inside, folder, size);
    memcpy(inside + size, folder[size - 1] == '/' ? "\1" : "/\1",
           3 - (folder[size - 1] == '/'));
    if (sp_policy_path(p, list, inside).action != action)
        return SP_COVER_MIXED;
    return action == SP_ALLOW ? SP_COVER_ALLOWED : SP_COVER_DENIED;
}

/* A glob of one name in any folder below its fixed part holds as well wherever in there the folder
 * is moved to. */
static bool moves_along(const char *pattern, const char *from, const char *to)
{
    char fixed[SP_PATTERN_TEXT_MAX];
    size_t size = sp_pattern_fixed(pattern);
    bool anywhere = strncmp(pattern + size, "/**/", 4) == 0 || size == 0;
    if (size >= sizeof fixed || !anywhere ||
        strchr(pattern + size + (size > 0 ? 4 : 3), '/') != NULL)
        return false;
    memcpy(fixed, pattern, size);
    fixed[size] = '\0';
    return size == 0 || (sp_pattern_below(from, fixed) && sp_pattern_below(to, fixed));
}

struct sp_verdict sp_policy_move(const struct sp_policy *p, const char *from,
                                 const char *to)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const char *pattern = sp_policy_text(p, rules[i].pattern);
        bool paths = rules[i].list == SP_LIST_READ || rules[i].list == SP_LIST_WRITE;
        if (!paths || rules[i].action != SP_DENY || !matches_inside(p, &rules[i], from))
            continue;
        if (rules[i].shape != SP_SHAPE_GLOB || !moves_along(pattern, from, to))
            return sp_judge_rule(p, &rules[i]);
    }
    return (struct sp_verdict){.action = SP_ALLOW,
                               .source = sp_policy_text(p, p->source)};
}
