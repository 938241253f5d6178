#include "plan/programs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "policy/pattern.h"
#include "sys/landlock.h"
#include "sys/program_file.h"
#include "sys/real_path.h"

#define CHAIN_MAX                                                                      \
    5 /* a script's interpreter may be a script: as many as the kernel follows */

/* What the programs of a folder are loaded and interpreted by, as nobody can tell which ones it
 * will hold. */
static const char *const common[] = {
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/env",
    "/usr/bin/perl",
    "/bin/dash",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
};

struct granting {
    struct sp_programs *programs;
    const struct sp_policy *policy;
    const struct sp_places *places;
    struct sp_landlock *domain;
    struct sp_error *reterr;
    int code;
    bool common_granted;
    char folder[PATH_MAX]; /* the last one that was granted */
};

/* A pattern that begins with a wildcard may mean any file: the domain cannot say that, and what is
 * not granted in it would be out of reach. Neither can it say "all but". */
static bool expressible(const struct sp_policy *policy)
{
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    for (uint32_t i = 0; i < policy->rules_count; i++) {
        if (rules[i].list != SP_LIST_PROCESS || rules[i].action != SP_ALLOW)
            continue;
        const char *pattern = sp_policy_text(policy, rules[i].pattern);
        if (rules[i].shape == SP_SHAPE_ANY ||
            (rules[i].shape == SP_SHAPE_GLOB && sp_pattern_fixed(pattern) < 2))
            return false;
    }
    return policy->lists[SP_LIST_PROCESS].allow_given != 0;
}

static bool many(const struct sp_policy *policy)
{
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    unsigned count = 0;
    for (uint32_t i = 0; i < policy->rules_count; i++)
        count += rules[i].list == SP_LIST_PROCESS && rules[i].action == SP_ALLOW;
    return count > SP_PROGRAMS_EACH_MAX;
}

void sp_programs_plan(const struct sp_policy *policy, struct sp_programs *ret_programs)
{
    ret_programs->judged = sp_policy_restricts(policy, SP_LIST_PROCESS);
    ret_programs->bounded =
        ret_programs->judged && !sp_policy_observes(policy) && expressible(policy);
    ret_programs->by_folder = ret_programs->bounded && many(policy);
    ret_programs->others_count = 0;
    ret_programs->text_used = 0;
}

static void grant(struct granting *g, const char *path)
{
    if (g->code == 0)
        g->code = sp_landlock_grant(g->domain, path, SP_FS_EXECUTE, g->reterr);
}

/* The paths are few, however many rules there are. */
static bool known(const struct granting *g, const char *path)
{
    const struct sp_landlock *domain = g->domain;
    for (unsigned i = 0; i < domain->paths_count; i++)
        if ((domain->paths[i].access & SP_FS_EXECUTE) != 0 &&
            strcmp(domain->paths[i].path, path) == 0)
            return true;
    return false;
}

/* Granted under its canonical path, which is kept for as long as the plan is. `other`: it is none
 * of the allowed programs, but they need it. false: it is not there, or was granted before. */
static bool grant_kept(struct granting *g, const char *path, bool other)
{
    struct sp_programs *p = g->programs;
    char real[PATH_MAX];
    if (g->code != 0 || !sp_real_path(path, real) || known(g, real))
        return false;
    size_t size = strlen(real) + 1;
    if (p->others_count == SP_EXECUTABLES_MAX || size > sizeof p->text - p->text_used) {
        g->code =
            sp_fail(g->reterr, SP_E_POLICY,
                    "the programs that the policy allows need more than %u others",
                    SP_EXECUTABLES_MAX);
        return false;
    }
    char *copy = p->text + p->text_used;
    memcpy(copy, real, size);
    p->text_used += size;
    if (other)
        p->others[p->others_count++] = copy;
    grant(g, copy);
    return g->code == 0;
}

