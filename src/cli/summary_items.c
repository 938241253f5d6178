#include "cli/summary_items.h"

#include <stdlib.h>
#include <string.h>

#include "cli/trace_view.h"

#define MORE_COLUMNS 14u /* that ", +N more" needs */
#define REST_COLUMNS 24u /* that ", N of libraries" needs */
#define FEW          4u  /* libraries that are listed by name where all of them fit */

struct sp_text sp_items_last_part(struct sp_text path)
{
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    if (slash == NULL || slash + 1 == path.data + path.size)
        return path;
    return (struct sp_text){slash + 1, (uint32_t)(path.data + path.size - slash - 1)};
}

struct sp_text sp_items_shortened(struct sp_text path, struct sp_text folder)
{
    if (folder.size == 0 || path.size <= folder.size + 1 ||
        memcmp(path.data, folder.data, folder.size) != 0 ||
        path.data[folder.size] != '/')
        return path;
    return (struct sp_text){path.data + folder.size + 1, path.size - folder.size - 1};
}

/* How much a file is the program's own concern: of the folder it ran in, of the interpreter and
 * its packages (there are hundreds, and they tell little), or any other. */
enum concern { CONCERN_OWN, CONCERN_OTHER, CONCERN_LIBRARY };

static enum concern concern_of(struct sp_text path, const struct sp_items_place *place)
{
    static const char own[] = "/bin/python";
    const struct sp_text python = place->python;
    const char *bin = memmem(python.data, python.size, own, sizeof own - 1);
    const size_t prefix = bin == NULL ? 0 : (size_t)(bin - python.data);
    if (sp_view_is_library(path) ||
        (prefix > sizeof "/usr/local" && path.size > prefix &&
         memcmp(path.data, python.data, prefix) == 0 && path.data[prefix] == '/'))
        return CONCERN_LIBRARY;
    return sp_items_shortened(path, place->folder).data != path.data ? CONCERN_OWN
                                                                     : CONCERN_OTHER;
}

static struct sp_text item_at(const struct sp_tally *t, uint32_t i)
{
    return (struct sp_text){t->items[i].text, t->items[i].size};
}

static uint32_t count_of(const struct sp_tally *t, enum concern concern,
                         const struct sp_items_place *place)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; i++)
        count += concern_of(item_at(t, i), place) == concern;
    return count;
}

/* The next of `count` items, unless it does not fit; the first is cut down to its last
 * component. `keep`: columns that what follows them needs. */
static bool put_item(struct sp_screen *s, struct sp_text text, uint32_t shown,
                     uint32_t count, unsigned keep)
{
    if (shown + 1 < count)
        keep += MORE_COLUMNS;
    const bool fits = sp_screen_columns(text) + 2 + keep <= sp_screen_left(s);
    if (shown > 0 && !fits) {
        sp_screen_format(s, ", +%s more", sp_screen_number(count - shown));
        return false;
    }
    if (shown > 0)
        sp_screen_format(s, ", ");
    sp_screen_put(s, fits ? text : sp_items_last_part(text));
    return true;
}

void sp_items_put(struct sp_screen *s, const struct sp_tally *t,
                  const struct sp_items_place *place, bool all_named)
{
    const uint32_t libraries = count_of(t, CONCERN_LIBRARY, place);
    const bool few = all_named || libraries <= FEW;
    const uint32_t count = few ? t->count : t->count - libraries;
    const unsigned keep = few ? 0 : REST_COLUMNS;
    uint32_t shown = 0;
    bool fit = true;
    for (int concern = CONCERN_OWN; concern <= CONCERN_LIBRARY && fit; concern++)
        for (uint32_t i = 0; i < t->count && fit && shown < count; i++) {
            const struct sp_text text = item_at(t, i);
            if ((int)concern_of(text, place) == concern)
                fit = put_item(s, sp_items_shortened(text, place->folder), shown++,
                               count, keep);
        }
    if (!few)
        sp_screen_format(s, "%s%s of libraries", count > 0 ? ", " : "",
                         sp_screen_number(libraries));
}
