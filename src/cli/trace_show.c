/* sandpit show: the summary of a trace, or those of its events that are asked for. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/screen.h"
#include "cli/trace_commands.h"
#include "cli/trace_filter.h"
#include "cli/trace_follow.h"
#include "cli/trace_view.h"
#include "read/reader.h"
#include "read/summary.h"
#include "trace/verify.h"

#define SUMMARY_WIDTH     80u
#define SUMMARY_WIDTH_MAX 120u /* wider is harder to read */
#define GLOB_TEXT_MAX     4096u

/* ---- what is printed ------------------------------------------------------------------- */

static int show_events(const struct sp_show_options *options, const char *path,
                       struct sp_reader *reader)
{
    struct sp_event_filter filter;
    struct sp_screen screen;
    struct sp_buffer json;
    struct sp_read_event event;
    struct sp_fault fault;
    int got;
    sp_event_filter_make(options, &filter);
    sp_screen_init(&screen, sp_color_wanted(options->color, STDOUT_FILENO),
                   isatty(STDOUT_FILENO) ? sp_screen_width(0) : 0);
    sp_buffer_init(&json, 64u << 20);
    while ((got = sp_reader_next(reader, &event, &fault)) > 0) {
        if (!sp_event_filter_matches(&filter, &event))
            continue;
        if (!options->json) {
            sp_show_line(&screen, &event);
            continue;
        }
        sp_buffer_clear(&json);
        sp_read_event_json(&event, &json);
        if (fwrite(json.data, 1, json.size, stdout) != json.size)
            break; /* main says so */
    }
    sp_screen_release(&screen);
    sp_buffer_release(&json);
    return got < 0 ? sp_trace_complain(path, &fault) : SP_EXIT_OK;
}

static int show_summary(const struct sp_show_options *options, const char *path,
                        struct sp_reader *reader)
{
    struct sp_summary summary;
    struct sp_screen screen;
    struct sp_read_event event;
    struct sp_fault fault;
    struct sp_verify verify;
    int got;
    const bool from_stdin = strcmp(path, "-") == 0;
    unsigned width = sp_screen_width(SUMMARY_WIDTH);
    if (width > SUMMARY_WIDTH_MAX)
        width = SUMMARY_WIDTH_MAX;
    sp_summary_init(&summary);
    while ((got = sp_reader_next(reader, &event, &fault)) > 0)
        sp_summary_add(&summary, &event);
    if (!from_stdin)
        sp_verify_path(path, NULL, &verify);
    sp_screen_init(&screen, sp_color_wanted(options->color, STDOUT_FILENO), width);
    sp_show_summary(&screen, path, &summary, from_stdin ? NULL : &verify);
    sp_screen_release(&screen);
    sp_summary_release(&summary);
    return got < 0 ? sp_trace_complain(path, &fault) : SP_EXIT_OK;
}

/* Keeps what views ask of the start of the run. */
static void learn(struct sp_view_out *out, const struct sp_read_event *e)
{
    if (e->line_number != 1 || e->tape == NULL)
        return;
    const struct sp_json_node *folder = sp_tape_text(e->tape, "cwd");
    out->pid = e->pid;
    if (folder != NULL)
        sp_buffer_append(&out->folder, folder->text, folder->size);
}

static bool is_structure(const struct sp_read_event *e)
{
    return e->kind == SP_KIND_START || e->kind == SP_KIND_FORK ||
           e->kind == SP_KIND_EXEC || e->kind == SP_KIND_EXIT;
}

/* To stderr: rows may be read by a program. */
static void warn_of_end(const char *path, const struct sp_reader *reader)
{
    fflush(stdout);
    if (sp_reader_was_cut(reader))
        sp_cli_error(SP_EXIT_OK, "%s: cut short: the trace has no end", path);
}

