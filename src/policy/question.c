#include "policy/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pattern.h"

static const struct {
    const char *word;
    enum sp_list list;
} kinds[SP_ASK_COUNT] = {
    [SP_ASK_READ] = {"read", SP_LIST_READ},
    [SP_ASK_WRITE] = {"write", SP_LIST_WRITE},
    [SP_ASK_CONNECT] = {"connect", SP_LIST_NETWORK},
    [SP_ASK_RESOLVE] = {"resolve", SP_LIST_NETWORK},
    [SP_ASK_RUN] = {"run", SP_LIST_PROCESS},
    [SP_ASK_IMPORT] = {"import", SP_LIST_IMPORTS},
    [SP_ASK_ENV] = {"env", SP_LIST_ENV},
    [SP_ASK_FORK] = {"fork", SP_LIST_COUNT},
    [SP_ASK_LIMIT] = {"limit", SP_LIST_COUNT},
};

const char *sp_question_word(enum sp_question_kind kind)
{
    SP_BUG_ON((unsigned)kind >= SP_ASK_COUNT);
    return kinds[kind].word;
}

int sp_question_find(const char *word)
{
    for (int i = 0; i < SP_ASK_COUNT; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return i;
    return -1;
}

enum sp_list sp_question_list(enum sp_question_kind kind)
{
    SP_BUG_ON((unsigned)kind >= SP_ASK_COUNT);
    return kinds[kind].list;
}

struct sp_verdict sp_question_judge(const struct sp_policy *policy,
                                    const struct sp_question *question)
{
    switch (question->kind) {
    case SP_ASK_READ:
    case SP_ASK_WRITE:
        return sp_policy_path(policy, kinds[question->kind].list, question->target);
    case SP_ASK_CONNECT:
        return sp_policy_endpoint(policy, &question->endpoint);
    case SP_ASK_RESOLVE:
        return sp_policy_host(policy, question->target);
    case SP_ASK_RUN:
        return sp_policy_program(policy, question->target);
    case SP_ASK_IMPORT:
        return sp_policy_import(policy, question->target, true);
    case SP_ASK_ENV:
        return sp_policy_variable(policy, question->target);
    default:
        return sp_policy_fork(policy);
    }
}

/* ---- which rules fit, and which of two wins ------------------------------------------------------ */

/* A policy of one rule or two, asked the same question: that is how a rule is found to fit, and to
 * win over another, by the very code that judges. */
struct trial {
    struct sp_policy *policy; /* a copy, of which the first rules are overwritten */
    const struct sp_question *question;
};

static struct sp_policy_rule *rules_of(const struct trial *t)
{
    return (void *)((char *)t->policy + t->policy->rules_offset);
}

static bool fits(const struct trial *t, const struct sp_policy_rule *rule)
{
    rules_of(t)[0] = *rule;
    t->policy->rules_count = 1;
    return sp_question_judge(t->policy, t->question).by_rule;
}

/* Whether `a` wins where the one allows and the other denies. */
static bool wins(const struct trial *t, struct sp_policy_rule a,
                 struct sp_policy_rule b, enum sp_action action_a)
{
    /* Who may write may read; a rule on writing that denied would say nothing of reading. */
    if (t->question->kind == SP_ASK_READ)
        a.list = b.list = SP_LIST_READ;
    a.action = (uint8_t)action_a;
    b.action = action_a == SP_ALLOW ? SP_DENY : SP_ALLOW;
    rules_of(t)[0] = a;
    rules_of(t)[1] = b;
    t->policy->rules_count = 2;
    return sp_question_judge(t->policy, t->question).action == action_a;
}

/* Who allows in the place of who denies must fit better to win. */
static bool fits_better(const struct trial *t, const struct sp_policy_rule *a,
                        const struct sp_policy_rule *b)
{
    return wins(t, *a, *b, SP_ALLOW);
}

static enum sp_standing standing(const struct trial *t,
                                 const struct sp_policy_rule *best,
                                 const struct sp_policy_rule *rule)
{
    if (best->first && !rule->first)
        return SP_LOSES_TO_GRANT;
    if (fits_better(t, best, rule))
        return SP_LOSES_BY_FIT;
    return best->action == rule->action ? SP_SAYS_THE_SAME : SP_LOSES_BY_ACTION;
}

/* ---- how a rule fits, in words -------------------------------------------------------------------- */

static void fit_of_path(const char *pattern, const struct sp_policy_rule *rule,
                        const char *path, char *to, size_t size)
{
    if (rule->shape == SP_SHAPE_PLAIN)
        snprintf(to, size,
                 strcmp(pattern, path) == 0 ? "the object itself" : "the folder %.150s",
                 pattern);
    else
        snprintf(to, size, "%s %.150s", "the glob", pattern);
}

static void fit_of_name(const char *pattern, const struct sp_policy_rule *rule,
                        const char *name, char *to, size_t size)
{
    if (rule->shape == SP_SHAPE_GLOB)
        snprintf(to, size, "the glob %.150s", pattern);
    else if (strncmp(pattern, name, strlen(name)) == 0 && pattern[strlen(name)] == '.')
        snprintf(to, size, "needed for %.150s", pattern);
    else
        snprintf(to, size,
                 strcmp(pattern, name) == 0 ? "the name itself" : "part of %.150s",
                 pattern);
}

static void fit_of_network(const char *pattern, const struct sp_policy_rule *rule,
                           char *to, size_t size)
{
    const char *port = rule->port != 0 ? ", with its port" : "";
    switch (rule->shape) {
    case SP_SHAPE_LOOPBACK:
        snprintf(to, size, "this machine itself%s", port);
        return;
    case SP_SHAPE_ADDRESS:
        snprintf(to, size, "%s%s",
                 rule->bits == 128 ? "the address" : "a range of addresses", port);
        return;
    case SP_SHAPE_GLOB:
        snprintf(to, size, "the glob %.150s%s", pattern, port);
        return;
    case SP_SHAPE_UNIX:
        snprintf(to, size, "the socket %.150s", pattern);
        return;
    default:
        snprintf(to, size, "the host%s", port);
    }
}

static void describe(const struct sp_policy *p, const struct sp_question *question,
                     struct sp_rival *rival)
{
    const struct sp_policy_rule *rule = rival->rule;
    const char *pattern = sp_policy_text(p, rule->pattern);
    if (rule->shape == SP_SHAPE_ANY)
        snprintf(rival->fit, sizeof rival->fit, "anything%s",
                 rule->port != 0 ? ", with its port" : "");
    else if (rule->list == SP_LIST_NETWORK)
        fit_of_network(pattern, rule, rival->fit, sizeof rival->fit);
    else if (rule->list == SP_LIST_READ || rule->list == SP_LIST_WRITE ||
             rule->list == SP_LIST_PROCESS)
        fit_of_path(pattern, rule, question->target, rival->fit, sizeof rival->fit);
    else
        fit_of_name(pattern, rule, question->target, rival->fit, sizeof rival->fit);
}

/* ---- all of them ------------------------------------------------------------------------------------ */

/* Bound, one pattern may be several rules. */
static bool same_written(const struct sp_policy_rule *a, const struct sp_policy_rule *b)
{
    return a->list == b->list && a->action == b->action && a->first == b->first &&
           a->spot.line == b->spot.line && a->spot.column == b->spot.column &&
           a->written == b->written;
}

/* In the place of one that fits worse, or at the end. */
static size_t keep(const struct trial *t, struct sp_rival *to, size_t count,
                   const struct sp_policy_rule *rule)
{
    for (size_t i = 0; i < count; i++)
        if (same_written(to[i].rule, rule)) {
            if (fits_better(t, rule, to[i].rule))
                to[i].rule = rule;
            return count;
        }
    if (count < SP_RIVALS_MAX)
        to[count++].rule = rule;
    return count;
}

static void put_best_first(const struct trial *t, struct sp_rival *to, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct sp_policy_rule *a = to[0].rule;
        const struct sp_policy_rule *b = to[i].rule;
        bool better =
            fits_better(t, b, a) ||
            (!fits_better(t, a, b) && b->action == SP_DENY && a->action != SP_DENY);
        if (better) {
            to[0].rule = b;
            to[i].rule = a;
        }
    }
}

