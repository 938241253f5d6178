#include "policy/toml_scan.h"

#include <stdbool.h>
#include <string.h>

#define DEPTH_MAX 64u
#define PARTS_MAX 32u

struct scan {
    const char *at;
    const char *end;
    const char *line; /* where it begins */
    int line_number;
    char open[DEPTH_MAX]; /* '[' or '{' */
    unsigned depth;
    unsigned parts; /* of the key, as far as it is one */
};

static void new_line(struct scan *s)
{
    s->line = s->at + 1;
    s->line_number++;
    s->parts = 0;
}

/* Three quotes in a row open and close a text of several lines. */
static bool is_triple(const struct scan *s)
{
    return s->end - s->at >= 3 && s->at[1] == s->at[0] && s->at[2] == s->at[0];
}

/* Moves to the last character of a text. One that has no end on its line ends there. */
static void skip_text(struct scan *s)
{
    char quote = *s->at;
    bool triple = is_triple(s);
    s->at += triple ? 3 : 1;
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\\' && quote == '"') {
            s->at++;
            if (s->at < s->end && *s->at == '\n')
                new_line(s);
        } else if (*s->at == '\n') {
            if (!triple) {
                s->at--;
                return;
            }
            new_line(s);
        } else if (*s->at == quote && (!triple || is_triple(s))) {
            s->at += triple ? 2 : 0;
            /* Up to two quotes may stand before the three that end it. */
            while (triple && s->at + 1 < s->end && s->at[1] == quote)
                s->at++;
            return;
        }
    }
}

static int fail(const struct scan *s, const char *why, struct sp_error *reterr)
{
    int column = 1;
    for (const char *c = s->line; c < s->at; c++)
        column += ((unsigned char)*c & 0xc0) != 0x80;
    int code = sp_fail(reterr, SP_E_POLICY, "%s", why);
    if (reterr != NULL) {
        reterr->line = s->line_number;
        reterr->column = column;
    }
    return code;
}

static int scan_one(struct scan *s, struct sp_error *reterr)
{
    switch (*s->at) {
    case '"':
    case '\'':
        skip_text(s);
        return 0;
    case '#':
        while (s->at + 1 < s->end && s->at[1] != '\n')
            s->at++;
        return 0;
    case '\n':
        new_line(s);
        return 0;
    case '.':
        return ++s->parts > PARTS_MAX ? fail(s, "a key has too many parts", reterr) : 0;
    case '[':
    case '{':
        s->parts = 0;
        if (s->depth == DEPTH_MAX)
            return fail(s, "it is nested too deep", reterr);
        s->open[s->depth++] = *s->at;
        return 0;
    case ']':
        s->depth -= s->depth > 0;
        return 0;
    case '}':
        if (s->depth > 0 && s->open[s->depth - 1] == '[')
            return fail(
                s,
                "this is no TOML: expected a value or ']', saw '}'; what follows "
                "was not read",
                reterr);
        s->depth -= s->depth > 0;
        return 0;
    case '=':
    case ',':
        s->parts = 0;
        return 0;
    default:
        return 0;
    }
}

int sp_toml_scan(const char *text, size_t size, struct sp_error *reterr)
{
    struct scan s = {.at = text, .end = text + size, .line = text, .line_number = 1};
    for (; s.at < s.end; s.at++) {
        int code = scan_one(&s, reterr);
        if (code != 0)
            return code;
    }
    return 0;
}
