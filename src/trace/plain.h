/* Eight bytes of a string at a time: which of them can stand in JSON as they are. */
#ifndef SP_TRACE_PLAIN_H
#define SP_TRACE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SP_PLAIN_ONES  0x0101010101010101u
#define SP_PLAIN_HIGHS 0x8080808080808080u

/* 8 bytes, the first in the lowest. */
static inline uint64_t sp_plain_load(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Marks the top bit of each byte that ends the plain part of a string: a quote, a backslash, a
 * control character or a byte of a longer UTF-8 sequence. A borrow may mark bytes above a marked
 * one too; the lowest mark is exact, and no mark means none. */
static inline uint64_t sp_plain_marks(uint64_t v)
{
    const uint64_t quote = v ^ (SP_PLAIN_ONES * '"');
    const uint64_t backslash = v ^ (SP_PLAIN_ONES * '\\');
    return ((v - SP_PLAIN_ONES * 0x20) | (quote - SP_PLAIN_ONES) |
            (backslash - SP_PLAIN_ONES) | v) &
           SP_PLAIN_HIGHS;
}

/* Whether all of a text can stand in a line as it is: no DEL in it either, which JSON allows and
 * our lines escape. */
static inline bool sp_plain_all(const char *text, size_t size)
{
    uint64_t marks = 0;
    while (size >= 8) {
        const uint64_t v = sp_plain_load(text);
        marks |= sp_plain_marks(v) | ((v ^ SP_PLAIN_ONES * 0x7f) - SP_PLAIN_ONES);
        text += 8;
        size -= 8;
    }
    uint64_t rest = SP_PLAIN_ONES * ' ';
    memcpy(&rest, text, size);
    marks |= sp_plain_marks(rest) | ((rest ^ SP_PLAIN_ONES * 0x7f) - SP_PLAIN_ONES);
    return (marks & SP_PLAIN_HIGHS) == 0;
}

#endif
