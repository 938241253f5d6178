/* Completion scripts for bash, zsh and fish, made from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/policy.h"
#include "policy/question.h"

enum sp_value_kind sp_completion_kind(const struct sp_option *option)
{
    switch (option->type) {
    case SP_OPTION_FLAG:
    case SP_OPTION_END:
        return SP_VALUE_NONE;
    case SP_OPTION_FILE:
    case SP_OPTION_PROGRAM:
        return SP_VALUE_FILES;
    case SP_OPTION_POLICY: /* files too */
        return SP_VALUE_WORDS;
    default:
        if (option->paths)
            return SP_VALUE_FILES;
        return option->words != NULL ? SP_VALUE_WORDS : SP_VALUE_ANY;
    }
}

void sp_completion_words(const struct sp_option *option)
{
    if (option->type == SP_OPTION_POLICY) {
        sp_completion_policies();
        return;
    }
    for (size_t i = 0; option->words[i] != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", option->words[i]);
}

/* Those at the top, or of a group what stands behind its name. */
bool sp_completion_listed(const struct sp_command *group,
                          const struct sp_command *command)
{
    if (command->hidden)
        return false;
    return group != NULL ? sp_command_is_in(group, command)
                         : strchr(command->name, ' ') == NULL;
}

const char *sp_completion_short(const struct sp_command *command)
{
    const char *blank = strchr(command->name, ' ');
    return blank != NULL ? blank + 1 : command->name;
}

void sp_completion_names_in(const struct sp_command *group)
{
    const char *space = "";
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (!sp_completion_listed(group, c))
            continue;
        printf("%s%s", space, sp_completion_short(c));
        space = " ";
    }
}

void sp_completion_commands(void)
{
    sp_completion_names_in(NULL);
}

/* What the arguments of a command of policies are. */
bool sp_completion_takes_policy(const struct sp_command *command)
{
    return command->main == sp_cli_policy_show;
}
bool sp_completion_takes_question(const struct sp_command *command)
{
    return command->main == sp_cli_policy_explain;
}

void sp_completion_questions(void)
{
    for (int i = 0; i < SP_ASK_COUNT; i++)
        printf("%s%s", i > 0 ? " " : "", sp_question_word((enum sp_question_kind)i));
}

void sp_completion_policies(void)
{
    const struct sp_policy *policy;
    for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++)
        printf("%s%s", i > 0 ? " " : "", sp_policy_text(policy, policy->name));
}

/* Text inside single quotes of bash, zsh and fish alike: ours has no quotes to escape, and
 * brackets and colons, which zsh's _arguments reads, get a backslash there. */
void sp_completion_description(const char *text, bool zsh)
{
    for (; *text != '\0'; text++) {
        if (zsh && strchr("[]:", *text) != NULL)
            putchar('\\');
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
    }
}

static const struct sp_option no_options[] = {{.type = SP_OPTION_END}};

const struct sp_option *sp_completion_options(const struct sp_command *command)
{
    return command->options != NULL ? command->options : no_options;
}

int sp_cli_completion(const void *values, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", sp_completion_bash},
                  {"zsh", sp_completion_zsh},
                  {"fish", sp_completion_fish}};
    (void)values;
    if (argc != 1)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "completion needs one shell: bash, zsh or fish");
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, argv[0]) != 0)
            continue;
        shells[i].print();
        return SP_EXIT_OK;
    }
    return sp_cli_error(SP_EXIT_BAD_INPUT,
                        "there is no completion for '%s', only for bash, "
                        "zsh and fish",
                        argv[0]);
}
