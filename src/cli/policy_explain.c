/* `sandpit policy explain`: a question about a policy, and all that there is to its answer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/grant_options.h"
#include "cli/policy.h"
#include "cli/policy_answer.h"
#include "cli/problems.h"
#include "policy/question.h"
#include "policy/write.h"
#include "run/policy_choice.h"
#include "run/policy_here.h"

#define REPORT_MAX (1u << 20)

static struct sp_problems problems;
static struct sp_policy_here here;

/* ---- the answer ----------------------------------------------------------------------------------- */

static const char *section_of(const struct sp_policy_answer *a)
{
    static const char *const sections[SP_LIST_COUNT] = {
        [SP_LIST_IMPORTS] = "imports", [SP_LIST_CLIENTS] = "imports",
        [SP_LIST_READ] = "fs",         [SP_LIST_WRITE] = "fs",
        [SP_LIST_NETWORK] = "network", [SP_LIST_PROCESS] = "process",
        [SP_LIST_ENV] = "env"};
    if (a->question.kind == SP_ASK_LIMIT)
        return "limits";
    return a->question.kind == SP_ASK_FORK
               ? "process"
               : sections[sp_question_list(a->question.kind)];
}

/* Who holds that section here, out of the plan's own words. */
static void find_enforcers(struct sp_policy_answer *a)
{
    sp_auto_buffer claims;
    sp_buffer_init(&claims, 1u << 16);
    if (a->limit >= 0 && a->here->refused.code == 0) {
        sp_limit_plan_means(&a->here->plan.limits, (enum sp_limit)a->limit,
                            &a->enforced);
        return;
    }
    sp_buffer_text(&a->enforced, "[");
    if (a->here->refused.code == 0)
        sp_plan_enforced_by(&a->here->plan, &claims);
    json_t *object =
        claims.size > 0 ? json_loadb(claims.data, claims.size, 0, NULL) : NULL;
    json_t *layers = json_object_get(object, section_of(a));
    for (size_t i = 0; i < json_array_size(layers); i++)
        sp_buffer_format(&a->enforced, "%s\"%s\"", i > 0 ? "," : "",
                         json_string_value(json_array_get(layers, i)));
    sp_buffer_text(&a->enforced, "]");
    json_decref(object);
    if (a->here->refused.code != 0)
        sp_answer_note(a, "this machine cannot keep the policy: %.300s",
                       a->here->refused.message);
}

static void add_notes(struct sp_policy_answer *a)
{
    const struct sp_policy *p = a->here->bound;
    if (sp_policy_observes(p))
        sp_answer_note(a,
                       "the policy observes: what it would deny is recorded and done");
    if (a->question.kind == SP_ASK_IMPORT) {
        if (sp_policy_setting(p, SP_SETTING_SCOPE) == SP_SCOPE_DIRECT)
            sp_answer_note(
                a, "imports that a library makes for itself are not judged (scope = "
                   "\"direct\")");
        if (sp_policy_setting(p, SP_SETTING_NATIVE) != SP_NATIVE_ALLOW)
            sp_answer_note(
                a, "native code it comes with is judged as well (imports.native)");
    }
    if (a->question.kind == SP_ASK_WRITE && a->verdict.action == SP_DENY &&
        strncmp(a->target, SP_SHARED_MEMORY_FOLDER "/",
                sizeof SP_SHARED_MEMORY_FOLDER) == 0 &&
        sp_policy_memory(p, SP_LIST_WRITE, a->target).action == SP_ALLOW)
        sp_answer_note(a,
                       "a run may make shared memory there, files that are new, which "
                       "are removed at its end");
    if (a->question.kind == SP_ASK_RUN &&
        sp_policy_setting(p, SP_SETTING_FORK) == SP_DENY)
        sp_answer_note(
            a, "fork = false: there is no new process that could be that program");
}

/* A program is read to be started, by the kernel. */
static void judge_reading(struct sp_policy_answer *a)
{
    const struct sp_policy *p = a->here->bound;
    const struct sp_question read = {.kind = SP_ASK_READ, .target = a->target};
    struct sp_verdict v = sp_question_judge(p, &read);
    if (v.action == SP_DENY) {
        a->verdict = v;
        a->rivals_count = sp_question_rivals(p, &read, a->rivals);
        sp_answer_note(a, "it may be started, and is read for that");
    } else if (a->here->granted && !sp_plan_kernel_reads(&a->here->plan, a->target)) {
        a->verdict = sp_policy_unread_program(p);
        a->rivals_count = 0;
        sp_answer_note(a, "the kernel reads a program that is started, and can be "
                          "granted whole folders or programs by name");
    }
}

static void answer(struct sp_policy_answer *a)
{
    const struct sp_policy *p = a->here->bound;
    if (a->limit < 0) {
        a->verdict = sp_question_judge(p, &a->question);
        a->rivals_count = sp_question_rivals(p, &a->question, a->rivals);
    }
    if (a->question.kind == SP_ASK_RUN && a->verdict.action == SP_ALLOW)
        judge_reading(a);
    if (a->verdict.action == SP_DENY) {
        char target[PATH_MAX + 16];
        const char *shown = a->question.kind == SP_ASK_CONNECT ? a->asked : a->target;
        snprintf(target, sizeof target, "%s", shown);
        sp_policy_explain(p, &a->verdict, sp_question_word(a->question.kind), target,
                          &a->explanation);
    }
    add_notes(a);
    find_enforcers(a);
}

