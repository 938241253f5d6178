#include "cli/section_findings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/policy_here.h"

/* The built-in policy that restricts every section. */
#define EVERYTHING "strict"

static struct sp_policy_here here;

static const char *const names[SP_SECTION_COUNT] = {"imports", "fs",  "network",
                                                    "process", "env", "limits"};

static enum sp_section section_of(enum sp_list list)
{
    static const enum sp_section sections[SP_LIST_COUNT] = {
        [SP_LIST_IMPORTS] = SP_SECTION_IMPORTS, [SP_LIST_CLIENTS] = SP_SECTION_IMPORTS,
        [SP_LIST_READ] = SP_SECTION_FS,         [SP_LIST_WRITE] = SP_SECTION_FS,
        [SP_LIST_NETWORK] = SP_SECTION_NETWORK, [SP_LIST_PROCESS] = SP_SECTION_PROCESS,
        [SP_LIST_ENV] = SP_SECTION_ENV};
    return sections[list];
}

/* The policy with one section only; the caller frees it. NULL: no memory. */
static struct sp_policy *only(const struct sp_policy *policy, enum sp_section section)
{
    struct sp_policy *copy = malloc(policy->size);
    if (copy == NULL)
        return NULL;
    memcpy(copy, policy, policy->size);
    struct sp_policy_rule *rules = (void *)((char *)copy + copy->rules_offset);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < copy->rules_count; i++)
        if (section_of((enum sp_list)rules[i].list) == section)
            rules[kept++] = rules[i];
    copy->rules_count = kept;
    for (int i = 0; i < SP_LIST_COUNT; i++)
        if (section_of((enum sp_list)i) != section)
            copy->lists[i].allow_given = 0;
    if (section != SP_SECTION_PROCESS)
        copy->settings[SP_SETTING_FORK].value = SP_ALLOW;
    if (section != SP_SECTION_IMPORTS)
        copy->settings[SP_SETTING_NATIVE].value = SP_NATIVE_ALLOW;
    return copy;
}

/* Makes the plan of a policy that is bound, and gives back at once what it took. */
static int plan(const struct sp_policy *policy, bool limited, unsigned accepted,
                struct sp_error *reterr)
{
    struct sp_limits limits = {0};
    for (int i = 0; i < SP_LIMIT_COUNT && limited; i++)
        limits.value[i] = sp_policy_limit(policy, (enum sp_limit)i);
    here.plan.limits = (struct sp_limit_plan){0};
    int code =
        sp_plan_make(policy, &limits, SP_CALLS_FOLDED, accepted, &here.plan, reterr);
    sp_limit_plan_close(&here.plan.limits);
    sp_limit_plan_remove(&here.plan.limits);
    return code;
}

static void refuse(struct sp_section_finding *f, const struct sp_error *error)
{
    f->kept = false;
    snprintf(f->missing, sizeof f->missing, "%s", error->what);
    snprintf(f->why, sizeof f->why, "%s", error->message);
}

static void look_at(struct sp_section_finding *f, enum sp_section section)
{
    struct sp_error error = {0};
    struct sp_policy *policy = only(here.bound, section);
    f->kept = true;
    if (policy == NULL)
        (void)sp_fail(&error, SP_E_HOST, "no memory");
    if (policy == NULL || plan(policy, section == SP_SECTION_LIMITS, 0, &error) != 0)
        refuse(f, &error);
    free(policy);
}

/* Who enforces each, where the caller accepts whatever is missing: what is left. */
static void find_enforcers(struct sp_section_findings *findings)
{
    struct sp_error error;
    sp_auto_buffer claims;
    sp_buffer_init(&claims, 1u << 16);
    if (plan(here.bound, true, (1u << SP_ABILITY_COUNT) - 1, &error) != 0)
        return;
    sp_plan_enforced_by(&here.plan, &claims);
    sp_plan_recorded_by(&here.plan, &findings->recorded_by);
    json_t *object = json_loadb(claims.data, claims.size, 0, NULL);
    for (int i = 0; i < SP_SECTION_COUNT; i++) {
        json_t *layers = json_object_get(object, names[i]);
        char *text = layers != NULL ? json_dumps(layers, JSON_COMPACT) : NULL;
        size_t size = text != NULL ? strlen(text) + 1 : 0;
        if (size > 0 && size <= sizeof findings->all[i].enforced_by)
            memcpy(findings->all[i].enforced_by, text, size);
        free(text);
    }
    json_decref(object);
}

void sp_section_findings_make(struct sp_section_findings *ret_findings,
                              const char *python)
{
    struct sp_section_findings *f = ret_findings;
    struct sp_error error = {0};
    memset(f, 0, sizeof *f);
    sp_buffer_init(&f->recorded_by, 1u << 16);
    for (int i = 0; i < SP_SECTION_COUNT; i++) {
        f->all[i].name = names[i];
        strcpy(f->all[i].enforced_by, "[]");
    }
    f->made = sp_policy_here_make(sp_policy_builtin(EVERYTHING), python, NULL, &here,
                                  &error) == 0;
    if (f->made) {
        sp_limit_plan_close(&here.plan.limits);
        sp_limit_plan_remove(&here.plan.limits);
        for (int i = 0; i < SP_SECTION_COUNT; i++)
            look_at(&f->all[i], (enum sp_section)i);
        find_enforcers(f);
    } else {
        refuse(&f->all[0], &error);
    }
    here.plan.limits = (struct sp_limit_plan){0};
    sp_policy_here_release(&here);
}

void sp_section_findings_release(struct sp_section_findings *findings)
{
    sp_buffer_release(&findings->recorded_by);
}
