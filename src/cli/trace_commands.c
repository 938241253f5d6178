/* The tables of `sandpit-trace`: what help.c, main and completion work from. */
#include "cli/trace_commands.h"

#include <string.h>

#include "cli/commands.h"

const struct sp_command sp_commands[] = {
    {.name = "show",
     .summary = "show what a trace recorded",
     .usage = "[options] TRACE [FILE | DIGEST]",
     .description = "Without a filter: what the program did, what it tried, what was "
                    "denied and how\n"
                    "it ended. With one: a line for each event. TRACE may be - for "
                    "standard input.\n"
                    "With --follow it is a stream, pipe or growing file, that run "
                    "--events writes.\n"
                    "Exit code: 0, or 2 when the trace cannot be read.",
     .example = "sandpit show script.sptrace\n"
                "sandpit run --events 3 script.py 3>&1 >/dev/null | sandpit show "
                "--follow -\n"
                "sandpit show --category network script.sptrace\n"
                "sandpit show --json script.sptrace | jq 'select(.kind == \"call\")'",
     .options = sp_show_table,
     .values_size = sizeof(struct sp_show_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_show},
    {.name = "export",
     .summary = "write a trace in the format of another program",
     .usage = "[options] TRACE",
     .description =
         "jsonl       every event as a line of JSON, calls and returns singly\n"
         "chrome      for ui.perfetto.dev and chrome://tracing\n"
         "speedscope  for speedscope.app\n"
         "collapsed   stacks for flame graphs\n"
         "otlp        OpenTelemetry traces, a request a line\n"
         "ocsf        security events of the Open Cybersecurity Schema Framework\n"
         "TRACE may be - for standard input. FILE appears when it is complete. Exit "
         "code:\n"
         "0, or 2 when the trace cannot be read or the output not written.",
     .example = "sandpit export --format chrome -o script.json script.sptrace\n"
                "sandpit export script.sptrace | jq 'select(.kind == \"return\")'",
     .options = sp_export_table,
     .values_size = sizeof(struct sp_export_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_export},
    {.name = "verify",
     .summary = "check that a trace is complete and unaltered",
     .usage = "[options] TRACE...",
     .description =
         "Exit code: 0 sound and complete; 1 altered (the first bad line and byte are\n"
         "told); 2 not readable as a trace; 3 sound up to its last checkpoint but "
         "without\n"
         "an end, as a run that was cut short leaves it. Of several, the worst: 1, 2, "
         "3.\n"
         "With --key, what that key has not signed from start to end is 1, too.",
     .example = "sandpit verify script.sptrace\n"
                "sandpit verify --key team.pub script.sptrace",
     .options = sp_verify_table,
     .values_size = sizeof(struct sp_verify_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_verify},
    {.name = NULL},
};

const struct sp_command *sp_command_find(const char *name)
{
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
