#include "cli/commands.h"

#include <string.h>

#include "cli/grant_options.h"
#include "cli/policy.h"
#include "cli/trace_commands.h"
#include "ring/ring.h"

static const char *const calls_words[] = {
    [SP_CALLS_OFF] = "off",
    [SP_CALLS_FIRST] = "first",
    [SP_CALLS_FOLDED] = "folded",
    [SP_CALLS_ALL] = "all",
    NULL,
};
static const char *const layer_words[] = {"landlock", "listener", "agent",
                                          "limits",   "record",   NULL};
static const char *const color_words[] = {[SP_COLOR_AUTO] = "auto",
                                          [SP_COLOR_ALWAYS] = "always",
                                          [SP_COLOR_NEVER] = "never",
                                          NULL};

#define RUN(field)    offsetof(struct sp_run_options, field)
#define DOCTOR(field) offsetof(struct sp_doctor_options, field)
#define GC(field)     offsetof(struct sp_gc_options, field)

static const struct sp_option run_options[] = {
    /* what to run */
    {.letter = 'm',
     .type = SP_OPTION_TEXT,
     .argument = "MODULE",
     .offset = RUN(module),
     .help = "run a module as python -m does; arguments follow",
     .takes_rest = true},
    {.letter = 'c',
     .type = SP_OPTION_TEXT,
     .argument = "CODE",
     .offset = RUN(code),
     .help = "run this text; arguments follow",
     .takes_rest = true},
    {.name = "python",
     .type = SP_OPTION_PROGRAM,
     .argument = "PATH",
     .offset = RUN(python),
     .help = "the interpreter to run it with"},
    {.name = "python-option",
     .type = SP_OPTION_TEXTS,
     .argument = "OPT",
     .offset = RUN(python_options),
     .help = "an option for it, as -I or -Xdev (repeatable)"},
    /* what it may do */
    {.name = "policy",
     .type = SP_OPTION_POLICY,
     .argument = "POLICY",
     .offset = RUN(policy),
     .help = "a built-in policy, or a file in TOML"},
    SP_GRANT_OPTIONS(RUN(grants)),
    {.name = "timeout",
     .type = SP_OPTION_DURATION,
     .argument = "TIME",
     .offset = RUN(limits.value[SP_LIMIT_WALL]),
     .help = "end the run after this time: 10s, 500ms, 2m, seconds"},
    {.name = "cpu",
     .type = SP_OPTION_DURATION,
     .argument = "TIME",
     .offset = RUN(limits.value[SP_LIMIT_CPU]),
     .help = "end it when its processes have computed so long"},
    {.name = "memory",
     .type = SP_OPTION_SIZE,
     .argument = "SIZE",
     .offset = RUN(limits.value[SP_LIMIT_MEMORY]),
     .help = "end it when they use so much: 512M, 1GiB, bytes"},
    {.name = "processes",
     .type = SP_OPTION_NUMBER,
     .argument = "N",
     .offset = RUN(limits.value[SP_LIMIT_PROCESSES]),
     .help = "no more processes and threads than this"},
    {.name = "max-output",
     .type = SP_OPTION_SIZE,
     .argument = "SIZE",
     .offset = RUN(limits.value[SP_LIMIT_OUTPUT]),
     .help = "end it when it prints more than this"},
    {.name = "disk",
     .type = SP_OPTION_SIZE,
     .argument = "SIZE",
     .offset = RUN(limits.value[SP_LIMIT_DISK]),
     .help = "end it when its files have grown by so much"},
    {.name = "file-size",
     .type = SP_OPTION_SIZE,
     .argument = "SIZE",
     .offset = RUN(limits.value[SP_LIMIT_FILE_SIZE]),
     .help = "no file larger than this"},
    {.name = "open-files",
     .type = SP_OPTION_NUMBER,
     .argument = "N",
     .offset = RUN(limits.value[SP_LIMIT_OPEN_FILES]),
     .help = "no process has more files open than this"},
    {.name = "max-trace",
     .type = SP_OPTION_SIZE,
     .argument = "SIZE",
     .offset = RUN(limits.value[SP_LIMIT_TRACE]),
     .help = "the trace is cut there, the run goes on"},
    {.name = "allow-degraded",
     .type = SP_OPTION_TEXTS,
     .argument = "LAYER",
     .offset = RUN(allow_degraded),
     .words = layer_words,
     .help = "accept: no landlock, listener, agent, limits, record"},
    /* what is recorded */
    {.name = "output",
     .letter = 'o',
     .type = SP_OPTION_FILE,
     .argument = "FILE",
     .offset = RUN(trace_path),
     .help = "the trace (else SCRIPT.sptrace, current folder)"},
    {.name = "no-trace",
     .type = SP_OPTION_FLAG,
     .offset = RUN(no_trace),
     .help = "write no trace"},
    {.name = "events",
     .type = SP_OPTION_COUNT,
     .argument = "FD",
     .offset = RUN(events),
     .help = "write events to this open descriptor while it runs"},
    {.name = "sign",
     .type = SP_OPTION_FILE,
     .argument = "KEYFILE",
     .offset = RUN(sign),
     .help = "sign the trace with this private key (see keygen)"},
    {.name = "calls",
     .type = SP_OPTION_WORD,
     .argument = "LEVEL",
     .offset = RUN(calls),
     .words = calls_words,
     .help = "calls recorded: off, first, folded, all"},
    /* what is shown */
    {.name = "json",
     .type = SP_OPTION_FLAG,
     .offset = RUN(json),
     .help = "print the result, output included, as one object"},
    {.name = "quiet",
     .letter = 'q',
     .type = SP_OPTION_FLAG,
     .offset = RUN(quiet),
     .help = "no summary at the end"},
    {.name = "observe",
     .type = SP_OPTION_FLAG,
     .offset = RUN(observe),
     .help = "record what the policy's rules would deny, and deny none of it"},
    {.name = "fail-on-violation",
     .type = SP_OPTION_FLAG,
     .offset = RUN(fail_on_violation),
     .help = "exit code 126 when anything was denied"},
    {.name = "debug",
     .type = SP_OPTION_FLAG,
     .offset = RUN(debug),
     .help = "show on stderr what the supervisor decides"},
    {.name = "color",
     .type = SP_OPTION_WORD,
     .argument = "WHEN",
     .offset = RUN(color),
     .words = color_words,
     .help = "auto, always or never; NO_COLOR is respected"},
    {.type = SP_OPTION_END},
};