/* ---- for people ------------------------------------------------------------------------------------ */

static const char *why(enum sp_standing standing)
{
    static const char *const words[] = {
        [SP_DECIDES] = "",
        [SP_LOSES_TO_GRANT] = "what is given for this run comes first",
        [SP_LOSES_BY_ACTION] = "as specific, and between equals deny wins",
        [SP_LOSES_BY_FIT] = "less specific",
        [SP_SAYS_THE_SAME] = "says the same",
        [SP_LOSES_TO_IMPORTS] = "a rule of [imports] names it",
        [SP_LOSES_TO_NETWORK] = "something of the network is allowed",
    };
    return words[standing];
}

static void print_rule(const struct sp_policy_answer *a, const struct sp_rival *r)
{
    char place[300];
    const struct sp_policy *p = a->here->bound;
    sp_policy_place(p, &r->rule->spot, place, sizeof place);
    printf("  %-7s", r->standing == SP_DECIDES ? "rule" : "not");
    sp_print_escaped(sp_policy_text(p, r->rule->key), stdout);
    printf(" \"");
    sp_print_escaped(sp_policy_text(p, r->rule->written), stdout);
    printf("\"");
    if (place[0] != '\0') {
        printf(", ");
        sp_print_escaped(place, stdout);
    }
    printf(": ");
    sp_print_escaped(r->fit, stdout);
    if (r->standing != SP_DECIDES)
        printf(" (%s)", why(r->standing));
    putchar('\n');
}

/* What decides when it is no rule: a list that names it not, a setting, or nothing. */
static void print_no_rule(const struct sp_policy_answer *a)
{
    if (a->rivals_count > 0 && a->rivals[0].standing == SP_DECIDES)
        return;
    if (!a->verdict.by_rule)
        printf("  rule   none fits, and no list says what alone is allowed\n");
    else if (a->question.kind == SP_ASK_FORK)
        printf("  rule   %s, %s:%u\n", a->verdict.rule, a->verdict.source,
               a->verdict.line);
    else {
        printf("  rule   %s, ", a->verdict.rule);
        sp_print_escaped(a->verdict.source, stdout);
        if (a->verdict.line != 0)
            printf(":%u: none of it fits, and it says what alone is allowed",
                   a->verdict.line);
        putchar('\n');
    }
}

static void print_limit(const struct sp_policy_answer *a)
{
    char value[40];
    char place[300];
    const struct sp_policy_limit *limit = &a->here->bound->limits[a->limit];
    sp_policy_limit_text((enum sp_limit)a->limit, limit->value, value, sizeof value);
    sp_policy_place(a->here->bound, &limit->spot, place, sizeof place);
    printf("limit %s: %s\n", a->target, limit->value != 0 ? value : "none");
    if (place[0] != '\0' && limit->value != 0) {
        printf("  rule   limits.%s, ", a->target);
        sp_print_escaped(place, stdout);
        putchar('\n');
    }
}

static void print_text(const struct sp_policy_answer *a)
{
    const char *shown = a->question.kind == SP_ASK_CONNECT ? a->asked : a->target;
    if (a->limit >= 0) {
        print_limit(a);
    } else {
        printf("%s: %s%s", a->verdict.action == SP_DENY ? "denied" : "allowed",
               sp_question_word(a->question.kind), shown[0] != '\0' ? " " : "");
        sp_print_escaped(shown, stdout);
        putchar('\n');
        print_no_rule(a);
    }
    for (size_t i = 0; i < a->rivals_count; i++)
        print_rule(a, &a->rivals[i]);
    if (a->enforced.size > 2)
        printf("  by     %.*s\n", (int)a->enforced.size - 2, a->enforced.data + 1);
    if (a->explanation.hint[0] != '\0') {
        printf("  hint   ");
        sp_print_escaped(a->explanation.hint, stdout);
        putchar('\n');
    }
    for (unsigned i = 0; i < a->notes_count; i++) {
        printf("  note   ");
        sp_print_escaped(a->notes[i], stdout);
        putchar('\n');
    }
}

/* ---- for programs ----------------------------------------------------------------------------------- */

static void member(struct sp_buffer *b, const char *key, const char *text)
{
    sp_json_key(b, key);
    sp_json_string(b, text, strlen(text));
}

