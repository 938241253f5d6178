/* The program `sandpit`: finds the command, reads its options, calls it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

static int unknown_command(const char *name)
{
    const char *names[32];
    size_t count = 0;
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (!c->hidden && count + 1 < sizeof names / sizeof *names)
            names[count++] = c->name;
    names[count] = NULL;
    const char *nearest = sp_nearest_name(name, names);
    if (nearest != NULL)
        return sp_cli_error(SP_EXIT_FAILED,
                            "there is no command '%s' (did you mean %s?)", name,
                            nearest);
    if (*name == '-')
        return sp_cli_error(SP_EXIT_FAILED,
                            "there is no option '%s' (see sandpit --help)", name);
    if (access(name, F_OK) == 0)
        return sp_cli_error(SP_EXIT_FAILED,
                            "there is no command '%s' (did you mean sandpit run %s?)",
                            name, name);
    return sp_cli_error(SP_EXIT_FAILED, "there is no command '%s' (see sandpit --help)",
                        name);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return sp_cli_error(
            SP_EXIT_FAILED,
            "usage: sandpit run [options] SCRIPT [args] (see sandpit --help)");
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        printf("sandpit %s\n", SP_VERSION);
        return sp_output_flushed(SP_EXIT_OK, SP_EXIT_FAILED);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        sp_help_program();
        return sp_output_flushed(SP_EXIT_OK, SP_EXIT_FAILED);
    }
    const struct sp_command *command = sp_command_find(name);
    if (command == NULL)
        return unknown_command(name);
    if (command->program != NULL)
        return sp_exec_beside(command, argv);
    return sp_output_flushed(sp_command_call(command, argc - 2, argv + 2),
                             command->usage_status);
}
