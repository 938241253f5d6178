#include "cli/findings.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/scope.h"
#include "plan/interpreter.h"
#include "run/agents_path.h"
#include "sys/usage.h"

/* ---- layers ----------------------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4))) find(struct sp_finding *f,
                                                       enum sp_presence presence,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->detail, sizeof f->detail, format, args);
    va_end(args);
    f->presence = presence;
}

static void find_missing_landlock(struct sp_finding *f, int error)
{
    switch (error) {
    case EOPNOTSUPP:
        find(f, SP_MISSING, "built into this kernel, but switched off at boot");
        f->remedy =
            "add landlock to the lsm= list of the kernel's command line, reboot";
        break;
    case EPERM:
        find(f, SP_MISSING, "forbidden by a filter around this process");
        f->remedy = "let the container's seccomp profile allow the landlock_ calls";
        break;
    default:
        find(f, SP_MISSING, "not built into this kernel");
        f->remedy = "use a kernel of 5.13 or later with CONFIG_SECURITY_LANDLOCK";
    }
}

/* What each ABI of Landlock brought that sandpit uses. */
static void find_landlock(struct sp_finding *f, const struct sp_host *host)
{
    static const struct {
        int abi;
        const char *what;
    } parts[] = {
        {1, "files"}, {3, "truncation"}, {4, "TCP"}, {5, "devices"}, {6, "signals"},
    };
    char has[128] = "";
    char lacks[128] = "";
    if (host->landlock_abi <= 0) {
        find_missing_landlock(f, host->landlock_error);
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *list = parts[i].abi <= host->landlock_abi ? has : lacks;
        size_t used = strlen(list);
        snprintf(list + used, sizeof has - used, "%s%s", used > 0 ? ", " : "",
                 parts[i].what);
    }
    if (*lacks == '\0')
        find(f, SP_PRESENT, "ABI %d: %s", host->landlock_abi, has);
    else
        find(f, SP_PARTLY, "ABI %d: %s; the supervisor and the filter see to %s",
             host->landlock_abi, has, lacks);
}

static void find_listener(struct sp_finding *f, const struct sp_host *host)
{
    if (host->listener) {
        find(f, SP_PRESENT, "seccomp notification%s%s",
             host->addfd_send ? ", answers with a descriptor" : "",
             host->pidfd_getfd ? ", takes descriptors" : "");
        return;
    }
    find(f, SP_MISSING, "no seccomp user notification can be had here");
    f->remedy =
        "use a kernel of 5.9 or later; in a container, a seccomp profile without "
        "a listener of its own";
}

/* Memory, processor time, disk and output can be limited on any machine with /proc; what differs is
 * who counts. */
static void find_limits(struct sp_finding *f, const struct sp_host *host)
{
    bool space = host->user_namespaces && geteuid() != 0;
    const char *memory =
        host->cgroup_writable ? "by a control group" : "by looking at all processes";
    if (!sp_usage_possible()) {
        find(f, SP_MISSING, "this kernel does not tell of a process's children");
        f->remedy = "use a kernel with CONFIG_PROC_CHILDREN";
    } else if (host->cgroup_writable || space) {
        find(f, SP_PRESENT, "memory %s, processes %s", memory,
             host->cgroup_writable ? "too" : "in a user namespace");
    } else if (host->listener) {
        find(f, SP_PARTLY, "memory %s; to count processes, each new one is asked about",
             memory);
    } else {
        find(f, SP_MISSING, "processes cannot be counted here");
        f->remedy = "let a control group be made, or a user namespace";
    }
}

static void find_memory(struct sp_finding *f, const struct sp_host *host)
{
    if (host->process_vm_readv || host->memory_file) {
        find(f, SP_PRESENT, "read from the program's memory by %s",
             host->process_vm_readv ? "process_vm_readv" : "/proc/PID/mem");
        return;
    }
    find(f, SP_MISSING, "the memory of a child cannot be read");
    f->remedy = "let the container's seccomp profile allow process_vm_readv, and set "
                "kernel.yama.ptrace_scope to 0 or 1";
}

static void find_trace_file(struct sp_finding *f, const struct sp_host *host)
{
    if (host->tmpfile)
        find(f, SP_PRESENT, "written without a name until the run ends");
    else
        find(f, SP_PARTLY,
             "the current folder's file system has no O_TMPFILE: written "
             "elsewhere, copied at the end");
}

/* ---- agents ----------------------------------------------------------------------------- */

#define VERSIONS_MAX  32
#define VERSION_BYTES 8 /* "3.13t" */

struct versions {
    char list[VERSIONS_MAX][VERSION_BYTES];
    size_t count;
};

/* "3.9" before "3.13" before "3.13t". */
static int compare_versions(const void *a, const void *b)
{
    long minor_a = strtol((const char *)a + 2, NULL, 10);
    long minor_b = strtol((const char *)b + 2, NULL, 10);
    return minor_a != minor_b ? (minor_a < minor_b ? -1 : 1) : strcmp(a, b);
}

/* Takes the version out of an agent's file name; false for another file. */
static bool version_of_agent(const char *name, char ret_version[VERSION_BYTES])
{
    static const char before[] = "sandpit-agent-";
    static const char after[] = ".so";
    size_t size = strlen(name);
    size_t around = sizeof before - 1 + sizeof after - 1;
    if (size <= around || size - around >= VERSION_BYTES ||
        strncmp(name, before, sizeof before - 1) != 0 ||
        strcmp(name + size - (sizeof after - 1), after) != 0)
        return false;
    memcpy(ret_version, name + sizeof before - 1, size - around);
    ret_version[size - around] = '\0';
    return strncmp(ret_version, "3.", 2) == 0;
}

