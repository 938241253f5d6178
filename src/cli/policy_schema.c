/* `sandpit policy schema`: the JSON Schema of policy files, made from the table of keys. Language
 * servers for TOML check and complete with it.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/policy.h"
#include "policy/keys.h"

/* The older notation that the language servers of TOML understand. */
static const char dialect[] = "http://json-schema.org/draft-07/schema#";

static json_t *of_words(const struct sp_policy_key *key)
{
    json_t *words = json_array();
    for (size_t i = 0; key->words[i] != NULL; i++)
        json_array_append_new(words, json_string(key->words[i]));
    return json_pack("{s:o, s:s}", "enum", words, "default", key->words[0]);
}

static json_t *of_limit(const struct sp_policy_key *key)
{
    static const char *const patterns[] = {
        [SP_KEY_DURATION] = "^(none|[0-9]*\\.?[0-9]*(ns|us|ms|s|m|h)?)$",
        [SP_KEY_SIZE] =
            "^(none|[0-9]+(\\.[0-9]*)?(B|K|KiB|kB|KB|M|MiB|MB|G|GiB|GB|T|TiB|TB)?)$",
        [SP_KEY_COUNT] = "^none$"};
    return json_pack("{s:[{s:s, s:s}, {s:s, s:i}]}", "anyOf", "type", "string",
                     "pattern", patterns[key->type], "type",
                     key->type == SP_KEY_DURATION ? "number" : "integer",
                     "exclusiveMinimum", 0);
}

static json_t *of_extends(void)
{
    const struct sp_policy *policy;
    json_t *names = json_array();
    for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++)
        json_array_append_new(names, json_string(sp_policy_text(policy, policy->name)));
    return json_pack("{s:s, s:o}", "type", "string", "examples", names);
}

static json_t *of_key(const struct sp_policy_key *key)
{
    switch (key->type) {
    case SP_KEY_TEXT:
        return strcmp(key->name, "extends") == 0 ? of_extends()
                                                 : json_pack("{s:s}", "type", "string");
    case SP_KEY_WORD:
        return of_words(key);
    case SP_KEY_BOOL:
        return json_pack("{s:s, s:b}", "type", "boolean", "default", 1);
    case SP_KEY_PATTERNS:
        return json_pack("{s:s, s:{s:s, s:i}}", "type", "array", "items", "type",
                         "string", "minLength", 1);
    default:
        return of_limit(key);
    }
}

static void add_key(json_t *properties, const struct sp_policy_key *key)
{
    char name[64];
    char help[300];
    json_t *schema = of_key(key);
    json_object_set_new(schema, "description", json_string(key->help));
    json_object_set_new(properties, key->name, schema);
    if (key->type != SP_KEY_PATTERNS)
        return;
    snprintf(name, sizeof name, "%s_add", key->name);
    snprintf(help, sizeof help, "more of them, beside those that are inherited: %s",
             key->help);
    schema = of_key(key);
    json_object_set_new(schema, "description", json_string(help));
    json_object_set_new(properties, name, schema);
}

static json_t *section_in(json_t *properties, const char *name)
{
    if (name[0] == '\0')
        return properties;
    json_t *section = json_object_get(properties, name);
    if (section == NULL) {
        section = json_pack("{s:s, s:b, s:{}}", "type", "object",
                            "additionalProperties", 0, "properties");
        json_object_set_new(properties, name, section);
    }
    return json_object_get(section, "properties");
}

int sp_cli_policy_schema(const void *values, int argc, char **argv)
{
    (void)values;
    if (argc > 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "policy schema takes no argument: '%s'",
                            argv[0]);
    json_t *schema = json_pack("{s:s, s:s, s:s, s:b, s:{}}", "$schema", dialect,
                               "title", "sandpit policy", "type", "object",
                               "additionalProperties", 0, "properties");
    json_t *properties = json_object_get(schema, "properties");
    for (const struct sp_policy_key *key = sp_policy_keys; key->name != NULL; key++)
        add_key(section_in(properties, key->section), key);
    char *text = json_dumps(schema, JSON_INDENT(1));
    json_decref(schema);
    if (text == NULL)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "no memory for the schema");
    puts(text);
    free(text);
    return SP_EXIT_OK;
}
