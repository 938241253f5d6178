/* `sandpit policy show`, and `policy-spec`, which the Python package asks. */
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/scope.h"
#include "cli/commands.h"
#include "cli/policy.h"
#include "cli/spec_policy.h"
#include "policy/write.h"
#include "run/policy_choice.h"

#define TEXT_BYTES_MAX (32u << 20)

static struct sp_problems problems;

static void member(struct sp_buffer *b, const char *key, const char *text)
{
    sp_json_key(b, key);
    sp_json_string(b, text, strlen(text));
}

static void write_json(const struct sp_policy *policy, struct sp_buffer *b)
{
    sp_buffer_text(b, "{");
    member(b, "name", sp_policy_text(policy, policy->name));
    member(b, "description", sp_policy_text(policy, policy->description));
    member(b, "digest", sp_policy_text(policy, policy->digest));
    sp_json_key(b, "policy");
    sp_policy_write_json(policy, b);
    sp_json_key(b, "from");
    sp_policy_write_places(policy, b);
    sp_buffer_text(b, "}\n");
}

static void write_toml(const struct sp_policy *policy, struct sp_buffer *b)
{
    const char *name = sp_policy_text(policy, policy->name);
    sp_buffer_text(b, "# ");
    sp_json_chars(b, name, strlen(name), true);
    sp_buffer_format(b, ", with all that it inherits. Digest: %s\n",
                     sp_policy_text(policy, policy->digest));
    sp_policy_write_toml(policy, b);
}

static int print(const struct sp_policy *policy, bool json)
{
    sp_auto_buffer b;
    sp_buffer_init(&b, TEXT_BYTES_MAX);
    if (json)
        write_json(policy, &b);
    else
        write_toml(policy, &b);
    return sp_cli_policy_print(&b, SP_EXIT_OK);
}

int sp_cli_policy_show(const void *values, int argc, char **argv)
{
    const struct sp_policy_options *options = values;
    struct sp_error error;
    struct sp_policy *policy = NULL;
    if (argc != 1)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "policy show needs one policy: a name or a file");
    const struct sp_policy_choice choice = {.name = argv[0]};
    if (sp_policy_choose(&choice, &policy, &problems, &error) != 0)
        return sp_cli_policy_failed(options, &error, &problems);
    int status = print(policy, options->json);
    free(policy);
    return status;
}

/* One JSON object on standard input, as run-spec takes its policy; the answer is one, too. */
int sp_cli_policy_spec(const void *values, int argc, char **argv)
{
    static const struct sp_policy_options options = {.json = true};
    static struct sp_spec_policy keep;
    struct sp_policy_choice choice = {0};
    struct sp_policy *policy = NULL;
    struct sp_error error = {0};
    json_error_t where;
    (void)values;
    (void)argc;
    (void)argv;
    json_t *spec = json_loadf(stdin, JSON_ALLOW_NUL, &where);
    int code = spec == NULL || sodium_init() < 0
                   ? sp_fail(&error, SP_E_USAGE, "the request is no JSON object: %s",
                             where.text)
                   : sp_spec_policy_take(spec, &keep, &choice, &error);
    json_decref(spec);
    if (code == 0)
        code = sp_policy_choose(&choice, &policy, &problems, &error);
    if (code != 0)
        return sp_cli_policy_failed(&options, &error, &problems);
    int status = print(policy, true);
    free(policy);
    return status;
}
