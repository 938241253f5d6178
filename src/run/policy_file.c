#include "run/policy_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/scope.h"

#define FILE_BYTES_MAX (4u << 20)
#define BUILTINS_MAX   16u

void sp_policy_loader_release(struct sp_policy_loader *loader)
{
    for (unsigned i = 0; i < loader->owned_count; i++)
        free(loader->owned[i]);
    loader->owned_count = 0;
}

/* A name with a slash or TOML's ending: no word that was misspelt becomes a file that happens to
 * lie here. */
static bool is_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') != NULL || (n > 5 && strcmp(name + n - 5, ".toml") == 0);
}

static int unknown(const char *name, struct sp_error *reterr)
{
    const char *names[BUILTINS_MAX + 1];
    char known[200] = "";
    size_t count = 0;
    const struct sp_policy *p;
    for (; count < BUILTINS_MAX && (p = sp_policy_builtin_at(count)) != NULL; count++) {
        size_t n = strlen(known);
        names[count] = sp_policy_text(p, p->name);
        snprintf(known + n, sizeof known - n, "%s%s", count > 0 ? ", " : "",
                 names[count]);
    }
    names[count] = NULL;
    const char *nearest = sp_nearest_name(name, names);
    if (nearest == NULL && access(name, F_OK) == 0)
        return sp_fail(
            reterr, SP_E_POLICY,
            "unknown policy '%.100s': write ./%.100s for the file, or one of "
            "%s",
            name, name, known);
    return sp_fail(reterr, SP_E_POLICY,
                   "unknown policy '%.100s'%s%s%s: the policies are %s, or a file, as "
                   "my.toml",
                   name, nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "", known);
}

/* A regular file, whole: a FIFO would be waited for without end. */
static int read_file(const char *path, struct sp_buffer *to, struct stat *ret_stat,
                     struct sp_error *reterr)
{
    sp_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, ret_stat) != 0)
        return sp_fail_errno(reterr, SP_E_POLICY, "cannot read the policy '%.300s'",
                             path);
    if (!S_ISREG(ret_stat->st_mode))
        return sp_fail(reterr, SP_E_POLICY, "the policy '%.300s' is %s, not a file",
                       path,
                       S_ISDIR(ret_stat->st_mode)    ? "a folder"
                       : S_ISFIFO(ret_stat->st_mode) ? "a named pipe"
                                                     : "a device or socket");
    for (;;) {
        char *room = sp_buffer_reserve(to, 65536);
        if (room == NULL)
            return sp_fail(reterr, SP_E_POLICY,
                           "the policy '%.300s' is larger than %u MiB", path,
                           FILE_BYTES_MAX >> 20);
        ssize_t n = read(fd, room, 65536);
        if (n < 0)
            return sp_fail_errno(reterr, SP_E_POLICY, "cannot read the policy '%.300s'",
                                 path);
        if (n == 0)
            return 0;
        sp_buffer_advance(to, (size_t)n);
    }
}

/* ---- problems ---------------------------------------------------------------------------------- */

/* The line of the text that the problem is in, as much of it as has room around the place. */
static void add_excerpt(struct sp_problem *p, const char *text, size_t size)
{
    const char *end = text + size;
    const char *line = text;
    for (unsigned n = 1; n < p->line && line != NULL; n++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line != NULL ? line + 1 : NULL;
    }
    if (p->line == 0 || line == NULL)
        return;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t length = (size_t)((stop != NULL ? stop : end) - line);
    length -= length > 0 && line[length - 1] == '\r';
    size_t room = sizeof p->excerpt - 1;
    if (p->column > room / 2 || memchr(line, '\0', length) != NULL)
        return; /* too far to the right to be shown */
    length = length < room ? length : room;
    memcpy(p->excerpt, line, length);
    p->excerpt[length] = '\0';
}

void sp_policy_find_excerpts(struct sp_problems *problems)
{
    for (unsigned i = 0; i < sp_problems_kept(problems); i++) {
        sp_auto_buffer text;
        struct stat st;
        const struct sp_problem *p = &problems->items[i];
        sp_buffer_init(&text, FILE_BYTES_MAX);
        if (p->excerpt[0] != '\0' || p->line == 0 ||
            read_file(p->source, &text, &st, NULL) != 0)
            continue;
        for (unsigned j = i; j < sp_problems_kept(problems); j++)
            if (strcmp(problems->items[j].source, p->source) == 0 && text.size > 0)
                add_excerpt(&problems->items[j], text.data, text.size);
    }
}

/* One sentence for what may be several problems. */
static int fail_first(const struct sp_problems *problems, struct sp_error *reterr)
{
    const struct sp_problem *first = &problems->items[0];
    char more[40] = "";
    char where[300] = "";
    if (problems->count > 1)
        snprintf(more, sizeof more, " (and %u more)", problems->count - 1);
    if (first->line > 0)
        snprintf(where, sizeof where, "%.200s:%u:%u: ", first->source, first->line,
                 first->column);
    else if (first->source[0] != '\0')
        snprintf(where, sizeof where, "%.200s: ", first->source);
    int code = sp_fail(reterr, SP_E_POLICY, "%s%s%s", where, first->message, more);
    if (reterr != NULL) {
        reterr->line = (int)first->line;
        reterr->column = (int)first->column;
    }
    return code;
}

