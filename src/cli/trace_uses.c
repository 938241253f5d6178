/* show --files and --network: what was used, how, and by which lines of the program. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/trace_view.h"
#include "read/uses.h"

#define PLACE_COLUMN 20u
#define NAME_COLUMN  40u

struct state {
    struct sp_uses uses;
    const char *const *ways;
    const char *key;  /* of the name, in JSON */
    const char *what; /* what the rows are */
    bool paths;
};

/* What matters most comes first: 0 denied, 1 changed, 2 read, 3 failed only, 4 libraries. */
static unsigned rank_of(const struct state *state, uint32_t i)
{
    const uint64_t *counts = state->uses.uses[i].counts;
    const struct sp_tally_item *item = &state->uses.names.items[i];
    if (!state->paths)
        return counts[SP_NETWORK_DENIED] > 0 ? 0 : 1;
    if (counts[SP_FILE_DENIED] > 0)
        return 0;
    if (counts[SP_FILE_WRITTEN] + counts[SP_FILE_CREATED] + counts[SP_FILE_REMOVED] +
            counts[SP_FILE_CHANGED] >
        0)
        return 1;
    if (sp_view_is_library((struct sp_text){item->text, item->size}))
        return 4;
    return counts[SP_FILE_READ] > 0 ? 2 : 3;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void put_counts(struct sp_screen *s, const struct state *state,
                       const struct sp_use *use, unsigned rank)
{
    const char *separator = "";
    for (size_t way = 0; state->ways[way] != NULL; way++) {
        if (use->counts[way] == 0)
            continue;
        const bool denied = rank == 0 && state->ways[way + 1] == NULL;
        sp_screen_format(s, "%s", separator);
        if (denied)
            sp_screen_style(s, SP_STYLE_BAD);
        sp_screen_format(s, "%s %s", state->ways[way],
                         sp_screen_number(use->counts[way]));
        if (denied)
            sp_screen_style(s, SP_STYLE_PLAIN);
        separator = ", ";
    }
}

/* The line that did it most often, and how many others did. */
static void put_places(struct sp_view_out *out, const struct state *state,
                       const struct sp_use *use)
{
    uint32_t most = 0;
    if (use->places_count == 0) {
        sp_screen_format(&out->screen, "-");
        return;
    }
    for (uint32_t i = 1; i < use->places_count; i++)
        if (use->places[i].count > use->places[most].count)
            most = i;
    const struct sp_tally_item *item =
        &state->uses.places.items[use->places[most].place];
    const struct sp_text place = {item->text, item->size};
    const char *slash = memrchr(place.data, '/', place.size);
    const size_t skip = slash == NULL ? 0 : (size_t)(slash + 1 - place.data);
    sp_screen_text(&out->screen, place.data + skip, place.size - skip);
    if (use->places_count > 1)
        sp_screen_format(&out->screen, " +%u", (unsigned)(use->places_count - 1));
}

static void put_use(struct sp_view_out *out, const struct state *state, uint32_t i,
                    unsigned rank)
{
    const struct sp_use *use = &state->uses.uses[i];
    const struct sp_tally_item *item = &state->uses.names.items[i];
    struct sp_screen *s = &out->screen;
    put_counts(s, state, use, rank);
    sp_screen_column(s, PLACE_COLUMN);
    put_places(out, state, use);
    sp_screen_column(s, NAME_COLUMN);
    if (state->paths)
        sp_view_put_path(out, (struct sp_text){item->text, item->size}, true);
    else
        sp_screen_text(s, item->text, item->size);
    if (use->host > 0) {
        const struct sp_tally_item *host = &state->uses.hosts.items[use->host - 1];
        sp_screen_format(s, " (");
        sp_screen_text(s, host->text, host->size);
        sp_screen_format(s, ")");
    }
    sp_screen_end(s);
}

static void put_json(struct sp_view_out *out, const struct state *state, uint32_t i)
{
    const struct sp_use *use = &state->uses.uses[i];
    const struct sp_tally_item *item = &state->uses.names.items[i];
    struct sp_buffer *b = &out->json;
    sp_buffer_text(b, "{");
    sp_json_key(b, state->key);
    sp_json_string(b, item->text, item->size);
    if (use->host > 0) {
        const struct sp_tally_item *host = &state->uses.hosts.items[use->host - 1];
        sp_json_key(b, "host");
        sp_json_string(b, host->text, host->size);
    }
    for (size_t way = 0; state->ways[way] != NULL; way++) {
        sp_json_key(b, state->ways[way]);
        sp_json_uint(b, use->counts[way]);
    }
    sp_json_key(b, "by");
    sp_buffer_text(b, "[");
    for (uint32_t p = 0; p < use->places_count; p++) {
        const struct sp_tally_item *place =
            &state->uses.places.items[use->places[p].place];
        sp_buffer_text(b, p > 0 ? ",{" : "{");
        sp_json_key(b, "at");
        sp_json_string(b, place->text, place->size);
        sp_json_key(b, "count");
        sp_json_uint(b, use->places[p].count);
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "]");
    sp_json_key(b, "elsewhere");
    sp_json_uint(b, use->elsewhere);
    sp_view_row(out);
}

static void put_head(struct sp_view_out *out, const struct state *state)
{
    struct sp_screen *s = &out->screen;
    sp_screen_style(s, SP_STYLE_STRONG);
    sp_screen_format(s, "what");
    sp_screen_column(s, PLACE_COLUMN);
    sp_screen_format(s, "by");
    sp_screen_column(s, NAME_COLUMN);
    sp_screen_format(s, "%s", state->what);
    sp_screen_end(s);
}

static int print(void *of, struct sp_view_out *out, struct sp_fault *ret_fault)
{
    (void)ret_fault;
    const struct state *state = of;
    const uint32_t count = state->uses.names.count < state->uses.capacity
                               ? state->uses.names.count
                               : state->uses.capacity;
    if (count > 0 && !out->as_json)
        put_head(out, state);
    for (unsigned rank = 0; rank <= 4; rank++)
        for (uint32_t i = 0; i < count; i++) {
            if (rank_of(state, i) != rank)
                continue;
            if (out->as_json)
                put_json(out, state, i);
            else
                put_use(out, state, i, rank);
        }
    if (out->as_json)
        return 0;
    if (count == 0)
        sp_screen_format(&out->screen, "none that is recorded");
    else if (state->uses.names.unlisted > 0)
        sp_screen_format(&out->screen, "and %s uses of others, which found no room",
                         sp_screen_number(state->uses.names.unlisted));
    if (count == 0 || state->uses.names.unlisted > 0)
        sp_screen_end(&out->screen);
    return 0;
}

/* ---- the views ----------------------------------------------------------------------------- */

static struct state *make(const char *const *ways, const char *key, const char *what)
{
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    sp_uses_init(&state->uses);
    state->ways = ways;
    state->key = key;
    state->what = what;
    return state;
}

static void *make_files(const void *options)
{
    (void)options;
    struct state *state = make(sp_file_ways, "path", "file");
    if (state != NULL)
        state->paths = true;
    return state;
}

static void *make_network(const void *options)
{
    (void)options;
    return make(sp_network_ways, "name", "name or address");
}

static int take_files(void *of, struct sp_view_out *out, const struct sp_read_event *e,
                      struct sp_fault *ret_fault)
{
    struct state *state = of;
    (void)out;
    (void)ret_fault;
    sp_files_add(&state->uses, e);
    return 0;
}

static int take_network(void *of, struct sp_view_out *out,
                        const struct sp_read_event *e, struct sp_fault *ret_fault)
{
    struct state *state = of;
    (void)out;
    (void)ret_fault;
    sp_network_add(&state->uses, e);
    return 0;
}

static void dispose(void *of)
{
    struct state *state = of;
    sp_uses_release(&state->uses);
    free(state);
}

const struct sp_view sp_view_files = {.name = "--files",
                                      .make = make_files,
                                      .take = take_files,
                                      .print = print,
                                      .dispose = dispose};
const struct sp_view sp_view_network = {.name = "--network",
                                        .make = make_network,
                                        .take = take_network,
                                        .print = print,
                                        .dispose = dispose};
