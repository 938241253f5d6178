/* The options of `sandpit policy` and its simpler commands. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/grant_options.h"
#include "cli/policy.h"
#include "cli/problems.h"
#include "run/policy_choice.h"
#include "run/result.h"

#define POLICY(field) offsetof(struct sp_policy_options, field)

#define JSON_OPTION                                                                    \
    {.name = "json",                                                                   \
     .type = SP_OPTION_FLAG,                                                           \
     .offset = POLICY(json),                                                           \
     .help = "print one JSON object"}
#define PYTHON_OPTION                                                                  \
    {.name = "python",                                                                 \
     .type = SP_OPTION_PROGRAM,                                                        \
     .argument = "PATH",                                                               \
     .offset = POLICY(python),                                                         \
     .help = "the interpreter that {python} stands for"}

const struct sp_option sp_policy_plain_table[] = {JSON_OPTION, {.type = SP_OPTION_END}};

const struct sp_option sp_policy_check_table[] = {
    JSON_OPTION, PYTHON_OPTION, {.type = SP_OPTION_END}};

const struct sp_option sp_policy_explain_table[] = {
    {.name = "policy",
     .type = SP_OPTION_POLICY,
     .argument = "POLICY",
     .offset = POLICY(policy),
     .help = "a built-in policy, or a file in TOML"},
    SP_GRANT_OPTIONS(POLICY(grants)),
    PYTHON_OPTION,
    {.name = "script",
     .type = SP_OPTION_FILE,
     .argument = "FILE",
     .offset = POLICY(script),
     .help = "the program whose folder {script} stands for"},
    JSON_OPTION,
    {.type = SP_OPTION_END},
};

int sp_cli_policy_failed(const struct sp_policy_options *options,
                         const struct sp_error *error,
                         const struct sp_problems *problems)
{
    if (options->json) {
        (void)!write(STDOUT_FILENO, "{\"error\":", 9);
        (void)sp_error_write(STDOUT_FILENO, error, problems);
        (void)!write(STDOUT_FILENO, "}\n", 2);
        return SP_EXIT_BAD_INPUT;
    }
    if (problems->errors == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s", error->message);
    sp_problems_print(problems, stderr);
    return sp_cli_error(SP_EXIT_BAD_INPUT, "the policy has %u error%s",
                        problems->errors, problems->errors == 1 ? "" : "s");
}

int sp_cli_policy_print(const struct sp_buffer *text, int status)
{
    if (text->failed)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "the policy is too large to be printed");
    fwrite(text->data, 1, text->size, stdout);
    return status;
}

/* ---- list --------------------------------------------------------------------------------------- */

static void list_json(struct sp_buffer *b)
{
    const struct sp_policy *policy;
    sp_buffer_text(b, "[");
    for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++) {
        const char *name = sp_policy_text(policy, policy->name);
        const char *description = sp_policy_text(policy, policy->description);
        sp_buffer_text(b, i > 0 ? ",{" : "{");
        sp_json_key(b, "name");
        sp_json_string(b, name, strlen(name));
        sp_json_key(b, "description");
        sp_json_string(b, description, strlen(description));
        sp_buffer_format(b, ",\"default\":%s,\"digest\":\"%s\"}",
                         strcmp(name, SP_POLICY_DEFAULT) == 0 ? "true" : "false",
                         sp_policy_text(policy, policy->digest));
    }
    sp_buffer_text(b, "]\n");
}

int sp_cli_policy_list(const void *values, int argc, char **argv)
{
    const struct sp_policy_options *options = values;
    const struct sp_policy *policy;
    sp_auto_buffer b;
    sp_buffer_init(&b, 1u << 20);
    if (argc > 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "policy list takes no argument: '%s'",
                            argv[0]);
    if (options->json)
        list_json(&b);
    for (size_t i = 0; !options->json && (policy = sp_policy_builtin_at(i)) != NULL;
         i++) {
        const char *name = sp_policy_text(policy, policy->name);
        sp_buffer_format(&b, "%-12s %s%s\n", name,
                         sp_policy_text(policy, policy->description),
                         strcmp(name, SP_POLICY_DEFAULT) == 0 ? " (the default)" : "");
    }
    return sp_cli_policy_print(&b, SP_EXIT_OK);
}
