#include "run/policy_choice.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/scope.h"

#define FILE_BYTES_MAX    (4u << 20)
#define EXTENDS_DEPTH_MAX 8u
#define BUILTINS_MAX      16u

struct choosing {
    struct sp_problems *problems;
    struct sp_policy *owned[EXTENDS_DEPTH_MAX]; /* read on the way, to be freed */
    const char *files[EXTENDS_DEPTH_MAX];       /* being read: a circle has no end */
    unsigned depth;
    unsigned owned_count;
};

static int unknown(const char *name, struct sp_error *reterr)
{
    const char *names[BUILTINS_MAX + 1];
    char known[200] = "";
    size_t count = 0;
    const struct sp_policy *p;
    for (; count < BUILTINS_MAX && (p = sp_policy_builtin_at(count)) != NULL; count++) {
        size_t n = strlen(known);
        names[count] = sp_policy_text(p, p->name);
        snprintf(known + n, sizeof known - n, "%s%s", count > 0 ? ", " : "",
                 names[count]);
    }
    names[count] = NULL;
    const char *nearest = sp_nearest_name(name, names);
    return sp_fail(reterr, SP_E_POLICY,
                   "unknown policy '%.100s'%s%s%s: the policies are %s, or a file",
                   name, nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "", known);
}

/* A regular file, whole: a FIFO would be waited for without end. */
static int read_file(const char *path, struct sp_buffer *to, struct sp_error *reterr)
{
    struct stat st;
    sp_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        return sp_fail_errno(reterr, SP_E_POLICY, "cannot read the policy '%.200s'",
                             path);
    if (!S_ISREG(st.st_mode))
        return sp_fail(reterr, SP_E_POLICY, "the policy '%.200s' is no file", path);
    for (;;) {
        char *room = sp_buffer_reserve(to, 65536);
        if (room == NULL)
            return sp_fail(reterr, SP_E_POLICY, "the policy '%.200s' is too large",
                           path);
        ssize_t n = read(fd, room, 65536);
        if (n < 0)
            return sp_fail_errno(reterr, SP_E_POLICY, "cannot read the policy '%.200s'",
                                 path);
        if (n == 0)
            return 0;
        sp_buffer_advance(to, (size_t)n);
    }
}

static int find_base(void *context, const char *name, const char *from,
                     const struct sp_policy **ret_policy, struct sp_error *reterr);

/* One sentence for an error that may be one of several. */
static int fail_first(const struct sp_problems *problems, const char *source,
                      struct sp_error *reterr)
{
    const struct sp_problem *first = &problems->items[0];
    char more[40] = "";
    char where[40] = "";
    if (problems->count > 1)
        snprintf(more, sizeof more, " (and %u more)", problems->count - 1);
    if (first->line > 0)
        snprintf(where, sizeof where, ":%u:%u", first->line, first->column);
    int code = sp_fail(reterr, SP_E_POLICY, "%.120s%s: %s%s", source, where,
                       first->message, more);
    if (reterr != NULL) {
        reterr->line = (int)first->line;
        reterr->column = (int)first->column;
    }
    return code;
}

static int from_document(struct choosing *c, const struct sp_document *document,
                         const char *name, const char *source,
                         struct sp_model *ret_model, struct sp_error *reterr)
{
    const struct sp_policy_finder finder = {find_base, c};
    if (c->depth == EXTENDS_DEPTH_MAX)
        return sp_fail(reterr, SP_E_POLICY, "policies extend one another without end");
    c->files[c->depth++] = source;
    int code = sp_policy_read(document, name, source, &finder, ret_model, c->problems);
    c->depth--;
    return code == 0 ? 0 : fail_first(c->problems, source, reterr);
}

static int from_file(struct choosing *c, const char *path, struct sp_model *ret_model,
                     struct sp_error *reterr)
{
    sp_auto_buffer text;
    struct sp_document document;
    sp_buffer_init(&text, FILE_BYTES_MAX);
    sp_document_init(&document);
    int code = read_file(path, &text, reterr);
    if (code == 0) {
        struct sp_error error;
        code = sp_document_parse_toml(&document, text.data != NULL ? text.data : "",
                                      text.size, &error);
        if (code != 0) {
            c->problems->count = 1;
            c->problems->items[0] = (struct sp_problem){
                .line = (unsigned)error.line, .column = (unsigned)error.column};
            snprintf(c->problems->items[0].message,
                     sizeof c->problems->items[0].message, "%.300s", error.message);
            code = fail_first(c->problems, path, reterr);
        }
    }
    if (code == 0)
        code = from_document(c, &document, path, path, ret_model, reterr);
    sp_document_release(&document);
    return code;
}

