/* Reading one pattern as it is written. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "policy/glob.h"
#include "policy/pattern.h"

static enum sp_shape shape_of(const char *pattern)
{
    if (strcmp(pattern, "*") == 0 || strcmp(pattern, "**") == 0)
        return SP_SHAPE_ANY;
    return strpbrk(pattern, "*?[") != NULL ? SP_SHAPE_GLOB : SP_SHAPE_PLAIN;
}

static const char *const placeholders[] = {"{work}", "{script}", "{python}",
                                           "{tmp}",  "{home}",   NULL};

/* Length of the placeholder that the text begins with, 0: none. */
static size_t placeholder(const char *text)
{
    for (size_t i = 0; placeholders[i] != NULL; i++) {
        size_t n = strlen(placeholders[i]);
        if (strncmp(text, placeholders[i], n) == 0)
            return n;
    }
    return 0;
}

/* Whether a bracket with one character in it begins there: that character and nothing else. */
static bool is_quoted(const char *at)
{
    return at[0] == '[' && at[1] != '\0' && strchr("!^/]", at[1]) == NULL &&
           at[2] == ']';
}

size_t sp_pattern_escape(const char *path, char *to, size_t size)
{
    size_t n = 0;
    for (; *path != '\0'; path++) {
        bool quote = strchr("*?[{", *path) != NULL;
        const char text[] = {quote ? '[' : *path, *path, ']'};
        for (size_t i = 0; i < (quote ? sizeof text : 1); i++, n++)
            if (n + 1 < size)
                to[n] = text[i];
    }
    if (size > 0)
        to[n < size ? n : size - 1] = '\0';
    return n;
}

/* Makes the plain path of a pattern whose wildcards are all quoted; false: some are not. */
static bool unescape(char *path)
{
    for (const char *at = path; *at != '\0'; at += is_quoted(at) ? 3 : 1)
        if (strchr("*?[", *at) != NULL && !is_quoted(at))
            return false;
    char *to = path;
    for (const char *at = path; *at != '\0'; to++) {
        bool quoted = is_quoted(at);
        *to = at[quoted];
        at += quoted ? 3 : 1;
    }
    *to = '\0';
    return true;
}

/* An opening brace that is not quoted; NULL: none. */
static const char *find_brace(const char *text)
{
    for (; *text != '\0'; text += is_quoted(text) ? 3 : 1)
        if (*text == '{')
            return text;
    return NULL;
}

