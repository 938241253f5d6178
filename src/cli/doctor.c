/* `sandpit doctor`: prints what this machine can enforce and record, and what is missing. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/findings.h"
#include "cli/section_findings.h"
#include "policy/policy.h"

#define REPORT_MAX (1u << 20)

static const char *const presence_words[] = {
    [SP_PRESENT] = "yes",
    [SP_PARTLY] = "partly",
    [SP_MISSING] = "no",
};

/* ---- for people ------------------------------------------------------------------------- */

static void print_finding(const struct sp_finding *f, bool color)
{
    static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    printf("  %s%-7s%s %-10s %s\n", color ? colors[f->presence] : "",
           presence_words[f->presence], color ? "\033[0m" : "", f->name, f->detail);
    if (f->remedy != NULL)
        printf("  %-18s to get it: %s\n", "", f->remedy);
}

/* ["listener","landlock"] as "listener, landlock". */
static void print_layers(const char *json)
{
    if (strcmp(json, "[]") == 0)
        printf("nothing");
    for (const char *c = json; *c != '\0'; c++)
        if (*c == ',')
            printf(", ");
        else if (strchr("[]\"", *c) == NULL)
            putchar(*c);
}

static void print_sections(const struct sp_section_findings *sections, bool color)
{
    static const char *const colors[] = {"\033[31m", "\033[32m"};
    if (!sections->made)
        return;
    printf("\nsections of a policy, and who enforces them\n");
    for (size_t i = 0; i < SP_SECTION_COUNT; i++) {
        const struct sp_section_finding *f = &sections->all[i];
        printf("  %s%-7s%s %-10s ", color ? colors[f->kept] : "",
               f->kept ? "yes" : "no", color ? "\033[0m" : "", f->name);
        print_layers(f->enforced_by);
        printf("%s%s\n", f->kept ? "" : "; missing: ", f->kept ? "" : f->missing);
    }
}

static void print_text(const struct sp_findings *findings,
                       const struct sp_section_findings *sections, bool color)
{
    const char *section = "";
    printf("sandpit %s on Linux %s, %s\n", SP_VERSION, findings->host.kernel,
           findings->host.arch);
    for (size_t i = 0; i < SP_FOUND_COUNT; i++) {
        const struct sp_finding *f = &findings->all[i];
        if (strcmp(f->section, section) != 0)
            printf("\n%s\n", f->section);
        section = f->section;
        print_finding(f, color);
    }
    print_sections(sections, color);
    int missing = sp_findings_missing(findings);
    if (missing == 0)
        printf("\nEvery policy can be enforced and recorded here.\n");
    else if (findings->all[SP_FOUND_PYTHON].presence == SP_MISSING)
        printf("\nNothing can be run and recorded with this interpreter.\n");
    else
        printf("\n%d missing: a run is refused unless --allow-degraded names it.\n",
               missing);
}

/* ---- for programs ----------------------------------------------------------------------- */

static void add_text(struct sp_buffer *b, const char *key, const char *text)
{
    sp_json_key(b, key);
    sp_json_string(b, text, strlen(text));
}

static void add_bool(struct sp_buffer *b, const char *key, bool value)
{
    sp_json_key(b, key);
    sp_buffer_text(b, value ? "true" : "false");
}

static void add_finding(struct sp_buffer *b, const struct sp_finding *f)
{
    sp_json_key(b, f->name);
    sp_buffer_text(b, "{");
    add_text(b, "state", presence_words[f->presence]);
    add_text(b, "detail", f->detail);
    if (f->remedy != NULL)
        add_text(b, "remedy", f->remedy);
    sp_buffer_text(b, "}");
}

static void add_host(struct sp_buffer *b, const struct sp_host *host)
{
    sp_json_key(b, "host");
    sp_buffer_text(b, "{");
    add_text(b, "kernel", host->kernel);
    add_text(b, "arch", host->arch);
    sp_json_key(b, "landlock_abi");
    sp_json_int(b, host->landlock_abi);
    add_bool(b, "wait_killable", host->wait_killable);
    add_bool(b, "sync_wake", host->sync_wake);
    add_bool(b, "addfd_send", host->addfd_send);
    add_bool(b, "pidfd_getfd", host->pidfd_getfd);
    add_bool(b, "process_vm_readv", host->process_vm_readv);
    add_bool(b, "memory_file", host->memory_file);
    add_bool(b, "user_namespaces", host->user_namespaces);
    add_bool(b, "cgroup_writable", host->cgroup_writable);
    add_bool(b, "tmpfile", host->tmpfile);
    sp_buffer_text(b, "}");
}

static void add_sections(struct sp_buffer *b,
                         const struct sp_section_findings *sections)
{
    sp_json_key(b, "sections");
    sp_buffer_text(b, "{");
    for (size_t i = 0; i < SP_SECTION_COUNT && sections->made; i++) {
        const struct sp_section_finding *f = &sections->all[i];
        sp_json_key(b, f->name);
        sp_buffer_text(b, "{");
        add_text(b, "state", presence_words[f->kept ? SP_PRESENT : SP_MISSING]);
        sp_json_key(b, "enforced_by");
        sp_buffer_text(b, f->enforced_by);
        if (!f->kept) {
            add_text(b, "missing", f->missing);
            add_text(b, "detail", f->why);
        }
        sp_buffer_text(b, "}");
    }
    sp_buffer_text(b, "}");
    sp_json_key(b, "recorded_by");
    if (sections->recorded_by.size > 0)
        sp_buffer_append(b, sections->recorded_by.data, sections->recorded_by.size);
    else
        sp_buffer_text(b, "{}");
}

static void print_json(const struct sp_findings *findings,
                       const struct sp_section_findings *sections)
{
    const struct sp_policy *policy;
    sp_auto_buffer b;
    sp_buffer_init(&b, REPORT_MAX);
    sp_buffer_text(&b, "{");
    add_text(&b, "version", SP_VERSION);
    add_bool(&b, "complete", sp_findings_missing(findings) == 0);
    sp_json_key(&b, "layers");
    sp_buffer_text(&b, "{");
    for (size_t i = 0; i < SP_FOUND_COUNT; i++)
        add_finding(&b, &findings->all[i]);
    sp_buffer_text(&b, "}");
    add_sections(&b, sections);
    add_host(&b, &findings->host);
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

int sp_cli_doctor(const void *values, int argc, char **argv)
{
    const struct sp_doctor_options *o = values;
    static struct sp_section_findings sections;
    struct sp_findings findings;
    if (argc > 0)
        return sp_cli_error(SP_EXIT_BAD_INPUT, "doctor takes no argument: '%s'",
                            argv[0]);
    sp_findings_make(&findings, o->python);
    sp_section_findings_make(&sections, o->python);
    if (o->json)
        print_json(&findings, &sections);
    else
        print_text(&findings, &sections, sp_color_wanted(o->color, STDOUT_FILENO));
    sp_section_findings_release(&sections);
    return sp_findings_missing(&findings) == 0 ? SP_EXIT_OK : SP_EXIT_NO;
}
