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

/* The first two bytes of each shape, and of a list of arguments: a bit for each pair, in the low half for its
 * first byte and in the high half for its second, so that nearly all text is done with by one look a byte.
 *
 *     AK AS AI Au Be be do ey gh gi gl hf np py rk sk xo xa :/ -- sa "a
 */
#define FIRST(n)  (UINT64_C(1) << (n))
#define SECOND(n) (UINT64_C(1) << (32 + (n)))
static const uint64_t pairs[256] = {
    ['"'] = FIRST(21),
    ['-'] = FIRST(19) | SECOND(19),
    ['/'] = SECOND(18),
    [':'] = FIRST(18),
    ['A'] = FIRST(0) | FIRST(1) | FIRST(2) | FIRST(3),
    ['B'] = FIRST(4),
    ['I'] = SECOND(2),
    ['K'] = SECOND(0),
    ['S'] = SECOND(1),
    ['a'] = SECOND(17) | SECOND(20) | SECOND(21),
    ['b'] = FIRST(5),
    ['d'] = FIRST(6),
    ['e'] = FIRST(7) | SECOND(4) | SECOND(5),
    ['f'] = SECOND(11),
    ['g'] = FIRST(8) | FIRST(9) | FIRST(10),
    ['h'] = FIRST(11) | SECOND(8),
    ['i'] = SECOND(9),
    ['k'] = SECOND(14) | SECOND(15),
    ['l'] = SECOND(10),
    ['n'] = FIRST(12),
    ['o'] = SECOND(6) | SECOND(16),
    ['p'] = FIRST(13) | SECOND(12),
    ['r'] = FIRST(14),
    ['s'] = FIRST(15) | FIRST(20),
    ['u'] = SECOND(3),
    ['x'] = FIRST(16) | FIRST(17),
    ['y'] = SECOND(7) | SECOND(13),
};

/* The first place from `at` on, before `end`, where one of them may begin; `end`: there is none. */
static size_t next_beginning(const char *text, size_t at, size_t end)
{
    uint64_t before = 0;
    for (; at < end; at++) {
        uint64_t here = pairs[(unsigned char)text[at]];
        if ((before & here >> 32) != 0)
            return at - 1;
        before = here;
    }
    return end;
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

static bool begins_list(const char *text, size_t size, size_t at)
{
    return size - at >= sizeof arguments_key - 1 &&
           memcmp(text + at, arguments_key, sizeof arguments_key - 1) == 0;
}

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

/* The list of arguments from `at` on; gives where to go on. */
static size_t redact_list(struct redaction *r, size_t at)
{
    struct sp_secret secret;
    size_t end = list_end(r->text, r->size, at);
    while (at < end) {
        if (find_named(r, at, &secret) || find_shaped(r, at, &secret)) {
            mask(r, secret.start, secret.end);
            at = secret.end;
        } else {
            at++;
        }
    }
    return at;
}

unsigned sp_redact(char *json, size_t *size)
{
    struct redaction r = {.text = json, .size = *size};
    struct sp_secret secret;
    size_t at = 0;
    while ((at = next_beginning(json, at, r.size)) < r.size) {
        if (begins_list(json, r.size, at)) {
            at = redact_list(&r, at + sizeof arguments_key - 1);
        } else if (find_shaped(&r, at, &secret)) {
            mask(&r, secret.start, secret.end);
            at = secret.end;
        } else {
            at++;
        }
    }
    keep_until(&r, r.size);
    *size = r.kept;
    return r.count;
}
