#include "policy/pattern.h"

#include <string.h>

#include "policy/glob.h"

/* Classes of fit, the more specific the higher; below them the length. */
#define FIT_ANY    1u
#define FIT_FOLDER (1u << 20)
#define FIT_GLOB   (2u << 20)
#define FIT_EXACT  (3u << 20)

bool sp_pattern_glob(const char *pattern, const char *text)
{
    return sp_glob_match(pattern, text, strlen(text), '\0', '\0').whole;
}

bool sp_pattern_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    if (n == 1 && folder[0] == '/')
        return path[0] == '/';
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool sp_pattern_reaches(const char *pattern, const char *folder)
{
    char part[SP_PATTERN_TEXT_MAX];
    if (strcmp(folder, "/") == 0)
        return true;
    for (;;) {
        size_t length = strcspn(pattern, "/");
        size_t size = strcspn(folder, "/");
        if (length >= sizeof part)
            return true;
        memcpy(part, pattern, length);
        part[length] = '\0';
        if (strstr(part, "**") != NULL)
            return true;
        if (!sp_glob_match(part, folder, size, '/', '\0').whole ||
            pattern[length] == '\0')
            return false;
        if (folder[size] == '\0')
            return true;
        pattern += length + 1;
        folder += size + 1;
    }
}

size_t sp_pattern_fixed(const char *pattern)
{
    size_t length = strcspn(pattern, "*?[");
    while (length > 0 && pattern[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

/* What a part of that length is worth: a folder, or the package of a module. */
static sp_fit fit_folder(size_t size)
{
    return FIT_FOLDER + (sp_fit)(size < FIT_FOLDER ? size : FIT_FOLDER - 1);
}

static sp_fit fit_glob(const char *pattern, const char *text, char stop, char separator)
{
    struct sp_glob_match match =
        sp_glob_match(pattern, text, strlen(text), stop, separator);
    if (match.whole)
        return FIT_GLOB;
    return match.folder > 0 ? fit_folder(match.folder) : 0;
}

sp_fit sp_pattern_fit_path(enum sp_shape shape, const char *pattern, const char *path)
{
    switch (shape) {
    case SP_SHAPE_ANY:
        return FIT_ANY;
    case SP_SHAPE_PLAIN:
        if (!sp_pattern_below(path, pattern))
            return 0;
        return strcmp(path, pattern) == 0 ? FIT_EXACT : fit_folder(strlen(pattern));
    case SP_SHAPE_GLOB:
        return fit_glob(pattern, path, '/', '/');
    default:
        return 0;
    }
}

sp_fit sp_pattern_fit_name(enum sp_shape shape, const char *pattern, const char *name,
                           char separator)
{
    size_t length = strlen(pattern);
    switch (shape) {
    case SP_SHAPE_ANY:
        return FIT_ANY;
    case SP_SHAPE_PLAIN:
        if (strncmp(pattern, name, length) != 0 ||
            (name[length] != '\0' && (separator == '\0' || name[length] != separator)))
            return 0;
        return name[length] == '\0' ? FIT_EXACT : fit_folder(length);
    case SP_SHAPE_GLOB:
        return fit_glob(pattern, name, '\0', separator);
    default:
        return 0;
    }
}
