#include "policy/lint.h"

#include <stdlib.h>
#include <string.h>

struct linting {
    const struct sp_policy *policy;
    const char *source;
    struct sp_problems *problems;
};

static bool is_here(const struct linting *l, const struct sp_spot *spot)
{
    return strcmp(sp_policy_text(l->policy, spot->source), l->source) == 0;
}

struct compared {
    const struct sp_policy_rule *rule;
    const char *pattern;
};

/* By what a rule is compared with: 0 when two fit the same, and alike. */
static int compare_fit(const struct compared *a, const struct compared *b)
{
    const struct sp_policy_rule *x = a->rule;
    const struct sp_policy_rule *y = b->rule;
    const unsigned of_x[4] = {x->list, x->shape, x->bits, x->port};
    const unsigned of_y[4] = {y->list, y->shape, y->bits, y->port};
    for (size_t i = 0; i < 4; i++)
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    int order = memcmp(x->address, y->address, sizeof x->address);
    if (order != 0 ||
        x->shape == SP_SHAPE_ADDRESS) /* which may be written in several ways */
        return order;
    return strcmp(a->pattern, b->pattern);
}

/* Of those that fit alike, what denies comes first, then the order of the policy. */
static int compare(const void *a, const void *b)
{
    const struct compared *x = a;
    const struct compared *y = b;
    int order = compare_fit(x, y);
    if (order == 0 && x->rule->action != y->rule->action)
        order = x->rule->action == SP_DENY ? -1 : 1;
    return order != 0 ? order : (x->rule > y->rule) - (x->rule < y->rule);
}

static void about_pair(const struct linting *l, const struct sp_policy_rule *first,
                       const struct sp_policy_rule *second)
{
    const char *written = sp_policy_text(l->policy, second->written);
    const char *key = sp_policy_text(l->policy, second->key);
    const char *other = sp_policy_text(l->policy, first->spot.source);
    if (!is_here(l, &second->spot))
        return;
    if (first->action == second->action)
        sp_problem_warn(l->problems, l->source, second->spot.line, second->spot.column,
                        "'%.80s' stands in %s already: %.60s:%u", written, key, other,
                        first->spot.line);
    else
        sp_problem_warn(
            l->problems, l->source, second->spot.line, second->spot.column,
            "'%.80s' in %s allows nothing: between equals deny wins, and it "
            "is denied at %.60s:%u",
            written, key, other, first->spot.line);
}

static void about_equal_rules(const struct linting *l)
{
    const struct sp_policy *p = l->policy;
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct compared *sorted = malloc((p->rules_count + 1) * sizeof *sorted);
    if (sorted == NULL)
        return;
    for (uint32_t i = 0; i < p->rules_count; i++)
        sorted[i] = (struct compared){&rules[i], sp_policy_text(p, rules[i].pattern)};
    qsort(sorted, p->rules_count, sizeof *sorted, compare);
    for (uint32_t i = 1; i < p->rules_count; i++)
        if (compare_fit(&sorted[i - 1], &sorted[i]) == 0)
            about_pair(l, sorted[i - 1].rule, sorted[i].rule);
    free(sorted);
}

/* A name of what is installed, not of what is imported. */
static void about_module(const struct linting *l, const struct sp_policy_rule *rule)
{
    const char *written = sp_policy_text(l->policy, rule->written);
    if (rule->list == SP_LIST_IMPORTS && rule->shape == SP_SHAPE_PLAIN &&
        is_here(l, &rule->spot) && strchr(written, '-') != NULL)
        sp_problem_warn(l->problems, l->source, rule->spot.line, rule->spot.column,
                        "'%.80s' has a dash, which no import statement can name: write "
                        "the module's name, not the package's",
                        written);
}

static void about_fork(const struct linting *l)
{
    const struct sp_policy *p = l->policy;
    const struct sp_policy_setting *fork = &p->settings[SP_SETTING_FORK];
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    for (uint32_t i = 0; i < p->rules_count; i++)
        if (rules[i].list == SP_LIST_PROCESS && rules[i].action == SP_ALLOW &&
            fork->value == SP_DENY &&
            (is_here(l, &rules[i].spot) || is_here(l, &fork->spot))) {
            const struct sp_spot *spot =
                is_here(l, &rules[i].spot) ? &rules[i].spot : &fork->spot;
            sp_problem_warn(
                l->problems, l->source, spot->line, spot->column,
                "without new processes (fork = false) a program can only be "
                "started in the place of the one that starts it");
            return;
        }
}

void sp_policy_lint(const struct sp_policy *policy, const char *source,
                    struct sp_problems *problems)
{
    const struct linting l = {policy, source, problems};
    unsigned from = problems->count;
    about_equal_rules(&l);
    for (uint32_t i = 0; i < policy->rules_count; i++)
        about_module(&l, &sp_policy_rules(policy)[i]);
    about_fork(&l);
    sp_problems_sort(problems, from);
}
