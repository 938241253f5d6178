/* `sandpit run`: options to a request, the outcome to an exit code and a summary. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/grant_options.h"
#include "cli/problems.h"
#include "cli/summary.h"
#include "run/result.h"
#include "run/run.h"

static int exit_code_for(const struct sp_run_options *options,
                         const struct sp_outcome *outcome)
{
    bool limit =
        sp_status_limit(outcome->status) || outcome->status == SP_STATUS_CANCELLED;
    if (options->fail_on_violation && outcome->violation_count > 0 && !limit)
        return SP_EXIT_POLICY;
    return outcome->exit_code;
}

static int print_result(const struct sp_run *run, const struct sp_outcome *outcome,
                        int exit_code)
{
    int result = sp_result_write(STDOUT_FILENO, run, outcome, exit_code);
    if (result == 0 && write(STDOUT_FILENO, "\n", 1) != 1)
        result = -errno;
    return result == 0 ? exit_code
                       : sp_cli_error(SP_EXIT_FAILED, "cannot print the result: %s",
                                      strerror(-result));
}

/* All that is wrong with the policy. */
static struct sp_problems problems;

static int print_error(const struct sp_run_options *options,
                       const struct sp_error *error)
{
    if (options->json) {
        (void)!write(STDOUT_FILENO, "{\"error\":", 9);
        (void)sp_error_write(STDOUT_FILENO, error, &problems);
        (void)!write(STDOUT_FILENO, "}\n", 2);
    }
    if (problems.errors > 0) {
        sp_problems_print(&problems, stderr);
        return sp_cli_error(SP_EXIT_FAILED, "the policy has %u error%s",
                            problems.errors, problems.errors == 1 ? "" : "s");
    }
    return sp_cli_error(sp_exit_for_error(error), "%s", error->message);
}

static void tell_of_events(const struct sp_event_stream *events)
{
    if (events->failed != 0)
        (void)sp_cli_error(0, "--events: %s: the stream ended early",
                           strerror(events->failed));
    else if (events->lost > 0)
        (void)sp_cli_error(0, "--events: %llu event%s lost, the reader was too slow",
                           (unsigned long long)events->lost,
                           events->lost == 1 ? " was" : "s were");
}

static int conclude(void *context, const struct sp_run *run,
                    const struct sp_outcome *outcome, const struct sp_error *error)
{
    const struct sp_run_options *options = context;
    if (error != NULL)
        return print_error(options, error);
    int exit_code = exit_code_for(options, outcome);
    if (!options->quiet)
        tell_of_events(&run->events);
    if (options->json)
        return print_result(run, outcome, exit_code);
    if (run->trace.displaced)
        (void)sp_cli_error(0, "the trace's folder is gone: the trace is '%s'",
                           run->trace.path);
    if (!options->quiet && isatty(STDERR_FILENO))
        sp_summary_print(
            run, outcome,
            sp_color_wanted((enum sp_color_when)options->color, STDERR_FILENO));
    else if (!options->quiet && outcome->status == SP_STATUS_STOPPED)
        (void)sp_cli_error(0, "%s", outcome->reason);
    return exit_code;
}

/* The trace is named after what runs: the script's stem, the module, else `sandpit`. */
static void default_trace(const struct sp_run_options *options, const char *script,
                          char *to, size_t size)
{
    const char *name = "sandpit";
    if (options->module != NULL)
        name = options->module;
    else if (options->code == NULL && script != NULL && strcmp(script, "-") != 0)
        name = script;
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '/')
        length--;
    const char *start = name + length;
    while (start > name && start[-1] != '/')
        start--;
    length -= (size_t)(start - name);
    const char *dot = memrchr(start, '.', length);
    if (options->module == NULL && dot != NULL && dot > start)
        length = (size_t)(dot - start);
    if (length == 0 || start[0] == '/' || strncmp(start, "..", length) == 0) {
        start = "sandpit";
        length = strlen(start);
    }
    snprintf(to, size, "%.*s.sptrace", (int)(length > 200 ? 200 : length), start);
}

static int check(const struct sp_run_options *options, struct sp_error *reterr)
{
    if (options->no_trace && options->trace_path != NULL)
        return sp_fail(reterr, SP_E_USAGE,
                       "-o names the file of a trace that --no-trace leaves out: give "
                       "one of them");
    if (options->events != UINT64_MAX && options->events > INT_MAX)
        return sp_fail(reterr, SP_E_USAGE, "--events %llu: no such descriptor is open",
                       (unsigned long long)options->events);
    if (options->no_trace && options->sign != NULL)
        return sp_fail(reterr, SP_E_USAGE,
                       "--sign signs the trace that --no-trace leaves out: give one of "
                       "them");
    return 0;
}

static int choose_program(const struct sp_run_options *options, int *argc, char ***argv,
                          struct sp_run_request *request, struct sp_error *reterr)
{
    if (options->code != NULL || options->module != NULL) {
        request->kind = options->code != NULL ? SP_PROGRAM_CODE : SP_PROGRAM_MODULE;
        request->value = options->code != NULL ? options->code : options->module;
        return 0;
    }
    if (*argc == 0)
        return sp_fail(
            reterr, SP_E_USAGE,
            "nothing to run: name a script, or use -m MODULE, -c CODE or - (see "
            "sandpit run --help)");
    request->kind = strcmp((*argv)[0], "-") == 0 ? SP_PROGRAM_STDIN : SP_PROGRAM_SCRIPT;
    request->value = request->kind == SP_PROGRAM_SCRIPT ? (*argv)[0] : NULL;
    (*argc)--;
    (*argv)++;
    return 0;
}

static unsigned accepted(const struct sp_run_options *options)
{
    unsigned bits = 0;
    for (size_t i = 0; i < options->allow_degraded.count; i++)
        bits |= 1u << sp_ability_find(options->allow_degraded.items[i]);
    return bits;
}

int sp_cli_run(const void *values, int argc, char **argv)
{
    const struct sp_run_options *options = values;
    char trace[256];
    struct sp_grant granted[SP_MARKED_MAX];
    struct sp_error error;
    struct sp_run_request request = {
        .python_options = options->python_options.items,
        .python_options_count = options->python_options.count,
        .policy = {.name = options->policy,
                   .grants = granted,
                   .grants_count = sp_grants_given(&options->grants, granted),
                   .observe = options->observe},
        .problems = &problems,
        .limits = options->limits,
        .calls_given = options->calls >= 0,
        .calls = (enum sp_calls_level)options->calls,
        .sign = options->sign,
        .python = options->python,
        .environment = environ,
        .accepted = accepted(options),
        .capture = options->json,
        .capture_max = SP_CAPTURE_MAX,
        .events = options->events > INT_MAX ? -1 : (int)options->events,
        .control = -1,
        .debug = options->debug,
        .conclude = conclude,
        .context = (void *)options,
    };
    int exit_code;
    int code = check(options, &error);
    if (code == 0)
        code = choose_program(options, &argc, &argv, &request, &error);
    if (code == 0) {
        request.arguments = argv;
        request.arguments_count = (size_t)argc;
        default_trace(options, request.value, trace, sizeof trace);
        request.trace = options->no_trace             ? NULL
                        : options->trace_path != NULL ? options->trace_path
                                                      : trace;
        code = sp_run(&request, &exit_code, &error);
    }
    return code == 0 ? exit_code : print_error(options, &error);
}