/* ---- files and what they extend --------------------------------------------------------------- */

static int find_base(void *context, const char *name, const char *from,
                     const struct sp_policy **ret_policy, struct sp_error *reterr);

int sp_policy_load_document(struct sp_policy_loader *loader,
                            const struct sp_document *document, const char *name,
                            const char *source, struct sp_model *ret_model,
                            struct sp_error *reterr)
{
    const struct sp_policy_finder finder = {find_base, loader};
    int code =
        sp_policy_read(document, name, source, &finder, ret_model, loader->problems);
    return code == 0 ? 0 : fail_first(loader->problems, reterr);
}

int sp_policy_load_text(struct sp_policy_loader *loader, const char *text, size_t size,
                        const char *name, const char *source,
                        struct sp_model *ret_model, struct sp_error *reterr)
{
    struct sp_document document;
    struct sp_error error = {0};
    sp_document_init(&document);
    int code = sp_document_parse_toml(&document, text, size, &error);
    if (code != 0) {
        sp_problem_add(loader->problems, source, (unsigned)error.line,
                       (unsigned)error.column, "%s", error.message);
        code = fail_first(loader->problems, reterr);
    } else {
        code =
            sp_policy_load_document(loader, &document, name, source, ret_model, reterr);
    }
    for (unsigned i = 0; i < loader->problems->count && i < SP_PROBLEMS_MAX; i++)
        if (strcmp(loader->problems->items[i].source, source) == 0)
            add_excerpt(&loader->problems->items[i], text, size);
    sp_document_release(&document);
    return code;
}

static int load_file(struct sp_policy_loader *loader, const char *path,
                     struct sp_model *ret_model, struct sp_error *reterr)
{
    sp_auto_buffer text;
    struct stat st = {0};
    sp_buffer_init(&text, FILE_BYTES_MAX);
    int code = read_file(path, &text, &st, reterr);
    if (code != 0)
        return code;
    for (unsigned i = 0; i < loader->depth; i++)
        if (loader->reading[i].device == st.st_dev &&
            loader->reading[i].inode == st.st_ino)
            return sp_fail(reterr, SP_E_POLICY,
                           i + 1 == loader->depth
                               ? "'%.200s' extends itself"
                               : "'%.200s' extends what extends it in turn",
                           path);
    if (loader->depth == SP_EXTENDS_DEPTH_MAX)
        return sp_fail(reterr, SP_E_POLICY, "more than %u policies extend one another",
                       SP_EXTENDS_DEPTH_MAX);
    loader->reading[loader->depth].path = path;
    loader->reading[loader->depth].device = st.st_dev;
    loader->reading[loader->depth++].inode = st.st_ino;
    code = sp_policy_load_text(loader, text.data != NULL ? text.data : "", text.size,
                               path, path, ret_model, reterr);
    loader->depth--;
    return code;
}

/* A path counts from the folder of the file that extends it. */
static int find_base(void *context, const char *name, const char *from,
                     const struct sp_policy **ret_policy, struct sp_error *reterr)
{
    struct sp_policy_loader *loader = context;
    char path[PATH_MAX];
    struct sp_model model;
    const struct sp_policy *builtin = sp_policy_builtin(name);
    if (builtin != NULL) {
        *ret_policy = builtin;
        return 0;
    }
    if (!is_path(name))
        return unknown(name, reterr);
    const char *slash = name[0] == '/' ? NULL : strrchr(from, '/');
    int n = snprintf(path, sizeof path, "%.*s%s",
                     slash == NULL ? 0 : (int)(slash - from) + 1, from, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return sp_fail(reterr, SP_E_POLICY, "the path '%.200s' is too long", name);
    if (loader->owned_count == SP_EXTENDS_DEPTH_MAX)
        return sp_fail(reterr, SP_E_POLICY, "more than %u policies extend one another",
                       SP_EXTENDS_DEPTH_MAX);
    int code = load_file(loader, path, &model, reterr);
    if (code != 0)
        return code;
    code = sp_model_finish(&model, &loader->owned[loader->owned_count], reterr);
    sp_model_release(&model);
    if (code == 0)
        *ret_policy = loader->owned[loader->owned_count++];
    return code;
}

int sp_policy_load(struct sp_policy_loader *loader, const char *name,
                   struct sp_model *ret_model, struct sp_error *reterr)
{
    const struct sp_policy *builtin = sp_policy_builtin(name);
    if (builtin != NULL) {
        sp_model_init(ret_model);
        sp_model_from(ret_model, builtin);
        return 0;
    }
    return is_path(name) ? load_file(loader, name, ret_model, reterr)
                         : unknown(name, reterr);
}
