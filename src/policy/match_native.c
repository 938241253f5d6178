/* Judging native code: what may be loaded, and the modules whose purpose is to call any. */
#include <string.h>

#include "policy/judge.h"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* By the name's first part: modules that let a program call whatever it likes. */
bool sp_native_calls_any(const char *module)
{
    static const char *const names[] = {"ctypes", "_ctypes", "_ctypes_test", "cffi",
                                        "_cffi_backend"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(module, names[i], n) == 0 &&
            (module[n] == '\0' || module[n] == '.'))
            return true;
    }
    return false;
}

static bool packages(const char *path)
{
    return strstr(path, "/site-packages/") != NULL ||
           strstr(path, "/dist-packages/") != NULL;
}

static bool system_folder(const char *path)
{
    static const char *const folders[] = {
        "/lib/",           "/lib32/",           "/lib64/",
        "/usr/lib/",       "/usr/lib32/",       "/usr/lib64/",
        "/usr/local/lib/", "/usr/local/lib64/", "/nix/store/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (starts(path, folders[i]))
            return true;
    return false;
}

/* What libc loads by itself, whatever the program does. */
static bool of_libc(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    return system_folder(path) &&
           (starts(name, "libgcc_s.") || starts(name, "libnss_") ||
            starts(name, "libresolv") || strstr(path, "/gconv/") != NULL);
}

/* "PREFIX/lib/python": where what belongs to it begins. */
static enum sp_code_file below_root(const char *path, const char *root)
{
    size_t n = strlen(root);
    const char *rest = path + n;
    size_t folder = n - strlen("python");
    bool users = strstr(root, "/.local/lib") != NULL;
    if (n < strlen("/python") || strncmp(path, root, folder) != 0)
        return SP_CODE_OTHER;
    if (strncmp(path, root, n) != 0) /* beside it: the interpreter's own libraries */
        return users || packages(path) ? SP_CODE_OTHER : SP_CODE_SYSTEM;
    if (packages(path) || users)
        return SP_CODE_INSTALLED;
    rest += strspn(rest, "0123456789.t");
    return *rest == '/' ? SP_CODE_STDLIB : SP_CODE_OTHER;
}

enum sp_code_file sp_code_file_of(const char *path, const char *roots)
{
    const char *name = strrchr(path, '/');
    if (name == NULL)
        return SP_CODE_OTHER;
    char module[64] = "";
    size_t n = strcspn(name + 1, ".");
    if (n < sizeof module)
        memcpy(module, name + 1, n);
    if (sp_native_calls_any(module))
        return SP_CODE_CALLS_ANY;
    if (of_libc(path))
        return SP_CODE_LIBC;
    for (; roots[0] != '\0'; roots += strlen(roots) + 1) {
        enum sp_code_file what = below_root(path, roots);
        if (what != SP_CODE_OTHER)
            return what;
    }
    return packages(path) || !system_folder(path) ? SP_CODE_OTHER : SP_CODE_SYSTEM;
}

struct sp_verdict sp_judge_native(const struct sp_policy *p)
{
    static const char *const values[] = {"\"allow\"", "\"installed\"", "\"stdlib\"",
                                         "\"deny\""};
    return sp_judge_setting(p, SP_SETTING_NATIVE, SP_LIST_IMPORTS,
                            values[sp_policy_setting(p, SP_SETTING_NATIVE)]);
}

struct sp_verdict sp_policy_native(const struct sp_policy *p, enum sp_code_file what,
                                   bool started)
{
    unsigned setting = sp_policy_setting(p, SP_SETTING_NATIVE);
    bool allowed = what == SP_CODE_LIBC;
    if (setting == SP_NATIVE_ALLOW)
        allowed = true;
    else if (what == SP_CODE_CALLS_ANY)
        allowed = sp_policy_import(p, "ctypes", true).action == SP_ALLOW;
    else if (what == SP_CODE_SYSTEM || what == SP_CODE_STDLIB)
        allowed = setting != SP_NATIVE_DENY || !started;
    else if (what == SP_CODE_INSTALLED || what == SP_CODE_MEMORY)
        allowed = setting == SP_NATIVE_INSTALLED;
    if (allowed)
        return (struct sp_verdict){.action = SP_ALLOW,
                                   .source = sp_policy_text(p, p->source),
                                   .list = SP_LIST_IMPORTS};
    return sp_judge_native(p);
}
