/* show --timeline: events in order, one line each. What happens again and again is one line, and
 * so is what the interpreter and its packages read and import in a row; a pause is a line, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/trace_commands.h"
#include "cli/trace_view.h"
#include "read/uses.h"

#define KIND_COLUMN 12u
#define TEXT_COLUMN 24u
#define PAUSE_NS    (100 * UINT64_C(1000000))
#define TEXT_MAX    (64u << 10) /* of a row in JSON */

/* The row in hand, which is written when another comes. */
struct row {
    bool used;
    bool library; /* of the interpreter and its packages, of several kinds */
    int kind;
    char kind_text[40];
    int64_t pid;
    int64_t tid;
    uint64_t t_ns;
    uint64_t until_ns;
    uint64_t times;
    struct sp_buffer text;
};

struct state {
    struct row row;
    struct sp_screen text; /* what events say is laid out here */
    uint64_t last_ns;      /* of the row that was written last */
    bool any_kind;         /* calls and the like are left out */
};

/* ---- rows ---------------------------------------------------------------------------------- */

static void put_json(struct sp_view_out *out, const struct row *row)
{
    struct sp_buffer *b = &out->json;
    sp_buffer_text(b, "{");
    sp_json_key(b, "t");
    sp_json_uint(b, row->t_ns);
    sp_json_key(b, "until");
    sp_json_uint(b, row->until_ns);
    sp_json_key(b, "times");
    sp_json_uint(b, row->times);
    sp_json_key(b, "kind");
    sp_json_string(b, row->kind_text, strlen(row->kind_text));
    sp_json_key(b, "pid");
    sp_json_int(b, row->pid);
    sp_json_key(b, "tid");
    sp_json_int(b, row->tid);
    sp_json_key(b, "text");
    sp_json_string(b, row->text.size == 0 ? "" : row->text.data, row->text.size);
    sp_view_row(out);
}

static void put_pause(struct sp_view_out *out, const struct state *state)
{
    const uint64_t now = state->row.t_ns;
    if (now < state->last_ns + PAUSE_NS)
        return;
    sp_screen_column(&out->screen, KIND_COLUMN);
    sp_screen_style(&out->screen, SP_STYLE_FAINT);
    sp_screen_format(&out->screen, "... %s", sp_view_time(now - state->last_ns));
    sp_screen_end(&out->screen);
}

static void put_row(struct sp_view_out *out, const struct state *state)
{
    const struct row *row = &state->row;
    struct sp_screen *s = &out->screen;
    put_pause(out, state);
    sp_screen_format(s, "%.6f", (double)row->t_ns / 1e9);
    sp_screen_column(s, KIND_COLUMN);
    sp_screen_style(s, row->library ? SP_STYLE_FAINT : sp_show_style(row->kind));
    sp_screen_text(s, row->kind_text, strlen(row->kind_text));
    sp_screen_column(s, TEXT_COLUMN);
    if (row->times > 1)
        sp_screen_format(s,
                         row->library ? "%s of the interpreter and its packages, %s"
                                      : "(%s times, %s) ",
                         sp_screen_number(row->times),
                         sp_view_time(row->until_ns - row->t_ns));
    if (row->pid != out->pid && row->pid != 0)
        sp_screen_format(s, row->library ? " (%" PRId64 ")" : "(%" PRId64 ") ",
                         row->pid);
    sp_screen_text(s, row->text.size == 0 ? "" : row->text.data, row->text.size);
    sp_screen_end(s);
}

static void flush_row(struct state *state, struct sp_view_out *out)
{
    struct row *row = &state->row;
    if (!row->used)
        return;
    if (out->as_json)
        put_json(out, row);
    else
        put_row(out, state);
    state->last_ns = row->until_ns > state->last_ns ? row->until_ns : state->last_ns;
    row->used = false;
    row->library = false;
    sp_buffer_clear(&row->text);
}

/* ---- events -------------------------------------------------------------------------------- */

static bool is_left_out(const struct state *state, const struct sp_read_event *e)
{
    return state->any_kind &&
           (e->kind == SP_KIND_CALL || e->kind == SP_READ_RETURN ||
            e->kind == SP_KIND_FUNCTION || e->kind == SP_KIND_CHECKPOINT);
}

/* Whether it worked, or nothing was there: libraries are looked for in many places. */
static bool is_search(const struct sp_tape *tape)
{
    const int64_t number = sp_tape_int(tape, "errno", 0);
    return number == 0 || number == ENOENT;
}

