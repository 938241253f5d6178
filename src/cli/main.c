/* The program `sandpit`: finds the command, reads its options, calls it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

#define VALUES_MAX 2048u /* bytes of the largest struct of options */

/* Output that could not be written is a failure, whatever the command thought. */
static int flushed(int status, int failure)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return sp_cli_error(failure, "cannot write the output: %m");
}

static int call(const struct sp_command *command, int argc, char **argv)
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
        return flushed(SP_EXIT_OK, SP_EXIT_FAILED);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        sp_help_program();
        return flushed(SP_EXIT_OK, SP_EXIT_FAILED);
    }
    const struct sp_command *command = sp_command_find(name);
    if (command == NULL)
        return unknown_command(name);
    if (command->program != NULL)
        return sp_exec_beside(command, argv);
    return flushed(call(command, argc - 2, argv + 2), command->usage_status);
}
