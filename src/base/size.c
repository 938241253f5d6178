#include "base/size.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},         {"B", 1},      {"K", 1024.0},   {"KiB", 1024.0}, {"M", 0x1p20},
    {"MiB", 0x1p20}, {"G", 0x1p30}, {"GiB", 0x1p30}, {"T", 0x1p40},   {"TiB", 0x1p40},
    {"kB", 1e3},     {"KB", 1e3},   {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
};

int sp_size_parse(const char *text, uint64_t *ret_bytes, struct sp_error *reterr)
{
    size_t digits = strspn(text, "0123456789.");
    const char *unit = text + digits;
    const char *point = memchr(text, '.', digits);
    double scale = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, unit) == 0)
            scale = units[i].bytes;
    if (digits == 0 || digits > 30 || scale == 0 || text[0] == '.' ||
        (point != NULL &&
         memchr(point + 1, '.', digits - (size_t)(point + 1 - text)) != NULL))
        return sp_fail(reterr, SP_E_USAGE,
                       "'%s' is not a size (write 64MiB, 512M, 1GiB, or bytes)", text);
    /* Whole numbers exactly, also beyond what a double holds. */
    double bytes = strtod(text, NULL) * scale;
    if (bytes > (double)SP_SIZE_MAX_BYTES)
        return sp_fail(reterr, SP_E_USAGE, "'%s' is more than 1 EiB", text);
    if (bytes < 1)
        return sp_fail(reterr, SP_E_USAGE, "'%s' is nothing: a size is at least 1 byte",
                       text);
    uint64_t whole = (uint64_t)bytes;
    *ret_bytes = point == NULL && scale == 1
                     ? strtoull(text, NULL, 10)
                     : whole + (bytes - (double)whole >= 0.5 ? 1 : 0);
    return 0;
}

void sp_size_text(uint64_t bytes, char *to, size_t size)
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    int i = -1;
    double value = (double)bytes;
    while (value >= 1024 && i < 3) {
        value /= 1024;
        i++;
    }
    if (i < 0)
        snprintf(to, size, "%llu bytes", (unsigned long long)bytes);
    else
        snprintf(to, size, "%.4g %s", value, names[i]);
}