/* About a brace that begins no placeholder where one may stand. */
static int bad_brace(const char *pattern, const char *brace, struct sp_error *reterr)
{
    char name[32];
    size_t n = strcspn(brace, "}");
    bool closed = brace[n] == '}';
    snprintf(name, sizeof name, "%.*s", (int)(n + closed), brace);
    const char *nearest = sp_nearest_name(name, placeholders);
    if (brace != pattern)
        return sp_fail(
            reterr, SP_E_POLICY,
            "a placeholder stands only at the beginning (a brace that belongs "
            "to the name is written [{])");
    return sp_fail(reterr, SP_E_POLICY,
                   "there is no placeholder %s%s%s%s: they are {work}, {script}, "
                   "{python}, {tmp} and {home}",
                   name, nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

static int check_start(const char *pattern, bool program, struct sp_error *reterr)
{
    size_t n = placeholder(pattern);
    bool name = strchr(pattern, '/') == NULL;
    const char *brace = find_brace(pattern + n);
    if (brace != NULL)
        return bad_brace(pattern, brace, reterr);
    if (n > 0)
        return pattern[n] == '\0' || pattern[n] == '/'
                   ? 0
                   : sp_fail(reterr, SP_E_POLICY, "a slash belongs behind %.*s", (int)n,
                             pattern);
    if (pattern[0] == '/' || strcmp(pattern, "*") == 0 ||
        strncmp(pattern, "**", 2) == 0 || (program && name))
        return 0;
    if (pattern[0] == '$')
        return sp_fail(reterr, SP_E_POLICY,
                       "variables are not looked up: write ~/ or a placeholder");
    if (strncmp(pattern, "./", 2) == 0 && strchr(pattern + 2, '/') == NULL)
        return sp_fail(
            reterr, SP_E_POLICY,
            "a path begins with / or a placeholder: {work}/%.100s is the one "
            "below the current folder",
            pattern + 2);
    return sp_fail(reterr, SP_E_POLICY,
                   program ? "a program is a name, as \"git\", or a path that begins "
                             "with /, ~/, {work} or another placeholder"
                           : "a path begins with /, ~/, {work} or another placeholder, "
                             "or with **/ for any folder");
}

static bool has_dots(const char *path)
{
    for (const char *at = path; (at = strchr(at, '.')) != NULL; at++) {
        size_t n = strcspn(at, "/");
        bool begins = at == path || at[-1] == '/';
        if (begins && n <= 2 && strspn(at, ".") == n)
            return true;
    }
    return false;
}

/* What says no more than the folder itself goes: a slash at the end, or slashes and two stars. And
 * of all that is below a folder, what lies right in it stands for the rest. */
static void strip(char *path)
{
    size_t n = strlen(path);
    for (;;) {
        if (n > 1 && path[n - 1] == '/')
            n--;
        else if (n > 3 && strncmp(path + n - 3, "/**", 3) == 0)
            n -= 3;
        else if (n >= 5 && strncmp(path + n - 5, "/**/*", 5) == 0) {
            n -= 3;
            path[n - 1] = '*';
        } else
            break;
    }
    path[n] = '\0';
    if (strcmp(path, "/**") == 0)
        path[1] = '\0';
    if (strcmp(path, "**/*") == 0 || strcmp(path, "**") == 0)
        path[1] = '\0';
}

/* ~/x is {home}/x; a slash at the end, or slashes and two stars, say no more than the folder. */
static int parse_path(const char *pattern, bool program, struct sp_policy_rule *rule,
                      char *to, size_t size, struct sp_error *reterr)
{
    bool tilde = pattern[0] == '~' && (pattern[1] == '/' || pattern[1] == '\0');
    int n = snprintf(to, size, "%s%s", tilde ? "{home}" : "", pattern + tilde);
    if (n < 0 || (size_t)n >= size)
        return sp_fail(reterr, SP_E_POLICY, "the pattern is too long");
    strip(to);
    int code = check_start(to, program, reterr);
    if (code == 0 && has_dots(to))
        code = sp_fail(reterr, SP_E_POLICY,
                       "a pattern is compared with paths that hold no . and .. parts");
    if (code == 0 && strstr(to, "//") != NULL)
        code = sp_fail(reterr, SP_E_POLICY, "there are two slashes in a row");
    rule->shape = (uint8_t)shape_of(to);
    if (rule->shape == SP_SHAPE_GLOB && unescape(to))
        rule->shape = SP_SHAPE_PLAIN;
    if (code == 0 && to[0] == '{' && placeholder(to) == 0)
        code = sp_fail(reterr, SP_E_POLICY, "a program's name begins with no brace");
    return code;
}

static int parse_module(const char *pattern, struct sp_policy_rule *rule, char *to,
                        size_t size, struct sp_error *reterr)
{
    size_t length = strlen(pattern);
    rule->shape = (uint8_t)shape_of(pattern);
    for (const char *c = pattern; *c != '\0'; c++)
        if ((unsigned char)*c < 0x80 && !isalnum((unsigned char)*c) &&
            strchr("_.*?[]!-^", *c) == NULL)
            return sp_fail(
                reterr, SP_E_POLICY,
                "this is no module's name: a name as \"xml.dom\", or a glob");
    if (pattern[0] == '.' || pattern[length - 1] == '.' ||
        strstr(pattern, "..") != NULL)
        return sp_fail(reterr, SP_E_POLICY,
                       "this is no module's name: a part of it is empty");
    snprintf(to, size, "%s", pattern);
    return 0;
}

static int parse_variable(const char *pattern, struct sp_policy_rule *rule, char *to,
                          size_t size, struct sp_error *reterr)
{
    if (strchr(pattern, '=') != NULL)
        return sp_fail(reterr, SP_E_POLICY,
                       "this is no variable's name: there is an = in it");
    rule->shape = (uint8_t)shape_of(pattern);
    snprintf(to, size, "%s", pattern);
    return 0;
}

/* "HOST:PORT", "[V6]:PORT", or without a port; writes the host to `to`. */
static int split_port(const char *pattern, struct sp_policy_rule *rule, char *to,
                      size_t size, struct sp_error *reterr)
{
    const char *colon = strrchr(pattern, ':');
    const char *close = strrchr(pattern, ']');
    const char *first = strchr(pattern, ':');
    bool bracket = pattern[0] == '[' && close != NULL;
    size_t length = strlen(pattern);
    if (colon != NULL && (bracket ? colon == close + 1 : colon == first)) {
        char *end;
        long port = strtol(colon + 1, &end, 10);
        bool any = strcmp(colon + 1, "*") == 0;
        if (!any && (!isdigit((unsigned char)colon[1]) || *end != '\0' || port < 1 ||
                     port > 65535))
            return sp_fail(reterr, SP_E_POLICY, "a port is a number from 1 to 65535");
        rule->port = any ? 0 : (uint16_t)port;
        length = (size_t)(colon - pattern);
    }
    if (bracket && (colon == NULL || colon == close + 1 || close[1] == '\0')) {
        pattern++;
        length = (size_t)(close - pattern);
    }
    if (length == 0)
        return sp_fail(reterr, SP_E_POLICY, "a host or an address is missing");
    snprintf(to, size, "%.*s", (int)length, pattern);
    return 0;
}

/* Addresses, IPv4 ones mapped into IPv6. false: it is none. */
static bool parse_bits(const char *text, struct sp_policy_rule *rule)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char address[64];
    const char *slash = strchr(text, '/');
    size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char *end = NULL;
    if (n >= sizeof address)
        return false;
    memcpy(address, text, n);
    address[n] = '\0';
    long bits = slash != NULL ? strtol(slash + 1, &end, 10) : -1;
    if (slash != NULL && (end == slash + 1 || *end != '\0' || bits < 0))
        return false;
    if (inet_pton(AF_INET, address, rule->address + 12) == 1) {
        memcpy(rule->address, mapped, sizeof mapped);
        rule->bits = (uint8_t)(bits < 0 ? 128 : 96 + bits);
        return bits <= 32;
    }
    rule->bits = (uint8_t)(bits < 0 ? 128 : bits);
    return inet_pton(AF_INET6, address, rule->address) == 1 && bits <= 128;
}

/* Below its length a range has no bits of its own: "10.0.0.1/8" may be meant as the one or the
 * other. */
static int check_range(const struct sp_policy_rule *rule, struct sp_error *reterr)
{
    for (unsigned bit = rule->bits; bit < 128; bit++)
        if ((rule->address[bit / 8] & 0x80u >> bit % 8) != 0)
            return sp_fail(reterr, SP_E_POLICY,
                           "the address has more bits than the range: its part below "
                           "/LENGTH must be zero, as in 10.0.0.0/8");
    return 0;
}

static int parse_host(char *host, struct sp_policy_rule *rule, struct sp_error *reterr)
{
    size_t length = strlen(host);
    if (length > 1 && host[length - 1] == '.')
        host[--length] = '\0';
    rule->shape = (uint8_t)shape_of(host);
    if (strchr(host, '/') != NULL)
        return sp_fail(
            reterr, SP_E_POLICY,
            "a range is an address and a length, as 10.0.0.0/8 or fe80::/10");
    for (char *c = host; *c != '\0'; c++) {
        if ((unsigned char)*c >= 0x80)
            return sp_fail(reterr, SP_E_POLICY,
                           "write this host in its ASCII form (xn--...)");
        if (!isalnum((unsigned char)*c) && strchr("-_.*?[]", *c) == NULL)
            return sp_fail(reterr, SP_E_POLICY,
                           "this is neither a host, an address nor a range of them");
        *c = (char)tolower((unsigned char)*c);
    }
    return 0;
}

static int parse_endpoint(const char *pattern, struct sp_policy_rule *rule, char *to,
                          size_t size, struct sp_error *reterr)
{
    if (strncmp(pattern, "unix:", 5) == 0) {
        rule->shape = SP_SHAPE_UNIX;
        if (pattern[5] == '@') {
            snprintf(to, size, "%s", pattern + 5);
            return 0;
        }
        struct sp_policy_rule path = {0};
        char plain[SP_PATTERN_TEXT_MAX];
        int code = parse_path(pattern + 5, false, &path, plain, sizeof plain, reterr);
        if (code != 0)
            return code;
        /* Whether it is a glob is seen from the text, as no other shape says so. */
        size_t n = path.shape == SP_SHAPE_PLAIN ? placeholder(plain) : strlen(plain);
        memcpy(to, plain, n);
        n += sp_pattern_escape(plain + n, to + n, size - n);
        return n < size ? 0 : sp_fail(reterr, SP_E_POLICY, "the pattern is too long");
    }
    if (strstr(pattern, "://") != NULL)
        return sp_fail(reterr, SP_E_POLICY,
                       "write the host and perhaps a port, as example.com:443, not an "
                       "URL");
    int code = split_port(pattern, rule, to, size, reterr);
    if (code != 0)
        return code;
    if (strcasecmp(to, "loopback") == 0 || strcasecmp(to, "localhost") == 0) {
        rule->shape = SP_SHAPE_LOOPBACK;
        snprintf(to, size, "loopback");
    } else if (strcmp(to, "*") == 0) {
        rule->shape = SP_SHAPE_ANY;
    } else if (parse_bits(to, rule)) {
        rule->shape = SP_SHAPE_ADDRESS;
        return check_range(rule, reterr);
    } else {
        memset(rule->address, 0, sizeof rule->address);
        rule->bits = 0;
        return parse_host(to, rule, reterr);
    }
    return 0;
}

int sp_pattern_parse(enum sp_list list, const char *pattern,
                     struct sp_policy_rule *ret_rule, char *to, size_t size,
                     struct sp_error *reterr)
{
    if (pattern[0] == '\0')
        return sp_fail(reterr, SP_E_POLICY, "an empty pattern matches nothing");
    if (strlen(pattern) >= size)
        return sp_fail(reterr, SP_E_POLICY, "the pattern is too long");
    for (const char *c = pattern; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return sp_fail(reterr, SP_E_POLICY,
                           "there is a control character in the pattern");
    if (strstr(pattern, "***") != NULL)
        return sp_fail(reterr, SP_E_POLICY, "no more than two stars stand in a row");
    if (list != SP_LIST_NETWORK && !sp_glob_closed(pattern))
        return sp_fail(reterr, SP_E_POLICY,
                       "a bracket has no end (one that belongs to the name is written "
                       "[[])");
    switch (list) {
    case SP_LIST_IMPORTS:
    case SP_LIST_CLIENTS:
        return parse_module(pattern, ret_rule, to, size, reterr);
    case SP_LIST_ENV:
        return parse_variable(pattern, ret_rule, to, size, reterr);
    case SP_LIST_NETWORK:
        return parse_endpoint(pattern, ret_rule, to, size, reterr);
    default:
        return parse_path(pattern, list == SP_LIST_PROCESS, ret_rule, to, size, reterr);
    }
}