/* Network clients are denied by rules of another list, which hold only sometimes. */
static size_t add_clients(const struct sp_policy *p, const struct sp_question *question,
                          struct sp_rival *to, size_t count)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    bool decides = sp_question_judge(p, question).list == SP_LIST_CLIENTS;
    bool named = count > 0;
    for (uint32_t i = 0; i < p->rules_count && count < SP_RIVALS_MAX; i++) {
        if (rules[i].list != SP_LIST_CLIENTS ||
            sp_pattern_fit_name((enum sp_shape)rules[i].shape,
                                sp_policy_text(p, rules[i].pattern), question->target,
                                '.') == 0)
            continue;
        to[count++] = (struct sp_rival){
            .rule = &rules[i],
            .standing = !decides ? (named ? SP_LOSES_TO_IMPORTS : SP_LOSES_TO_NETWORK)
                        : count == 1 ? SP_DECIDES
                                     : SP_SAYS_THE_SAME};
    }
    return count;
}

size_t sp_question_rivals(const struct sp_policy *policy,
                          const struct sp_question *question,
                          struct sp_rival to[static SP_RIVALS_MAX])
{
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    struct trial t = {malloc(policy->size + 2 * sizeof *rules), question};
    size_t count = 0;
    if (t.policy == NULL || sp_question_list(question->kind) == SP_LIST_COUNT) {
        free(t.policy);
        return 0;
    }
    memcpy(t.policy, policy, policy->size);
    for (int i = 0; i < SP_LIST_COUNT; i++)
        t.policy->lists[i].allow_given = 0;
    /* A trial needs room for two rules, which the texts behind them must not lose. */
    if (policy->rules_count < 2)
        t.policy->rules_offset = (policy->size + 7u) & ~7u;
    for (uint32_t i = 0; i < policy->rules_count; i++)
        if (rules[i].list != SP_LIST_CLIENTS && fits(&t, &rules[i]))
            count = keep(&t, to, count, &rules[i]);
    put_best_first(&t, to, count);
    for (size_t i = 0; i < count; i++)
        to[i].standing = i == 0 ? SP_DECIDES : standing(&t, to[0].rule, to[i].rule);
    if (question->kind == SP_ASK_IMPORT)
        count = add_clients(policy, question, to, count);
    for (size_t i = 0; i < count; i++)
        describe(policy, question, &to[i]);
    free(t.policy);
    return count;
}
