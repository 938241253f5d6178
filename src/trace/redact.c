#include "trace/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "trace/secret.h"

#define MASK "***"

static const char arguments_key[] = "\"argv\":[";

/* What has been looked at, and what has been kept of it, in the same memory. */
struct redaction {
    char *text;
    size_t size;
    size_t kept; /* bytes of the result */
    size_t next; /* first byte that is not in it yet */
    unsigned count;
    struct sp_secret_scan scan;
};

static void keep_until(struct redaction *r, size_t at)
{
    if (r->kept != r->next)
        memmove(r->text + r->kept, r->text + r->next, at - r->next);
    r->kept += at - r->next;
    r->next = at;
}

/* A secret is never shorter than its mask. */
static void mask(struct redaction *r, size_t start, size_t end)
{
    keep_until(r, start);
    memcpy(r->text + r->kept, MASK, sizeof MASK - 1);
    r->kept += sizeof MASK - 1;
    r->next = end;
    r->count++;
}

/* ---- by shape ----------------------------------------------------------------------------------- */

/* Where a word may begin: behind what is none of a word, or behind an escape, whose letter is none. */
static bool begins_word(const char *text, size_t at, size_t from)
{
    if (at == from || !isalnum((unsigned char)text[at - 1]))
        return true;
    if (at >= from + 2 && text[at - 2] == '\\' && strchr("bfnrt", text[at - 1]) != NULL)
        return true;
    return at >= from + 6 && text[at - 6] == '\\' && text[at - 5] == 'u';
}

/* The first two bytes of each shape: a bit for each pair, set for its first byte in one table and for its
 * second in the other, so that nearly all text is done with by two looks.
 *
 *     AK AS AI Au Be be do ey gh gi gl hf np py rk sk xo xa :/ -- sa
 */
#define PAIR(n) (1u << (n))
static const uint32_t pair_first[256] = {
    ['A'] = PAIR(0) | PAIR(1) | PAIR(2) | PAIR(3),
    ['B'] = PAIR(4),
    ['b'] = PAIR(5),
    ['d'] = PAIR(6),
    ['e'] = PAIR(7),
    ['g'] = PAIR(8) | PAIR(9) | PAIR(10),
    ['h'] = PAIR(11),
    ['n'] = PAIR(12),
    ['p'] = PAIR(13),
    ['r'] = PAIR(14),
    ['s'] = PAIR(15) | PAIR(20),
    ['x'] = PAIR(16) | PAIR(17),
    [':'] = PAIR(18),
    ['-'] = PAIR(19),
};
static const uint32_t pair_second[256] = {
    ['K'] = PAIR(0),
    ['S'] = PAIR(1),
    ['I'] = PAIR(2),
    ['u'] = PAIR(3),
    ['e'] = PAIR(4) | PAIR(5),
    ['o'] = PAIR(6) | PAIR(16),
    ['y'] = PAIR(7) | PAIR(13),
    ['h'] = PAIR(8),
    ['i'] = PAIR(9),
    ['l'] = PAIR(10),
    ['f'] = PAIR(11),
    ['p'] = PAIR(12),
    ['k'] = PAIR(14) | PAIR(15),
    ['a'] = PAIR(17) | PAIR(20),
    ['/'] = PAIR(18),
    ['-'] = PAIR(19),
};

static bool may_begin(const char *text)
{
    return (pair_first[(unsigned char)text[0]] & pair_second[(unsigned char)text[1]]) !=
           0;
}

/* ---- by the name before it, in arguments ---------------------------------------------------------- */

/* Where the name begins that ends at `at`; nothing before `from` is there to be looked at. */
static size_t name_before(const char *text, size_t from, size_t at)
{
    while (at > from && (isalnum((unsigned char)text[at - 1]) || text[at - 1] == '_' ||
                         text[at - 1] == '-'))
        at--;
    return at;
}