/* A name without a slash that is a built-in's is that; anything else is a file, which counts from
 * the folder of the one that extends it. */
static int find_base(void *context, const char *name, const char *from,
                     const struct sp_policy **ret_policy, struct sp_error *reterr)
{
    struct choosing *c = context;
    char path[4096];
    struct sp_model model;
    const struct sp_policy *builtin = sp_policy_builtin(name);
    if (builtin != NULL) {
        *ret_policy = builtin;
        return 0;
    }
    const char *slash = strrchr(from, '/');
    snprintf(path, sizeof path, "%.*s%s",
             name[0] == '/' || slash == NULL ? 0 : (int)(slash - from) + 1, from, name);
    if (access(path, F_OK) != 0 && strchr(name, '/') == NULL)
        return unknown(name, reterr);
    if (c->owned_count == EXTENDS_DEPTH_MAX)
        return sp_fail(reterr, SP_E_POLICY, "policies extend one another without end");
    for (unsigned i = 0; i < c->depth; i++)
        if (strcmp(c->files[i], path) == 0)
            return sp_fail(reterr, SP_E_POLICY, "'%.200s' extends itself", path);
    struct sp_problems *problems = c->problems;
    static struct sp_problems of_base;
    c->problems = &of_base;
    int code = from_file(c, path, &model, reterr);
    c->problems = problems;
    if (code == 0) {
        code = sp_model_finish(&model, &c->owned[c->owned_count], reterr);
        sp_model_release(&model);
    }
    if (code == 0)
        *ret_policy = c->owned[c->owned_count++];
    return code;
}

static int add_grants(struct sp_model *model, const struct sp_policy_choice *choice,
                      struct sp_error *reterr)
{
    static const struct sp_place_in_text where = {"command line", 0, 0};
    static const char *const options[SP_LIST_COUNT][2] = {
        [SP_LIST_IMPORTS] = {"--allow-import", "--deny-import"},
        [SP_LIST_READ] = {"--allow-read", "--deny-read"},
        [SP_LIST_WRITE] = {"--allow-write", "--deny-write"},
        [SP_LIST_NETWORK] = {"--allow-net", "--deny-net"},
        [SP_LIST_PROCESS] = {"--allow-run", "--deny-run"},
        [SP_LIST_ENV] = {"--allow-env", "--deny-env"},
    };
    for (size_t i = 0; i < choice->grants_count; i++) {
        const struct sp_grant *g = &choice->grants[i];
        struct sp_error error;
        if (sp_model_add(model, g->list, g->action, options[g->list][g->action],
                         g->pattern, &where, true, &error) != 0)
            return sp_fail(reterr, SP_E_POLICY, "%s '%.100s': %.200s",
                           options[g->list][g->action], g->pattern, error.message);
    }
    if (choice->observe)
        sp_model_set(model, SP_SETTING_MODE, SP_MODE_OBSERVE, "--observe", &where);
    return 0;
}

static int choose_base(struct choosing *c, const struct sp_policy_choice *choice,
                       struct sp_model *ret_model, struct sp_error *reterr)
{
    const char *name = choice->name != NULL ? choice->name : SP_POLICY_DEFAULT;
    const struct sp_policy *builtin = sp_policy_builtin(name);
    if (choice->document != NULL)
        return from_document(c, choice->document,
                             choice->name != NULL ? name : "custom", "policy",
                             ret_model, reterr);
    if (builtin != NULL) {
        sp_model_init(ret_model);
        sp_model_from(ret_model, builtin);
        return 0;
    }
    if (access(name, F_OK) != 0 && strchr(name, '/') == NULL)
        return unknown(name, reterr);
    return from_file(c, name, ret_model, reterr);
}

int sp_policy_choose(const struct sp_policy_choice *choice,
                     struct sp_policy **ret_policy, struct sp_problems *ret_problems,
                     struct sp_error *reterr)
{
    struct choosing c = {.problems = ret_problems};
    struct sp_model model;
    ret_problems->count = 0;
    int code = choose_base(&c, choice, &model, reterr);
    if (code == 0) {
        code = add_grants(&model, choice, reterr);
        if (code == 0)
            code = sp_model_finish(&model, ret_policy, reterr);
        sp_model_release(&model);
    }
    for (unsigned i = 0; i < c.owned_count; i++)
        free(c.owned[i]);
    return code;
}