static int show_view(const struct sp_view *view, const struct sp_show_options *options,
                     const char *path, struct sp_reader *reader)
{
    struct sp_event_filter filter;
    struct sp_view_out out = {.as_json = options->json};
    struct sp_read_event event;
    struct sp_fault fault;
    struct sp_fault late; /* a second one is not told */
    int got = 1;
    int result = 0;
    void *state = view->make(options);
    if (state == NULL)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "no memory");
    sp_event_filter_make(options, &filter);
    sp_screen_init(&out.screen, sp_color_wanted(options->color, STDOUT_FILENO),
                   sp_screen_width(SUMMARY_WIDTH));
    sp_buffer_init(&out.json, 64u << 20);
    sp_buffer_init(&out.row, 64u << 20);
    sp_buffer_init(&out.folder, GLOB_TEXT_MAX);
    while (result == 0 && (got = sp_reader_next(reader, &event, &fault)) > 0) {
        learn(&out, &event);
        if (sp_event_filter_matches(&filter, &event) ||
            (view->structure && is_structure(&event)))
            result = view->take(state, &out, &event, &fault);
    }
    out.functions = sp_reader_functions(reader);
    if (result == 0)
        result = view->print(state, &out, got < 0 ? &late : &fault);
    view->dispose(state);
    sp_screen_release(&out.screen);
    sp_buffer_release(&out.json);
    sp_buffer_release(&out.row);
    sp_buffer_release(&out.folder);
    if (got < 0 || result < 0)
        return sp_trace_complain(path, &fault);
    warn_of_end(path, reader);
    return SP_EXIT_OK;
}

/* The view that is asked for, NULL: none. More than one: an exit code. */
static int find_view(const struct sp_show_options *options,
                     const struct sp_view **ret_view)
{
    const struct {
        bool wanted;
        const struct sp_view *view;
    } views[] = {
        {options->files, &sp_view_files},         {options->network, &sp_view_network},
        {options->processes, &sp_view_processes}, {options->tree, &sp_view_tree},
        {options->timeline, &sp_view_timeline},   {options->source, &sp_view_source}};
    *ret_view = NULL;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (!views[i].wanted)
            continue;
        if (*ret_view != NULL)
            return sp_cli_error(SP_EXIT_BAD_INPUT, "one view at a time: %s or %s",
                                (*ret_view)->name, views[i].view->name);
        *ret_view = views[i].view;
    }
    return SP_EXIT_OK;
}

static int check_options(const struct sp_show_options *options, int argc, char **argv)
{
    if (argc == 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT,
                            "which trace? (see sandpit show --help)");
    if (argc > (options->source ? 2 : 1))
        return sp_cli_error(SP_EXIT_BAD_INPUT, "one trace at a time: '%s' is too much",
                            argv[argc - 1]);
    if (options->depth > SP_SHOW_DEPTH_MAX)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "--depth: at most %u levels are shown",
                            SP_SHOW_DEPTH_MAX);
    if (options->category == NULL || sp_category_known(options->category))
        return SP_EXIT_OK;
    const char *nearest = sp_category_nearest(options->category);
    return sp_cli_error(SP_EXIT_BAD_INPUT, "there is no category '%s'%s%s%s",
                        options->category, nearest != NULL ? " (did you mean " : "",
                        nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

int sp_cli_show(const void *options, int argc, char **argv)
{
    struct sp_show_options chosen_too = *(const struct sp_show_options *)options;
    const struct sp_show_options *chosen = &chosen_too;
    struct sp_reader *reader;
    struct sp_fault fault;
    const struct sp_view *view;
    int status = check_options(chosen, argc, argv);
    if (status == SP_EXIT_OK)
        status = find_view(chosen, &view);
    if (status != SP_EXIT_OK)
        return status;
    if (chosen->follow)
        return view == NULL
                   ? sp_cli_follow(chosen, argv[0])
                   : sp_cli_error(SP_EXIT_BAD_INPUT,
                                  "--follow gives events as they come, %s what "
                                  "they add up to: one of them at a time",
                                  view->name);
    chosen_too.source_of = argc > 1 ? argv[1] : NULL;
    if (sp_reader_open(argv[0], &reader, &fault) < 0)
        return sp_trace_complain(argv[0], &fault);
    const bool all = chosen->kinds.count == 0 && chosen->category == NULL &&
                     chosen->file == NULL && !chosen->json;
    status = view != NULL ? show_view(view, chosen, argv[0], reader)
             : all        ? show_summary(chosen, argv[0], reader)
                          : show_events(chosen, argv[0], reader);
    sp_reader_free(reader);
    return status;
}