/* A quote in an argument is written with a backslash, so that a bare one is the argument's end. */
static bool ends_value(const char *text, size_t at, char quote)
{
    char c = text[at];
    if (c == '"' || (c == '\\' && quote != '\''))
        return true;
    if (quote == '"')
        return false;
    return quote != '\0' ? c == quote : strchr(" &;|<>()`$,'", c) != NULL;
}

/* The value behind the '=' at `at`. In the middle of an argument it must be quoted, or be a part of an
 * address's query: what else stands there may well be a program's text. */
static bool is_named(const char *text, size_t size, size_t from, size_t at,
                     struct sp_secret *ret_secret)
{
    size_t name = name_before(text, from, at);
    if (name == from || !sp_secret_name(text + name, at - name))
        return false;
    size_t start = at + 1;
    char quote = '\0';
    if (start + 1 < size && text[start] == '\\' && text[start + 1] == '"') {
        quote = '"';
        start += 2;
    } else if (start < size && text[start] == '\'') {
        quote = '\'';
        start++;
    }
    if (quote == '\0' && strchr("\"?&;", text[name - 1]) == NULL)
        return false;
    size_t end = start;
    while (end < size && !ends_value(text, end, quote))
        end++;
    *ret_secret = (struct sp_secret){start, end};
    return end >= start + sizeof MASK - 1;
}

/* The argument behind `--password`, whose closing quote is at `at`. */
static bool is_option(const char *text, size_t size, size_t from, size_t at,
                      struct sp_secret *ret_secret)
{
    size_t name = name_before(text, from, at);
    if (name == from || text[name - 1] != '"' || text[name] != '-' ||
        !sp_secret_name(text + name, at - name) || at + 3 >= size ||
        memcmp(text + at, "\",\"", 3) != 0 || text[at + 3] == '-')
        return false;
    size_t start = at + 3;
    size_t end = start;
    while (end < size && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
    *ret_secret = (struct sp_secret){start, end};
    return end < size && end >= start + sizeof MASK - 1;
}

/* ---- both --------------------------------------------------------------------------------------- */

/* The last byte of the list of arguments that begins at `at`. */
static size_t list_end(const char *text, size_t size, size_t at)
{
    bool quoted = false;
    for (; at < size; at++) {
        if (text[at] == '\\')
            at++;
        else if (text[at] == '"')
            quoted = !quoted;
        else if (text[at] == ']' && !quoted)
            break;
    }
    return at < size ? at : size;
}

static bool find_named(const struct redaction *r, size_t at,
                       struct sp_secret *ret_secret)
{
    if (r->text[at] == '=')
        return is_named(r->text, r->size, r->next, at, ret_secret);
    return r->text[at] == '"' && is_option(r->text, r->size, r->next, at, ret_secret);
}

static bool find_shaped(struct redaction *r, size_t at, struct sp_secret *ret_secret)
{
    return (r->text[at] == ':' || begins_word(r->text, at, r->next)) &&
           sp_secret_at(&r->scan, r->text, r->size, at, ret_secret);
}

unsigned sp_redact(char *json, size_t *size)
{
    struct redaction r = {.text = json, .size = *size};
    size_t list = 0; /* end of the list of arguments that we are in */
    const char *lists = memmem(json, *size, arguments_key, sizeof arguments_key - 1);
    for (size_t at = 0; at < r.size; at++) {
        struct sp_secret secret;
        if (lists != NULL && json + at == lists) {
            at += sizeof arguments_key - 1;
            list = list_end(json, r.size, at);
            lists = memmem(json + list, r.size - list, arguments_key,
                           sizeof arguments_key - 1);
        }
        if (at + 1 >= r.size)
            break;
        if (!(at < list && find_named(&r, at, &secret)) &&
            !(may_begin(json + at) && find_shaped(&r, at, &secret)))
            continue;
        mask(&r, secret.start, secret.end);
        at = secret.end - 1;
    }
    keep_until(&r, r.size);
    *size = r.kept;
    return r.count;
}
