#include "policy/glob.h"

#include <stdint.h>
#include <string.h>

#define WORDS (SP_GLOB_MAX / 64)

/* Places in the pattern at which matching may go on: one bit for each byte of it. The end of the
 * pattern is such a place too. */
struct places {
    uint64_t bits[WORDS];
};

struct machine {
    const char *pattern;
    size_t size; /* of the pattern */
    size_t words;
    char stop;
};

/* One character of UTF-8 and its length; a byte that belongs to none is one of its own. */
static uint32_t decode(const char *at, const char *end, size_t *ret_size)
{
    const unsigned char *p = (const void *)at;
    size_t left = (size_t)(end - at);
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    *ret_size = 1;
    if (p[0] < 0x80)
        return p[0];
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return 0x110000u + p[0];
    uint32_t c = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0x110000u + p[0];
        c = c << 6 | (p[i] & 0x3fu);
    }
    *ret_size = n;
    return c;
}

/* Length of the set that begins at a bracket; 0: it has no end, and the bracket stands for itself. */
static size_t set_size(const char *set)
{
    size_t n = 1;
    n += set[n] == '!' || set[n] == '^';
    n += set[n] == ']'; /* first, it is one of the characters */
    n += strcspn(set + n, "]");
    return set[n] == ']' ? n + 1 : 0;
}

static bool in_set(const char *set, size_t size, uint32_t c)
{
    const char *at = set + 1;
    const char *end = set + size - 1;
    bool negated = *at == '!' || *at == '^';
    bool found = false;
    for (at += negated; at < end;) {
        size_t n;
        uint32_t low = decode(at, end, &n);
        uint32_t high = low;
        at += n;
        if (at + 1 < end && *at == '-') {
            high = decode(at + 1, end, &n);
            at += 1 + n;
        }
        found |= low <= c && c <= high;
    }
    return found != negated;
}

bool sp_glob_closed(const char *pattern)
{
    for (const char *at = pattern; *at != '\0';) {
        size_t n = *at == '[' ? set_size(at) : 1;
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

static bool is_set(const struct places *places, size_t at)
{
    return (places->bits[at / 64] >> at % 64 & 1) != 0;
}

/* A place, and those that can be reached from it without a character. */
static void activate(const struct machine *m, struct places *to, size_t at)
{
    const char *pattern = m->pattern;
    while (!is_set(to, at)) {
        to->bits[at / 64] |= UINT64_C(1) << at % 64;
        if (pattern[at] != '*')
            return;
        if (pattern[at + 1] != '*')
            at += 1;
        else
            at += pattern[at + 2] == '/' ? 3 : 2;
    }
}

/* `**` and a slash: at the first star between components, at the second within one. */
static void skip_components(const struct machine *m, struct places *to, size_t first,
                            bool slash)
{
    if (slash)
        activate(m, to, first);
    else
        to->bits[(first + 1) / 64] |= UINT64_C(1) << (first + 1) % 64;
}

/* Where one character leads from one place. */
static void advance(const struct machine *m, struct places *to, size_t at,
                    const char *text, size_t size, uint32_t c)
{
    const char *pattern = m->pattern + at;
    bool stopped = c == (unsigned char)m->stop;
    switch (*pattern) {
    case '\0':
        return;
    case '*':
        if (at > 0 && pattern[-1] == '*')
            skip_components(m, to, at - 1, c == '/');
        else if (pattern[1] == '*' && pattern[2] == '/')
            skip_components(m, to, at, c == '/');
        else if (pattern[1] == '*' || !stopped)
            activate(m, to, at);
        return;
    case '?':
        if (!stopped)
            activate(m, to, at + 1);
        return;
    case '[':
        if (set_size(pattern) > 0) {
            if (!stopped && in_set(pattern, set_size(pattern), c))
                activate(m, to, at + set_size(pattern));
            return;
        }
        break;
    default:
        break;
    }
    if (m->size - at >= size && memcmp(pattern, text, size) == 0)
        activate(m, to, at + size);
}

/* `**` and a slash before a part without wildcards, which most globs are. */
static bool is_anywhere(const char *pattern, char stop)
{
    return stop == '/' && strncmp(pattern, "**/", 3) == 0 &&
           strpbrk(pattern + 3, "*?[") == NULL;
}

static struct sp_glob_match match_anywhere(const char *part, const char *text,
                                           size_t from, size_t size)
{
    struct sp_glob_match match = {false, 0};
    size_t length = strlen(part);
    while (size - from >= length) {
        size_t end = from + length;
        if (memcmp(text + from, part, length) == 0) {
            if (end == size)
                match.whole = true;
            else if (text[end] == '/')
                match.folder = end;
        }
        const char *slash = memchr(text + from, '/', size - from);
        if (slash == NULL)
            break;
        from = (size_t)(slash - text) + 1;
    }
    return match;
}

struct sp_glob_match sp_glob_match(const char *pattern, const char *text, size_t size,
                                   char stop, char separator)
{
    struct sp_glob_match match = {false, 0};
    struct machine m = {pattern, strlen(pattern), 0, stop};
    struct places now;
    struct places next;
    size_t at = strcspn(pattern, "*?[");
    size_t n;
    if (m.size >= SP_GLOB_MAX || at > size || memcmp(pattern, text, at) != 0)
        return match;
    if (separator == '/' && is_anywhere(pattern + at, stop) &&
        (at == 0 || pattern[at - 1] == '/'))
        return match_anywhere(pattern + at + 3, text, at, size);
    m.words = m.size / 64 + 1;
    memset(now.bits, 0, m.words * sizeof *now.bits);
    activate(&m, &now, at);
    for (bool active = true; at < size && active; at += n) {
        uint32_t c = decode(text + at, text + size, &n);
        if (separator != '\0' && text[at] == separator && is_set(&now, m.size) &&
            at > 0)
            match.folder = at;
        active = false;
        memset(next.bits, 0, m.words * sizeof *next.bits);
        for (size_t word = 0; word < m.words; word++)
            for (uint64_t bits = now.bits[word]; bits != 0; bits &= bits - 1) {
                advance(&m, &next, word * 64 + (size_t)__builtin_ctzll(bits), text + at,
                        n, c);
                active = true;
            }
        memcpy(now.bits, next.bits, m.words * sizeof *now.bits);
    }
    match.whole = at >= size && is_set(&now, m.size);
    return match;
}
