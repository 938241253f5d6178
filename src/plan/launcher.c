#include "plan/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/scope.h"
#include "sys/real_path.h"

#define CACHE_LINES 64
#define ASK         "import sys; sys.stdout.write(sys.executable)"

/* Version managers choose by an environment variable and by files in the folders above. */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
    return (hash ^ 0xff) * 0x100000001b3u;
}

static uint64_t mix_stamp(uint64_t hash, const char *path)
{
    struct stat st;
    char text[100];
    if (stat(path, &st) != 0)
        return hash;
    snprintf(text, sizeof text, "%llu %llu %lld.%09ld", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec,
             st.st_mtim.tv_nsec);
    return mix(mix(hash, path), text);
}

static uint64_t key_of(const char *launcher)
{
    static const char *const variables[] = {
        "PYENV_VERSION",       "PYENV_ROOT", "ASDF_PYTHON_VERSION",
        "MISE_PYTHON_VERSION", "PATH",       "HOME"};
    static const char *const files[] = {".python-version", ".tool-versions",
                                        "mise.toml", ".mise.toml"};
    uint64_t hash = mix_stamp(0xcbf29ce484222325u, launcher);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        hash = mix(hash, getenv(variables[i]));
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) == NULL)
        return hash;
    for (char *end = folder + strlen(folder);; end = strrchr(folder, '/')) {
        if (end == NULL)
            break;
        *end = '\0';
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            char path[PATH_MAX + 20];
            snprintf(path, sizeof path, "%s/%s", folder, files[i]);
            hash = mix_stamp(hash, path);
        }
    }
    /* The manager's own default lies beside the folder of its launchers. */
    char path[PATH_MAX + 20];
    snprintf(path, sizeof path, "%s", launcher);
    for (int i = 0; i < 2 && strrchr(path, '/') != NULL; i++)
        *strrchr(path, '/') = '\0';
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/version");
    return mix_stamp(hash, path);
}

static bool cache_folder(char to[PATH_MAX])
{
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (base != NULL && base[0] == '/')
        return snprintf(to, PATH_MAX, "%s/sandpit", base) < PATH_MAX;
    if (home != NULL && home[0] == '/')
        return snprintf(to, PATH_MAX, "%s/.cache/sandpit", home) < PATH_MAX;
    return false;
}

bool sp_launcher_cache(char to[PATH_MAX])
{
    char folder[PATH_MAX];
    char real[PATH_MAX];
    if (!cache_folder(folder))
        return false;
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    const char *parent = sp_real_path(folder, real) ? real : folder;
    return snprintf(to, PATH_MAX, "%s/sandpit", parent) < PATH_MAX;
}

static bool cache_path(char to[PATH_MAX], const char *name, bool make)
{
    char folder[PATH_MAX];
    if (!cache_folder(folder))
        return false;
    if (make) {
        char *slash = strrchr(folder, '/');
        *slash = '\0';
        (void)mkdir(folder, 0700);
        *slash = '/';
        (void)mkdir(folder, 0700);
    }
    return snprintf(to, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static bool cached(uint64_t key, char to[PATH_MAX])
{
    char name[PATH_MAX];
    char line[PATH_MAX + 32];
    char path[PATH_MAX];
    if (!cache_path(name, "launchers", false))
        return false;
    FILE *file = fopen(name, "re");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        unsigned long long have;
        found = sscanf(line, "%16llx %4095[^\n]", &have, path) == 2 && have == key &&
                access(path, X_OK) == 0;
    }
    if (file != NULL)
        fclose(file);
    if (found)
        memcpy(to, path, strlen(path) + 1);
    return found;
}

/* A new file in the old one's place, so that runs at the same time see one or the other. */
static void remember(uint64_t key, const char *path)
{
    char name[PATH_MAX];
    char fresh[PATH_MAX];
    char line[PATH_MAX + 32];
    char own[40];
    snprintf(own, sizeof own, "launchers.%d", (int)getpid());
    if (!cache_path(name, "launchers", true) || !cache_path(fresh, own, true) ||
        strchr(path, '\n') != NULL)
        return;
    FILE *to = fopen(fresh, "we");
    FILE *from = fopen(name, "re");
    if (to != NULL) {
        fprintf(to, "%016llx %s\n", (unsigned long long)key, path);
        for (int i = 1;
             from != NULL && i < CACHE_LINES && fgets(line, sizeof line, from); i++)
            fputs(line, to);
        if (fclose(to) == 0)
            (void)rename(fresh, name);
        (void)unlink(fresh);
    }
    if (from != NULL)
        fclose(from);
}

static int ask(const char *launcher, char to[PATH_MAX], struct sp_error *reterr)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return sp_fail_errno(reterr, SP_E_HOST, "cannot make a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        execl(launcher, launcher, "-I", "-S", "-c", ASK, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    char answer[PATH_MAX];
    size_t size = 0;
    ssize_t n;
    while (pid > 0 && size < sizeof answer - 1 &&
           ((n = read(ends[0], answer + size, sizeof answer - 1 - size)) > 0 ||
            (n < 0 && errno == EINTR)))
        size += n > 0 ? (size_t)n : 0;
    close(ends[0]);
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    answer[size] = '\0';
    if (status != 0 || answer[0] != '/')
        return sp_fail(reterr, SP_E_NOT_FOUND,
                       "'%.300s' does not start a Python interpreter", launcher);
    memcpy(to, answer, size + 1);
    return 0;
}

int sp_launcher_resolve(const char *launcher, char ret_path[PATH_MAX],
                        struct sp_error *reterr)
{
    uint64_t key = key_of(launcher);
    if (cached(key, ret_path))
        return 0;
    int code = ask(launcher, ret_path, reterr);
    if (code == 0)
        remember(key, ret_path);
    return code;
}
