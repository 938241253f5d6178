/* `sandpit policy check`: errors, oddities, and what this machine cannot keep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/policy.h"
#include "cli/problems.h"
#include "policy/lint.h"
#include "run/policy_choice.h"
#include "run/policy_file.h"
#include "run/policy_here.h"

#define REPORT_MAX (8u << 20)

static struct sp_problems problems;
static struct sp_policy_here here;

/* About a rule of the file itself, as it is bound here. */
static void about_bound(const char *source, const struct sp_policy_rule *rule)
{
    const struct sp_policy *p = here.bound;
    const char *pattern = sp_policy_text(p, rule->pattern);
    if (strcmp(sp_policy_text(p, rule->spot.source), source) != 0 ||
        rule->action != SP_ALLOW)
        return;
    if (rule->list == SP_LIST_PROCESS && rule->shape == SP_SHAPE_NEVER &&
        pattern[0] != '{')
        sp_problem_warn(&problems, source, rule->spot.line, rule->spot.column,
                        "there is no program '%.100s' on PATH here", pattern);
    else if ((rule->list == SP_LIST_READ || rule->list == SP_LIST_WRITE ||
              rule->list == SP_LIST_PROCESS) &&
             rule->shape == SP_SHAPE_PLAIN && pattern[0] == '/' &&
             sp_policy_text(p, rule->written)[0] == '/' && access(pattern, F_OK) != 0)
        sp_problem_warn(&problems, source, rule->spot.line, rule->spot.column,
                        "there is no '%.200s' here", pattern);
}

/* What holds in a run that would start in the current folder. */
static void look_here(const char *source, const struct sp_policy *policy,
                      const char *python)
{
    struct sp_error error = {0};
    if (sp_policy_here_make(policy, python, NULL, &here, &error) != 0) {
        sp_problem_warn(&problems, source, 0, 0, "it cannot be looked at here: %.250s",
                        error.message);
        return;
    }
    const char *interpreter = here.interpreter.path;
    if (here.refused.code != 0)
        sp_problem_warn(&problems, source, 0, 0, "this machine cannot keep it: %.250s",
                        here.refused.message);
    if (sp_policy_path(here.bound, SP_LIST_READ, interpreter).action == SP_DENY)
        sp_problem_warn(&problems, source, 0, 0,
                        "the interpreter %.150s may not be read under it, so that "
                        "nothing can run ({python} is what it needs)",
                        interpreter);
    for (uint32_t i = 0; i < here.bound->rules_count; i++)
        about_bound(source, &sp_policy_rules(here.bound)[i]);
    sp_policy_here_release(&here);
}

static void problems_json(const char *file, const struct sp_policy *policy,
                          const struct sp_error *error, struct sp_buffer *b)
{
    sp_buffer_text(b, b->data[b->size - 1] == '[' ? "{" : ",{");
    sp_json_key(b, "file");
    sp_json_string(b, file, strlen(file));
    sp_json_key(b, "digest");
    if (policy != NULL)
        sp_buffer_format(b, "\"%s\"", sp_policy_text(policy, policy->digest));
    else
        sp_buffer_text(b, "null");
    sp_json_key(b, "problems");
    sp_buffer_text(b, "[");
    for (unsigned i = 0; i < sp_problems_kept(&problems); i++) {
        const struct sp_problem *p = &problems.items[i];
        sp_buffer_format(b, "%s{\"severity\":\"%s\",\"line\":%u,\"column\":%u",
                         i > 0 ? "," : "", p->warning ? "warning" : "error", p->line,
                         p->column);
        sp_json_key(b, "source");
        sp_json_string(b, p->source, strlen(p->source));
        sp_json_key(b, "message");
        sp_json_string(b, p->message, strlen(p->message));
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]");
    if (policy == NULL && problems.errors == 0) { /* it could not be read at all */
        sp_json_key(b, "error");
        sp_json_string(b, error->message, strlen(error->message));
    }
    sp_buffer_text(b, "}");
}

static void print_sound(const char *file)
{
    sp_print_escaped(file, stdout);
    printf(": nothing is wrong\n");
}

/* The exit code for one file. */
static int check(const char *file, const struct sp_policy_options *options,
                 struct sp_buffer *b)
{
    struct sp_error error = {0};
    struct sp_policy *policy = NULL;
    const struct sp_policy_choice choice = {.name = file};
    int code = sp_policy_choose(&choice, &policy, &problems, &error);
    if (code == 0) {
        sp_policy_lint(policy, sp_policy_text(policy, policy->source), &problems);
        look_here(sp_policy_text(policy, policy->source), policy, options->python);
        sp_problems_sort(&problems, 0);
        sp_policy_find_excerpts(&problems);
    }
    if (options->json)
        problems_json(file, policy, &error, b);
    else if (code != 0 && problems.errors == 0)
        (void)sp_cli_error(0, "%s", error.message);
    else if (problems.count == 0)
        print_sound(file);
    else
        sp_problems_print(&problems, stdout);
    free(policy);
    return code == 0              ? SP_EXIT_OK
           : problems.errors == 0 ? SP_EXIT_BAD_INPUT
                                  : SP_EXIT_NO;
}

int sp_cli_policy_check(const void *values, int argc, char **argv)
{
    const struct sp_policy_options *options = values;
    int status = SP_EXIT_OK;
    sp_auto_buffer b;
    sp_buffer_init(&b, REPORT_MAX);
    if (argc == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "policy check needs a file");
    sp_buffer_text(&b, "{\"files\":[");
    for (int i = 0; i < argc; i++) {
        int one = check(argv[i], options, &b);
        status = one > status ? one : status;
    }
    sp_buffer_text(&b, "]}\n");
    return options->json ? sp_cli_policy_print(&b, status) : status;
}
