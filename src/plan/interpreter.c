#include "plan/interpreter.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "plan/launcher.h"
#include "sys/real_path.h"

static bool runnable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Looks a name up on PATH as execvp does. */
static bool on_path(const char *name, char to[PATH_MAX])
{
    const char *path = getenv("PATH");
    if (path == NULL)
        path = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        const char *end = strchrnul(path, ':');
        int length = (int)(end - path);
        int n = length == 0 ? snprintf(to, PATH_MAX, "./%s", name)
                            : snprintf(to, PATH_MAX, "%.*s/%s", length, path, name);
        if (n > 0 && n < PATH_MAX && runnable(to))
            return true;
        if (*end == '\0')
            return false;
        path = end + 1;
    }
}

static bool in_environment(char to[PATH_MAX])
{
    const char *folder = getenv("VIRTUAL_ENV");
    if (folder == NULL || folder[0] == '\0')
        return false;
    int n = snprintf(to, PATH_MAX, "%s/bin/python3", folder);
    return n < PATH_MAX && runnable(to);
}

static bool beside_program(char to[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", to, PATH_MAX - 1);
    if (n <= 0)
        return false;
    to[n] = '\0';
    char *slash = strrchr(to, '/');
    if (slash == NULL || slash - to + sizeof "/python3" > PATH_MAX)
        return false;
    memcpy(slash, "/python3", sizeof "/python3");
    return runnable(to);
}

/* `name` is what plain python would be started as: the bare name where a shell would find the
 * same file by it. */
static bool find_default(struct sp_interpreter *in)
{
    char by_name[PATH_MAX];
    bool named = on_path("python3", by_name);
    if (!in_environment(in->path) && !beside_program(in->path)) {
        if (!named)
            return false;
        snprintf(in->path, sizeof in->path, "%s", by_name);
    }
    bool same = named && strcmp(in->path, by_name) == 0;
    snprintf(in->name, sizeof in->name, "%s", same ? "python3" : in->path);
    return true;
}

static bool find_asked(const char *asked, struct sp_interpreter *in)
{
    snprintf(in->name, sizeof in->name, "%s", asked);
    if (strlen(asked) >= PATH_MAX)
        return false;
    if (strchr(asked, '/') == NULL)
        return on_path(asked, in->path);
    snprintf(in->path, sizeof in->path, "%s", asked);
    return runnable(asked);
}

static bool is_elf(const char *path)
{
    char magic[4];
    sp_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, "\177ELF", 4) == 0;
}

/* Each once, with its links followed. */
static void add_folder(struct sp_interpreter *in, const char *prefix)
{
    char real[PATH_MAX];
    if (!sp_real_path(prefix, real))
        return;
    size_t size = strlen(real) + 1;
    for (size_t at = 0; at < in->prefixes_size; at += strlen(in->prefixes + at) + 1)
        if (strcmp(in->prefixes + at, real) == 0)
            return;
    if (in->prefixes_size + size + 1 > sizeof in->prefixes)
        return;
    memcpy(in->prefixes + in->prefixes_size, real, size);
    in->prefixes_size += size;
}

/* Each once. */
static void add_root(struct sp_interpreter *in, const char *prefix, const char *rest)
{
    char text[PATH_MAX];
    int n = snprintf(text, sizeof text, "%s%s", strcmp(prefix, "/") == 0 ? "" : prefix,
                     rest);
    for (size_t at = 0; at < in->roots_size; at += strlen(in->roots + at) + 1)
        if (strcmp(in->roots + at, text) == 0)
            return;
    if (n > 0 && n < PATH_MAX && in->roots_size + (size_t)n + 2 <= sizeof in->roots) {
        memcpy(in->roots + in->roots_size, text, (size_t)n + 1);
        in->roots_size += (size_t)n + 1;
    }
}

static void add_prefix(struct sp_interpreter *in, const char *prefix)
{
    add_folder(in, prefix);
    add_root(in, prefix, "/lib/python");
    add_root(in, prefix, "/lib64/python");
    if (strcmp(prefix, "/usr") == 0)
        add_root(in, "/usr/local", "/lib/python");
}

/* Cuts the last component; false when there is none. */
static bool up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    slash[slash == path] = '\0';
    return true;
}

/* From PREFIX/bin/python3 to PREFIX. */
static bool up_twice(char *path)
{
    if (!up(path))
        return false;
    return up(path);
}

