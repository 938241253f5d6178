#include "plan/places.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/real_path.h"

static const char *keep(struct sp_run_places *p, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size > sizeof p->text - p->text_used)
        return NULL;
    char *copy = p->text + p->text_used;
    memcpy(copy, text, size);
    p->text_used += size;
    return copy;
}

static void add(struct sp_run_places *p, struct sp_place_list *list, const char *path)
{
    const char *copy = list->count < SP_PLACES_MAX ? keep(p, path) : NULL;
    if (copy != NULL)
        list->items[list->count++] = copy;
}

static void add_below(struct sp_run_places *p, struct sp_place_list *list,
                      const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder,
                     name);
    if (n > 0 && (size_t)n < sizeof path && lstat(path, &st) == 0)
        add(p, list, path);
}

/* What an interpreter and the libraries it loads read outside their own folders, where it is there. */
static const char *const system_files[] = {
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/usr/share/locale",
    "/usr/share/locale-langpack",
    "/usr/share/i18n",
    "/usr/share/ca-certificates",
    "/usr/share/mime",
    "/usr/share/misc",
    "/usr/share/terminfo",
    "/etc/alternatives",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts",
    "/dev/ptmx",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/kernel",
    "/proc/sys/vm",
    "/sys/devices/system",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/fs/cgroup",
};

/* An interpreter that was put into a folder of other things shares only its own parts with it. */
static bool shared_folder(const struct sp_run_places *p, const char *prefix)
{
    return strcmp(prefix, "/") == 0 || strcmp(prefix, p->home) == 0 ||
           strcmp(prefix, p->work) == 0 || strcmp(prefix, "/usr/local") == 0;
}

static void add_prefix(struct sp_run_places *p, const char *prefix)
{
    static const char *const parts[] = {"bin",     "lib",   "lib64",
                                        "include", "share", "pyvenv.cfg"};
    if (!shared_folder(p, prefix))
        add(p, &p->read, prefix);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (shared_folder(p, prefix))
            add_below(p, &p->read, prefix, parts[i]);
        if (strcmp(parts[i], "share") != 0)
            add_below(p, &p->write, prefix, parts[i]);
    }
}

/* Where `pip install --user` puts packages, if there are any. */
static void find_user_base(struct sp_run_places *p)
{
    char path[PATH_MAX];
    const char *base = getenv("PYTHONUSERBASE");
    bool given = base != NULL && base[0] == '/';
    p->user_base[0] = '\0';
    if (!given && p->home[0] == '\0')
        return;
    int n = snprintf(path, sizeof path - 4, "%s%s", given ? base : p->home,
                     given ? "" : "/.local");
    if (n < 0 || (size_t)n >= sizeof path - 4)
        return;
    memcpy(path + n, "/lib", 5);
    if (access(path, F_OK) == 0)
        snprintf(p->user_base, sizeof p->user_base, "%.*s", n, path);
}

/* The name that the interpreter is started by, in the folder where it really lies, and its file: as
 * such paths are judged. */
static void add_program(struct sp_run_places *p, const char *program)
{
    char path[PATH_MAX];
    char real[PATH_MAX];
    const char *slash = strrchr(program, '/');
    int length = (int)(slash - program);
    snprintf(path, sizeof path, "%.*s", length == 0 ? 1 : length, program);
    if (sp_real_path(path, real) &&
        (size_t)snprintf(path, sizeof path, "%s%s", strcmp(real, "/") == 0 ? "" : real,
                         slash) < sizeof path) {
        add(p, &p->programs, path);
        add(p, &p->read, path);
    }
    if (sp_real_path(program, real) && strcmp(real, path) != 0) {
        add(p, &p->programs, real);
        add(p, &p->read, real);
    }
}

static void add_python(struct sp_run_places *p, const struct sp_interpreter *in)
{
    char path[PATH_MAX];
    for (size_t at = 0; in->prefixes[at] != '\0'; at += strlen(in->prefixes + at) + 1)
        add_prefix(p, in->prefixes + at);
    find_user_base(p);
    if (p->user_base[0] != '\0') {
        snprintf(path, sizeof path, "%.*s/lib", (int)sizeof path - 16, p->user_base);
        add(p, &p->read, path);
        add(p, &p->write, path);
    }
    add_program(p, in->path);
}

static void add_system(struct sp_run_places *p)
{
    for (size_t i = 0; i < sizeof system_files / sizeof *system_files; i++)
        add(p, &p->read, system_files[i]);
}

#define LINKS_MAX 40 /* as in the kernel */

/* As far as the path exists, its links are followed; the rest stays as it is. What does not exist
 * may come to be where a link leads. */
