/* The completion script for fish. */
#include <stdio.h>
#include <string.h>

#include "cli/completion.h"

/* "complete ... when the command stands there"; of a group both words. */
static void fish_condition(const struct sp_command *command)
{
    int size = (int)strcspn(command->name, " ");
    printf("complete -c sandpit -n '__fish_seen_subcommand_from %.*s", size,
           command->name);
    if (command->name[size] == ' ')
        printf("; and __fish_seen_subcommand_from %s", sp_completion_short(command));
    printf("'");
}

static void fish_command(const struct sp_command *command)
{
    const char *blank = strchr(command->name, ' ');
    if (blank == NULL)
        printf("complete -c sandpit -n __fish_use_subcommand -f -a %s -d '",
               command->name);
    else
        printf(
            "complete -c sandpit -n '__fish_seen_subcommand_from %.*s' -f -a %s -d '",
            (int)(blank - command->name), command->name, blank + 1);
    sp_completion_description(command->summary, false);
    printf("'\n");
    if (sp_completion_takes_policy(command) || sp_completion_takes_question(command)) {
        fish_condition(command);
        printf(" -a '");
        if (sp_completion_takes_policy(command))
            sp_completion_policies();
        else
            sp_completion_questions();
        printf("'\n");
    }
}

static void fish_option(const struct sp_command *command,
                        const struct sp_option *option)
{
    enum sp_value_kind kind = sp_completion_kind(option);
    fish_condition(command);
    if (option->letter != 0)
        printf(" -s %c", option->letter);
    if (option->name != NULL)
        printf(" -l %s", option->name);
    if (kind != SP_VALUE_NONE)
        printf(kind == SP_VALUE_FILES ? " -r -F" : " -x");
    if (kind == SP_VALUE_WORDS) {
        printf(" -a '");
        sp_completion_words(option);
        printf("'");
    }
    printf(" -d '");
    sp_completion_description(option->help, false);
    printf("'\n");
}

void sp_completion_fish(void)
{
    printf("# fish completion for sandpit\n"
           "complete -c sandpit -n __fish_use_subcommand -f -l version -d 'show the "
           "version'\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++) {
        if (c->hidden)
            continue;
        fish_command(c);
        for (const struct sp_option *o = sp_completion_options(c);
             o->type != SP_OPTION_END; o++)
            if (!o->hidden)
                fish_option(c, o);
    }
    printf("complete -c sandpit -l help -s h -d 'show help'\n"
           "complete -c sandpit -n '__fish_seen_subcommand_from completion' -f"
           " -a 'bash zsh fish'\n"
           "complete -c sandpit -n '__fish_seen_subcommand_from help' -f -a '");
    sp_completion_commands();
    printf("'\n");
}
