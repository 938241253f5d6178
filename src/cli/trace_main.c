/* The program `sandpit-trace`: reading commands, which `sandpit` hands over to it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/trace_commands.h"
#include "trace/fault.h"

int sp_trace_complain(const char *path, const struct sp_fault *fault)
{
    fflush(stdout); /* what was printed before stays before it */
    if (fault->line == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: %s", path, fault->message);
    return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: line %" PRIu64 ", byte %" PRIu64 ": %s",
                        path, fault->line, fault->byte, fault->message);
}

static int usage(void)
{
    printf("usage: sandpit-trace COMMAND [options] TRACE...\n\ncommands:\n");
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        printf("  %-12s%s\n", c->name, c->summary);
    return SP_EXIT_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return sp_cli_error(
            SP_EXIT_BAD_INPUT,
            "usage: sandpit-trace COMMAND [options] TRACE (see --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage();
    if (strcmp(argv[1], "--version") == 0) {
        printf("sandpit-trace %s\n", SP_VERSION);
        return SP_EXIT_OK;
    }
    const struct sp_command *command = sp_command_find(argv[1]);
    if (command == NULL)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "there is no command '%s' (see sandpit-trace --help)",
                            argv[1]);
    return sp_command_call(command, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    return sp_output_flushed(dispatch(argc, argv), SP_EXIT_BAD_INPUT);
}
