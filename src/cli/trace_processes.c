/* show --processes: the processes of a run as a tree. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/trace_process.h"
#include "cli/trace_view.h"

#define TIME_COLUMN    8u
#define END_COLUMN     18u
#define TRACED_COLUMN  29u
#define PROGRAM_COLUMN 38u
#define INDENT_MAX     16u /* levels that are shown by their place */

/* ---- what other views show of a process, too ----------------------------------------------- */

static bool is_plain(struct sp_text word)
{
    static const char special[] = " \t\n\"'\\$`&|;<>()*?";
    for (size_t i = 0; i < word.size; i++)
        if (memchr(special, word.data[i], sizeof special - 1) != NULL)
            return false;
    return word.size > 0;
}

static void put_word(struct sp_screen *s, struct sp_text word)
{
    const bool plain = is_plain(word);
    sp_screen_format(s, plain ? "" : "'");
    sp_screen_put(s, word);
    sp_screen_format(s, plain ? "" : "'");
}

/* The program itself is named without its folder. */
static struct sp_text base_name(struct sp_text path)
{
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    if (slash == NULL || slash + 1 == path.data + path.size)
        return path;
    return (struct sp_text){slash + 1, (uint32_t)(path.data + path.size - slash - 1)};
}

void sp_process_put_program(struct sp_screen *s, const struct sp_process *one)
{
    const struct sp_text argv = one->argv;
    if (!one->started)
        sp_screen_format(s, "(fork)");
    else if (argv.size == 0)
        put_word(s, base_name(one->path));
    for (size_t at = 0; at < argv.size;) {
        const struct sp_text word = {argv.data + at, (uint32_t)strlen(argv.data + at)};
        sp_screen_format(s, at > 0 ? " " : "");
        put_word(s, at > 0 ? word : base_name(word));
        at += word.size + 1;
    }
    if (one->argv_cut)
        sp_screen_format(s, " ...");
}

void sp_process_put_end(struct sp_screen *s, const struct sp_process *one)
{
    if (one->end == SP_PROCESS_OPEN) {
        sp_screen_format(s, "no end");
        return;
    }
    if (one->end == SP_PROCESS_ENDED) {
        sp_screen_format(s, "unknown");
        return;
    }
    const bool good = one->end == SP_PROCESS_EXITED && one->end_value == 0;
    if (!good)
        sp_screen_style(s, SP_STYLE_BAD);
    sp_screen_format(
        s, one->end == SP_PROCESS_KILLED ? "signal %" PRId64 : "code %" PRId64,
        one->end_value);
    if (!good)
        sp_screen_style(s, SP_STYLE_PLAIN);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void put_row(struct sp_view_out *out, const struct sp_processes *p,
                    const struct sp_process *one, unsigned depth)
{
    struct sp_screen *s = &out->screen;
    sp_screen_format(s, "%" PRId64, one->pid);
    sp_screen_column(s, TIME_COLUMN);
    sp_screen_format(s, "%s", sp_view_time(sp_process_duration(p, one)));
    sp_screen_column(s, END_COLUMN);
    sp_process_put_end(s, one);
    sp_screen_column(s, TRACED_COLUMN);
    sp_screen_format(s, one->traced ? "traced" : "-");
    sp_screen_column(s, PROGRAM_COLUMN);
    for (unsigned i = 0; i < depth && i < INDENT_MAX; i++)
        sp_screen_format(s, "  ");
    if (depth > INDENT_MAX)
        sp_screen_format(s, "(%u below) ", depth);
    if (one->denied > 0) {
        sp_screen_style(s, SP_STYLE_BAD);
        sp_screen_format(s, "%s denied ", sp_screen_number(one->denied));
        sp_screen_style(s, SP_STYLE_PLAIN);
    }
    sp_process_put_program(s, one);
    sp_screen_end(s);
}

static void put_argv(struct sp_buffer *b, struct sp_text argv)
{
    sp_json_key(b, "argv");
    sp_buffer_text(b, "[");
    for (size_t at = 0; at < argv.size;) {
        const size_t size = strlen(argv.data + at);
        sp_buffer_text(b, at > 0 ? "," : "");
        sp_json_string(b, argv.data + at, size);
        at += size + 1;
    }
    sp_buffer_text(b, "]");
}

static void put_json(struct sp_view_out *out, const struct sp_process *one,
                     unsigned depth)
{
    struct sp_buffer *b = &out->json;
    sp_buffer_text(b, "{");
    sp_json_key(b, "pid");
    sp_json_int(b, one->pid);
    sp_json_key(b, "parent");
    sp_json_int(b, one->parent_pid);
    sp_json_key(b, "depth");
    sp_json_uint(b, depth);
    sp_json_key(b, "start_ns");
    sp_json_uint(b, one->start_ns);
    if (one->end != SP_PROCESS_OPEN) {
        sp_json_key(b, "end_ns");
        sp_json_uint(b, one->end_ns);
    }
    if (one->end == SP_PROCESS_EXITED || one->end == SP_PROCESS_KILLED) {
        sp_json_key(b, one->end == SP_PROCESS_KILLED ? "signal" : "code");
        sp_json_int(b, one->end_value);
    }
    sp_json_key(b, "path");
    sp_json_string(b, one->path.size == 0 ? "" : one->path.data, one->path.size);
    put_argv(b, one->argv);
    if (one->argv_cut)
        sp_buffer_text(b, ",\"argv_cut\":true");
    sp_json_key(b, "started");
    sp_buffer_text(b, one->started ? "true" : "false");
    sp_json_key(b, "traced");
    sp_buffer_text(b, one->traced ? "true" : "false");
    sp_json_key(b, "denied");
    sp_json_uint(b, one->denied);
    sp_view_row(out);
}

static void put_head(struct sp_screen *s)
{
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "pid");
    sp_screen_column(s, TIME_COLUMN);
    sp_screen_format(s, "for");
    sp_screen_column(s, END_COLUMN);
    sp_screen_format(s, "ended");
    sp_screen_column(s, TRACED_COLUMN);
    sp_screen_format(s, "python");
    sp_screen_column(s, PROGRAM_COLUMN);
    sp_screen_format(s, "program");
    sp_screen_end(s);
}

static int print(void *state, struct sp_view_out *out, struct sp_fault *ret_fault)
{
    (void)ret_fault;
    const struct sp_processes *p = state;
    unsigned depth = 0;
    if (!out->as_json)
        put_head(&out->screen);
    for (uint32_t i = sp_processes_first(p); i != SP_PROCESSES_NONE;
         i = sp_processes_behind(p, i, &depth)) {
        if (out->as_json)
            put_json(out, &p->items[i], depth);
        else
            put_row(out, p, &p->items[i], depth);
    }
    if (p->unlisted > 0 && !out->as_json) {
        sp_screen_format(&out->screen, "and %s more, which found no room",
                         sp_screen_number(p->unlisted));
        sp_screen_end(&out->screen);
    }
    return 0;
}

static void *make(const void *options)
{
    (void)options;
    struct sp_processes *p = calloc(1, sizeof *p);
    if (p != NULL)
        sp_processes_init(p);
    return p;
}

static int take(void *state, struct sp_view_out *out, const struct sp_read_event *e,
                struct sp_fault *ret_fault)
{
    (void)out;
    (void)ret_fault;
    sp_processes_add(state, e);
    return 0;
}

static void dispose(void *state)
{
    sp_processes_release(state);
    free(state);
}

const struct sp_view sp_view_processes = {.name = "--processes",
                                          .structure = true,
                                          .make = make,
                                          .take = take,
                                          .print = print,
                                          .dispose = dispose};
