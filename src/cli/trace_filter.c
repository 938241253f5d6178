#include "cli/trace_filter.h"

#include <fnmatch.h>
#include <string.h>

#include "cli/trace_commands.h"

#define GLOB_TEXT_MAX 4096u

void sp_event_filter_make(const struct sp_show_options *options,
                          struct sp_event_filter *ret_filter)
{
    *ret_filter = (struct sp_event_filter){.options = options,
                                           .any_kind = options->kinds.count == 0};
    for (size_t i = 0; i < options->kinds.count; i++) {
        const int kind = sp_read_kind_find(options->kinds.items[i]);
        if (kind == SP_KIND_RUN) { /* what a run holds */
            ret_filter->kinds[SP_KIND_CALL] = true;
            ret_filter->kinds[SP_READ_RETURN] = true;
        } else if (kind >= 0) {
            ret_filter->kinds[kind] = true;
        }
    }
}

/* Of a text such as "file:line", the part before the last colon, when `has_line`. */
static bool glob_matches(const char *glob, struct sp_text text, bool has_line)
{
    char path[GLOB_TEXT_MAX];
    size_t size = text.size < sizeof path ? text.size : sizeof path - 1;
    memcpy(path, text.data, size);
    path[size] = '\0';
    if (has_line) {
        char *colon = strrchr(path, ':');
        if (colon != NULL)
            *colon = '\0';
    }
    if (fnmatch(glob, path, 0) == 0)
        return true;
    const char *base = strrchr(path, '/');
    return base != NULL && strchr(glob, '/') == NULL && fnmatch(glob, base + 1, 0) == 0;
}

static bool file_matches(const char *glob, const struct sp_read_event *e)
{
    static const char *const keys[] = {"path", "file", "to", "at", "program"};
    if (e->tape == NULL)
        return e->function != NULL && glob_matches(glob, e->function->file, false);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct sp_json_node *node = sp_tape_text(e->tape, keys[i]);
        if (node != NULL && glob_matches(glob, (struct sp_text){node->text, node->size},
                                         strcmp(keys[i], "at") == 0))
            return true;
    }
    return false;
}

bool sp_event_filter_matches(const struct sp_event_filter *f,
                             const struct sp_read_event *e)
{
    if (!f->any_kind && (e->kind < 0 || !f->kinds[e->kind]))
        return false;
    if (f->options->category != NULL) {
        const struct sp_text category = sp_event_category(e);
        if (category.size != strlen(f->options->category) ||
            memcmp(category.data, f->options->category, category.size) != 0)
            return false;
    }
    return f->options->file == NULL || file_matches(f->options->file, e);
}
