/* Policies from text, for tests; bound to places that need not exist: the working folder is /w, the
 * program's /s, the home /h, the private folder /t, the interpreter's /py. /link leads to /target.
 */
#ifndef SP_TESTS_UNIT_POLICY_MAKE_H
#define SP_TESTS_UNIT_POLICY_MAKE_H

#include "requires.h"

#include <stdio.h>

#include "policy/bind.h"
#include "policy/read.h"

static struct sp_problems problems;

static inline int find_builtin(void *context, const char *name, const char *from,
                               const struct sp_policy **ret_policy,
                               struct sp_error *reterr)
{
    (void)context;
    (void)from;
    *ret_policy = sp_policy_builtin(name);
    return *ret_policy != NULL ? 0
                               : sp_fail(reterr, SP_E_POLICY, "no policy '%s'", name);
}

/* As written; NULL when it is wrong: `problems` says how. */
static inline struct sp_policy *make_written(const char *text, size_t size)
{
    static const struct sp_policy_finder finder = {find_builtin, NULL};
    struct sp_document document;
    struct sp_model model;
    struct sp_policy *policy = NULL;
    struct sp_error error = {0};
    problems.count = problems.errors = 0;
    sp_document_init(&document);
    if (sp_document_parse_toml(&document, text, size, &error) != 0)
        sp_problem_add(&problems, "test.toml", (unsigned)error.line,
                       (unsigned)error.column, "%s", error.message);
    else if (sp_policy_read(&document, "test", "test.toml", &finder, &model,
                            &problems) == 0) {
        if (sp_model_finish(&model, &policy, &error) != 0)
            sp_problem_add(&problems, "test.toml", 0, 0, "%s", error.message);
        sp_model_release(&model);
    }
    sp_document_release(&document);
    return policy;
}

static inline bool follow_link(void *context, const char *path, char *to, size_t size)
{
    (void)context;
    bool leads = strncmp(path, "/link", 5) == 0 && (path[5] == '\0' || path[5] == '/');
    return snprintf(to, size, "%s%s", leads ? "/target" : "", path + (leads ? 5 : 0)) <
           (int)size;
}

static inline bool find_git(void *context, const char *name, char *to, size_t size)
{
    (void)context;
    return strcmp(name, "git") == 0 && snprintf(to, size, "/usr/bin/git") < (int)size;
}

static inline struct sp_policy *make_bound_to(const char *text, const char *work)
{
    static const char *const read[] = {"/py", "/usr/lib", NULL};
    static const char *const write[] = {"/py/lib", NULL};
    static const char *const programs[] = {"/py/bin/python3", NULL};
    struct sp_places places = {.work = work,
                               .script = "/s",
                               .home = "/h",
                               .tmp = "/t",
                               .python_read = read,
                               .python_write = write,
                               .python_programs = programs,
                               .canonical = follow_link,
                               .program = find_git};
    struct sp_error error = {0};
    struct sp_policy *bound = NULL;
    struct sp_policy *written = make_written(text, strlen(text));
    if (written == NULL)
        fail_msg("%u:%u: %s", problems.items[0].line, problems.items[0].column,
                 problems.items[0].message);
    if (sp_policy_bind(written, &places, &bound, &error) != 0)
        print_message("# %s\n", error.message);
    else
        assert_true(sp_policy_sound(bound, bound->size));
    free(written);
    return bound;
}

static inline struct sp_policy *make_bound(const char *text)
{
    struct sp_policy *bound = make_bound_to(text, "/w");
    assert_non_null(bound);
    return bound;
}

#endif
