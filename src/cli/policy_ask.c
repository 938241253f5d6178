/* The question of `sandpit policy explain`: words to what a policy is asked about. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/policy_answer.h"

void sp_answer_note(struct sp_policy_answer *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (a->notes_count < SP_NOTES_MAX)
        vsnprintf(a->notes[a->notes_count++], sizeof *a->notes, format, arguments);
    va_end(arguments);
}

/* A placeholder at the beginning stands for the same as in the policy. */
static int place_of(const struct sp_policy_answer *a, const char *asked,
                    const char **ret_place, size_t *ret_size, struct sp_error *reterr)
{
    const struct sp_places *p = &a->here->places.places;
    const struct {
        const char *name;
        const char *place;
    } known[] = {{"{work}", p->work},
                 {"{script}", p->script},
                 {"{home}", p->home},
                 {"~", p->home},
                 {"{tmp}", SP_TMP_HERE}};
    *ret_place = "";
    *ret_size = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].name);
        if (strncmp(asked, known[i].name, n) != 0 ||
            (asked[n] != '\0' && asked[n] != '/'))
            continue;
        if (known[i].place == NULL)
            return sp_fail(reterr, SP_E_USAGE, "%s stands for nothing here%s",
                           known[i].name, i == 1 ? ": give --script FILE" : "");
        *ret_place = known[i].place;
        *ret_size = n;
    }
    return 0;
}

/* The guest's own links in procfs: whoever looks here is another process. */
static const char *own_link(const struct sp_policy_answer *a, const char *path,
                            const char **ret_rest)
{
    const struct {
        const char *link;
        const char *leads;
    } known[] = {{"/root", "/"}, {"/cwd", a->here->places.places.work}};
    static const char *const folders[] = {"/proc/self", "/proc/thread-self"};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            size_t n = strlen(folders[i]);
            size_t m = n + strlen(known[j].link);
            if (strncmp(path, folders[i], n) == 0 &&
                strncmp(path + n, known[j].link, m - n) == 0 &&
                (path[m] == '/' || path[m] == '\0')) {
                *ret_rest = path + m;
                return known[j].leads;
            }
        }
    return NULL;
}

/* The path as the kernel would show the object: absolute, with every link followed. */
static int ask_path(struct sp_policy_answer *a, struct sp_error *reterr)
{
    const struct sp_places *p = &a->here->places.places;
    char path[PATH_MAX];
    const char *place;
    size_t skip;
    int code = place_of(a, a->asked, &place, &skip, reterr);
    if (code != 0)
        return code;
    bool relative = skip == 0 && a->asked[0] != '/';
    int n = snprintf(path, sizeof path, "%s%s%s", relative ? p->work : place,
                     relative ? "/" : "", a->asked + skip);
    if (n < 0 || (size_t)n >= sizeof path)
        return sp_fail(reterr, SP_E_USAGE, "the path is too long");
    const char *rest;
    const char *leads = own_link(a, path, &rest);
    if (leads != NULL) {
        char there[PATH_MAX];
        n = snprintf(there, sizeof there, "%s%s",
                     strcmp(leads, "/") == 0 && rest[0] == '/' ? "" : leads, rest);
        if (n < 0 || (size_t)n >= sizeof there)
            return sp_fail(reterr, SP_E_USAGE, "the path is too long");
        memcpy(path, there, (size_t)n + 1);
    }
    if (strncmp(path, SP_TMP_HERE, strlen(SP_TMP_HERE)) == 0) {
        snprintf(a->target, sizeof a->target, "%s", path);
        sp_answer_note(
            a, a->here->has_tmp
                   ? "{tmp} is a private folder, made for each run and removed after it"
                   : "this policy gives no private folder: {tmp} is nowhere");
        return 0;
    }
    if (!p->canonical(p->context, path, a->target, sizeof a->target))
        snprintf(a->target, sizeof a->target, "%s", path);
    if (strcmp(a->target, a->asked) != 0 && !relative && skip == 0)
        sp_answer_note(a, "%.150s leads to %.200s, which is judged", a->asked,
                       a->target);
    return 0;
}

