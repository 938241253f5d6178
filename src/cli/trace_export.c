/* sandpit export: a trace in the format of another program. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/trace_commands.h"
#include "read/export.h"
#include "read/reader.h"
#include "trace/lines.h"

/* The trace's name for titles: what stands behind its last slash. */
static const char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static void warn_of_losses(const struct sp_export_losses *losses)
{
    if (losses->deep_calls > 0)
        sp_cli_error(0,
                     "warning: %" PRIu64
                     " calls are nested too deep to be followed and were left out",
                     losses->deep_calls);
    if (losses->stacks > 0)
        sp_cli_error(0,
                     "warning: %" PRIu64 " calls have stacks too deep or too many to "
                     "be told apart: they count to their callers",
                     losses->stacks);
    if (losses->frames > 0)
        sp_cli_error(0,
                     "warning: there are too many functions: %" PRIu64
                     " times one is shown as '(other functions)'",
                     losses->frames);
}

/* A fault of the export: of the output, or of what it makes of the trace. */
static int complain(const struct sp_export *x, const char *path, const char *output,
                    const struct sp_fault *fault)
{
    if (sp_export_write_errno(x) == 0)
        return sp_trace_complain(path, fault);
    if (output == NULL || strcmp(output, "-") == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "cannot write the output: %s",
                            fault->message);
    return sp_cli_error(SP_EXIT_BAD_INPUT, "cannot write '%s': %s", output,
                        fault->message);
}

/* From the trace's first event to its last, or to the first that cannot be read: what stands
 * before that is written out either way. */
static int copy(struct sp_reader *reader, struct sp_export *x, const char *path,
                const char *output)
{
    struct sp_read_event event = {0};
    struct sp_fault fault;
    struct sp_fault unwritten;
    int got;
    while ((got = sp_reader_next(reader, &event, &fault)) > 0)
        if (sp_export_add(x, &event, &fault) < 0)
            return complain(x, path, output, &fault);
    if (sp_export_finish(x, &unwritten) < 0)
        return complain(x, path, output, &unwritten);
    warn_of_losses(sp_export_losses_of(x));
    if (got < 0)
        return sp_trace_complain(path, &fault);
    if (sp_reader_was_cut(reader))
        sp_cli_error(0,
                     "warning: %s: cut short: it has no end; exported up to line "
                     "%" PRIu64,
                     path, event.line_number);
    return SP_EXIT_OK;
}

static int export_to(const struct sp_export_options *options, const char *path,
                     struct sp_reader *reader, int fd)
{
    struct sp_export *x;
    struct sp_fault fault;
    if (sp_export_open(options->format, fd, short_name(path),
                       sp_reader_functions(reader), &x, &fault) < 0)
        return sp_trace_complain(path, &fault);
    const int status = copy(reader, x, path, options->output);
    sp_export_free(x);
    return status;
}

/* The descriptor of the trace stays the reader's. */
static int export_trace(const struct sp_export_options *options, const char *path,
                        int trace)
{
    struct sp_reader *reader;
    struct sp_new_file file;
    struct sp_fault fault;
    if (sp_reader_open_fd(trace, &reader, &fault) < 0) {
        close(trace);
        return sp_trace_complain(path, &fault);
    }
    int status = SP_EXIT_BAD_INPUT;
    if (sp_new_file_open(options->output, trace, &file) == 0) {
        status = export_to(options, path, reader, file.fd);
        if (sp_new_file_close(&file, status == SP_EXIT_OK) < 0)
            status = SP_EXIT_BAD_INPUT;
    }
    sp_reader_free(reader);
    return status;
}

int sp_cli_export(const void *options, int argc, char **argv)
{
    const struct sp_export_options *chosen = options;
    if (argc == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "which trace? (see sandpit export --help)");
    if (argc > 1)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "one trace at a time: '%s' is too much",
                            argv[1]);
    const int trace = sp_lines_open(argv[0]);
    if (trace < 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "%s: %s", argv[0],
                            errno == EINVAL ? "not a regular file" : strerror(errno));
    if (trace == STDOUT_FILENO &&
        (chosen->output == NULL || strcmp(chosen->output, "-") == 0)) {
        close(trace);
        errno = EBADF; /* standard output is closed, and its number was given away */
        return sp_cli_error(SP_EXIT_BAD_INPUT, "cannot write the output: %m");
    }
    return export_trace(chosen, argv[0], trace);
}
