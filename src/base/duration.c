#include "base/duration.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"", 1000000000u}, {"s", 1000000000u},  {"ms", 1000000u},      {"us", 1000u},
    {"ns", 1u},        {"m", 60000000000u}, {"h", 3600000000000u},
};

static uint64_t unit_ns(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ns;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The digits before and after the point, as a count of `unit`. Saturates just above the
 * maximum, so that the caller has one comparison to make. */
static uint64_t scaled(const char *text, const char *end, uint64_t unit)
{
    uint64_t ns = 0;
    const char *p = text;
    for (; p < end && *p != '.'; p++) {
        if (ns > SP_DURATION_MAX_NS)
            return ns;
        ns = ns * 10 + (uint64_t)(*p - '0') * unit;
    }
    uint64_t place = unit;
    for (p += p < end; p < end; p++) {
        place /= 10;
        ns += (uint64_t)(*p - '0') * place;
    }
    return ns;
}

int sp_duration_parse(const char *text, uint64_t *ret_ns, struct sp_error *reterr)
{
    const char *end = text;
    unsigned digits = 0;
    unsigned points = 0;
    for (; is_digit(*end) || *end == '.'; end++) {
        digits += is_digit(*end);
        points += *end == '.';
    }
    uint64_t unit = unit_ns(end);
    if (digits == 0 || points > 1 || unit == 0)
        return sp_fail(reterr, SP_E_USAGE,
                       "'%s' is not a duration (write 10s, 500ms, 2m, or seconds)",
                       text);
    uint64_t ns = scaled(text, end, unit);
    if (ns == 0)
        return sp_fail(reterr, SP_E_USAGE,
                       "'%s' is no time at all: a duration is more than 0", text);
    if (ns > SP_DURATION_MAX_NS)
        return sp_fail(reterr, SP_E_USAGE, "'%s' is longer than a year", text);
    *ret_ns = ns;
    return 0;
}
