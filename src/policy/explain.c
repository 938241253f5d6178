/* The sentence that a denial is told with, and what would allow it. */
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

#define SHOWN_BYTES 320 /* of a target, its end included */

static const char always[] =
    "nothing allows this: it would reach outside the run or blind its record";

/* As a rule would name it: a Unix socket by its kind, an address without a port that is none. */
static void endpoint_hint(const char *target, char *to, size_t size)
{
    size_t length = strlen(target);
    bool any_port = length > 2 && strcmp(target + length - 2, ":0") == 0;
    if (strchr(target, ' ') != NULL) {
        target = "HOST:PORT";
        length = strlen(target);
    }
    snprintf(to, size, "--allow-net %s%.*s would allow it",
             target[0] == '/' || target[0] == '@' ? "unix:" : "",
             (int)(any_port       ? length - 2
                   : length < 200 ? length
                                  : 200),
             target);
}

static void hint(const struct sp_verdict *v, const char *operation, const char *target,
                 char *to, size_t size)
{
    switch (v->list) {
    case SP_LIST_IMPORTS:
        if (strncmp(v->rule, "imports.native", 14) == 0 && !sp_native_calls_any(target))
            snprintf(to, size,
                     "native under [imports] says how much may be loaded: \"stdlib\", "
                     "\"installed\" or \"allow\"");
        else
            snprintf(to, size, "--allow-import %.200s would allow it", target);
        return;
    case SP_LIST_CLIENTS:
        snprintf(to, size,
                 "a grant as --allow-net HOST:PORT, or --allow-import %.150s, would "
                 "allow it",
                 target);
        return;
    case SP_LIST_READ:
        snprintf(to, size, "--allow-read %.200s would allow it", target);
        return;
    case SP_LIST_WRITE:
        snprintf(to, size, "--allow-write %.200s would allow it", target);
        return;
    case SP_LIST_NETWORK:
        endpoint_hint(target, to, size);
        return;
    case SP_LIST_PROCESS:
        if (strcmp(operation, "fork") == 0)
            snprintf(to, size, "fork = true under [process] would allow it");
        else if (strstr(target, " (deleted)") != NULL)
            snprintf(to, size,
                     "a program is judged by its file, and this one has none");
        else
            snprintf(to, size, "--allow-run %.200s would allow it", target);
        return;
    case SP_LIST_ENV:
        snprintf(to, size, "--allow-env %.200s would allow it", target);
        return;
    default:
        snprintf(to, size, "%s", always);
    }
}

/* A long target without its middle, so that the rule is not what is cut off. Characters stay
 * whole. */
static void shorten(const char *target, char to[SHOWN_BYTES])
{
    size_t size = strlen(target);
    if (size < SHOWN_BYTES) {
        memcpy(to, target, size + 1);
        return;
    }
    size_t head = SHOWN_BYTES / 2 - 2;
    size_t tail = size - (SHOWN_BYTES / 2 - 2);
    while (head > 0 && (target[head] & 0xc0) == 0x80)
        head--;
    while (tail < size && (target[tail] & 0xc0) == 0x80)
        tail++;
    memcpy(to, target, head);
    memcpy(to + head, "...", 3);
    memcpy(to + head + 3, target + tail, size - tail + 1);
}

void sp_policy_explain(const struct sp_policy *p, const struct sp_verdict *v,
                       const char *operation, const char *target,
                       struct sp_explanation *ret_explanation)
{
    struct sp_explanation *e = ret_explanation;
    char shown[SHOWN_BYTES];
    shorten(target, shown);
    if (!v->by_rule) {
        snprintf(e->message, sizeof e->message, "%s %s is denied under every policy",
                 operation, shown);
        snprintf(e->hint, sizeof e->hint, "%s", always);
        return;
    }
    char place[160] = "";
    if (v->line != 0)
        snprintf(place, sizeof place, ", %s:%u", v->source, v->line);
    else if (v->source[0] != '\0')
        snprintf(place, sizeof place, ", %s", v->source);
    snprintf(e->message, sizeof e->message,
             "%s %s %s denied by policy '%.200s' (rule %s%s)", operation, shown,
             sp_policy_observes(p) ? "would be" : "is", sp_policy_text(p, p->name),
             v->rule, place);
    hint(v, operation, target, e->hint, sizeof e->hint);
}
