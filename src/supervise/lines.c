#include "supervise/lines.h"

#include <stdbool.h>

#define LINE_MAX 0x7fffffff

static int line_of(int64_t line)
{
    return line > 0 && line <= LINE_MAX ? (int)line : 0;
}

int sp_lines_numbers(const uint8_t *table, size_t size, int first, uint64_t offset)
{
    int64_t line = first;
    uint64_t at = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line_of(line);
}

int sp_lines_table(const uint8_t *table, size_t size, int first, uint64_t offset)
{
    int64_t line = first;
    uint64_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t step = (int8_t)table[i + 1];
        end += table[i];
        if (step != -128)
            line += step;
        if (offset < end)
            return step == -128 ? 0 : line_of(line);
    }
    return 0;
}

/* Six bits a byte, the lowest first; bit 6 says that more come. */
static uint64_t varint(const uint8_t *table, size_t size, size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < size && shift < 60; shift += 6) {
        uint8_t byte = table[(*at)++];
        value |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            break;
    }
    return value;
}

static int64_t svarint(const uint8_t *table, size_t size, size_t *at)
{
    uint64_t value = varint(table, size, at);
    int64_t half = (int64_t)(value >> 1);
    return value & 1 ? -half : half;
}

enum {
    ONE_LINE_FIRST = 10, /* up to 12: that many less this, with two columns in bytes */
    ONE_LINE_LAST = 12,
    NO_COLUMNS = 13,
    LONG = 14,
    NO_LOCATION = 15,
};

int sp_lines_locations(const uint8_t *table, size_t size, int first, uint64_t unit)
{
    int64_t line = first;
    uint64_t end = 0;
    for (size_t at = 0; at < size;) {
        uint8_t head = table[at++];
        unsigned code = head >> 3 & 15;
        end += (head & 7) + 1u;
        if (code == NO_COLUMNS || code == LONG)
            line += svarint(table, size, &at);
        else if (code >= ONE_LINE_FIRST && code <= ONE_LINE_LAST)
            line += code - ONE_LINE_FIRST;
        if (unit < end)
            return code == NO_LOCATION || !(head & 0x80) ? 0 : line_of(line);
        /* The next entry is the next byte with its high bit set. */
        while (at < size && !(table[at] & 0x80))
            at++;
    }
    return 0;
}
