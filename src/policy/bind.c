#include "policy/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/pattern.h"

struct binding {
    struct sp_model *model;
    const struct sp_places *places;
    const struct sp_policy *from;
    const struct sp_policy_rule *rule;     /* the one that is bound now */
    const struct sp_policy_rule *too_long; /* NULL: none */
};

/* One rule of the result: as the written one, but for what is compared. */
static void put(struct binding *b, enum sp_shape shape, const char *pattern)
{
    /* The path of a socket goes on being one. */
    if (b->rule->shape == SP_SHAPE_UNIX && shape != SP_SHAPE_NEVER)
        shape = SP_SHAPE_UNIX;
    sp_model_put(b->model, b->from, b->rule, shape, pattern);
}

/* A folder and what is behind it in the pattern; of a glob, where the folder's own name holds no
 * wildcard. false: it is too long, and the policy is refused. */
static bool glue(struct binding *b, enum sp_shape shape, const char *folder,
                 const char *rest, char to[SP_PATTERN_TEXT_MAX])
{
    size_t size = SP_PATTERN_TEXT_MAX;
    bool root = strcmp(folder, "/") == 0 && rest[0] == '/';
    size_t length = shape != SP_SHAPE_PLAIN
                        ? sp_pattern_escape(root ? "" : folder, to, size)
                        : (size_t)snprintf(to, size, "%s", root ? "" : folder);
    if (length >= size || strlen(rest) >= size - length) {
        b->too_long = b->rule;
        return false;
    }
    memcpy(to + length, rest, strlen(rest) + 1);
    return true;
}

/* The part before the first wildcard is followed; what is behind it is compared as it is. Of a
 * path without one, both the name itself and what it leads to are meant: the name can be
 * removed or replaced, what it leads to be read and written. */
static void put_path(struct binding *b, enum sp_shape shape, const char *path)
{
    char real[SP_PATTERN_TEXT_MAX];
    char folder[SP_PATTERN_TEXT_MAX];
    char whole[SP_PATTERN_TEXT_MAX];
    const struct sp_places *places = b->places;
    size_t fixed = sp_pattern_fixed(path);
    const char *last = strrchr(path, '/');
    if (shape == SP_SHAPE_PLAIN)
        fixed = last != NULL ? (size_t)(last - path) : 0;
    snprintf(folder, sizeof folder, "%.*s", (int)fixed, path);
    if (fixed == 0 || !places->canonical(places->context, folder, real, sizeof real))
        snprintf(real, sizeof real, "%s", folder);
    if (!glue(b, shape, real, path + fixed, whole))
        return;
    put(b, shape, whole);
    bool glob = shape != SP_SHAPE_PLAIN && strpbrk(path, "*?[") != NULL;
    if (!glob && places->canonical(places->context, path, folder, sizeof folder) &&
        glue(b, shape, folder, "", real) && strcmp(real, whole) != 0)
        put(b, shape, real);
}

static void put_each(struct binding *b, const char *const *paths, const char *rest)
{
    char whole[SP_PATTERN_TEXT_MAX];
    enum sp_shape shape = (enum sp_shape)b->rule->shape;
    for (; paths != NULL && *paths != NULL; paths++)
        if (glue(b, shape, *paths, rest, whole))
            put_path(b, shape, whole);
}

/* {python} is several places, by what is done there. */
static const char *const *python_places(const struct binding *b)
{
    if (b->rule->list == SP_LIST_PROCESS)
        return b->places->python_programs;
    return b->rule->list == SP_LIST_WRITE ? b->places->python_write
                                          : b->places->python_read;
}

/* A program that was put into PREFIX/bin may start what it keeps for itself below PREFIX. */
static void put_helpers(struct binding *b, const char *path)
{
    static const char *const kept[] = {"lib/%s", "lib/%s-core", "libexec/%s",
                                       "libexec/%s-core"};
    const struct sp_places *places = b->places;
    char part[SP_PATTERN_TEXT_MAX];
    char whole[2 * SP_PATTERN_TEXT_MAX];
    const char *name = strrchr(path, '/');
    size_t size = name != NULL ? (size_t)(name - path) : 0;
    bool bin = (size >= 4 && memcmp(path + size - 4, "/bin", 4) == 0) ||
               (size >= 5 && memcmp(path + size - 5, "/sbin", 5) == 0);
    if (!bin || b->rule->action != SP_ALLOW || places->folder == NULL ||
        strpbrk(path, "*?[") != NULL)
        return;
    size -= path[size - 4] == '/' ? 3 : 4;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        snprintf(part, sizeof part, kept[i], name + 1);
        snprintf(whole, sizeof whole, "%.*s%s", (int)size, path, part);
        if (places->folder(places->context, whole))
            put_path(b, SP_SHAPE_PLAIN, whole);
    }
}

