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
        if (!c->hidden && strchr(c->name, ' ') == NULL &&
            count + 1 < sizeof names / sizeof *names)
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

static int unknown_in_group(const struct sp_command *group, const char *name)
{
    const char *names[32];
    char known[200] = "";
    size_t count = 0;
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (sp_command_is_in(group, c) && count + 1 < sizeof names / sizeof *names) {
            size_t n = strlen(known);
            names[count++] = c->name + strlen(group->name) + 1;
            snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "",
                     names[count - 1]);
        }
    names[count] = NULL;
    const char *nearest = name != NULL ? sp_nearest_name(name, names) : NULL;
    if (name == NULL)
        return sp_cli_error(group->usage_status, "%s needs a command: %s", group->name,
                            known);
    return sp_cli_error(group->usage_status, "%s has no command '%s'%s%s%s: it has %s",
                        group->name, name, nearest != NULL ? " (did you mean " : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "",
                        known);
}

static int call_in_group(const struct sp_command *group, int argc, char **argv)
{
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        sp_help_command(group);
        return sp_output_flushed(SP_EXIT_OK, group->usage_status);
    }
    const struct sp_command *command =
        argc > 0 ? sp_command_find_in(group, argv[0]) : NULL;
    if (command == NULL)
        return unknown_in_group(group, argc > 0 ? argv[0] : NULL);
    return sp_output_flushed(sp_command_call(command, argc - 1, argv + 1),
                             command->usage_status);
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
    if (command->group)
        return call_in_group(command, argc - 2, argv + 2);
    if (command->program != NULL)
        return sp_exec_beside(command, argv);
    return sp_output_flushed(sp_command_call(command, argc - 2, argv + 2),
                             command->usage_status);
}
