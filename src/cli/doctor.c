/* `sandpit doctor`: what this machine can enforce and record, by what, and what is missing. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/commands.h"
#include "plan/interpreter.h"
#include "policy/policy.h"
#include "run/agents_path.h"
#include "sys/host.h"

/* ---- the findings ----------------------------------------------------------------------- */

enum state {
    PRESENT,
    PARTLY, /* every policy can be enforced, at a cost that the detail names */
    MISSING,
};
static const char *const state_words[] = {"yes", "partly", "no"};

struct finding {
    const char *name; /* of a layer, as --allow-degraded and SANDPIT_REQUIRE know it */
    enum state state;
    char detail[PATH_MAX + 128];
    const char *remedy; /* NULL: nothing to do */
};

static void __attribute__((format(printf, 3, 4))) find(struct finding *f,
                                                       enum state state,
                                                       const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->detail, sizeof f->detail, format, args);
    va_end(args);
    f->state = state;
}

static void find_missing_landlock(struct finding *f, int error)
{
    switch (error) {
    case EOPNOTSUPP:
        find(f, MISSING, "built into this kernel, but switched off at boot");
        f->remedy =
            "add landlock to the lsm= list of the kernel's command line, reboot";
        break;
    case EPERM:
        find(f, MISSING, "forbidden by a filter around this process");
        f->remedy = "let the container's seccomp profile allow the landlock_ calls";
        break;
    default:
        find(f, MISSING, "not built into this kernel");
        f->remedy = "use a kernel of 5.13 or later with CONFIG_SECURITY_LANDLOCK";
    }
}

/* What each ABI of Landlock brought that sandpit uses. */
static void find_landlock(struct finding *f, const struct sp_host *host)
{
    static const struct {
        int abi;
        const char *what;
    } parts[] = {
        {1, "files"}, {3, "truncation"}, {4, "TCP"}, {5, "devices"}, {6, "signals"},
    };
    char has[128] = "";
    char lacks[128] = "";
    f->name = "landlock";
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
        find(f, PRESENT, "ABI %d: %s", host->landlock_abi, has);
    else
        find(f, PARTLY, "ABI %d: %s; the supervisor and the filter see to %s",
             host->landlock_abi, has, lacks);
}

static void find_listener(struct finding *f, const struct sp_host *host)
{
    f->name = "listener";
    if (host->listener) {
        find(f, PRESENT, "seccomp notification%s%s",
             host->addfd_send ? ", answers with a descriptor" : "",
             host->pidfd_getfd ? ", takes descriptors" : "");
        return;
    }
    find(f, MISSING, "no seccomp user notification can be had here");
    f->remedy =
        "use a kernel of 5.9 or later; in a container, a seccomp profile without "
        "a listener of its own";
}

static void find_memory(struct finding *f, const struct sp_host *host)
{
    f->name = "arguments";
    if (host->process_vm_readv || host->memory_file) {
        find(f, PRESENT, "read from the program's memory by %s",
             host->process_vm_readv ? "process_vm_readv" : "/proc/PID/mem");
        return;
    }
    find(f, MISSING, "the memory of a child cannot be read");
    f->remedy = "let the container's seccomp profile allow process_vm_readv";
}

static void find_trace_file(struct finding *f, const struct sp_host *host)
{
    f->name = "trace";
    if (host->tmpfile)
        find(f, PRESENT, "written without a name until the run ends");
    else
        find(f, PARTLY,
             "the current folder's file system has no O_TMPFILE: written "
             "elsewhere, copied at the end");
}

/* ---- agents ----------------------------------------------------------------------------- */

#define VERSIONS_MAX 32

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The minor version N in the file name of an agent for CPython 3.N, 0 for another file. */
static int agent_minor(const char *name)
{
    int minor = 0;
    int end = 0;
    if (sscanf(name, "sandpit-agent-3.%d.so%n", &minor, &end) == 1 && end > 0 &&
        name[end] == '\0')
        return minor;
    return 0;
}

static int list_agents(const char *folder, int minors[VERSIONS_MAX])
{
    int count = 0;
    DIR *agents = opendir(folder);
    if (agents == NULL)
        return 0;
    for (struct dirent *e = readdir(agents); e != NULL; e = readdir(agents)) {
        int minor = agent_minor(e->d_name);
        if (minor > 0 && count < VERSIONS_MAX)
            minors[count++] = minor;
    }
    closedir(agents);
    qsort(minors, (size_t)count, sizeof *minors, compare_numbers);
    return count;
}

