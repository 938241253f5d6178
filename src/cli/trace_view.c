/* What the views of `show` share: rows, paths, times. */
#include "cli/trace_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sp_view_row(struct sp_view_out *out)
{
    struct sp_buffer *row = &out->row;
    sp_buffer_text(&out->json, "}\n");
    sp_read_put_harmless(row, out->json.data, out->json.size);
    if (!out->json.failed && !row->failed)
        fwrite(row->data, 1, row->size, stdout);
    sp_buffer_clear(&out->json);
    sp_buffer_clear(row);
}

struct sp_text sp_view_shortened(const struct sp_view_out *out, struct sp_text path,
                                 bool *ret_own)
{
    const struct sp_buffer *folder = &out->folder;
    *ret_own = folder->size > 0 && path.size > folder->size + 1 &&
               memcmp(path.data, folder->data, folder->size) == 0 &&
               path.data[folder->size] == '/';
    if (!*ret_own)
        return path;
    const uint32_t skip = (uint32_t)folder->size + 1;
    return (struct sp_text){path.data + skip, path.size - skip};
}

void sp_view_put_path(struct sp_view_out *out, struct sp_text path, bool dot)
{
    bool own;
    const struct sp_text shown = sp_view_shortened(out, path, &own);
    if (own && dot)
        sp_screen_format(&out->screen, "./");
    sp_screen_tail(&out->screen, shown);
}

static bool has(struct sp_text path, const char *part)
{
    return memmem(path.data, path.size, part, strlen(part)) != NULL;
}

static bool ends(struct sp_text path, const char *end)
{
    const size_t size = strlen(end);
    return path.size >= size && memcmp(path.data + path.size - size, end, size) == 0;
}

bool sp_view_is_library(struct sp_text path)
{
    return has(path, "/lib/python") || has(path, "/site-packages/") ||
           has(path, "/dist-packages/") || has(path, ".so.") || ends(path, ".so") ||
           ends(path, "/pyvenv.cfg") || ends(path, "._pth") ||
           ends(path, "/pybuilddir.txt");
}

const char *sp_view_time(uint64_t ns)
{
    static char buffers[4][32];
    static unsigned turn;
    char *to = buffers[turn++ % 4];
    if (ns < 1000)
        snprintf(to, sizeof buffers[0], "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(to, sizeof buffers[0], "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(to, sizeof buffers[0], "%.1f ms", (double)ns / 1e6);
    else
        snprintf(to, sizeof buffers[0], "%.2f s", (double)ns / 1e9);
    return to;
}
