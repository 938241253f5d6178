/* Limits by name, and their values as text. */
#include "policy/limit.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/size.h"

static const struct {
    const char *name;
    enum sp_limit_unit unit;
    bool ends;
} limits[SP_LIMIT_COUNT] = {
    [SP_LIMIT_WALL] = {"wall", SP_LIMIT_NS, true},
    [SP_LIMIT_CPU] = {"cpu", SP_LIMIT_NS, true},
    [SP_LIMIT_MEMORY] = {"memory", SP_LIMIT_BYTES, true},
    [SP_LIMIT_PROCESSES] = {"processes", SP_LIMIT_NUMBER, false},
    [SP_LIMIT_OPEN_FILES] = {"open_files", SP_LIMIT_NUMBER, false},
    [SP_LIMIT_FILE_SIZE] = {"file_size", SP_LIMIT_BYTES, false},
    [SP_LIMIT_DISK] = {"disk", SP_LIMIT_BYTES, true},
    [SP_LIMIT_OUTPUT] = {"output", SP_LIMIT_BYTES, true},
    [SP_LIMIT_TRACE] = {"trace", SP_LIMIT_BYTES, false},
};

const char *sp_limit_name(enum sp_limit limit)
{
    SP_BUG_ON((unsigned)limit >= SP_LIMIT_COUNT);
    return limits[limit].name;
}

int sp_limit_find(const char *name)
{
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        if (strcmp(limits[i].name, name) == 0)
            return i;
    return -1;
}

enum sp_limit_unit sp_limit_unit(enum sp_limit limit)
{
    SP_BUG_ON((unsigned)limit >= SP_LIMIT_COUNT);
    return limits[limit].unit;
}

bool sp_limit_ends(enum sp_limit limit)
{
    SP_BUG_ON((unsigned)limit >= SP_LIMIT_COUNT);
    return limits[limit].ends;
}

static int parse_count(const char *text, uint64_t *ret_value, struct sp_error *reterr)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && value <= SP_LIMIT_NUMBER_MAX; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    if (p == text || (*p != '\0' && (*p < '0' || *p > '9')))
        return sp_fail(reterr, SP_E_USAGE, "'%s' is not a number", text);
    if (value == 0 || value > SP_LIMIT_NUMBER_MAX)
        return sp_fail(reterr, SP_E_USAGE, "'%s' is not between 1 and %llu", text,
                       (unsigned long long)SP_LIMIT_NUMBER_MAX);
    *ret_value = value;
    return 0;
}

int sp_limit_parse(enum sp_limit limit, const char *text, uint64_t *ret_value,
                   struct sp_error *reterr)
{
    switch (sp_limit_unit(limit)) {
    case SP_LIMIT_NS:
        return sp_duration_parse(text, ret_value, reterr);
    case SP_LIMIT_BYTES:
        return sp_size_parse(text, ret_value, reterr);
    default:
        return parse_count(text, ret_value, reterr);
    }
}

int sp_limit_from_number(enum sp_limit limit, double number, uint64_t *ret_value,
                         struct sp_error *reterr)
{
    static const double most[] = {[SP_LIMIT_NS] = SP_DURATION_MAX_NS / 1e9,
                                  [SP_LIMIT_BYTES] = SP_SIZE_MAX_BYTES,
                                  [SP_LIMIT_NUMBER] = SP_LIMIT_NUMBER_MAX};
    static const char *const units[] = {
        [SP_LIMIT_NS] = "s", [SP_LIMIT_BYTES] = " bytes", [SP_LIMIT_NUMBER] = ""};
    enum sp_limit_unit unit = sp_limit_unit(limit);
    if (!(number > 0) || number > most[unit])
        return sp_fail(reterr, SP_E_USAGE, "%g is not between 0 and %g%s", number,
                       most[unit], units[unit]);
    uint64_t value = (uint64_t)(unit == SP_LIMIT_NS ? number * 1e9 : number);
    if (value == 0 || (unit != SP_LIMIT_NS && (double)value != number))
        return sp_fail(reterr, SP_E_USAGE, "%g is not a whole number%s%s", number,
                       units[unit][0] != '\0' ? " of" : "", units[unit]);
    *ret_value = value;
    return 0;
}

void sp_limit_text(enum sp_limit limit, uint64_t value, char *to, size_t size)
{
    switch (sp_limit_unit(limit)) {
    case SP_LIMIT_NS:
        snprintf(to, size, "%.4g s", (double)value / 1e9);
        break;
    case SP_LIMIT_BYTES:
        sp_size_text(value, to, size);
        break;
    default:
        snprintf(to, size, "%llu", (unsigned long long)value);
    }
}
