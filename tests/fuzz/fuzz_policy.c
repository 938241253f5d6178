/* Policies as text, any bytes: nothing crashes; what is wrong has a place; what is right can be bound,
 * judged, explained and written again, and what is written makes the same policy.
 */
#include "fuzz.h"
#include "policy/bind.h"
#include "policy/lint.h"
#include "policy/question.h"
#include "policy/read.h"
#include "policy/write.h"

static struct sp_problems problems;

static int find(void *context, const char *name, const char *from,
                const struct sp_policy **ret_policy, struct sp_error *reterr)
{
    (void)context;
    (void)from;
    *ret_policy = sp_policy_builtin(name);
    return *ret_policy != NULL ? 0 : sp_fail(reterr, SP_E_POLICY, "no such policy");
}

static struct sp_policy *make(const char *text, size_t size)
{
    static const struct sp_policy_finder finder = {find, NULL};
    struct sp_document document;
    struct sp_model model;
    struct sp_error error = {0};
    struct sp_policy *policy = NULL;
    problems.count = problems.errors = 0;
    sp_document_init(&document);
    if (sp_document_parse_toml(&document, text, size, &error) != 0)
        DEMAND(error.message[0] != '\0');
    else if (sp_policy_read(&document, "x", "x.toml", &finder, &model, &problems) ==
             0) {
        DEMAND(problems.errors == 0);
        if (sp_model_finish(&model, &policy, &error) != 0)
            policy = NULL;
        sp_model_release(&model);
    } else {
        DEMAND(problems.errors > 0);
    }
    for (unsigned i = 0; i < sp_problems_kept(&problems); i++)
        DEMAND(problems.items[i].line > 0 && problems.items[i].column > 0);
    sp_document_release(&document);
    return policy;
}

static bool canonical(void *context, const char *path, char *to, size_t size)
{
    (void)context;
    return path[0] == '/' && snprintf(to, size, "%s", path) < (int)size;
}

static bool program(void *context, const char *name, char *to, size_t size)
{
    (void)context;
    return snprintf(to, size, "/usr/bin/%s", name) < (int)size;
}

static void ask_all(const struct sp_policy *bound)
{
    static struct sp_rival rivals[SP_RIVALS_MAX];
    static const char *const targets[] = {
        [SP_ASK_READ] = "/w/a/b",      [SP_ASK_WRITE] = "/w/\xc3\xa9/.env",
        [SP_ASK_CONNECT] = "",         [SP_ASK_RESOLVE] = "a.example.com",
        [SP_ASK_RUN] = "/usr/bin/git", [SP_ASK_IMPORT] = "xml.dom",
        [SP_ASK_ENV] = "LC_ALL",       [SP_ASK_FORK] = ""};
    for (int kind = 0; kind < SP_ASK_LIMIT; kind++) {
        struct sp_question question = {.kind = (enum sp_question_kind)kind,
                                       .target = targets[kind],
                                       .endpoint = {.port = 80, .address = {[15] = 1}}};
        struct sp_verdict v = sp_question_judge(bound, &question);
        size_t count = sp_question_rivals(bound, &question, rivals);
        for (size_t i = 0; i < count; i++)
            if (rivals[i].standing == SP_DECIDES)
                DEMAND(rivals[i].rule->action == v.action);
    }
}

static void bind_and_ask(const struct sp_policy *policy)
{
    static const char *const python[] = {"/py", NULL};
    const struct sp_places places = {.work = "/w",
                                     .home = "/h",
                                     .tmp = "/t",
                                     .python_read = python,
                                     .python_write = python,
                                     .python_programs = python,
                                     .canonical = canonical,
                                     .program = program};
    struct sp_policy *bound = NULL;
    if (sp_policy_bind(policy, &places, &bound, NULL) != 0)
        return;
    DEMAND(sp_policy_sound(bound, bound->size));
    ask_all(bound);
    (void)sp_policy_cover(bound, SP_LIST_READ, "/w");
    (void)sp_policy_cover(bound, SP_LIST_WRITE, "/");
    free(bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sp_auto_buffer text;
    struct sp_policy *policy = make((const char *)data, size);
    sp_buffer_init(&text, 64u << 20);
    if (policy == NULL)
        return 0;
    DEMAND(sp_policy_sound(policy, policy->size));
    sp_policy_lint(policy, "x.toml", &problems);
    bind_and_ask(policy);
    sp_policy_write_toml(policy, &text);
    DEMAND(!text.failed);
    struct sp_policy *again = make(text.size > 0 ? text.data : "", text.size);
    DEMAND(again != NULL);
    DEMAND(strcmp(sp_policy_text(policy, policy->digest),
                  sp_policy_text(again, again->digest)) == 0);
    free(again);
    free(policy);
    return 0;
}
