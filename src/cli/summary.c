#include "cli/summary.h"

#include <stdio.h>
#include <string.h>

#include "run/run.h"
#include "trace/writer.h"

#define VIOLATIONS_SHOWN 5

struct tint {
    const char *bold;
    const char *red;
    const char *green;
    const char *dim;
    const char *plain;
};

static const struct tint coloured = {"\033[1m", "\033[31m", "\033[32m", "\033[2m",
                                     "\033[0m"};
static const struct tint colourless = {"", "", "", "", ""};

struct text {
    const char *data;
    size_t size;
};

/* The text of a member of a JSON object of ours, as it stands there. */
static struct text member(const char *object, size_t size, const char *key)
{
    const char *at = memmem(object, size, key, strlen(key));
    const char *end = object + size;
    if (at == NULL)
        return (struct text){"", 0};
    at += strlen(key);
    const char *last = at;
    while (last < end && *last != '"')
        last += *last == '\\' && last + 1 < end ? 2 : 1;
    return (struct text){at, (size_t)(last - at)};
}

/* Escapes stay, so that what a guest put into it does nothing to the terminal; quotes and
 * backslashes are shown as they are. */
static void print_text(struct text text)
{
    const char *end = text.data + text.size;
    for (const char *at = text.data; at < end; at++) {
        if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
            at++;
        fputc(*at, stderr);
    }
}

/* A name that a guest may have chosen. */
static void print_plain(const char *text)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
}

/* The sentence; what would allow it, with which it ends, on a line of its own. */
static void print_sentence(const char *at, size_t size, const struct tint *t)
{
    struct text message = member(at, size, "\"message\":\"");
    struct text hint = member(at, size, "\"hint\":\"");
    struct text action = member(at, size, "\"action\":\"");
    bool observed = action.size == 7 && memcmp(action.data, "observe", 7) == 0;
    size_t tail = hint.size + 2;
    if (message.size > tail &&
        memcmp(message.data + message.size - hint.size, hint.data, hint.size) == 0)
        message.size -= tail;
    fprintf(stderr, "  %s%s%s ", t->red, observed ? "observed" : "denied", t->plain);
    print_text(message);
    fprintf(stderr, "\n         %s", t->dim);
    print_text(hint);
    fprintf(stderr, "%s\n", t->plain);
}

/* The end of the object that begins at `at`. Braces inside texts do not count. */
static const char *object_end(const char *at, const char *end)
{
    int depth = 0;
    bool text = false;
    for (; at < end; at++) {
        if (text && *at == '\\')
            at++;
        else if (*at == '"')
            text = !text;
        else if (!text && *at == '{')
            depth++;
        else if (!text && *at == '}' && --depth == 0)
            return at + 1;
    }
    return end;
}

static void print_violations(const struct sp_outcome *o, const struct tint *t)
{
    const char *at = o->violations.data;
    const char *end = at + o->violations.size;
    int shown = 0;
    int more = 0;
    while (at < end && (at = memchr(at, '{', (size_t)(end - at))) != NULL) {
        const char *next = object_end(at, end);
        size_t size = (size_t)(next - at);
        if (shown < VIOLATIONS_SHOWN) {
            print_sentence(at, size, t);
            shown++;
        } else {
            more++;
        }
        at = next;
    }
    if (more > 0)
        fprintf(stderr, "  ... and %d more (sandpit show --kind violation)\n", more);
}

static void print_counts(const struct sp_run *run)
{
    static const struct {
        enum sp_kind kind;
        const char *one;
        const char *many;
    } counts[] = {{SP_KIND_IMPORT, "import", "imports"},
                  {SP_KIND_OPEN, "file opened", "files opened"},
                  {SP_KIND_FILE, "file change", "file changes"},
                  {SP_KIND_CONNECT, "connection", "connections"},
                  {SP_KIND_EXEC, "program started", "programs started"},
                  {SP_KIND_LOST, "loss", "losses"}};
    bool first = true;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t n = sp_trace_count(run->writer, counts[i].kind);
        if (n == 0)
            continue;
        fprintf(stderr, "%s%llu %s", first ? "  " : ", ", (unsigned long long)n,
                n == 1 ? counts[i].one : counts[i].many);
        first = false;
    }
    if (!first)
        fputc('\n', stderr);
}

void sp_summary_print(const struct sp_run *run, const struct sp_outcome *o, bool color)
{
    const struct tint *t = color ? &coloured : &colourless;
    bool ok = o->status == SP_STATUS_OK;
    fprintf(stderr, "%ssandpit:%s %s", t->bold, t->plain, ok ? t->green : t->red);
    print_plain(o->reason);
    fprintf(stderr, "%s, %.2f s, policy %s%s", t->plain, (double)o->wall_ns / 1e9,
            sp_policy_text(run->policy, run->policy->name),
            run->policy_given ? "" : " (none was given: this is the default)");
    if (o->violation_count == 0)
        fputs(", nothing denied\n", stderr);
    else
        fprintf(stderr, ", %s%u %s%s\n", t->red, o->violation_count,
                run->opened != NULL ? "observed or denied" : "denied", t->plain);
    print_counts(run);
    if (o->violation_count > 0)
        print_violations(o, t);
    if (run->trace.fd >= 0) {
        fprintf(stderr, "  trace: ");
        print_plain(run->trace.path);
        fputc('\n', stderr);
    }
}
