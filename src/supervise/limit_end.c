/* How limits show in the way that a program ends, and in the result. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "supervise/limit_watch.h"
#include "supervise/supervisor.h"

/* What Python raises when a call was refused for a limit. */
static const struct sign {
    enum sp_limit limit;
    const char *type;
    const char *message; /* its start; "": any */
} signs[] = {
    {SP_LIMIT_MEMORY, "\"type\":\"MemoryError\"", ""},
    {SP_LIMIT_MEMORY, "\"type\":\"OSError\"", "\"message\":\"[Errno 12]"},
    {SP_LIMIT_PROCESSES, "\"type\":\"RuntimeError\"",
     "\"message\":\"can't start new thread"},
    {SP_LIMIT_PROCESSES, "\"type\":\"BlockingIOError\"", "\"message\":\"[Errno 11]"},
    {SP_LIMIT_OPEN_FILES, "\"type\":\"OSError\"", "\"message\":\"[Errno 24]"},
    {SP_LIMIT_FILE_SIZE, "\"type\":\"OSError\"", "\"message\":\"[Errno 27]"},
};

static const enum sp_status statuses[SP_LIMIT_COUNT] = {
    [SP_LIMIT_WALL] = SP_STATUS_TIMEOUT,
    [SP_LIMIT_CPU] = SP_STATUS_CPU_LIMIT,
    [SP_LIMIT_MEMORY] = SP_STATUS_MEMORY_LIMIT,
    [SP_LIMIT_PROCESSES] = SP_STATUS_PROCESS_LIMIT,
    [SP_LIMIT_OPEN_FILES] = SP_STATUS_FILE_LIMIT,
    [SP_LIMIT_FILE_SIZE] = SP_STATUS_FILE_LIMIT,
    [SP_LIMIT_DISK] = SP_STATUS_DISK_LIMIT,
    [SP_LIMIT_OUTPUT] = SP_STATUS_OUTPUT_LIMIT,
};

static bool has(const char *text, size_t size, const char *part)
{
    return memmem(text, size, part, strlen(part)) != NULL;
}

/* The limit that an exception speaks of, where the kernel refuses for it; SP_LIMIT_COUNT: none. */
static enum sp_limit limit_of(const struct sp_limit_watch *w, const char *text,
                              size_t size)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const struct sign *sign = &signs[i];
        unsigned means = w->plan->means[sign->limit];
        if ((means &
             (SP_BY_RLIMIT | SP_BY_NAMESPACE | SP_BY_LISTENER | SP_BY_CGROUP)) == 0 ||
            !has(text, size, sign->type) || !has(text, size, sign->message))
            continue;
        if (sign->limit == SP_LIMIT_MEMORY && (means & SP_BY_RLIMIT) == 0)
            continue;
        return sign->limit;
    }
    return SP_LIMIT_COUNT;
}

void sp_limits_claim(struct sp_supervisor *s, const char *line, size_t size)
{
    enum sp_limit limit = limit_of(&s->limits, line, size);
    if (limit != SP_LIMIT_COUNT)
        s->limits.claimed[limit] = true;
}

/* What is behind the end of a program that ended by itself; SP_LIMIT_COUNT: none. */
static enum sp_limit behind(struct sp_supervisor *s, const struct sp_outcome *o)
{
    const struct sp_limit_watch *w = &s->limits;
    const uint64_t *value = w->plan->limits.value;
    if (o->status == SP_STATUS_SIGNAL) {
        if (o->signal == SIGXCPU && value[SP_LIMIT_CPU] != 0)
            return SP_LIMIT_CPU;
        if (o->signal == SIGXFSZ && value[SP_LIMIT_FILE_SIZE] != 0)
            return SP_LIMIT_FILE_SIZE;
    }
    if (o->status != SP_STATUS_ERROR || s->exception.size == 0)
        return SP_LIMIT_COUNT;
    enum sp_limit limit = limit_of(w, s->exception.data, s->exception.size);
    return limit != SP_LIMIT_COUNT && sp_limits_fits(w, limit) ? limit : SP_LIMIT_COUNT;
}

void sp_limits_judge(struct sp_supervisor *s, struct sp_outcome *o)
{
    struct sp_limit_watch *w = &s->limits;
    enum sp_limit limit = w->ended_by;
    if (o->status == SP_STATUS_CANCELLED || o->status == SP_STATUS_STOPPED)
        return;
    if (limit == SP_LIMIT_COUNT) {
        limit = behind(s, o);
        if (limit == SP_LIMIT_COUNT)
            return;
        sp_limits_reach(s, limit, w->measured[limit], o->status != SP_STATUS_SIGNAL);
    } else {
        o->exited_by = "killed";
        o->signal = 0;
    }
    o->status = statuses[limit];
    o->exit_code = limit == SP_LIMIT_WALL ? 124 : 137;
    sp_limits_sentence(w, limit, o->reason, sizeof o->reason);
}

static void write_value(enum sp_limit limit, const char *key, uint64_t value,
                        struct sp_buffer *to)
{
    sp_json_key(to, key);
    if (sp_limit_unit(limit) == SP_LIMIT_NS)
        sp_buffer_format(to, "%llu.%06llu", (unsigned long long)(value / 1000000000u),
                         (unsigned long long)(value % 1000000000u / 1000u));
    else
        sp_json_uint(to, value);
}

void sp_limits_write(const struct sp_limit_watch *w, struct sp_buffer *to)
{
    sp_buffer_text(to, "{");
    for (int i = 0; i < SP_LIMIT_COUNT; i++) {
        enum sp_limit limit = (enum sp_limit)i;
        if (w->plan->asked.value[i] == 0)
            continue;
        sp_json_key(to, sp_limit_name(limit));
        sp_buffer_text(to, "{");
        write_value(limit, "asked", w->plan->asked.value[i], to);
        if (w->plan->means[i] != 0)
            write_value(limit, "value", w->plan->limits.value[i], to);
        else
            sp_buffer_text(to, ",\"value\":null");
        write_value(limit, "measured", w->measured[i], to);
        sp_json_key(to, "reached");
        sp_buffer_text(to, w->reached[i] ? "true" : "false");
        sp_json_key(to, "by");
        sp_limit_plan_means(w->plan, limit, to);
        sp_buffer_text(to, "}");
    }
    sp_buffer_text(to, "}");
}
