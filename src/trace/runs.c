#include "trace/runs.h"

#include <string.h>

#include "trace/writer.h"

#define DIGITS_MAX 11 /* of a 32-bit number, with its sign */

static char *put_pair(char *to, uint32_t value)
{
    static const char pairs[] = "000102030405060708091011121314151617181920212223242526"
                                "27282930313233343536373839"
                                "404142434445464748495051525354555657585960616263646566"
                                "67686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    memcpy(to, pairs + 2 * value, 2);
    return to + 2;
}

/* Numbers here are short: most have one to four digits. */
static char *put_number(char *to, uint32_t value)
{
    if (value < 10) {
        *to = (char)('0' + value);
        return to + 1;
    }
    if (value < 100)
        return put_pair(to, value);
    if (value < 1000) {
        *to = (char)('0' + value / 100);
        return put_pair(to + 1, value % 100);
    }
    if (value < 10000)
        return put_pair(put_pair(to, value / 100), value % 100);
    return put_pair(put_pair(put_number(to, value / 10000), value / 100 % 100),
                    value % 100);
}

static char *put_key(char *to, const char *key, size_t size)
{
    memcpy(to, key, size);
    return to + size;
}
#define PUT_KEY(to, key) put_key((to), (key), sizeof(key) - 1)

static char *put_ids(char *to, const int32_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t id = ids[i];
        if (id < 0)
            *to++ = '-';
        to = put_number(to, id < 0 ? 0u - (uint32_t)id : (uint32_t)id);
        *to++ = ',';
    }
    return to - 1;
}

static char *put_times(char *to, const uint32_t *dt, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to = put_number(to, dt[i]);
        *to++ = ',';
    }
    return to - 1;
}

static char *put_positions(char *to, const uint16_t *positions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to = put_number(to, positions[i]);
        *to++ = ',';
    }
    return to - 1;
}

void sp_runs_append(struct sp_buffer *b, const struct sp_trace_run *run)
{
    const size_t numbers =
        2 * (size_t)run->count + run->raised_count + run->resumed_count + 1;
    char *start = sp_buffer_reserve(b, numbers * (DIGITS_MAX + 1) + 64);
    if (start == NULL)
        return;
    char *to = put_number(PUT_KEY(start, ",\"n\":"), run->count);
    to = put_ids(PUT_KEY(to, ",\"f\":["), run->ids, run->count);
    to = put_times(PUT_KEY(to, "],\"dt\":["), run->dt, run->count);
    if (run->raised_count > 0)
        to = put_positions(PUT_KEY(to, "],\"raised\":["), run->raised,
                           run->raised_count);
    if (run->resumed_count > 0)
        to = put_positions(PUT_KEY(to, "],\"resumed\":["), run->resumed,
                           run->resumed_count);
    *to++ = ']';
    sp_buffer_advance(b, (size_t)(to - start));
}
