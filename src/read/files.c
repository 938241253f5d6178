/* Files by what was done to them. */
#include <string.h>

#include "read/uses.h"

const char *const sp_file_ways[] = {
    [SP_FILE_READ] = "read",      [SP_FILE_WRITTEN] = "write",
    [SP_FILE_CREATED] = "create", [SP_FILE_REMOVED] = "remove",
    [SP_FILE_CHANGED] = "change", [SP_FILE_FAILED] = "failed",
    [SP_FILE_DENIED] = "denied",  NULL};

static bool has_word(const struct sp_json_node *text, const char *word)
{
    return text != NULL && memmem(text->text, text->size, word, strlen(word)) != NULL;
}

/* What the kernel saw (`op`, `flags`), or what Python asked for (`mode`). */
bool sp_open_changes(const struct sp_tape *tape)
{
    const struct sp_json_node *op = sp_tape_text(tape, "op");
    const struct sp_json_node *mode = sp_tape_text(tape, "mode");
    const struct sp_json_node *flags = sp_tape_text(tape, "flags");
    if (op != NULL && !sp_node_is(op, "read"))
        return true;
    if (has_word(flags, "O_CREAT") || has_word(flags, "O_TRUNC"))
        return true;
    if (mode == NULL)
        return false;
    for (uint32_t i = 0; i < mode->size; i++)
        if (strchr("wax+", mode->text[i]) != NULL && mode->text[i] != '\0')
            return true;
    return false;
}

static void add(struct sp_uses *u, const char *key, unsigned way,
                const struct sp_read_event *e)
{
    const struct sp_json_node *path = sp_tape_text(e->tape, key);
    if (path != NULL && path->size > 0)
        sp_uses_add(u, path->text, path->size, way, e);
}

static unsigned way_of_open(const struct sp_tape *tape)
{
    const struct sp_json_node *mode = sp_tape_text(tape, "mode");
    if (!sp_open_changes(tape))
        return SP_FILE_READ;
    return has_word(sp_tape_text(tape, "flags"), "O_EXCL") || has_word(mode, "x")
               ? SP_FILE_CREATED
               : SP_FILE_WRITTEN;
}

/* What becomes of `path`, and whether `to` is made; of any other operation the attributes are
 * what changes. */
static const struct {
    const char *op;
    unsigned way;
    bool path;
    bool to;
} changes[] = {
    {"mkdir", SP_FILE_CREATED, true, false},
    {"mknod", SP_FILE_CREATED, true, false},
    {"symlink", SP_FILE_CREATED, true, false},
    {"link", SP_FILE_CREATED, false, true},
    {"rename", SP_FILE_REMOVED, true, true},
    {"remove", SP_FILE_REMOVED, true, false},
    {"rmdir", SP_FILE_REMOVED, true, false},
    {"truncate", SP_FILE_WRITTEN, true, false},
};

static void add_change(struct sp_uses *u, const struct sp_read_event *e)
{
    const struct sp_json_node *op = sp_tape_text(e->tape, "op");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (sp_node_is(op, changes[i].op)) {
            if (changes[i].path)
                add(u, "path", changes[i].way, e);
            if (changes[i].to)
                add(u, "to", SP_FILE_CREATED, e);
            return;
        }
    add(u, "path", SP_FILE_CHANGED, e);
}

static void add_denied(struct sp_uses *u, const struct sp_read_event *e)
{
    if (!sp_node_is(sp_tape_text(e->tape, "category"), "fs"))
        return;
    if (sp_node_is(sp_tape_text(e->tape, "action"), "observe"))
        return; /* it was done: its own event is there too */
    add(u, sp_tape_text(e->tape, "path") != NULL ? "path" : "target", SP_FILE_DENIED,
        e);
}

void sp_files_add(struct sp_uses *u, const struct sp_read_event *e)
{
    if (e->tape == NULL)
        return;
    const bool failed =
        sp_tape_int(e->tape, "errno", 0) > 0 || sp_tape_true(e->tape, "expected");
    switch (e->kind) {
    case SP_KIND_OPEN:
        add(u, "path", failed ? SP_FILE_FAILED : way_of_open(e->tape), e);
        break;
    case SP_KIND_FILE:
        if (failed)
            add(u, "path", SP_FILE_FAILED, e);
        else
            add_change(u, e);
        break;
    case SP_KIND_VIOLATION:
        add_denied(u, e);
        break;
    default:
        break;
    }
}