/* The folder of the interpreter that a virtual environment was made from ("home = ..."). */
static bool environment_home(const char *prefix, char home[PATH_MAX])
{
    char name[PATH_MAX + 16];
    char line[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s/pyvenv.cfg", prefix);
    FILE *file = fopen(name, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = sscanf(line, " home = %4095[^\n]", home) == 1;
    if (file != NULL)
        fclose(file);
    return found;
}

/* The environment around one name of the interpreter, and what that was made from. */
static void add_environment(struct sp_interpreter *in, const char *program)
{
    char prefix[PATH_MAX];
    char home[PATH_MAX];
    char real[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s", program);
    if (!up_twice(prefix) || !environment_home(prefix, home))
        return;
    add_prefix(in, prefix);
    if (sp_real_path(prefix, real) && strcmp(real, prefix) != 0)
        add_prefix(in, real);
    if (up(home))
        add_prefix(in, home);
}

#define LINKS_MAX 40 /* as in the kernel */

/* A link to an environment's interpreter is the environment's: Python goes from link to link. */
static void find_roots(struct sp_interpreter *in)
{
    char link[PATH_MAX];
    char next[PATH_MAX];
    snprintf(link, sizeof link, "%s", in->path);
    add_environment(in, link);
    for (int links = 0; links < LINKS_MAX && sp_link_step(link, "", next); links++) {
        memcpy(link, next, strlen(next) + 1);
        add_environment(in, link);
    }
    if (sp_real_path(in->path, link) && up_twice(link))
        add_prefix(in, link);
    const char *user = getenv("HOME");
    if (user != NULL)
        add_root(in, user, "/.local/lib/python");
    in->roots[in->roots_size++] = '\0';
    in->prefixes[in->prefixes_size++] = '\0';
}

/* An absolute path without empty components and ".". */
static void tidy(char *path)
{
    char *to = path;
    for (const char *at = path; *at != '\0';) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        if (n > 1 || (n == 1 && at[0] != '.')) {
            *to++ = '/';
            memmove(to, at, n);
            to += n;
        }
        at += n;
    }
    *to = '\0';
}

static int make_absolute(struct sp_interpreter *in, struct sp_error *reterr)
{
    char relative[PATH_MAX];
    char folder[PATH_MAX] = "";
    snprintf(relative, sizeof relative, "%s", in->path);
    if (relative[0] != '/' && getcwd(folder, sizeof folder) == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "the current folder cannot be read");
    int n = snprintf(in->path, sizeof in->path, "%s/%s", folder, relative);
    if (n < 0 || n >= PATH_MAX)
        return sp_fail(reterr, SP_E_NOT_FOUND,
                       "the path of the interpreter is too long");
    tidy(in->path);
    return 0;
}

/* ".../python3.11" is a 3.11. */
static void guess_version(struct sp_interpreter *in)
{
    char real[PATH_MAX];
    in->version[0] = '\0';
    if (!sp_real_path(in->path, real))
        return;
    const char *name = strrchr(real, '/') + 1;
    const char *at = strncmp(name, "python", 6) == 0 ? name + 6 : "";
    size_t size = strspn(at, "0123456789.");
    size += at[size] == 't';
    if (size > 0 && at[size] == '\0' && size < sizeof in->version &&
        strchr(at, '.') != NULL)
        memcpy(in->version, at, size + 1);
}

int sp_interpreter_find(const char *asked, struct sp_interpreter *ret_interpreter,
                        struct sp_error *reterr)
{
    struct sp_interpreter *in = ret_interpreter;
    in->roots_size = 0;
    in->prefixes_size = 0;
    if (asked != NULL && !find_asked(asked, in))
        return sp_fail(reterr, SP_E_NOT_FOUND, "there is no interpreter '%.300s'",
                       asked);
    if (asked == NULL && !find_default(in))
        return sp_fail(
            reterr, SP_E_NOT_FOUND,
            "no interpreter: there is no python3 on PATH (name one with --python)");
    int code = make_absolute(in, reterr);
    if (code == 0 && !is_elf(in->path)) {
        code = sp_launcher_resolve(in->path, in->path, reterr);
        snprintf(in->name, sizeof in->name, "%s", in->path);
        if (code == 0 && !is_elf(in->path))
            code = sp_fail(reterr, SP_E_NOT_FOUND, "'%.300s' starts no interpreter",
                           in->path);
    }
    if (code == 0) {
        find_roots(in);
        guess_version(in);
    }
    return code;
}
