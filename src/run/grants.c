#include "run/grants.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "policy/pattern.h"
#include "sys/real_path.h"

/* In the order of enum sp_list; NULL: nothing that can be granted by name. */
static const struct {
    const char *word;
    const char *options[2]; /* by enum sp_action */
} kinds[SP_LIST_COUNT] = {
    [SP_LIST_IMPORTS] = {"import", {"--allow-import", "--deny-import"}},
    [SP_LIST_READ] = {"read", {"--allow-read", "--deny-read"}},
    [SP_LIST_WRITE] = {"write", {"--allow-write", "--deny-write"}},
    [SP_LIST_NETWORK] = {"net", {"--allow-net", "--deny-net"}},
    [SP_LIST_PROCESS] = {"run", {"--allow-run", "--deny-run"}},
    [SP_LIST_ENV] = {"env", {"--allow-env", "--deny-env"}},
};

int sp_grant_list(const char *word)
{
    for (int i = 0; i < SP_LIST_COUNT; i++)
        if (kinds[i].word != NULL && strcmp(kinds[i].word, word) == 0)
            return i;
    return -1;
}

const char *const *sp_grant_words(void)
{
    static const char *words[SP_LIST_COUNT + 1];
    size_t n = 0;
    for (int i = 0; i < SP_LIST_COUNT; i++)
        if (kinds[i].word != NULL)
            words[n++] = kinds[i].word;
    return words;
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* One component behind a path, "." and ".." followed as the kernel would. The room is PATH_MAX. */
static bool step(char *path, const char *part, size_t size)
{
    char real[PATH_MAX];
    size_t length = strlen(path);
    if (size == 0 || (size == 1 && part[0] == '.'))
        return true;
    if (size == 2 && part[0] == '.' && part[1] == '.') {
        if (length > 0 && sp_real_path(path, real))
            memcpy(path, real, strlen(real) + 1);
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
        return true;
    }
    if (length + 1 + size >= PATH_MAX)
        return false;
    path[length] = '/';
    memcpy(path + length + 1, part, size);
    path[length + 1 + size] = '\0';
    return true;
}

/* Where the first component with a wildcard begins, or the end. */
static size_t plain_part(const char *pattern)
{
    size_t wild = strcspn(pattern, "*?[");
    if (pattern[wild] == '\0')
        return wild;
    while (wild > 0 && pattern[wild - 1] != '/')
        wild--;
    return wild;
}

/* `pattern` as an absolute one: a relative path counts from the current folder. */
static int absolute(const char *pattern, char *to, size_t size, struct sp_error *reterr)
{
    char path[PATH_MAX] = "";
    size_t plain = plain_part(pattern);
    if (pattern[0] != '/' && getcwd(path, sizeof path) == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "the current folder cannot be read");
    if (strcmp(path, "/") == 0)
        path[0] = '\0';
    bool fits = true;
    for (size_t at = 0; at < plain && fits;) {
        size_t n = strcspn(pattern + at, "/");
        n = n > plain - at ? plain - at : n;
        fits = step(path, pattern + at, n);
        at += n + 1;
    }
    size_t length = fits ? sp_pattern_escape(path, to, size) : size;
    const char *rest = pattern + plain;
    int n = length < size ? snprintf(to + length, size - length, "%s%s",
                                     *rest != '\0' || length == 0 ? "/" : "", rest)
                          : -1;
    if (n < 0 || (size_t)n >= size - length)
        return sp_fail(reterr, SP_E_POLICY, "the path is too long");
    return 0;
}

/* A path that does not say from where it counts: {work}, ~ and ** do. */
static bool is_relative(const char *path)
{
    return path[0] != '/' && path[0] != '{' && strcmp(path, "~") != 0 &&
           strncmp(path, "~/", 2) != 0 && strcmp(path, "*") != 0 &&
           strncmp(path, "**", 2) != 0;
}

static bool has_dots(const char *path)
{
    return strstr(path, "/./") != NULL || strstr(path, "/../") != NULL ||
           (strlen(path) >= 2 && strcmp(path + strlen(path) - 2, "/.") == 0) ||
           (strlen(path) >= 3 && strcmp(path + strlen(path) - 3, "/..") == 0);
}

static int spell_out(const struct sp_grant *g, char *to, size_t size,
                     struct sp_error *reterr)
{
    const char *path = g->pattern;
    size_t prefix = 0;
    bool is_path = g->list == SP_LIST_READ || g->list == SP_LIST_WRITE ||
                   (g->list == SP_LIST_PROCESS && strchr(path, '/') != NULL);
    if (g->list == SP_LIST_NETWORK && strncmp(path, "unix:", 5) == 0 &&
        path[5] != '@') {
        prefix = 5;
        is_path = path[5] != '\0';
    }
    if (!is_path || path[0] == '\0' ||
        (!is_relative(path + prefix) &&
         (path[prefix] != '/' || !has_dots(path + prefix)))) {
        int n = snprintf(to, size, "%s", path);
        return n >= 0 && (size_t)n < size
                   ? 0
                   : sp_fail(reterr, SP_E_POLICY, "the pattern is too long");
    }
    memcpy(to, path, prefix);
    return absolute(path + prefix, to + prefix, size - prefix, reterr);
}

/* ---- into a model, and out of a policy -------------------------------------------------------- */

int sp_grants_add(struct sp_model *model, const struct sp_grant *grants, size_t count,
                  struct sp_error *reterr)
{
    static const struct sp_place_in_text where = {"", 0, 0};
    for (size_t i = 0; i < count; i++) {
        const struct sp_grant *g = &grants[i];
        const char *option = kinds[g->list].options[g->action];
        char pattern[SP_PATTERN_MAX];
        struct sp_error error;
        int code = spell_out(g, pattern, sizeof pattern, &error);
        if (code == 0)
            code = sp_model_add(model, g->list, g->action, option, pattern, &where,
                                true, &error);
        if (code != 0)
            return sp_fail(reterr, code, "%s '%.100s': %.300s", option, g->pattern,
                           error.message);
    }
    return 0;
}

void sp_grants_write(const struct sp_policy *policy, struct sp_buffer *to)
{
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    sp_buffer_text(to, "[");
    for (uint32_t i = 0; i < policy->rules_count; i++) {
        const char *pattern = sp_policy_text(policy, rules[i].written);
        if (!rules[i].first || kinds[rules[i].list].word == NULL)
            continue;
        sp_buffer_format(to, "%s{\"action\":\"%s\",\"kind\":\"%s\",\"pattern\":",
                         to->data[to->size - 1] == '[' ? "" : ",",
                         rules[i].action == SP_ALLOW ? "allow" : "deny",
                         kinds[rules[i].list].word);
        sp_json_string(to, pattern, strlen(pattern));
        sp_buffer_text(to, "}");
    }
    sp_buffer_text(to, "]");
}
