#include "trace/secret.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* What the body of a token is made of. */
enum alphabet {
    UPPER, /* and digits */
    ALNUM,
    WORDY,  /* and _ */
    URLISH, /* and _ and - */
    BASE64, /* and + / = . ~ */
};

/* Behind the prefix come at least so many characters, and `run` of them without a - or _, which tells
 * random text from names that are put together. */
static const struct {
    const char *prefix;
    enum alphabet alphabet;
    unsigned least;
    unsigned run;
} shapes[] = {
    {"AKIA", UPPER, 16, 0},
    {"ASIA", UPPER, 16, 0},
    {"AIza", URLISH, 35, 0},
    {"ghp_", ALNUM, 30, 0},
    {"gho_", ALNUM, 30, 0},
    {"ghu_", ALNUM, 30, 0},
    {"ghs_", ALNUM, 30, 0},
    {"ghr_", ALNUM, 30, 0},
    {"github_pat_", WORDY, 40, 0},
    {"glpat-", URLISH, 20, 0},
    {"sk_live_", ALNUM, 16, 0},
    {"sk_test_", ALNUM, 16, 0},
    {"rk_live_", ALNUM, 16, 0},
    {"sk-", URLISH, 20, 12},
    {"xoxa-", URLISH, 10, 0},
    {"xoxb-", URLISH, 10, 0},
    {"xoxe-", URLISH, 10, 0},
    {"xoxp-", URLISH, 10, 0},
    {"xoxr-", URLISH, 10, 0},
    {"xoxs-", URLISH, 10, 0},
    {"xapp-", URLISH, 10, 0},
    {"hf_", ALNUM, 30, 0},
    {"npm_", ALNUM, 36, 0},
    {"pypi-", URLISH, 50, 0},
    {"dop_v1_", ALNUM, 64, 0},
    {"Bearer ", BASE64, 16, 0},
    {"bearer ", BASE64, 16, 0},
    {"Authorization: Basic ", BASE64, 8, 0},
    {"sandpit-private-key-v1 ", BASE64, 40,
     0}, /* SP_KEY_TEXT, and its word: signature.c */
};

static bool is_of(enum alphabet alphabet, char c)
{
    if (isupper((unsigned char)c) || isdigit((unsigned char)c))
        return true;
    if (alphabet == UPPER)
        return false;
    if (islower((unsigned char)c))
        return true;
    switch (alphabet) {
    case WORDY:
        return c == '_';
    case URLISH:
        return c == '_' || c == '-';
    case BASE64:
        return c != '\0' && strchr("_-+/=.~", c) != NULL;
    default:
        return false;
    }
}

static bool starts(const char *text, size_t left, const char *prefix)
{
    size_t n = strlen(prefix);
    return left >= n && memcmp(text, prefix, n) == 0;
}

static size_t span(const char *text, size_t size, size_t at, enum alphabet alphabet)
{
    size_t end = at;
    while (end < size && is_of(alphabet, text[end]))
        end++;
    return end;
}

/* Whether there are so many characters in a row without a - or _. */
static bool has_run(const char *text, size_t at, size_t end, unsigned least)
{
    unsigned run = 0;
    for (; at < end && run < least; at++)
        run = text[at] == '-' || text[at] == '_' ? 0 : run + 1;
    return run >= least;
}

static bool is_token(struct sp_secret_scan *scan, const char *text, size_t size,
                     size_t at, struct sp_secret *ret_secret)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *prefix = shapes[i].prefix;
        if (size - at < 2 || text[at] != prefix[0] || text[at + 1] != prefix[1] ||
            !starts(text + at, size - at, prefix))
            continue;
        size_t start = at + strlen(shapes[i].prefix);
        if (shapes[i].run > 0 && start < scan->runless_until)
            continue;
        size_t end = span(text, size, start, shapes[i].alphabet);
        if (end - start < shapes[i].least)
            continue;
        if (!has_run(text, start, end, shapes[i].run)) {
            scan->runless_until = end;
            continue;
        }
        *ret_secret = (struct sp_secret){start, end};
        return true;
    }
    return false;
}

/* Three parts with dots between, of which the first two are JSON objects in base64. */
static bool is_web_token(struct sp_secret_scan *scan, const char *text, size_t size,
                         size_t at, struct sp_secret *ret_secret)
{
    if (at < scan->bodiless_until || !starts(text + at, size - at, "eyJ"))
        return false;
    size_t head = span(text, size, at, URLISH);
    scan->bodiless_until = head; /* what begins further on in it ends there too */
    if (head - at < 12 || !starts(text + head, size - head, ".eyJ"))
        return false;
    size_t body = span(text, size, head + 1, URLISH);
    if (body >= size || text[body] != '.')
        return false;
    *ret_secret = (struct sp_secret){at + 3, span(text, size, body + 1, URLISH)};
    return true;
}

/* Where the key ends that `at` is in: before the line that says so, or with its JSON string. One walk, so
 * that what is passed over is never passed again: it is taken, or but a few bytes. */
static size_t key_end(const char *text, size_t size, size_t at)
{
    while (at < size && text[at] != '"' && !starts(text + at, size - at, "-----END "))
        at += text[at] == '\\' ? 2 : 1;
    return at < size ? at : size;
}

static bool is_private_key(const char *text, size_t size, size_t at,
                           struct sp_secret *ret_secret)
{
    static const char begin[] = "-----BEGIN ";
    static const char what[] = "PRIVATE KEY";
    if (!starts(text + at, size - at, begin))
        return false;
    size_t label = at + sizeof begin - 1;
    size_t most = size - label < 64 ? size - label : 64;
    const char *found = memmem(text + label, most, what, sizeof what - 1);
    if (found == NULL)
        return false;
    size_t start = (size_t)(found - text) + sizeof what - 1;
    if (starts(text + start, size - start, " BLOCK"))
        start += 6;
    while (start < size && text[start] == '-')
        start++;
    *ret_secret = (struct sp_secret){start, key_end(text, size, start)};
    return ret_secret->end > start + 3;
}

/* scheme://user:password@host, from the colon on. */
static bool is_login(const char *text, size_t size, size_t at,
                     struct sp_secret *ret_secret)
{
    size_t colon = 0;
    if (!starts(text + at, size - at, "://"))
        return false;
    for (size_t i = at + 3; i < size; i++) {
        char c = text[i];
        if (c == '@' && colon != 0 && i - colon > 3) {
            *ret_secret = (struct sp_secret){colon + 1, i};
            return true;
        }
        if (c == '@' || (unsigned char)c <= ' ' || strchr("/?#\"\\'<>", c) != NULL)
            return false;
        if (c == ':' && colon == 0)
            colon = i;
    }
    return false;
}

bool sp_secret_at(struct sp_secret_scan *scan, const char *text, size_t size, size_t at,
                  struct sp_secret *ret_secret)
{
    switch (text[at]) {
    case ':':
        return is_login(text, size, at, ret_secret);
    case '-':
        return is_private_key(text, size, at, ret_secret);
    case 'e':
        return is_web_token(scan, text, size, at, ret_secret);
    default:
        return is_token(scan, text, size, at, ret_secret);
    }
}

bool sp_secret_name(const char *name, size_t size)
{
    static const char *const ends[] = {
        "password",   "passwd",     "passphrase",  "token",       "secret",
        "api_key",    "api-key",    "apikey",      "access_key",  "access-key",
        "secret_key", "secret-key", "private_key", "private-key", "credential",
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (size >= n && strncasecmp(name + size - n, ends[i], n) == 0)
            return true;
    }
    return false;
}
