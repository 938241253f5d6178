/* Telling that a limit was reached: an event, and a violation with the same sentence. */
#include <stdio.h>

#include "supervise/limit_watch.h"
#include "supervise/record.h"

/* What sets it, beside policies. */
static const char *const options[SP_LIMIT_COUNT] = {
    [SP_LIMIT_WALL] = "--timeout",
    [SP_LIMIT_CPU] = "--cpu",
    [SP_LIMIT_MEMORY] = "--memory",
    [SP_LIMIT_PROCESSES] = "--processes",
    [SP_LIMIT_OPEN_FILES] = "--open-files",
    [SP_LIMIT_FILE_SIZE] = "--file-size",
    [SP_LIMIT_DISK] = "--disk",
    [SP_LIMIT_OUTPUT] = "--max-output",
    [SP_LIMIT_TRACE] = "--max-trace",
};

static const char *const says[SP_LIMIT_COUNT] = {
    [SP_LIMIT_WALL] = "the run had taken %s",
    [SP_LIMIT_CPU] = "its processes had used %s",
    [SP_LIMIT_MEMORY] = "its processes used %s",
    [SP_LIMIT_PROCESSES] = "there were %s processes and threads",
    [SP_LIMIT_OPEN_FILES] = "a process had %s files open",
    [SP_LIMIT_FILE_SIZE] = "a file was to be larger than %s",
    [SP_LIMIT_DISK] = "its files had grown by %s",
    [SP_LIMIT_OUTPUT] = "it had printed %s",
    [SP_LIMIT_TRACE] = "the trace had %s",
};

void sp_limits_sentence(const struct sp_limit_watch *w, enum sp_limit limit, char *to,
                        size_t size)
{
    char name[32];
    char value[40];
    char measured[40];
    char seen[120];
    snprintf(name, sizeof name, "%s", sp_limit_name(limit));
    for (char *p = name; *p != '\0'; p++)
        *p = *p == '_' ? ' ' : *p;
    sp_limit_text(limit, w->plan->limits.value[limit], value, sizeof value);
    sp_limit_text(limit, w->measured[limit], measured, sizeof measured);
    snprintf(seen, sizeof seen, says[limit], measured);
    snprintf(to, size, "the %s limit of %s was reached: %s", name, value, seen);
}

static const char *const suffixes[] = {
    [SP_LIMIT_NS] = "_ns", [SP_LIMIT_BYTES] = "_bytes", [SP_LIMIT_NUMBER] = ""};

static void tell_event(struct sp_supervisor *s, enum sp_limit limit)
{
    const struct sp_limit_watch *w = &s->limits;
    const char *suffix = suffixes[sp_limit_unit(limit)];
    char key[24];
    sp_trace_begin(s->writer, SP_KIND_LIMIT, SP_LAYER_SUPERVISOR, sp_supervisor_t(s),
                   s->guest.pid, s->guest.pid);
    sp_trace_string(s->writer, "limit", sp_limit_name(limit));
    snprintf(key, sizeof key, "value%s", suffix);
    sp_trace_uint(s->writer, key, w->plan->limits.value[limit]);
    snprintf(key, sizeof key, "measured%s", suffix);
    sp_trace_uint(s->writer, key, w->measured[limit]);
    if (w->by_claim[limit])
        sp_trace_bool(s->writer, "claim", true);
    sp_trace_end(s->writer);
}

/* Which rule it was, where it stands, and how it is set otherwise. */
static void rule_members(const struct sp_supervisor *s, enum sp_limit limit,
                         struct sp_buffer *members)
{
    const struct sp_policy_limit *written = &s->policy->limits[limit];
    const char *name = sp_limit_name(limit);
    char text[240];
    snprintf(text, sizeof text, "limits.%s", name);
    sp_member_text(members, "rule", text);
    if (written->value != s->limits.plan->asked.value[limit]) {
        snprintf(text, sizeof text, "%s, or limits= in Python, with a larger value",
                 options[limit]);
    } else {
        char source[200];
        snprintf(source, sizeof source, "%.180s:%u",
                 sp_policy_text(s->policy, written->spot.source), written->spot.line);
        sp_member_text(members, "source", source);
        snprintf(text, sizeof text, "a larger %s in the policy, or %s", name,
                 options[limit]);
    }
    sp_member_text(members, "hint", text);
}

void sp_limits_tell(struct sp_supervisor *s, enum sp_limit limit)
{
    struct sp_limit_watch *w = &s->limits;
    struct sp_buffer members;
    struct sp_buffer key;
    char message[256];
    const char *name = sp_limit_name(limit);
    w->told[limit] = true;
    tell_event(s, limit);
    sp_limits_sentence(w, limit, message, sizeof message);
    sp_buffer_init(&members, 8192);
    sp_buffer_init(&key, 64);
    sp_buffer_text(&key, name);
    sp_member_text(&members, "category", "limits");
    sp_member_text(&members, "operation", name);
    sp_member_text(&members, "target", "the run");
    bool stop = !sp_limit_ends(limit) && limit != SP_LIMIT_TRACE && sp_stop_wanted(s);
    sp_member_text(&members, "action", sp_limit_ends(limit) || stop ? "stop" : "deny");
    sp_member_text(&members, "message", message);
    rule_members(s, limit, &members);
    if (w->by_claim[limit])
        sp_buffer_text(&members, ",\"claim\":true");
    sp_violations_add(&s->violations, s->writer, SP_LAYER_SUPERVISOR,
                      sp_supervisor_t(s), s->guest.pid, s->guest.pid, &key, &members);
    if (stop)
        sp_stop(s, message);
    sp_buffer_release(&members);
    sp_buffer_release(&key);
}