static int ask_program(struct sp_policy_answer *a, struct sp_error *reterr)
{
    const struct sp_places *p = &a->here->places.places;
    char found[PATH_MAX];
    if (strchr(a->asked, '/') != NULL || a->asked[0] == '{')
        return ask_path(a, reterr);
    if (!p->program(p->context, a->asked, found, sizeof found))
        return sp_fail(reterr, SP_E_USAGE, "there is no program '%.100s' on PATH",
                       a->asked);
    if (!p->canonical(p->context, found, a->target, sizeof a->target))
        snprintf(a->target, sizeof a->target, "%s", found);
    sp_answer_note(a, "%.100s is %.200s", a->asked, found);
    if (strcmp(found, a->target) != 0)
        sp_answer_note(a, "%.150s leads to %.200s, which is judged", found, a->target);
    return 0;
}

static bool parse_address(const char *text, uint8_t to[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (inet_pton(AF_INET6, text, to) == 1)
        return true;
    memcpy(to, mapped, sizeof mapped);
    return inet_pton(AF_INET, text, to + 12) == 1;
}

/* HOST:PORT, [V6]:PORT, or unix:PATH. */
static int ask_endpoint(struct sp_policy_answer *a, struct sp_error *reterr)
{
    struct sp_endpoint *e = &a->question.endpoint;
    const char *asked = a->asked;
    const char *colon = strrchr(asked, ':');
    char *end = NULL;
    if (strncmp(asked, "unix:", 5) == 0) {
        a->asked += 5;
        int code = asked[5] == '@' ? 0 : ask_path(a, reterr);
        if (asked[5] == '@')
            snprintf(a->target, sizeof a->target, "%s", asked + 5);
        a->asked = asked;
        e->unix_name = a->target;
        return code;
    }
    long port = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    bool bracket =
        colon != NULL && colon > asked && asked[0] == '[' && colon[-1] == ']';
    bool sound = colon != NULL && colon != asked && end != colon + 1 && *end == '\0' &&
                 port >= 1 && port <= 65535;
    /* An IPv6 address without brackets has no end. */
    if (!sound || (!bracket && memchr(asked, ':', (size_t)(colon - asked)) != NULL))
        return sp_fail(reterr, SP_E_USAGE,
                       "connect needs HOST:PORT, as example.com:443 or [::1]:443, or "
                       "unix:PATH");
    snprintf(a->target, sizeof a->target, "%.*s", (int)(colon - asked) - 2 * bracket,
             asked + bracket);
    e->port = (uint16_t)port;
    if (parse_address(a->target, e->address))
        return 0;
    memset(e->address, 0, sizeof e->address);
    if (strcmp(a->target, "localhost") == 0) {
        (void)parse_address("127.0.0.1", e->address);
        return 0;
    }
    a->hosts[0] = a->target;
    e->hosts = a->hosts;
    sp_answer_note(
        a, "judged by its name; the address that it leads to may fit other rules");
    return 0;
}

static int ask_name(struct sp_policy_answer *a, const char *what,
                    struct sp_error *reterr)
{
    int n = snprintf(a->target, sizeof a->target, "%s", a->asked);
    return n > 0 && (size_t)n < sizeof a->target
               ? 0
               : sp_fail(reterr, SP_E_USAGE, "%s needs a name", what);
}

static int ask_limit(struct sp_policy_answer *a, struct sp_error *reterr)
{
    const char *names[SP_LIMIT_COUNT + 1] = {NULL};
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        names[i] = sp_limit_name((enum sp_limit)i);
    a->limit = sp_limit_find(a->asked);
    const char *nearest = sp_nearest_name(a->asked, names);
    if (a->limit >= 0)
        return ask_name(a, "limit", reterr);
    return sp_fail(reterr, SP_E_USAGE, "there is no limit '%.60s'%s%s%s", a->asked,
                   nearest != NULL ? " (did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?)" : "");
}

int sp_answer_ask(struct sp_policy_answer *a, struct sp_error *reterr)
{
    int code;
    switch (a->question.kind) {
    case SP_ASK_READ:
    case SP_ASK_WRITE:
        code = ask_path(a, reterr);
        break;
    case SP_ASK_RUN:
        code = ask_program(a, reterr);
        break;
    case SP_ASK_CONNECT:
        code = ask_endpoint(a, reterr);
        break;
    case SP_ASK_LIMIT:
        code = ask_limit(a, reterr);
        break;
    case SP_ASK_FORK:
        code = 0;
        break;
    default:
        code = ask_name(a, sp_question_word(a->question.kind), reterr);
    }
    a->question.target = a->target;
    return code;
}