struct agents {
    int minors[VERSIONS_MAX]; /* of the versions that there is one for, ascending */
    int count;
};

static void find_agents(struct finding *f, struct agents *ret_agents)
{
    char folder[PATH_MAX];
    char list[256] = "";
    struct sp_error error = {0};
    f->name = "agent";
    if (sp_agents_path(folder, sizeof folder, &error) != 0) {
        find(f, MISSING, "%s", error.message);
        f->remedy = "install sandpit anew";
        return;
    }
    ret_agents->count = list_agents(folder, ret_agents->minors);
    for (int i = 0; i < ret_agents->count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s3.%d", i > 0 ? ", " : "",
                 ret_agents->minors[i]);
    }
    if (ret_agents->count == 0) {
        find(f, MISSING, "none in %s", folder);
        f->remedy = "install sandpit anew, with a Python that has its headers";
        return;
    }
    find(f, PRESENT, "CPython %s in %s", list, folder);
}

/* ---- the interpreter -------------------------------------------------------------------- */

/* The N of "python3.N" in one of the interpreter's own folders, 0 when none says. */
static int interpreter_minor(const struct sp_interpreter *interpreter)
{
    static const char word[] = "/python3.";
    const char *root = interpreter->roots;
    while (*root != '\0') {
        const char *at = strstr(root, word);
        if (at != NULL)
            return (int)strtol(at + sizeof word - 1, NULL, 10);
        root += strlen(root) + 1;
    }
    return 0;
}

static bool has_agent(const struct agents *agents, int minor)
{
    for (int i = 0; i < agents->count; i++)
        if (agents->minors[i] == minor)
            return true;
    return false;
}

static void find_interpreter(struct finding *f, const char *asked,
                             const struct agents *agents)
{
    struct sp_interpreter interpreter;
    struct sp_error error = {0};
    f->name = "python3";
    if (sp_interpreter_find(asked, &interpreter, &error) != 0) {
        find(f, MISSING, "%s", error.message);
        f->remedy = "name one with --python";
        return;
    }
    int minor = interpreter_minor(&interpreter);
    if (minor > 0 && has_agent(agents, minor)) {
        find(f, PRESENT, "%s, CPython 3.%d", interpreter.path, minor);
    } else if (minor > 0) {
        find(f, MISSING, "%s, CPython 3.%d, for which there is no agent",
             interpreter.path, minor);
        f->remedy =
            "name another with --python, or build sandpit where it has its headers";
    } else {
        find(f, PARTLY, "%s, of a version that its folders do not tell",
             interpreter.path);
    }
}

/* ---- the report ------------------------------------------------------------------------- */

struct report {
    struct sp_host host;
    struct finding landlock;
    struct finding listener;
    struct finding memory;
    struct finding agents;
    struct finding trace;
    struct finding interpreter;
};

#define FINDINGS 6
struct section {
    const char *title; /* NULL: goes on with the one before */
    const struct finding *finding;
};

static void make_report(struct report *r, const char *python)
{
    struct agents agents = {0};
    sp_host_probe(&r->host, SP_HOST_FULL);
    find_landlock(&r->landlock, &r->host);
    find_listener(&r->listener, &r->host);
    find_memory(&r->memory, &r->host);
    find_agents(&r->agents, &agents);
    find_trace_file(&r->trace, &r->host);
    find_interpreter(&r->interpreter, python, &agents);
}

static void list_sections(const struct report *r, struct section sections[FINDINGS])
{
    sections[0] = (struct section){"enforced by", &r->landlock};
    sections[1] = (struct section){NULL, &r->listener};
    sections[2] = (struct section){"recorded by", &r->memory};
    sections[3] = (struct section){NULL, &r->agents};
    sections[4] = (struct section){NULL, &r->trace};
    sections[5] = (struct section){"interpreter of a run", &r->interpreter};
}

static int count_missing(const struct section *sections)
{
    int missing = 0;
    for (int i = 0; i < FINDINGS; i++)
        missing += sections[i].finding->state == MISSING;
    return missing;
}

static void print_finding(const struct finding *f, bool color)
{
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    printf("  %s%-7s%s %-10s %s\n", color ? colors[f->state] : "",
           state_words[f->state], color ? "\033[0m" : "", f->name, f->detail);
    if (f->remedy != NULL)
        printf("  %-18s to get it: %s\n", "", f->remedy);
}

