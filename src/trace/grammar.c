#include "trace/grammar.h"

#include <string.h>

/* Every function here takes a position and returns the one behind what it read, or NULL
 * with *bad set. The newline that follows the line is part of nothing and stops them all, so
 * that none has to look for the end. */

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* Marks the top bit of each of 8 bytes that ends the plain part of a string: a quote, a
 * backslash, a control character or a byte of a longer UTF-8 sequence. A borrow may mark bytes
 * above a marked one too; the lowest mark is exact. */
static uint64_t not_plain(uint64_t v)
{
    const uint64_t quote = v ^ (ONES * '"');
    const uint64_t backslash = v ^ (ONES * '\\');
    return ((v - ONES * 0x20) | (quote - ONES) | (backslash - ONES) | v) & HIGHS;
}

/* 8 bytes, the first in the lowest. */
static uint64_t load(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static const char *skip_plain(const char *p)
{
    for (;; p += 8) {
        const uint64_t marks = not_plain(load(p));
        if (marks != 0)
            return p + __builtin_ctzll(marks) / 8;
    }
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *escape(const char *p, const char **bad)
{
    const char *start = p++;
    if (*p == 'u') {
        for (int i = 1; i <= 4; i++)
            if (!is_hex(p[i])) {
                *bad = p + i;
                return NULL;
            }
        return p + 5;
    }
    if (*p != '\0' && strchr("\"\\/bfnrt", *p) != NULL)
        return p + 1;
    *bad = start;
    return NULL;
}

/* A sequence of two to four bytes (RFC 3629). */
static const char *sequence(const char *p, const char **bad)
{
    const unsigned char *c = (const unsigned char *)p;
    *bad = p;
    if (c[0] < 0xc2 || c[0] > 0xf4)
        return NULL;
    const int n = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    for (int i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return NULL;
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return NULL;
    return p + n;
}

/* p is behind the opening quote. */
static const char *string(const char *p, const char **bad)
{
    while (p != NULL) {
        p = skip_plain(p);
        if (*p == '"')
            return p + 1;
        if (*p == '\\') {
            p = escape(p, bad);
        } else if ((unsigned char)*p >= 0x80) {
            p = sequence(p, bad);
        } else {
            *bad = p;
            return NULL;
        }
    }
    return NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *digits(const char *p, const char **bad)
{
    if (!is_digit(*p)) {
        *bad = p;
        return NULL;
    }
    while (is_digit(*p))
        p++;
    return p;
}

static const char *number(const char *p, const char **bad)
{
    if (*p == '-')
        p++;
    if (*p == '0') {
        p++;
    } else {
        p = digits(p, bad);
        if (p == NULL)
            return NULL;
    }
    if (*p == '.') {
        p = digits(p + 1, bad);
        if (p == NULL)
            return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-')
            p++;
        p = digits(p, bad);
    }
    return p;
}

static const char *word(const char *p, const char *text, const char **bad)
{
    for (; *text != '\0'; text++, p++)
        if (*p != *text) {
            *bad = p;
            return NULL;
        }
    return p;
}

static const char *scalar(const char *p, const char **bad)
{
    switch (*p) {
    case '"':
        return string(p + 1, bad);
    case 't':
        return word(p, "true", bad);
    case 'f':
        return word(p, "false", bad);
    case 'n':
        return word(p, "null", bad);
    default:
        return number(p, bad);
    }
}

static const char *spaces(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* A member's name and colon; p is at the name. */
static const char *name(const char *p, const char **bad)
{
    if (*p != '"') {
        *bad = p;
        return NULL;
    }
    p = string(p + 1, bad);
    if (p == NULL)
        return NULL;
    p = spaces(p);
    if (*p != ':') {
        *bad = p;
        return NULL;
    }
    return spaces(p + 1);
}

/* Integers and commas, as runs have them by the thousand: p is at a value in an array. Stops
 * before the first value that is anything else. */
static const char *integers(const char *p)
{
    for (;;) {
        const char *q = p;
        if (*q == '-')
            q++;
        if (*q < '1' || *q > '9')
            return p;
        do
            q++;
        while (is_digit(*q));
        if (*q != ',')
            return p;
        p = q + 1;
    }
}

/* Reads from the value at p up to the end of what encloses all of it. Bit i of `objects`:
 * whether depth i is an object (else an array). */
static const char *value(const char *p, const char **bad)
{
    uint64_t objects = 0;
    unsigned depth = 0;
    for (;;) {
        /* p is at a value */
        if (*p == '{' || *p == '[') {
            const bool object = *p == '{';
            if (depth == SP_GRAMMAR_DEPTH_MAX)
                break;
            objects = (objects & ~(UINT64_C(1) << depth)) | ((uint64_t)object << depth);
            depth++;
            p = spaces(p + 1);
            if (*p != (object ? '}' : ']')) {
                p = object ? name(p, bad) : spaces(integers(p));
                if (p == NULL)
                    return NULL;
                continue;
            }
        } else {
            p = scalar(p, bad);
            if (p == NULL)
                return NULL;
            p = spaces(p);
        }
        /* p is behind a value, or at the end of an empty container */
        for (;;) {
            if (depth == 0)
                return p;
            const bool object = objects >> (depth - 1) & 1;
            if (*p == ',') {
                p = spaces(p + 1);
                if (object)
                    p = name(p, bad);
                if (p == NULL)
                    return NULL;
                break;
            }
            if (*p != (object ? '}' : ']')) {
                *bad = p;
                return NULL;
            }
            depth--;
            p = spaces(p + 1);
        }
    }
    *bad = p;
    return NULL;
}

bool sp_grammar_check(const char *line, size_t size, size_t *ret_bad)
{
    const char *bad = line;
    const char *p = line[0] == '{' ? value(line, &bad) : NULL;
    if (p != NULL)
        bad = p;
    *ret_bad = (size_t)(bad - line);
    return p == line + size;
}

bool sp_grammar_find(const char *line, size_t size, const char *key,
                     const char **ret_value, size_t *ret_size)
{
    const size_t length = strlen(key);
    const char *bad = line;
    const char *p = spaces(line + 1);
    while (p < line + size && *p == '"') {
        const bool found = strncmp(p + 1, key, length) == 0 && p[1 + length] == '"';
        const char *start = name(p, &bad);
        p = start == NULL ? NULL : value(start, &bad);
        if (p == NULL)
            return false;
        if (found) {
            *ret_value = start;
            while (p > start && (p[-1] == ' ' || p[-1] == '\t' || p[-1] == '\r'))
                p--;
            *ret_size = (size_t)(p - start);
            return true;
        }
        if (*p != ',')
            return false;
        p = spaces(p + 1);
    }
    return false;
}

bool sp_grammar_uint(const char *text, size_t size, uint64_t *ret_value)
{
    uint64_t v = 0;
    if (size == 0 || (size > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < size; i++) {
        if (!is_digit(text[i]))
            return false;
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *ret_value = v;
    return true;
}
