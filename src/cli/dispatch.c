/* Calling a command with the options that its table describes; both programs do it alike. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

#define VALUES_MAX 8192u /* bytes of the largest struct of options */

const struct sp_command *sp_command_find_in(const struct sp_command *group,
                                            const char *name)
{
    size_t size = strlen(group->name);
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (sp_command_is_in(group, c) && strcmp(c->name + size + 1, name) == 0)
            return c;
    return NULL;
}

bool sp_command_is_in(const struct sp_command *group, const struct sp_command *command)
{
    size_t size = strlen(group->name);
    return strncmp(command->name, group->name, size) == 0 && command->name[size] == ' ';
}

int sp_output_flushed(int status, int failure)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return sp_cli_error(failure, "cannot write the output: %m");
}

int sp_command_call(const struct sp_command *command, int argc, char **argv)
{
    _Alignas(max_align_t) char values[VALUES_MAX];
    struct sp_error error = {0};
    bool help = false;
    int count = 0;
    SP_BUG_ON(command->values_size > sizeof values);
    if (sp_options_parse(command, argc, argv, values, &count, &help, &error) != 0)
        return sp_cli_error(command->usage_status, "%s", error.message);
    if (!help)
        return command->main(values, count, argv);
    sp_help_command(command);
    return SP_EXIT_OK;
}
