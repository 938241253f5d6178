#include "run/environment.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* What one thread of a numeric library takes at its start, stack and buffers together. */
#define THREAD_BYTES (UINT64_C(32) << 20)

/* Libraries that start a thread for each processor as soon as they are imported. */
static const char *const thread_counts[] = {
    "OMP_NUM_THREADS",        "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",       "NUMEXPR_NUM_THREADS",  "NUMEXPR_MAX_THREADS",
    "NUMBA_NUM_THREADS",      "POLARS_MAX_THREADS",   "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
};

/* What lies in the private folder; "" is the folder itself: each further one would cost a run the
 * making and the removing of it. */
static const struct {
    const char *name;
    const char *below;
} private_places[] = {
    {"TMPDIR", ""},
    {"HOME", ""},
    {"XDG_CACHE_HOME", "/.cache"},
    {"XDG_CONFIG_HOME", "/.config"},
    {"XDG_DATA_HOME", "/.local/share"},
    {"XDG_STATE_HOME", "/.local/state"},
};

static bool is_named(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

static const char *find(const struct sp_environment *e, const char *name)
{
    for (char **at = e->variables; *at != NULL; at++)
        if (is_named(*at, name))
            return *at + strlen(name) + 1;
    return NULL;
}

static void drop(struct sp_environment *e, const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->count; i++)
        if (!is_named(e->variables[i], name))
            e->variables[kept++] = e->variables[i];
    e->count = kept;
    e->variables[kept] = NULL;
}

__attribute__((format(printf, 3, 4))) static bool set(struct sp_environment *e,
                                                      const char *name,
                                                      const char *format, ...)
{
    char *text = NULL;
    char *value = NULL;
    va_list arguments;
    if (e->own_count == SP_ENVIRONMENT_OWN)
        return false;
    va_start(arguments, format);
    int n = vasprintf(&value, format, arguments);
    va_end(arguments);
    if (n < 0)
        return false;
    n = asprintf(&text, "%s=%s", name, value);
    free(value);
    if (n < 0)
        return false;
    drop(e, name);
    e->own[e->own_count++] = text;
    e->variables[e->count++] = text;
    e->variables[e->count] = NULL;
    return true;
}

static void withhold(struct sp_environment *e, const char *name)
{
    e->withheld++;
    if (!e->names.failed)
        sp_buffer_append(&e->names, name, strlen(name) + 1);
}

/* What has no name is none of the policy's business, but where it lists what may pass. */
static bool passes(const struct sp_environment_source *from, const char *variable,
                   struct sp_environment *e)
{
    char name[256];
    size_t n = strcspn(variable, "=");
    if (from->given)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1),
             variable);
    bool nameless = n == 0 || n >= sizeof name || variable[n] == '\0';
    bool allowed = nameless ? from->policy->lists[SP_LIST_ENV].allow_given == 0
                            : sp_policy_variable(from->policy, name).action == SP_ALLOW;
    if (!allowed)
        withhold(e, name);
    return allowed || sp_policy_observes(from->policy);
}

/* A variable keeps what its caller says where it was given for this run, or where the policy
 * hands it down by its name. */
static bool keeps(const struct sp_environment_source *from,
                  const struct sp_environment *e, const char *name)
{
    bool chosen = from->given || sp_policy_names_variable(from->policy, name);
    return chosen && find(e, name) != NULL;
}

static bool set_private(const struct sp_environment_source *from,
                        struct sp_environment *e)
{
    bool ok = true;
    bool moved = !keeps(from, e, "HOME");
    for (size_t i = 0; i < sizeof private_places / sizeof *private_places; i++)
        if (!keeps(from, e, private_places[i].name))
            ok = ok && set(e, private_places[i].name, "%s%s", from->tmp,
                           private_places[i].below);
    /* The sockets of the caller's session lie there. */
    if (!keeps(from, e, "XDG_RUNTIME_DIR"))
        drop(e, "XDG_RUNTIME_DIR");
    /* site looks for the user's own packages below HOME. */
    if (moved && from->user_base != NULL && find(e, "PYTHONUSERBASE") == NULL)
        ok = ok && set(e, "PYTHONUSERBASE", "%s", from->user_base);
    return ok;
}

