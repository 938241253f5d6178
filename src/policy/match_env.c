/* Which environment variables a guest inherits, judged by their names. */
#include <ctype.h>
#include <string.h>

#include "policy/judge.h"
#include "policy/pattern.h"

/* What changes how programs are loaded, or how an interpreter starts. */
static const char *const loading[] = {
    "DYLD_*",           "GCONV_PATH",  "GETCONF_DIR",   "GLIBC_TUNABLES",
    "HOSTALIASES",      "LD_*",        "LOCALDOMAIN",   "LOCPATH",
    "MALLOC_*",         "NIS_PATH",    "NLSPATH",       "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE", "PYTHONHOME",  "PYTHONINSPECT", "PYTHONSTARTUP",
    "RESOLV_*",         "RES_OPTIONS",
};

/* Anywhere in a name, then as one of its words. */
static const char *const secret_parts[] = {
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "CREDENTIAL", "PASSPHRASE"};
static const char *const secret_words[] = {"AUTH", "COOKIE", "DSN",  "KEY",
                                           "KEYS", "PASS",   "PROXY"};

static bool word_of(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = name; at != NULL;) {
        if (strncmp(at, word, n) == 0 && (at[n] == '\0' || at[n] == '_'))
            return true;
        at = strchr(at, '_');
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

bool sp_variable_guarded(const char *name)
{
    char upper[SP_PATTERN_TEXT_MAX];
    size_t n = strlen(name);
    if (n >= sizeof upper)
        return true;
    for (size_t i = 0; i <= n; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof loading / sizeof *loading; i++)
        if (sp_pattern_glob(loading[i], name))
            return true;
    for (size_t i = 0; i < sizeof secret_parts / sizeof *secret_parts; i++)
        if (strstr(upper, secret_parts[i]) != NULL)
            return true;
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++)
        if (word_of(upper, secret_words[i]))
            return true;
    return false;
}

/* A pattern is not meant for what may be a secret, or what changes the loading of programs: an
 * allow list opens it only by its whole name. */
static struct sp_best best_rule(const struct sp_policy *p, const char *name)
{
    const struct sp_policy_rule *rules = sp_policy_rules(p);
    struct sp_best best = {0};
    bool guarded = sp_variable_guarded(name);
    for (uint32_t i = 0; i < p->rules_count; i++) {
        const struct sp_policy_rule *rule = &rules[i];
        if (rule->list == SP_LIST_ENV &&
            (!guarded || rule->action == SP_DENY || rule->shape == SP_SHAPE_PLAIN))
            sp_judge_offer(&best, rule,
                           sp_pattern_fit_name(rule->shape,
                                               sp_policy_text(p, rule->pattern), name,
                                               '\0'));
    }
    return best;
}

struct sp_verdict sp_policy_variable(const struct sp_policy *p, const char *name)
{
    struct sp_best best = best_rule(p, name);
    return sp_judge_best(p, SP_LIST_ENV, &best);
}

bool sp_policy_names_variable(const struct sp_policy *p, const char *name)
{
    struct sp_best best = best_rule(p, name);
    return best.rule != NULL && best.rule->action == SP_ALLOW &&
           best.rule->shape == SP_SHAPE_PLAIN;
}
