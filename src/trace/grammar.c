#include "trace/grammar.h"

#include <string.h>

#include "trace/plain.h"

/* Every function here takes a position and returns the one behind what it read, or NULL
 * with *bad set. The newline that follows the line is part of nothing and stops them all, so
 * that none has to look for the end. */

static const char *skip_plain(const char *p)
{
    for (;; p += 8) {
        const uint64_t marks = sp_plain_marks(sp_plain_load(p));
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

/* Where in a value reading stands. */
struct nesting {
    uint64_t objects; /* bit i: whether depth i is an object, else an array */
    unsigned depth;
};

/* Opens the container at p. Returns the first thing in it, or its end with *ret_empty set. */
static const char *open_container(const char *p, struct nesting *n, bool *ret_empty,
                                  const char **bad)
{
    const bool object = *p == '{';
    if (n->depth == SP_GRAMMAR_DEPTH_MAX) {
        *bad = p;
        return NULL;
    }
    const uint64_t bit = UINT64_C(1) << n->depth++;
    n->objects = object ? n->objects | bit : n->objects & ~bit;
    p = spaces(p + 1);
    *ret_empty = *p == (object ? '}' : ']');
    if (*ret_empty)
        return p;
    return object ? name(p, bad) : spaces(integers(p));
}

/* From behind a value to the next one, or behind the end of it all (depth 0 then). */
static const char *next_value(const char *p, struct nesting *n, const char **bad)
{
    while (n->depth > 0) {
        const bool object = n->objects >> (n->depth - 1) & 1;
        if (*p == ',') {
            p = spaces(p + 1);
            return object ? name(p, bad) : p;
        }
        if (*p != (object ? '}' : ']')) {
            *bad = p;
            return NULL;
        }
        n->depth--;
        p = spaces(p + 1);
    }
    return p;
}

/* Reads from the value at p up to the end of all that encloses it. */
static const char *values(const char *p, struct nesting n, const char **bad)
{
    do {
        bool empty = true;
        if (*p == '{' || *p == '[') {
            p = open_container(p, &n, &empty, bad);
        } else {
            p = scalar(p, bad);
            p = p == NULL ? NULL : spaces(p);
        }
        if (empty && p != NULL)
            p = next_value(p, &n, bad);
        if (p == NULL)
            return NULL;
    } while (n.depth > 0);
    return p;
}

static const char *value(const char *p, const char **bad)
{
    return values(p, (struct nesting){0}, bad);
}

static bool ends_with(const char *p, const char *bad, const char *line, size_t size,
                      size_t *ret_bad)
{
    *ret_bad = (size_t)((p != NULL ? p : bad) - line);
    return p == line + size;
}

bool sp_grammar_check(const char *line, size_t size, size_t *ret_bad)
{
    const char *bad = line;
    const char *p = line[0] == '{' ? value(line, &bad) : NULL;
    return ends_with(p, bad, line, size, ret_bad);
}

bool sp_grammar_check_from(const char *line, size_t size, size_t from, size_t *ret_bad)
{
    const char *bad = line;
    struct nesting n = {.objects = 1, .depth = 1};
    const char *p = next_value(line + from, &n, &bad);
    if (p != NULL && n.depth > 0)
        p = values(p, n, &bad);
    return ends_with(p, bad, line, size, ret_bad);
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