/* How many threads the limits leave to one library; 0: as many as there are processors. */
static unsigned threads_of(const struct sp_limits *limits)
{
    uint64_t processes = limits->value[SP_LIMIT_PROCESSES] / 4;
    uint64_t memory = limits->value[SP_LIMIT_MEMORY] / 4 / THREAD_BYTES;
    cpu_set_t set;
    uint64_t most = UINT64_MAX;
    if (limits->value[SP_LIMIT_PROCESSES] != 0)
        most = processes > 0 ? processes : 1;
    if (limits->value[SP_LIMIT_MEMORY] != 0 && memory < most)
        most = memory > 0 ? memory : 1;
    /* Too many processors for the set: more than any of these limits is meant for. */
    unsigned processors = sched_getaffinity(0, sizeof set, &set) == 0
                              ? (unsigned)CPU_COUNT(&set)
                              : CPU_SETSIZE;
    return most < processors ? (unsigned)most : 0;
}

/* OpenBLAS, for one, starts a thread for each processor when numpy is imported, and ends or hangs
 * where it gets none. What the caller chose is kept. */
static bool set_threads(const struct sp_environment_source *from,
                        struct sp_environment *e)
{
    unsigned threads = threads_of(from->limits);
    const char *chosen = find(e, "OMP_NUM_THREADS");
    unsigned long wished = chosen != NULL ? strtoul(chosen, NULL, 10) : 0;
    bool ok = true;
    if (threads == 0)
        return true;
    if (wished > 0 && wished < threads)
        threads = (unsigned)wished;
    for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)
        if (find(e, thread_counts[i]) == NULL)
            ok = ok && set(e, thread_counts[i], "%u", threads);
    return ok;
}

int sp_environment_build(const struct sp_environment_source *source,
                         struct sp_environment *ret_environment,
                         struct sp_error *reterr)
{
    struct sp_environment *e = ret_environment;
    struct sp_buffer names;
    size_t count = 0;
    sp_buffer_init(&names, SP_WITHHELD_BYTES_MAX);
    *e = (struct sp_environment){.names = names};
    while (source->variables[count] != NULL)
        count++;
    e->variables = calloc(count + SP_ENVIRONMENT_OWN + 1, sizeof *e->variables);
    bool ok = e->variables != NULL;
    for (size_t i = 0; ok && i < count; i++)
        if (passes(source, source->variables[i], e))
            e->variables[e->count++] = source->variables[i];
    ok =
        ok && (source->tmp == NULL || set_private(source, e)) && set_threads(source, e);
    if (ok)
        return 0;
    sp_environment_release(e);
    return sp_fail(reterr, SP_E_HOST, "no memory for the environment");
}

void sp_environment_release(struct sp_environment *environment)
{
    for (size_t i = 0; i < environment->own_count; i++)
        free(environment->own[i]);
    free(environment->variables);
    sp_buffer_release(&environment->names);
    *environment = (struct sp_environment){0};
}

void sp_environment_write(const struct sp_environment *environment, bool observed,
                          struct sp_buffer *to)
{
    const struct sp_environment *e = environment;
    sp_buffer_format(to, "{\"variables\":%zu,\"%s\":%zu,\"names\":[", e->count,
                     observed ? "would_withhold" : "withheld", e->withheld);
    for (size_t at = 0; at < e->names.size;) {
        const char *name = e->names.data + at;
        size_t n = strlen(name);
        sp_buffer_text(to, at > 0 ? "," : "");
        sp_json_string(to, name, n);
        at += n + 1;
    }
    sp_buffer_text(to, "],\"set\":[");
    for (size_t i = 0; i < e->own_count; i++) {
        sp_buffer_text(to, i > 0 ? "," : "");
        sp_json_string(to, e->own[i], strcspn(e->own[i], "="));
    }
    sp_buffer_text(to, "]}");
}