static const struct sp_run_options run_defaults = {.events = UINT64_MAX, .calls = -1};

static const struct sp_option doctor_options[] = {
    {.name = "json",
     .type = SP_OPTION_FLAG,
     .offset = DOCTOR(json),
     .help = "print one JSON object"},
    {.name = "python",
     .type = SP_OPTION_PROGRAM,
     .argument = "PATH",
     .offset = DOCTOR(python),
     .help = "look at this interpreter instead of the one a run would use"},
    {.name = "color",
     .type = SP_OPTION_WORD,
     .argument = "WHEN",
     .offset = DOCTOR(color),
     .words = color_words,
     .help = "auto, always or never; NO_COLOR is respected"},
    {.type = SP_OPTION_END},
};

static const struct sp_option gc_options[] = {
    {.name = "dry-run",
     .letter = 'n',
     .type = SP_OPTION_FLAG,
     .offset = GC(dry_run),
     .help = "remove nothing, say what would be"},
    {.type = SP_OPTION_END},
};

const struct sp_command sp_commands[] = {
    {.name = "run",
     .summary = "run a Python program confined, and record what it does",
     .usage = "[options] [--] SCRIPT [args]\n"
              "[options] -m MODULE [args]\n"
              "[options] -c CODE [args]\n"
              "[options] - [args]",
     .description =
         "Runs the program under a policy and records what it does in a trace. Exit "
         "code:\n"
         "the program's own; 124 wall limit, 137 any other limit, 126 ended by "
         "policy,\n"
         "127 script or interpreter not found, 128+N ended by signal N, 125 any other\n"
         "failure.",
     .example = "sandpit run --policy no-network --timeout 10s script.py\n"
                "sandpit show script.sptrace",
     .options = run_options,
     .values_size = sizeof(struct sp_run_options),
     .defaults = &run_defaults,
     .usage_status = SP_EXIT_FAILED,
     .main = sp_cli_run},
    {.name = "show",
     .summary = "show what a trace recorded",
     .usage = "[options] TRACE",
     .options = sp_show_table,
     .usage_status = SP_EXIT_BAD_INPUT,
     .program = "sandpit-trace"},
    {.name = "export",
     .summary = "write a trace in the format of another program",
     .usage = "[options] TRACE",
     .options = sp_export_table,
     .usage_status = SP_EXIT_BAD_INPUT,
     .program = "sandpit-trace"},
    {.name = "verify",
     .summary = "check that a trace is complete and unaltered",
     .usage = "[options] TRACE...",
     .options = sp_verify_table,
     .usage_status = SP_EXIT_BAD_INPUT,
     .program = "sandpit-trace"},
    {.name = "policy",
     .summary = "list, show, check and explain policies",
     .usage = "COMMAND",
     .example = "sandpit policy explain --policy default read ~/.ssh/id_rsa",
     .usage_status = SP_EXIT_BAD_INPUT,
     .group = true},
    {.name = "policy list",
     .summary = "list the built-in policies",
     .usage = "[options]",
     .example = "sandpit policy list",
     .options = sp_policy_plain_table,
     .values_size = sizeof(struct sp_policy_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_policy_list},
    {.name = "policy show",
     .summary = "show a policy with all that it inherits",
     .usage = "[options] NAME|FILE",
     .description = "Prints TOML that can be read back; behind each value stands the "
                    "file and line\nthat it comes from.",
     .example = "sandpit policy show default",
     .options = sp_policy_plain_table,
     .values_size = sizeof(struct sp_policy_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_policy_show},
    {.name = "policy check",
     .summary = "say what is wrong with policy files",
     .usage = "[options] FILE...",
     .description = "All that is wrong with each file, what is odd about it, and what "
                    "of it cannot\nbe kept on this machine. Exit code: 0, 1 when there "
                    "are errors, 2 when a file\ncannot be read.",
     .example = "sandpit policy check my.toml",
     .options = sp_policy_check_table,
     .values_size = sizeof(struct sp_policy_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_policy_check},
    {.name = "policy explain",
     .summary = "say what a policy decides, by which rule, and why",
     .usage = "[options] read|write PATH\n"
              "[options] connect HOST:PORT\n"
              "[options] resolve HOST\n"
              "[options] run PROGRAM\n"
              "[options] import|env|limit NAME\n"
              "[options] fork",
     .description = "Exit code: 0 when it is allowed, 1 when it is denied, 2 for bad "
                    "input.",
     .example = "sandpit policy explain --policy default read ~/.ssh/id_rsa",
     .options = sp_policy_explain_table,
     .values_size = sizeof(struct sp_policy_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_policy_explain},
    {.name = "policy schema",
     .summary = "print the JSON Schema of policy files, for editors",
     .usage = "",
     .example = "sandpit policy schema > policy.schema.json",
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_policy_schema},
    {.name = "policy-spec", /* what the Python package calls */
     .summary = "read the policy of a request and say what it is",
     .usage = "",
     .usage_status = SP_EXIT_BAD_INPUT,
     .hidden = true,
     .main = sp_cli_policy_spec},
    {.name = "doctor",
     .summary = "show what this machine can enforce and record",
     .usage = "[options]",
     .description =
         "Exit code: 0 when every layer is available, 1 when one is missing.",
     .example = "sandpit doctor",
     .options = doctor_options,
     .values_size = sizeof(struct sp_doctor_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_doctor},
    {.name = "keygen",
     .summary = "make a pair of keys for signing traces",
     .usage = "PREFIX",
     .description =
         "Writes the private key to PREFIX.key, for you alone to read, and the public "
         "one to\nPREFIX.pub. Neither replaces a file. Exit code: 0, or 2 when they "
         "cannot be written.",
     .example = "sandpit keygen team\n"
                "sandpit run --sign team.key script.py\n"
                "sandpit verify --key team.pub script.sptrace",
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_keygen},
    {.name = "gc",
     .summary = "remove what a crash of the machine left of runs",
     .usage = "[options] [FOLDER...]",
     .description =
         "Looks in the folders for temporary files, or in those named, for private\n"
         "folders of your runs that no run holds any more. Exit code: 0, or 1 when\n"
         "something could not be removed.",
     .example = "sandpit gc --dry-run",
     .options = gc_options,
     .values_size = sizeof(struct sp_gc_options),
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_gc},
    {.name = "completion",
     .summary = "print a completion script for bash, zsh or fish",
     .usage = "SHELL",
     .example = "source <(sandpit completion bash)",
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_completion},
    {.name = "help",
     .summary = "show help for a command",
     .usage = "[COMMAND]",
     .example = "sandpit help run",
     .usage_status = SP_EXIT_BAD_INPUT,
     .options_anywhere = true,
     .main = sp_cli_help},
    {.name = "manual", /* the build writes the manual page with it */
     .summary = "print the manual page",
     .usage = "",
     .usage_status = SP_EXIT_BAD_INPUT,
     .hidden = true,
     .main = sp_cli_manual},
    {.name = "run-spec", /* what the Python package calls */
     .summary = "run what the specification on a descriptor says",
     .usage = "FD",
     .usage_status = SP_EXIT_FAILED,
     .hidden = true,
     .main = sp_cli_run_spec},
    {.name = NULL},
};

const struct sp_command *sp_command_find(const char *name)
{
    for (const struct sp_command *c = sp_commands; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

int sp_exit_for_error(const struct sp_error *error)
{
    return error->code == SP_E_NOT_FOUND ? SP_EXIT_MISSING : SP_EXIT_FAILED;
}