/* What a program does not do itself when it imports something. */
static bool is_library(const struct sp_read_event *e)
{
    if (e->tape == NULL || !is_search(e->tape))
        return false;
    if (e->kind ==
        SP_KIND_LOADED) /* of hundreds of modules the program asked for a few */
        return true;
    if (e->kind == SP_KIND_IMPORT) {
        const uint32_t direct = sp_tape_find(e->tape, 0, "direct");
        return direct != 0 && !sp_tape_true(e->tape, "direct");
    }
    if (e->kind != SP_KIND_NATIVE &&
        (e->kind != SP_KIND_OPEN || sp_open_changes(e->tape)))
        return false;
    const struct sp_json_node *path =
        sp_tape_text(e->tape, e->kind == SP_KIND_OPEN ? "path" : "library");
    return path != NULL && sp_view_is_library((struct sp_text){path->text, path->size});
}

static bool continues(const struct row *row, const struct sp_read_event *e,
                      bool library, const struct sp_buffer *text)
{
    if (!row->used || row->library != library || row->pid != e->pid)
        return false;
    if (library)
        return true;
    return row->tid == e->tid && row->kind == e->kind && row->text.size == text->size &&
           strlen(row->kind_text) == e->kind_name.size &&
           memcmp(row->kind_text, e->kind_name.data, e->kind_name.size) == 0 &&
           memcmp(row->text.data, text->data, text->size) == 0;
}

static void begin_row(struct row *row, const struct sp_read_event *e, bool library,
                      const struct sp_buffer *text)
{
    *row = (struct row){.used = true,
                        .library = library,
                        .kind = e->kind,
                        .pid = e->pid,
                        .tid = e->tid,
                        .t_ns = e->t_ns,
                        .until_ns = e->t_ns,
                        .times = 1,
                        .text = row->text};
    const size_t size = e->kind_name.size < sizeof row->kind_text - 1
                            ? e->kind_name.size
                            : sizeof row->kind_text - 1;
    memcpy(row->kind_text, e->kind_name.data, size);
    sp_buffer_append(&row->text, text->data, text->size);
}

/* One alone is shown as it is; with a second one it becomes a row of its own sort. */
static void join_row(struct row *row, const struct sp_read_event *e)
{
    row->times++;
    if (e->t_ns > row->until_ns)
        row->until_ns = e->t_ns;
    if (!row->library)
        return;
    strcpy(row->kind_text, "library");
    sp_buffer_clear(&row->text);
}

/* For people the most telling members and the place, where there is room for them; in JSON all. */
static void lay_out(struct state *state, const struct sp_view_out *out,
                    const struct sp_read_event *e)
{
    struct sp_screen *s = &state->text;
    s->width = out->as_json ? 0 : out->screen.width;
    s->used = TEXT_COLUMN;
    s->cut = false;
    if (out->as_json || !sp_show_leads(s, e)) {
        sp_show_text(s, e, TEXT_COLUMN);
        return;
    }
    const struct sp_json_node *at =
        e->tape == NULL ? NULL : sp_tape_text(e->tape, "at");
    if (at != NULL) {
        bool own;
        sp_screen_format(s, "  ");
        sp_screen_put(
            s, sp_view_shortened(out, (struct sp_text){at->text, at->size}, &own));
    }
}

static int take(void *of, struct sp_view_out *out, const struct sp_read_event *e,
                struct sp_fault *ret_fault)
{
    struct state *state = of;
    struct sp_buffer *text = &state->text.line;
    (void)ret_fault;
    if (is_left_out(state, e))
        return 0;
    const bool library = is_library(e);
    sp_buffer_clear(text);
    if (!library || !continues(&state->row, e, library, text))
        lay_out(state, out, e);
    if (text->size > TEXT_MAX)
        text->size = TEXT_MAX;
    if (continues(&state->row, e, library, text)) {
        join_row(&state->row, e);
        return 0;
    }
    flush_row(state, out);
    begin_row(&state->row, e, library, text);
    return 0;
}

static int print(void *of, struct sp_view_out *out, struct sp_fault *ret_fault)
{
    (void)ret_fault;
    flush_row(of, out);
    return 0;
}

static void *make(const void *options)
{
    const struct sp_show_options *chosen = options;
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    sp_screen_init(&state->text, false, 0);
    sp_buffer_init(&state->row.text, SP_SCREEN_LINE_MAX);
    state->any_kind = chosen->kinds.count == 0;
    return state;
}

static void dispose(void *of)
{
    struct state *state = of;
    sp_screen_release(&state->text);
    sp_buffer_release(&state->row.text);
    free(state);
}

const struct sp_view sp_view_timeline = {.name = "--timeline",
                                         .make = make,
                                         .take = take,
                                         .print = print,
                                         .dispose = dispose};
