#include "supervise/shrugged.h"

#include <stdio.h>
#include <string.h>

/* Who tries what; programs by their names alone. */
static const struct {
    const char *library; /* end of its file's path */
    const char *operation;
    const char *targets[8];
} habits[] = {
    /* find_library: what the loader knows, else what a compiler would find */
    {"/ctypes/util.py",
     "exec",
     {"ldconfig", "gcc", "cc", "ld", "objdump", "dump", "crle"}},
    {"/platform.py", "exec", {"uname", "file"}},
    {"/uuid.py", "exec", {"ip", "ifconfig", "arp", "lanscan", "netstat"}},
    {"/webbrowser.py", "exec", {"xdg-settings"}},
    {"/matplotlib/font_manager.py", "exec", {"fc-list"}},
    {"/loky/backend/context.py", "exec", {"lscpu"}},
    /* how pip names itself to a server, whether it asks one or not */
    {"/distro/distro.py", "exec", {"lsb_release", "uname"}},
    {"/pip/_internal/network/session.py", "exec", {"rustc", "rustup"}},
    /* whether there is IPv6, when it is imported */
    {"/urllib3/util/connection.py", "bind", {"[::1]:0"}},
};

/* On the way from a library to the call. */
static const char *const carriers[] = {"/subprocess.py", "/os.py"};

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t n = strlen(end);
    return size >= n && memcmp(text + size - n, end, n) == 0;
}

static bool carries(const char *file, size_t size)
{
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (ends_with(file, size, carriers[i]))
            return true;
    return false;
}

/* The file of the first frame that is no carrier, of ["FILE:LINE NAME", ...]; false: there is none.
 * What would need escapes in JSON is no library of the table. */
static bool calling_file(const struct sp_buffer *stack, char *to, size_t size)
{
    size_t at = 0;
    while (at < stack->size) {
        const char *start = memchr(stack->data + at, '"', stack->size - at);
        if (start++ == NULL)
            return false;
        size_t left = (size_t)(stack->data + stack->size - start);
        const char *end = memchr(start, '"', left);
        const char *colon = memchr(start, ':', left);
        if (end == NULL || colon == NULL || colon > end)
            return false;
        size_t n = (size_t)(colon - start);
        if (!carries(start, n)) {
            snprintf(to, size, "%.*s", (int)n, start);
            return n < size && memchr(start, '\\', n) == NULL;
        }
        at = (size_t)(end + 1 - stack->data);
    }
    return false;
}

bool sp_shrugged(const struct sp_supervisor *s, const char *operation,
                 const char *target, const struct sp_place *place)
{
    char file[1024];
    const char *slash = strcmp(operation, "exec") == 0 ? strrchr(target, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : target;
    if (!calling_file(&place->stack, file, sizeof file) || sp_file_reviewed(s, file))
        return false;
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        if (strcmp(habits[i].operation, operation) != 0 ||
            !ends_with(file, strlen(file), habits[i].library))
            continue;
        const char *const *known = habits[i].targets;
        for (size_t k = 0; k < 8 && known[k] != NULL; k++)
            if (strcmp(known[k], name) == 0)
                return true;
    }
    return false;
}
