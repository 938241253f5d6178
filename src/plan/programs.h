/* Which files the guest's domain lets it execute, so that a program which the policy denies cannot
 * be started even by a call whose path changes after it was judged.
 */
#ifndef SP_PLAN_PROGRAMS_H
#define SP_PLAN_PROGRAMS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "policy/bind.h"
#include "seal/landlock/ruleset.h"

#define SP_EXECUTABLES_MAX      64u
#define SP_PROGRAMS_EACH_MAX    100u /* more are granted by their folders */
#define SP_EXECUTABLES_TEXT_MAX (8u * PATH_MAX)

struct sp_programs {
    bool judged;  /* the policy has rules on programs */
    bool bounded; /* the domain holds them too: all that is allowed can be said in it */
    bool by_folder; /* there are many: the domain grants the folders that they lie in */
    /* What may be executed besides: loaders of programs and interpreters of scripts that are
     * allowed, canonical. They are not programs that may be started as such. */
    const char *others[SP_EXECUTABLES_MAX];
    size_t others_count;
    char text[SP_EXECUTABLES_TEXT_MAX];
    size_t text_used;
};

/* Looks at the rules: sets `judged` and `bounded`. Pure. */
void sp_programs_plan(const struct sp_policy *policy, struct sp_programs *ret_programs);

/* Grants the domain what the rules allow, `interpreter` (which the run itself starts with), and what
 * those need. Nothing to do where the programs are not bounded. */
int sp_programs_grant(struct sp_programs *programs, const struct sp_policy *policy,
                      const struct sp_places *places, const char *interpreter,
                      struct sp_landlock *domain, struct sp_error *reterr)
    SP_MUST_CHECK;

#endif