static void add_rule(const struct sp_policy_answer *a, const struct sp_rival *r,
                     struct sp_buffer *b)
{
    const struct sp_policy *p = a->here->bound;
    sp_buffer_text(b, b->data[b->size - 1] == '[' ? "{" : ",{");
    member(b, "action", r->rule->action == SP_ALLOW ? "allow" : "deny");
    member(b, "key", sp_policy_text(p, r->rule->key));
    member(b, "pattern", sp_policy_text(p, r->rule->written));
    member(b, "source", sp_policy_text(p, r->rule->spot.source));
    sp_buffer_format(b, ",\"line\":%u,\"decides\":%s", r->rule->spot.line,
                     r->standing == SP_DECIDES ? "true" : "false");
    member(b, "fit", r->fit);
    member(b, "why_not", why(r->standing));
    sp_buffer_text(b, "}");
}

static void write_json(const struct sp_policy_answer *a, struct sp_buffer *b)
{
    char value[40];
    bool denied = a->verdict.action == SP_DENY;
    sp_buffer_text(b, "{");
    member(b, "question", sp_question_word(a->question.kind));
    member(b, "asked", a->asked);
    member(b, "target", a->target);
    if (a->limit >= 0) {
        sp_policy_limit_text((enum sp_limit)a->limit,
                             a->here->bound->limits[a->limit].value, value,
                             sizeof value);
        member(b, "value", value);
    } else {
        member(b, "verdict", denied ? "deny" : "allow");
        member(b, "rule", a->verdict.rule);
        member(b, "source", a->verdict.rule[0] != '\0' ? a->verdict.source : "");
        sp_buffer_format(b, ",\"line\":%u", a->verdict.line);
    }
    sp_json_key(b, "rules");
    sp_buffer_text(b, "[");
    for (size_t i = 0; i < a->rivals_count; i++)
        add_rule(a, &a->rivals[i], b);
    sp_buffer_text(b, "]");
    member(b, "message", a->explanation.message);
    member(b, "hint", a->explanation.hint);
    sp_json_key(b, "enforced_by");
    sp_buffer_append(b, a->enforced.data, a->enforced.size);
    sp_json_key(b, "notes");
    sp_buffer_text(b, "[");
    for (unsigned i = 0; i < a->notes_count; i++) {
        sp_buffer_text(b, i > 0 ? "," : "");
        sp_json_string(b, a->notes[i], strlen(a->notes[i]));
    }
    sp_buffer_text(b, "]");
    sp_json_key(b, "policy");
    sp_policy_choice_write(a->here->bound, b);
    sp_buffer_text(b, "}\n");
}

/* ---- putting it together --------------------------------------------------------------------------- */

static int find_question(int argc, char **argv, struct sp_policy_answer *a,
                         struct sp_error *reterr)
{
    int kind = argc > 0 ? sp_question_find(argv[0]) : -1;
    if (kind < 0)
        return sp_fail(
            reterr, SP_E_USAGE,
            "%s%.40s%s: ask read, write, connect, resolve, run, import, env, "
            "fork or limit",
            argc > 0 ? "'" : "no question", argc > 0 ? argv[0] : "",
            argc > 0 ? "' is no question" : "");
    int wanted = kind == SP_ASK_FORK ? 1 : 2;
    if (argc != wanted)
        return sp_fail(reterr, SP_E_USAGE, "%s takes %s: sandpit policy explain --help",
                       argv[0],
                       wanted == 1 ? "nothing more" : "one thing to ask about");
    a->question.kind = (enum sp_question_kind)kind;
    a->asked = wanted == 2 ? argv[1] : "";
    return 0;
}

/* The program's folder; NULL: none was named. */
static const char *script_folder(const char *script)
{
    static char folder[PATH_MAX];
    struct stat st;
    if (script == NULL || realpath(script, folder) == NULL || stat(folder, &st) != 0)
        return NULL;
    char *slash = S_ISDIR(st.st_mode) ? NULL : strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder] = '\0';
    return folder;
}

int sp_cli_policy_explain(const void *values, int argc, char **argv)
{
    static struct sp_policy_answer a = {.here = &here, .limit = -1};
    const struct sp_policy_options *options = values;
    struct sp_grant granted[SP_MARKED_MAX];
    struct sp_error error = {0};
    struct sp_policy *policy = NULL;
    const struct sp_policy_choice choice = {
        .name = options->policy,
        .grants = granted,
        .grants_count = sp_grants_given(&options->grants, granted)};
    sp_auto_buffer b;
    sp_buffer_init(&b, REPORT_MAX);
    sp_buffer_init(&a.enforced, 4096);
    int code = find_question(argc, argv, &a, &error);
    if (code == 0)
        code = sp_policy_choose(&choice, &policy, &problems, &error);
    if (code == 0)
        code = sp_policy_here_make(policy, options->python,
                                   script_folder(options->script), &here, &error);
    if (code == 0)
        code = sp_answer_ask(&a, &error);
    if (code == 0)
        answer(&a);
    int status = a.verdict.action == SP_DENY ? SP_EXIT_NO : SP_EXIT_OK;
    if (code != 0)
        status = sp_cli_policy_failed(options, &error, &problems);
    else if (options->json)
        write_json(&a, &b);
    else
        print_text(&a);
    sp_policy_here_release(&here);
    sp_buffer_release(&a.enforced);
    free(policy);
    return b.size > 0 ? sp_cli_policy_print(&b, status) : status;
}
