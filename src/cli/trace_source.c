/* show --source: the text of the program, or of what it compiled. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/trace_commands.h"
#include "cli/trace_view.h"

#define DIGEST_MIN 6u /* digits that a digest may be shortened to */
#define FILE_MAX   4096u

struct state {
    const char *
        wanted; /* borrowed: a file, a glob or the beginning of a digest; NULL: the program */
    uint64_t found;
    struct sp_buffer
        head; /* of the first, kept until it is known whether there are more */
    struct sp_buffer text;
    bool cut;
};

/* ---- which -------------------------------------------------------------------------------- */

static bool name_matches(const char *wanted, const struct sp_json_node *file)
{
    char name[FILE_MAX];
    const size_t size = file->size < sizeof name ? file->size : sizeof name - 1;
    memcpy(name, file->text, size);
    name[size] = '\0';
    const char *slash = strrchr(name, '/');
    return strcmp(wanted, name) == 0 || fnmatch(wanted, name, 0) == 0 ||
           (slash != NULL && strchr(wanted, '/') == NULL &&
            fnmatch(wanted, slash + 1, 0) == 0);
}

static bool digest_matches(const char *wanted, const struct sp_json_node *digest)
{
    const size_t size = strlen(wanted);
    return size >= DIGEST_MIN && size <= digest->size &&
           memcmp(wanted, digest->text, size) == 0;
}

static bool is_wanted(const struct state *state, const struct sp_read_event *e)
{
    const struct sp_json_node *file = sp_tape_text(e->tape, "file");
    const struct sp_json_node *digest = sp_tape_text(e->tape, "digest");
    if (state->wanted == NULL) /* of the program itself the supervisor tells */
        return e->layer.size == 10 && memcmp(e->layer.data, "supervisor", 10) == 0;
    return (file != NULL && name_matches(state->wanted, file)) ||
           (digest != NULL && digest_matches(state->wanted, digest));
}

/* ---- text --------------------------------------------------------------------------------- */

/* Line by line, so that nothing but the ends of lines and tabs acts on a terminal. */
static void put_text(struct sp_screen *s, const char *text, size_t size)
{
    const unsigned width = s->width;
    s->width = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t stop = end == NULL ? size : (size_t)(end - text);
        while (at < stop) {
            const char *tab = memchr(text + at, '\t', stop - at);
            const size_t piece = tab == NULL ? stop - at : (size_t)(tab - text) - at;
            sp_screen_text(s, text + at, piece);
            at += piece;
            if (tab != NULL) {
                sp_buffer_text(&s->line, "\t");
                at++;
            }
        }
        sp_screen_end(s);
        at = stop + 1;
    }
    s->width = width;
}

static void put_head(struct sp_view_out *out, const struct sp_buffer *head)
{
    sp_screen_style(&out->screen, SP_STYLE_STRONG);
    sp_screen_format(&out->screen, "==> ");
    sp_screen_text(&out->screen, head->data, head->size);
    sp_screen_end(&out->screen);
}

static void make_head(struct sp_buffer *head, const struct sp_tape *tape)
{
    const struct sp_json_node *file = sp_tape_text(tape, "file");
    const struct sp_json_node *digest = sp_tape_text(tape, "digest");
    sp_buffer_clear(head);
    if (file != NULL)
        sp_buffer_append(head, file->text, file->size < 1024 ? file->size : 1024);
    sp_buffer_text(head, " ");
    if (digest != NULL)
        sp_buffer_append(head, digest->text, digest->size < 16 ? digest->size : 16);
}

static int take(void *of, struct sp_view_out *out, const struct sp_read_event *e,
                struct sp_fault *ret_fault)
{
    struct state *state = of;
    (void)ret_fault;
    if (e->kind != SP_KIND_SOURCE || !is_wanted(state, e))
        return 0;
    const struct sp_json_node *text = sp_tape_text(e->tape, "text");
    state->cut = state->cut || sp_tape_true(e->tape, "truncated");
    if (out->as_json) {
        state->found++;
        sp_read_event_json(e, &out->json);
        fwrite(out->json.data, 1, out->json.size, stdout);
        sp_buffer_clear(&out->json);
        return 0;
    }
    if (state->found++ == 0) {
        make_head(&state->head, e->tape);
        if (text != NULL)
            sp_buffer_append(&state->text, text->text, text->size);
        return 0;
    }
    if (state->found == 2) {
        put_head(out, &state->head);
        put_text(&out->screen, state->text.data, state->text.size);
    }
    make_head(&state->head, e->tape);
    put_head(out, &state->head);
    if (text != NULL)
        put_text(&out->screen, text->text, text->size);
    return 0;
}

static int print(void *of, struct sp_view_out *out, struct sp_fault *ret_fault)
{
    struct state *state = of;
    if (state->found == 1 && !out->as_json)
        put_text(&out->screen, state->text.data, state->text.size);
    if (state->found == 0)
        return sp_fault_set(
            ret_fault, 0, 0,
            state->wanted == NULL
                ? "it has no text of the program (--kind source lists "
                  "what it has)"
                : "it has no such text (--kind source lists what it has)");
    fflush(stdout);
    if (state->cut)
        sp_cli_error(SP_EXIT_OK,
                     "the trace holds the first MiB of such a long text only");
    return 0;
}

static void *make(const void *options)
{
    const struct sp_show_options *chosen = options;
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    state->wanted = chosen->source_of;
    sp_buffer_init(&state->head, 4096);
    sp_buffer_init(&state->text, 16u << 20);
    return state;
}

static void dispose(void *of)
{
    struct state *state = of;
    sp_buffer_release(&state->head);
    sp_buffer_release(&state->text);
    free(state);
}

const struct sp_view sp_view_source = {
    .name = "--source", .make = make, .take = take, .print = print, .dispose = dispose};