static void put_program(struct binding *b, const char *name)
{
    char path[SP_PATTERN_TEXT_MAX];
    const struct sp_places *places = b->places;
    bool found = places->program(places->context, name, path, sizeof path);
    if (found) {
        put_path(b, SP_SHAPE_PLAIN, path);
        put_helpers(b, path);
    }
    if (b->rule->action == SP_DENY) { /* wherever it lies */
        if (glue(b, SP_SHAPE_PLAIN, "**/", "", path) &&
            sp_pattern_escape(name, path + 3, sizeof path - 3) < sizeof path - 3)
            put(b, SP_SHAPE_GLOB, path);
    } else if (!found) {
        put(b, SP_SHAPE_NEVER, name);
    }
}

static void put_placeholder(struct binding *b, const char *pattern)
{
    const struct sp_places *places = b->places;
    const char *rest = strchr(pattern, '}') + 1;
    const struct {
        const char *name;
        const char *place;
    } known[] = {{"{work}", places->work},
                 {"{script}", places->script},
                 {"{home}", places->home},
                 {"{tmp}", places->tmp}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *const paths[] = {known[i].place, NULL};
        if (strncmp(pattern, known[i].name, strlen(known[i].name)) != 0)
            continue;
        if (known[i].place == NULL)
            put(b, SP_SHAPE_NEVER, pattern);
        else
            put_each(b, paths, rest);
        return;
    }
    put_each(b, python_places(b), rest);
}

static void bind_rule(struct binding *b)
{
    const char *pattern = sp_policy_text(b->from, b->rule->pattern);
    enum sp_list list = (enum sp_list)b->rule->list;
    enum sp_shape shape = (enum sp_shape)b->rule->shape;
    bool paths =
        list == SP_LIST_READ || list == SP_LIST_WRITE || list == SP_LIST_PROCESS;
    if ((!paths && shape != SP_SHAPE_UNIX) || shape == SP_SHAPE_ANY ||
        pattern[0] == '@')
        put(b, shape, pattern);
    else if (pattern[0] == '{')
        put_placeholder(b, pattern);
    else if (list == SP_LIST_PROCESS && strchr(pattern, '/') == NULL &&
             shape == SP_SHAPE_PLAIN)
        put_program(b, pattern);
    else if (list == SP_LIST_PROCESS && strchr(pattern, '/') == NULL) {
        char anywhere[SP_PATTERN_TEXT_MAX];
        if (glue(b, SP_SHAPE_PLAIN, "**/", pattern, anywhere))
            put(b, shape, anywhere);
    } else {
        put_path(b, shape, pattern);
        if (list == SP_LIST_PROCESS)
            put_helpers(b, pattern);
    }
}

/* A model with all of the policy but its rules. */
static void begin(struct sp_model *model, const struct sp_policy *policy)
{
    sp_model_init(model);
    sp_model_from(model, policy);
    model->count = 0;
    model->head.bound = 1;
}

int sp_policy_bind(const struct sp_policy *policy, const struct sp_places *places,
                   struct sp_policy **ret_policy, struct sp_error *reterr)
{
    struct sp_model model;
    struct binding b = {.model = &model, .places = places, .from = policy};
    begin(&model, policy);
    for (uint32_t i = 0; i < policy->rules_count; i++) {
        b.rule = &sp_policy_rules(policy)[i];
        bind_rule(&b);
    }
    int code = b.too_long == NULL
                   ? sp_model_finish(&model, ret_policy, reterr)
                   : sp_fail(reterr, SP_E_POLICY,
                             "'%.100s' in %s is too long with what it stands for here",
                             sp_policy_text(policy, b.too_long->written),
                             sp_policy_text(policy, b.too_long->key));
    sp_model_release(&model);
    return code;
}

int sp_policy_for_agent(const struct sp_policy *policy, struct sp_policy **ret_policy,
                        struct sp_error *reterr)
{
    struct sp_model model;
    bool seen[2] = {false, false};
    bool programs = false;
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    sp_model_init(&model);
    sp_model_skeleton(&model, policy);
    for (uint32_t i = 0; i < policy->rules_count; i++) {
        bool imports =
            rules[i].list == SP_LIST_IMPORTS || rules[i].list == SP_LIST_CLIENTS;
        /* Of the network, whether anything is granted and anything denied is enough. */
        bool network = rules[i].list == SP_LIST_NETWORK &&
                       (!seen[rules[i].action] || rules[i].shape == SP_SHAPE_ANY);
        seen[rules[i].action] |= network;
        /* Of programs, whether any are denied. */
        bool program =
            rules[i].list == SP_LIST_PROCESS && rules[i].action == SP_DENY && !programs;
        programs |= program;
        if (imports || network || program)
            sp_model_put(&model, policy, &rules[i], (enum sp_shape)rules[i].shape,
                         sp_policy_text(policy, rules[i].pattern));
    }
    int code = sp_model_finish(&model, ret_policy, reterr);
    sp_model_release(&model);
    return code;
}
