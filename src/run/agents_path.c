#include "run/agents_path.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/real_path.h"

/* The folder as seen from the program's own, for the interpreter that it was built with:
 * "../lib/python3.11/site-packages". */
#ifndef SP_PACKAGES_FROM_PROGRAM
#error "the build defines SP_PACKAGES_FROM_PROGRAM"
#endif

#define AGENTS "sandpit/_agents"

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Takes a folder that exists, with its name made absolute and free of "..". */
static bool take(const char *path, char *ret_path, size_t size)
{
    char real[PATH_MAX];
    if (!is_folder(path) || !sp_real_path(path, real) || strlen(real) >= size)
        return false;
    memcpy(ret_path, real, strlen(real) + 1);
    return true;
}

static bool program_folder(char *ret_folder, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", ret_folder, size - 1);
    if (n <= 0 || (size_t)n >= size - 1)
        return false;
    ret_folder[n] = '\0';
    char *slash = strrchr(ret_folder, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* Another Python's packages beside ours: PREFIX/lib/python3.N/{site,dist}-packages, and the
 * Debian place for packages of the system itself, PREFIX/lib/python3/dist-packages. */
static bool search(const char *folder, char *ret_path, size_t size)
{
    static const char *const kinds[] = {"site-packages", "dist-packages"};
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/../lib", folder);
    DIR *lib = n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
    if (lib == NULL)
        return false;
    bool found = false;
    for (struct dirent *e = readdir(lib); e != NULL && !found; e = readdir(lib)) {
        if (strncmp(e->d_name, "python3", 7) != 0)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !found; i++) {
            n = snprintf(path, sizeof path, "%s/../lib/%s/%s/" AGENTS, folder,
                         e->d_name, kinds[i]);
            found = n > 0 && (size_t)n < sizeof path && take(path, ret_path, size);
        }
    }
    closedir(lib);
    return found;
}

static int from_environment(const char *path, char *ret_path, size_t size,
                            struct sp_error *reterr)
{
    if (take(path, ret_path, size))
        return 0;
    return sp_fail(reterr, SP_E_USAGE, "SANDPIT_AGENTS is '%s', which is no folder",
                   path);
}

int sp_agents_path(char *ret_path, size_t size, struct sp_error *reterr)
{
    const char *given = getenv("SANDPIT_AGENTS");
    if (given != NULL && *given != '\0')
        return from_environment(given, ret_path, size, reterr);
    char folder[PATH_MAX];
    if (program_folder(folder, sizeof folder)) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/" SP_PACKAGES_FROM_PROGRAM "/" AGENTS,
                         folder);
        if (n > 0 && (size_t)n < sizeof path && take(path, ret_path, size))
            return 0;
        if (search(folder, ret_path, size))
            return 0;
    }
    sp_fail(reterr, SP_E_HOST,
            "the agents are not installed beside the program (SANDPIT_AGENTS=FOLDER "
            "names them)");
    return sp_error_what(reterr, "agent");
}