static bool follow_from(const char *path, char *to, size_t size, unsigned links)
{
    char next[PATH_MAX];
    char real[PATH_MAX];
    char head[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof head || path[0] != '/')
        return false;
    memcpy(head, path, length + 1);
    while (!sp_real_path(head, real)) {
        if (links < LINKS_MAX && sp_link_step(head, path + strlen(head), next))
            return follow_from(next, to, size, links + 1);
        char *slash = strrchr(head, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        if (slash == head) {
            real[0] = '\0';
            break;
        }
    }
    const char *rest = path + strlen(head);
    bool root = strcmp(real, "/") == 0 && rest[0] == '/';
    int n = snprintf(to, size, "%s%s", root ? "" : real, rest);
    return n > 0 && (size_t)n < size;
}

static bool follow(const char *path, char *to, size_t size)
{
    return follow_from(path, to, size, 0);
}

/* The first `length` bytes of the path, with links followed. NULL: it cannot be told. */
static const char *follow_folder(struct sp_run_places *p, const char *path,
                                 size_t length)
{
    for (unsigned i = 0; i < SP_PLACES_FOLLOWED; i++)
        if (strncmp(p->followed[i].folder, path, length) == 0 &&
            p->followed[i].folder[length] == '\0')
            return p->followed[i].real;
    unsigned next = p->followed_next++ % SP_PLACES_FOLLOWED;
    char *folder = p->followed[next].folder;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (follow(folder, p->followed[next].real, sizeof p->followed[next].real))
        return p->followed[next].real;
    folder[0] = '\0';
    return NULL;
}

/* Rules stand together by folder: the folder of the last one is likely that of the next. Whose
 * /proc/self is meant depends on who looks. */
static bool canonical(void *context, const char *path, char *to, size_t size)
{
    struct sp_run_places *p = context;
    char link[8];
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) : 0;
    if (path[0] != '/' || strncmp(path, "/proc/self", 10) == 0 ||
        strlen(path) >= sizeof p->followed[0].folder)
        return false;
    if (length == 0) {
        const char *real = follow_folder(p, path, strlen(path));
        return real != NULL && snprintf(to, size, "%s", real) < (int)size;
    }
    if (readlink(path, link, sizeof link) >= 0)
        return follow(path, to, size);
    const char *real = follow_folder(p, path, length);
    if (real == NULL)
        return false;
    bool root = strcmp(real, "/") == 0;
    int n = snprintf(to, size, "%s%s", root ? "" : real, slash);
    return n > 0 && (size_t)n < size;
}

static bool find_program(void *context, const char *name, char *to, size_t size)
{
    const struct sp_run_places *p = context;
    const char *at = p->path;
    while (at != NULL && *at != '\0') {
        char path[PATH_MAX];
        struct stat st;
        size_t n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name);
        at += n + (at[n] == ':');
        if (n > 0 && access(path, X_OK) == 0 && stat(path, &st) == 0 &&
            S_ISREG(st.st_mode)) {
            int length = snprintf(to, size, "%s", path);
            return length > 0 && (size_t)length < size;
        }
    }
    return false;
}

static bool is_folder(void *context, const char *path)
{
    (void)context;
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* $HOME, else what the local file of users says: asking all services would need their libraries. */
static void find_home(char to[PATH_MAX])
{
    const char *home = getenv("HOME");
    bool given = home != NULL && home[0] == '/';
    FILE *users = given ? NULL : fopen("/etc/passwd", "re");
    const struct passwd *entry;
    while (users != NULL && (entry = fgetpwent(users)) != NULL)
        if (entry->pw_uid == getuid()) {
            home = entry->pw_dir;
            given = home[0] == '/';
            break;
        }
    if (!given || !sp_real_path(home, to))
        to[0] = '\0';
    if (users != NULL)
        fclose(users);
}

int sp_places_find(const struct sp_policy *written,
                   const struct sp_interpreter *interpreter, const char *script,
                   const char *tmp, const char *agents, const char *path,
                   struct sp_run_places *ret_places, struct sp_error *reterr)
{
    struct sp_run_places *p = ret_places;
    p->text_used = 0;
    for (unsigned i = 0; i < SP_PLACES_FOLLOWED; i++)
        p->followed[i].folder[0] = '\0';
    p->read.count = p->write.count = p->programs.count = 0;
    p->path = path;
    if (getcwd(p->work, sizeof p->work) == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "the current folder cannot be read");
    find_home(p->home);
    if (script == NULL || !sp_real_path(script, p->script))
        p->script[0] = '\0';
    add_python(p, interpreter);
    if (sp_policy_restricts(written, SP_LIST_READ))
        add_system(p);
    p->read.items[p->read.count] = NULL;
    p->write.items[p->write.count] = NULL;
    p->programs.items[p->programs.count] = NULL;
    p->places = (struct sp_places){
        .work = p->work,
        .script = p->script[0] != '\0' ? p->script : NULL,
        /* Without a home, what lies in one is nowhere. */
        .home = p->home[0] != '\0' ? p->home : NULL,
        .tmp = tmp,
        .agents = agents,
        .python_read = p->read.items,
        .python_write = p->write.items,
        .python_programs = p->programs.items,
        .canonical = canonical,
        .program = find_program,
        .folder = is_folder,
        .context = p,
    };
    return 0;
}

bool sp_places_want_tmp(const struct sp_policy *policy)
{
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    for (uint32_t i = 0; i < policy->rules_count; i++)
        if (rules[i].list == SP_LIST_WRITE && rules[i].action == SP_ALLOW &&
            strncmp(sp_policy_text(policy, rules[i].pattern), "{tmp}", 5) == 0)
            return true;
    return false;
}
