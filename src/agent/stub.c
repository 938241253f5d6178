/* The stub: the one library that every program of the guest is made to load.
 *
 * It must do no harm in programs that it knows nothing of: another libc, another Python, no
 * Python at all. So it refers weakly to what may not be there, is built without what needs
 * libc's help (fortify, stack protector), and touches nothing but its own entry in the
 * environment. In a CPython for which an agent lies beside it, it loads that agent. What it
 * interposes of libc is in stub_exec.c (so that children are traced too), stub_error.c,
 * stub_open.c, stub_lookup.c and stub_thread.c.
 */
#include "agent/stub_private.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

extern char **environ;

extern const char *Py_GetVersion(void) __attribute__((weak));
extern int PySys_AddAuditHook(int (*)(const char *, void *, void *), void *)
    __attribute__((weak));

struct sp_stub sp_stub = {.version = SP_STUB_VERSION};
char sp_stub_preload[SP_PRELOAD_BYTES];
size_t sp_stub_preload_size;

#define VARIABLE      "LD_PRELOAD="
#define VARIABLE_SIZE (sizeof VARIABLE - 1)

/* By hand: a shell brings a getenv and an unsetenv of its own, which ours would call. */
static char **find_variable(char **environment)
{
    for (char **entry = environment; entry && *entry; entry++)
        if (strncmp(*entry, VARIABLE, VARIABLE_SIZE) == 0)
            return entry;
    return NULL;
}

/* Whether the path of `size` bytes is the stub's: by the name that it is installed under. */
static int is_stub(const char *path, size_t size)
{
    static const char name[] = "libsandpit-stub.so";
    return size >= sizeof name - 1 &&
           memcmp(path + size - (sizeof name - 1), name, sizeof name - 1) == 0;
}

/* Takes our own name, which stands first, out of the variable; what the user had there
 * stays. The whole text is kept for children. */
static void take_variable(void)
{
    char **entry = find_variable(environ);
    if (!entry)
        return;
    size_t size = strlen(*entry);
    size_t ours = strcspn(*entry + VARIABLE_SIZE, ": ");
    if (size >= sizeof sp_stub_preload || !is_stub(*entry + VARIABLE_SIZE, ours))
        return;
    memcpy(sp_stub_preload, *entry, size + 1);
    sp_stub_preload_size = size;
    char *rest = *entry + VARIABLE_SIZE + ours;
    if (*rest) {
        rest += strspn(rest, ": ");
        memmove(*entry + VARIABLE_SIZE, rest, strlen(rest) + 1);
        return;
    }
    do
        entry[0] = entry[1];
    while (*entry++);
}

/* At the program's start, when os.environ has its copy: the C environment, which native code
 * passes on, is as it was given to us. */
static void environment_restore(void)
{
    char **entry = find_variable(environ);
    if (sp_stub_preload_size == 0)
        return;
    if (entry)
        *entry = sp_stub_preload;
    else
        putenv(sp_stub_preload);
}

/* "<folder of the stub>/sandpit-agent-3.X[t].so" for the text of Py_GetVersion(),
 * "3.12.1 (main, ...)" or "3.13.0 experimental free-threading build (...)". */
static int agent_path(const char *version, char *path, size_t room)
{
    Dl_info info;
    if (!dladdr(&sp_stub, &info) || !info.dli_fname)
        return 0;
    const char *slash = strrchr(info.dli_fname, '/');
    size_t folder = slash ? (size_t)(slash - info.dli_fname) + 1 : 0;
    size_t number = strspn(version, "0123456789.");
    const char *second = memchr(version, '.', number);
    if (!second || folder + 40 > room)
        return 0;
    size_t size = (size_t)(second - version) + 1;
    size += strspn(version + size, "0123456789");
    if (version[0] != '3' || version[1] != '.' || size > 8)
        return 0;
    char *at = path;
    memcpy(at, info.dli_fname, folder);
    at += folder;
    memcpy(at, "sandpit-agent-", 14);
    at += 14;
    memcpy(at, version, size);
    at += size;
    if (strstr(version, "free-threading"))
        *at++ = 't';
    memcpy(at, ".so", 4);
    return 1;
}

static void load_agent(void)
{
    char path[4096];
    if (!PySys_AddAuditHook || !Py_GetVersion || !dlopen || !dlsym || !dladdr)
        return;
    if (!agent_path(Py_GetVersion(), path, sizeof path))
        return;
    /* For good: a program could count it down to nothing and have it unloaded. */
    void *agent = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    int (*start)(struct sp_stub *) = agent ? dlsym(agent, "sp_agent_start") : NULL;
    if (start)
        start(&sp_stub);
}

__attribute__((constructor)) static void stub_begin(void)
{
    take_variable();
    sp_stub.environment_restore = environment_restore;
    load_agent();
}
