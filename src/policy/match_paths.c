/* Judging paths: reading, writing, starting programs. */
#include <stdio.h>
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

static struct sp_best best_of(const struct sp_policy *p, enum sp_list list,
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
    return best;
}

struct sp_verdict sp_policy_path(const struct sp_policy *p, enum sp_list list,
                                 const char *path)
{
    struct sp_best best = best_of(p, list, path);
    return sp_judge_best(p, list, &best);
}

struct sp_verdict sp_policy_memory(const struct sp_policy *p, enum sp_list list,
                                   const char *path)
{
    struct sp_best best = best_of(p, list, path);
    struct sp_verdict v = sp_judge_best(p, list, &best);
    sp_fit named = sp_pattern_fit_path(SP_SHAPE_PLAIN, SP_SHARED_MEMORY_FOLDER, path);
    if (v.action == SP_DENY && best.fit < named)
        return (struct sp_verdict){.action = SP_ALLOW,
                                   .source = sp_policy_text(p, p->source),
                                   .list = (uint8_t)list};
    return v;
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

/* The path of something in the folder that no rule names. false: it would be too long. */
static bool something_below(const char *folder, char to[SP_PATTERN_TEXT_MAX])
{
    int n = snprintf(to, SP_PATTERN_TEXT_MAX, "%s/\1",
                     strcmp(folder, "/") == 0 ? "" : folder);
    return n > 0 && n < (int)SP_PATTERN_TEXT_MAX;
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
    char below[SP_PATTERN_TEXT_MAX];
    if (!something_below(folder, below) ||
        sp_policy_path(p, list, below).action != action)
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

/* Whether what lies below is denied at the one and not at the other: a rule that a folder's own name
 * outdoes covers what is in it all the same. */
static bool denied_below(const struct sp_policy *p, enum sp_list list, const char *from,
                         const char *to, struct sp_verdict *ret_verdict)
{
    char below[2][SP_PATTERN_TEXT_MAX];
    if (!something_below(from, below[0]) || !something_below(to, below[1]))
        return false;
    *ret_verdict = sp_policy_path(p, list, below[0]);
    return ret_verdict->action == SP_DENY &&
           sp_policy_path(p, list, below[1]).action == SP_ALLOW;
}

/* Whether something in `from` is denied that a rule allows by its name in `to`. */
static bool allowed_inside(const struct sp_policy *p, enum sp_list list,
                           const char *from, const char *to,
                           struct sp_verdict *ret_verdict)
{
    char below[SP_PATTERN_TEXT_MAX];
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    const struct sp_policy_rule *denies = NULL;
    bool allows = false;
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const char *pattern = sp_policy_text(p, rules[i].pattern);
        bool along = rules[i].shape == SP_SHAPE_GLOB && moves_along(pattern, from, to);
        if (!applies(&rules[i], list))
            continue;
        if (rules[i].action == SP_DENY && matches_inside(p, &rules[i], from))
            denies = &rules[i];
        allows |=
            rules[i].action == SP_ALLOW && !along && matches_inside(p, &rules[i], to);
    }
    if (!allows || !something_below(from, below))
        return false;
    *ret_verdict = sp_policy_path(p, list, below);
    if (ret_verdict->action == SP_ALLOW && denies != NULL)
        *ret_verdict = sp_judge_rule(p, denies);
    return ret_verdict->action == SP_DENY;
}

struct sp_verdict sp_policy_move(const struct sp_policy *p, const char *from,
                                 const char *to)
{
    struct sp_verdict v;
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    if (denied_below(p, SP_LIST_READ, from, to, &v) ||
        denied_below(p, SP_LIST_WRITE, from, to, &v) ||
        allowed_inside(p, SP_LIST_READ, from, to, &v) ||
        allowed_inside(p, SP_LIST_WRITE, from, to, &v))
        return v;
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