/* Loader, interpreter, the interpreter's loader ... of one file. `env NAME` runs what PATH finds. */
static void grant_chain(struct granting *g, const char *path)
{
    struct sp_program_file file;
    char next[PATH_MAX];
    char named[PATH_MAX];
    snprintf(next, sizeof next, "%s", path);
    for (int depth = 0; depth < 2 * CHAIN_MAX && g->code == 0; depth++) {
        sp_auto_fd fd = open(next, O_PATH | O_CLOEXEC);
        if (fd < 0)
            return;
        sp_program_file_read(fd, &file);
        if (file.by[0] != '/')
            return;
        bool fresh = grant_kept(g, file.by, true);
        const char *base = strrchr(file.by, '/') + 1;
        bool env =
            file.kind == SP_PROGRAM_TEXT && strcmp(base, "env") == 0 &&
            g->places->program(g->places->context, file.argument, named, sizeof named);
        if (env && grant_kept(g, named, true))
            grant_chain(g, file.by);
        else if (!fresh && !env)
            return; /* it went this way before */
        snprintf(next, sizeof next, "%s", env ? named : file.by);
    }
}

/* The nearest folder that is there, of one that is not or that may be exchanged for another file
 * meanwhile. */
static void grant_folder_of(struct granting *g, const char *path)
{
    char folder[PATH_MAX];
    char real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1,
             path);
    if (strcmp(folder, g->folder) == 0)
        return;
    memcpy(g->folder, folder, sizeof folder);
    while (!sp_real_path(folder, real) && strcmp(folder, "/") != 0) {
        char *end = strrchr(folder, '/');
        end[end == folder] = '\0';
    }
    grant_kept(g, folder, false);
}

static void grant_common(struct granting *g)
{
    if (g->common_granted)
        return;
    g->common_granted = true;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (grant_kept(g, common[i], true))
            grant_chain(g, common[i]);
}

static void grant_plain(struct granting *g, const char *path)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (g->programs->by_folder) {
        if (there && S_ISDIR(st.st_mode))
            grant_kept(g, path, false);
        else
            grant_folder_of(g, path);
        grant_common(g);
        return;
    }
    if (there)
        grant(g, path);
    if (there && S_ISDIR(st.st_mode))
        grant_common(g);
    else if (there)
        grant_chain(g, path);
    if (!there || (S_ISREG(st.st_mode) &&
                   sp_policy_path(g->policy, SP_LIST_WRITE, path).action == SP_ALLOW &&
                   sp_policy_restricts(g->policy, SP_LIST_WRITE)))
        grant_folder_of(g, path);
}

/* The part before the first wildcard. */
static void grant_glob(struct granting *g, const char *pattern)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)sp_pattern_fixed(pattern), pattern);
    grant_kept(g, folder, false);
    grant_common(g);
}

int sp_programs_grant(struct sp_programs *programs, const struct sp_policy *policy,
                      const struct sp_places *places, const char *interpreter,
                      struct sp_landlock *domain, struct sp_error *reterr)
{
    struct granting g = {.programs = programs,
                         .policy = policy,
                         .places = places,
                         .domain = domain,
                         .reterr = reterr};
    const struct sp_policy_rule *rules = sp_policy_rules(policy);
    bool shell = false;
    if (!programs->bounded)
        return 0;
    /* The run's own start. */
    grant_kept(&g, interpreter, true);
    grant_chain(&g, interpreter);
    for (uint32_t i = 0; i < policy->rules_count && g.code == 0; i++) {
        const char *written = sp_policy_text(policy, rules[i].written);
        const char *pattern = sp_policy_text(policy, rules[i].pattern);
        if (rules[i].list != SP_LIST_PROCESS || rules[i].action != SP_ALLOW)
            continue;
        /* What is granted besides the interpreter may use the shell (supervise/program.c). */
        if (!shell && strncmp(written, "{python}", 8) != 0) {
            shell = true;
            if (grant_kept(&g, "/bin/sh", true))
                grant_chain(&g, "/bin/sh");
        }
        if (rules[i].shape == SP_SHAPE_PLAIN)
            grant_plain(&g, pattern);
        else if (rules[i].shape == SP_SHAPE_GLOB)
            grant_glob(&g, pattern);
    }
    return g.code;
}
