/* The completion script for zsh. */
#include <stdio.h>
#include <string.h>

#include "cli/completion.h"

static void zsh_spec(const struct sp_option *option, const char *dashes,
                     const char *name)
{
    bool repeatable =
        option->type == SP_OPTION_TEXTS || option->type == SP_OPTION_MARKED;
    printf("            '%s%s%s[", repeatable ? "*" : "", dashes, name);
    sp_completion_description(option->help, true);
    printf("]");
    switch (sp_completion_kind(option)) {
    case SP_VALUE_NONE:
        break;
    case SP_VALUE_ANY:
        printf(":%s: ", option->argument);
        break;
    case SP_VALUE_FILES:
        printf(":%s:_files", option->argument);
        break;
    case SP_VALUE_WORDS:
        printf(":%s:(", option->argument);
        sp_completion_words(option);
        printf(")");
        break;
    }
    printf("' \\\n");
}

static void zsh_command(const struct sp_command *command)
{
    printf("    '%s')\n        _arguments \\\n", command->name);
    for (const struct sp_option *o = sp_completion_options(command);
         o->type != SP_OPTION_END; o++) {
        char letter[2] = {o->letter, '\0'};
        if (o->hidden)
            continue;
        if (o->letter != 0)
            zsh_spec(o, "-", letter);
        if (o->name != NULL)
            zsh_spec(o, "--", o->name);
    }
    printf("            '--help[show help]' \\\n");
    if (command->main == sp_cli_completion) {
        printf("            '1:shell:(bash zsh fish)'\n");
    } else if (command->main == sp_cli_help) {
        printf("            '1:command:(");
        sp_completion_commands();
        printf(")'\n");
    } else if (sp_completion_takes_policy(command) ||
               sp_completion_takes_question(command)) {
        printf("            '1: :{_alternative \"words:word:(");
        if (sp_completion_takes_policy(command))
            sp_completion_policies();
        else
            sp_completion_questions();
        printf(")\" \"files:file:_files\"}' \\\n            '*:file:_files'\n");
    } else {
        printf("            '*:file:_files'\n");
    }
    printf("        ;;\n");
}

static void zsh_names(const struct sp_command *group)
{
    printf("        commands=(\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (!sp_completion_listed(group, c))
            continue;
        printf("            '%s:", sp_completion_short(c));
        sp_completion_description(c->summary, true);
        printf("'\n");
    }
    printf("        )\n"
           "        _describe command commands\n"
           "        return\n");
}

static void zsh_group(const struct sp_command *group)
{
    printf("    if [[ $command == %s ]]; then\n"
           "        if ((CURRENT == 2)); then\n",
           group->name);
    zsh_names(group);
    printf("        fi\n"
           "        command=\"%s ${words[2]}\"\n"
           "        shift words\n"
           "        ((CURRENT--))\n"
           "    fi\n",
           group->name);
}

void sp_completion_zsh(void)
{
    printf("#compdef sandpit\n"
           "_sandpit() {\n"
           "    local -a commands\n"
           "    if ((CURRENT == 2)); then\n");
    zsh_names(NULL);
    printf("    fi\n"
           "    local command=${words[2]}\n"
           "    shift words\n"
           "    ((CURRENT--))\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (c->group)
            zsh_group(c);
    printf("    case $command in\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden && !c->group)
            zsh_command(c);
    printf("    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _sandpit ]]; then\n"
           "    _sandpit \"$@\"\n"
           "else\n"
           "    compdef _sandpit sandpit\n"
           "fi\n");
}