static void print_policies(void)
{
    const struct sp_policy *policy;
    printf("\npolicies\n");
    for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++)
        printf("  %-18s %s\n", sp_policy_text(policy, policy->name),
               sp_policy_text(policy, policy->description));
}

static void print_text(const struct report *r, const struct section *sections,
                       bool color)
{
    printf("sandpit %s on Linux %s, %s\n", SP_VERSION, r->host.kernel, r->host.arch);
    for (int i = 0; i < FINDINGS; i++) {
        if (sections[i].title != NULL)
            printf("\n%s\n", sections[i].title);
        print_finding(sections[i].finding, color);
    }
    print_policies();
    int missing = count_missing(sections);
    if (missing == 0)
        printf("\nEvery policy can be enforced and recorded here.\n");
    else if (r->interpreter.state == MISSING)
        printf("\nNothing can be run with this interpreter.\n");
    else
        printf("\n%d missing: a run is refused unless --allow-degraded names it.\n",
               missing);
}

static void add_text(struct sp_buffer *b, const char *key, const char *text)
{
    sp_json_key(b, key);
    sp_json_string(b, text, strlen(text));
}

static void add_finding(struct sp_buffer *b, const struct finding *f)
{
    sp_json_key(b, f->name);
    sp_buffer_text(b, "{");
    add_text(b, "state", state_words[f->state]);
    add_text(b, "detail", f->detail);
    if (f->remedy != NULL)
        add_text(b, "remedy", f->remedy);
    sp_buffer_text(b, "}");
}

static void add_host(struct sp_buffer *b, const struct sp_host *host)
{
    const struct {
        const char *name;
        bool value;
    } abilities[] = {
        {"wait_killable", host->wait_killable},
        {"sync_wake", host->sync_wake},
        {"addfd_send", host->addfd_send},
        {"pidfd_getfd", host->pidfd_getfd},
        {"process_vm_readv", host->process_vm_readv},
        {"memory_file", host->memory_file},
        {"user_namespaces", host->user_namespaces},
        {"cgroup_writable", host->cgroup_writable},
        {"tmpfile", host->tmpfile},
    };
    sp_json_key(b, "host");
    sp_buffer_text(b, "{");
    add_text(b, "kernel", host->kernel);
    add_text(b, "arch", host->arch);
    sp_json_key(b, "landlock_abi");
    sp_json_int(b, host->landlock_abi);
    for (size_t i = 0; i < sizeof abilities / sizeof *abilities; i++) {
        sp_json_key(b, abilities[i].name);
        sp_buffer_text(b, abilities[i].value ? "true" : "false");
    }
    sp_buffer_text(b, "}");
}

static void print_json(const struct report *r, const struct section *sections)
{
    const struct sp_policy *policy;
    sp_auto_buffer b;
    sp_buffer_init(&b, 1 << 20);
    sp_buffer_text(&b, "{");
    add_text(&b, "version", SP_VERSION);
    sp_json_key(&b, "complete");
    sp_buffer_text(&b, count_missing(sections) == 0 ? "true" : "false");
    sp_json_key(&b, "layers");
    sp_buffer_text(&b, "{");
    for (int i = 0; i < FINDINGS; i++)
        add_finding(&b, sections[i].finding);
    sp_buffer_text(&b, "}");
    add_host(&b, &r->host);
    sp_json_key(&b, "policies");
    sp_buffer_text(&b, "[");
    for (size_t i = 0; (policy = sp_policy_builtin_at(i)) != NULL; i++) {
        const char *name = sp_policy_text(policy, policy->name);
        sp_buffer_text(&b, i > 0 ? "," : "");
        sp_json_string(&b, name, strlen(name));
    }
    sp_buffer_text(&b, "]}\n");
    fwrite(b.data, 1, b.size, stdout);
}

int sp_cli_doctor(const void *options, int argc, char **argv)
{
    const struct sp_doctor_options *o = options;
    struct section sections[FINDINGS];
    struct report report = {0};
    if (argc > 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "doctor takes no argument: '%s'",
                            argv[0]);
    make_report(&report, o->python);
    list_sections(&report, sections);
    if (o->json)
        print_json(&report, sections);
    else
        print_text(&report, sections, sp_color_wanted(o->color, STDOUT_FILENO));
    return count_missing(sections) == 0 ? SP_EXIT_OK : SP_EXIT_NO;
}
