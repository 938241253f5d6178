#include "policy/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Classes of fit, the more specific the higher; below them the length. */
#define FIT_ANY    1u
#define FIT_FOLDER (1u << 20)
#define FIT_GLOB   (2u << 20)
#define FIT_EXACT  (3u << 20)

/* One [...] of a glob; *ret_next behind it. A set without an end is an ordinary '['. */
static bool in_set(const char *set, char c, const char **ret_next)
{
    const char *at = set + 1;
    bool negated = *at == '!' || *at == '^';
    bool found = false;
    at += negated;
    for (bool first = true; *at != '\0' && (first || *at != ']'); first = false) {
        if (at[1] == '-' && at[2] != '\0' && at[2] != ']') {
            found |= (unsigned char)at[0] <= (unsigned char)c &&
                     (unsigned char)c <= (unsigned char)at[2];
            at += 3;
        } else {
            found |= *at++ == c;
        }
    }
    if (*at == '\0') {
        *ret_next = set + 1;
        return c == '[';
    }
    *ret_next = at + 1;
    return found != negated && c != '/';
}

/* Whether one character fits where the pattern stands; *ret_next behind what was used of it. */
static bool fits_one(const char *pattern, char c, char stop, const char **ret_next)
{
    if (*pattern == '[')
        return in_set(pattern, c, ret_next);
    *ret_next = pattern + 1;
    return *pattern == '?' ? c != stop : *pattern == c && c != '\0';
}

/* Where matching goes on when it failed: behind a wildcard, with more of the text taken by it. */
struct retry {
    const char *pattern;
    const char *text;
    bool folders; /* "**" and a slash: whole components are taken */
};

static bool retry_star(struct retry *star, char stop)
{
    if (star->pattern == NULL || *star->text == '\0' || *star->text == stop)
        return false;
    star->text++;
    return true;
}

static bool retry_stars(struct retry *stars)
{
    if (stars->pattern == NULL)
        return false;
    if (stars->folders) {
        const char *slash = strchr(stars->text, '/');
        stars->text = slash != NULL ? slash + 1 : NULL;
        return slash != NULL;
    }
    return *stars->text++ != '\0';
}

/* `*` takes anything but `stop`, `**` anything. At most quadratic: only the last of each is
 * tried anew. The text ends at `end`. */
static bool matches(const char *pattern, const char *text, size_t size, char stop)
{
    char copy[SP_PATTERN_TEXT_MAX];
    struct retry star = {0};
    struct retry stars = {0};
    const char *next;
    if (size >= sizeof copy)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    const char *at = copy;
    while (*at != '\0' || *pattern != '\0') {
        if (pattern[0] == '*' && pattern[1] == '*') {
            pattern += 2 + (pattern[2] == '/');
            stars = (struct retry){pattern, at, pattern[-1] == '/'};
            star.pattern = NULL;
        } else if (*pattern == '*') {
            star = (struct retry){++pattern, at, false};
        } else if (*at != '\0' && *pattern != '\0' &&
                   fits_one(pattern, *at, stop, &next)) {
            pattern = next;
            at++;
        } else if (retry_star(&star, stop)) {
            pattern = star.pattern;
            at = star.text;
        } else if (retry_stars(&stars)) {
            star.pattern = NULL;
            pattern = stars.pattern;
            at = stars.text;
        } else {
            return false;
        }
    }
    return true;
}

bool sp_pattern_glob(const char *pattern, const char *text)
{
    return matches(pattern, text, strlen(text), '\0');
}

bool sp_pattern_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    if (n == 1 && folder[0] == '/')
        return path[0] == '/';
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

size_t sp_pattern_fixed(const char *pattern)
{
    size_t length = strcspn(pattern, "*?[");
    while (length > 0 && pattern[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

sp_fit sp_pattern_fit_path(enum sp_shape shape, const char *pattern, const char *path)
{
    size_t size = strlen(path);
    if (shape == SP_SHAPE_ANY)
        return FIT_ANY;
    if (shape == SP_SHAPE_PLAIN) {
        if (!sp_pattern_below(path, pattern))
            return 0;
        return strcmp(path, pattern) == 0 ? FIT_EXACT
                                          : FIT_FOLDER + (sp_fit)strlen(pattern);
    }
    if (shape != SP_SHAPE_GLOB)
        return 0;
    if (matches(pattern, path, size, '/'))
        return FIT_GLOB;
    while (size > 1) { /* a folder that the object is in, the nearest first */
        while (size > 1 && path[size - 1] != '/')
            size--;
        size--;
        if (size > 0 && matches(pattern, path, size, '/'))
            return FIT_FOLDER + (sp_fit)size;
    }
    return 0;
}

sp_fit sp_pattern_fit_name(enum sp_shape shape, const char *pattern, const char *name,
                           char separator)
{
    size_t size = strlen(name);
    size_t length = strlen(pattern);
    if (shape == SP_SHAPE_ANY)
        return FIT_ANY;
    if (shape == SP_SHAPE_PLAIN) {
        if (strncmp(pattern, name, length) != 0 ||
            (name[length] != '\0' && (separator == '\0' || name[length] != separator)))
            return 0;
        return name[length] == '\0' ? FIT_EXACT : FIT_FOLDER + (sp_fit)length;
    }
    if (shape != SP_SHAPE_GLOB)
        return 0;
    if (matches(pattern, name, size, '\0'))
        return FIT_GLOB;
    while (separator != '\0' && size > 0) {
        while (size > 0 && name[size - 1] != separator)
            size--;
        if (size > 0 && matches(pattern, name, --size, '\0'))
            return FIT_FOLDER + (sp_fit)size;
    }
    return 0;
}