static void list_agents(const char *folder, struct versions *ret_versions)
{
    ret_versions->count = 0;
    DIR *agents = opendir(folder);
    if (agents == NULL)
        return;
    for (struct dirent *e = readdir(agents); e != NULL; e = readdir(agents))
        if (ret_versions->count < VERSIONS_MAX &&
            version_of_agent(e->d_name, ret_versions->list[ret_versions->count]))
            ret_versions->count++;
    closedir(agents);
    qsort(ret_versions->list, ret_versions->count, VERSION_BYTES, compare_versions);
}

static void find_agents(struct sp_finding *f, struct versions *ret_versions)
{
    char folder[PATH_MAX];
    char list[VERSIONS_MAX * (VERSION_BYTES + 2)] = "";
    struct sp_error error = {0};
    if (sp_agents_path(folder, sizeof folder, &error) != 0) {
        find(f, SP_MISSING, "%s", error.message);
        f->remedy = "install sandpit anew";
        return;
    }
    list_agents(folder, ret_versions);
    for (size_t i = 0; i < ret_versions->count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                 ret_versions->list[i]);
    }
    if (ret_versions->count == 0) {
        find(f, SP_MISSING, "none in %s", folder);
        f->remedy = "install sandpit anew, with a Python that has its headers";
        return;
    }
    find(f, SP_PRESENT, "CPython %s in %s", list, folder);
}

/* ---- the interpreter -------------------------------------------------------------------- */

/* Asks an interpreter for its version, as "3.13t"; false when it does not answer. */
static bool ask_version(const char *path, char ret_version[VERSION_BYTES])
{
    static const char code[] = "import sys; print('%d.%d' % sys.version_info[:2] + 't' "
                               "* ('t' in sys.abiflags), "
                               "end='')";
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    sp_auto_fd from = ends[0];
    sp_auto_fd to = ends[1];
    pid_t child = fork();
    if (child == 0) {
        dup2(to, STDOUT_FILENO);
        execl(path, path, "-I", "-S", "-c", code, (char *)NULL);
        _exit(127);
    }
    sp_close_fd(&to);
    ssize_t size = read(from, ret_version, VERSION_BYTES - 1);
    ret_version[size > 0 ? size : 0] = '\0';
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && size > 0;
}

static bool has_agent(const struct versions *agents, const char *version)
{
    for (size_t i = 0; i < agents->count; i++)
        if (strcmp(agents->list[i], version) == 0)
            return true;
    return false;
}

static void find_interpreter(struct sp_finding *f, const char *asked,
                             const struct versions *agents)
{
    struct sp_interpreter interpreter;
    struct sp_error error = {0};
    char version[VERSION_BYTES];
    if (!sp_host_has_proc()) {
        find(f, SP_MISSING, "/proc is not mounted here, and no run can do without it");
        f->remedy = "mount -t proc proc /proc";
    } else if (sp_interpreter_find(asked, &interpreter, &error) != 0) {
        find(f, SP_MISSING, "%s", error.message);
        f->remedy = "name one with --python";
    } else if (!ask_version(interpreter.path, version)) {
        find(f, SP_MISSING, "%s does not run Python", interpreter.path);
        f->remedy = "name another with --python";
    } else if (!has_agent(agents, version)) {
        find(f, SP_MISSING, "%s, CPython %s, for which there is no agent",
             interpreter.path, version);
        f->remedy = "name another with --python, or build sandpit with its headers";
    } else {
        find(f, SP_PRESENT, "%s, CPython %s", interpreter.path, version);
    }
}

/* ---- all of it -------------------------------------------------------------------------- */

static const struct {
    const char *section;
    const char *name;
} titles[SP_FOUND_COUNT] = {
    [SP_FOUND_LANDLOCK] = {"enforced by", "landlock"},
    [SP_FOUND_LISTENER] = {"enforced by", "listener"},
    [SP_FOUND_LIMITS] = {"enforced by", "limits"},
    [SP_FOUND_ARGUMENTS] = {"recorded by", "arguments"},
    [SP_FOUND_AGENT] = {"recorded by", "agent"},
    [SP_FOUND_TRACE] = {"recorded by", "trace"},
    [SP_FOUND_PYTHON] = {"interpreter of a run", "python3"},
};

void sp_findings_make(struct sp_findings *ret_findings, const char *python)
{
    struct sp_finding *all = ret_findings->all;
    const struct sp_host *host = &ret_findings->host;
    struct versions agents = {.count = 0};
    memset(ret_findings, 0, sizeof *ret_findings);
    for (size_t i = 0; i < SP_FOUND_COUNT; i++) {
        all[i].section = titles[i].section;
        all[i].name = titles[i].name;
    }
    sp_host_probe(&ret_findings->host, SP_HOST_FULL);
    find_landlock(&all[SP_FOUND_LANDLOCK], host);
    find_listener(&all[SP_FOUND_LISTENER], host);
    find_limits(&all[SP_FOUND_LIMITS], host);
    find_memory(&all[SP_FOUND_ARGUMENTS], host);
    find_agents(&all[SP_FOUND_AGENT], &agents);
    find_trace_file(&all[SP_FOUND_TRACE], host);
    find_interpreter(&all[SP_FOUND_PYTHON], python, &agents);
}

int sp_findings_missing(const struct sp_findings *findings)
{
    int missing = 0;
    for (size_t i = 0; i < SP_FOUND_COUNT; i++)
        missing += findings->all[i].presence == SP_MISSING;
    return missing;
}
