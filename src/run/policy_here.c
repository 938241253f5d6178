#include "run/policy_here.h"

#include <stdlib.h>

#include "run/agents_path.h"

int sp_policy_here_make(const struct sp_policy *written, const char *python,
                        const char *script, struct sp_policy_here *ret_here,
                        struct sp_error *reterr)
{
    static char agents[PATH_MAX];
    struct sp_policy_here *here = ret_here;
    struct sp_limits limits;
    here->bound = NULL;
    here->plan.limits = (struct sp_limit_plan){0};
    here->refused.code = 0;
    here->granted = false;
    here->has_tmp = sp_places_want_tmp(written);
    for (int i = 0; i < SP_LIMIT_COUNT; i++)
        limits.value[i] = sp_policy_limit(written, (enum sp_limit)i);
    int code = sp_interpreter_find(python, &here->interpreter, reterr);
    if (code == 0)
        code = sp_agents_path(agents, sizeof agents, reterr);
    if (code == 0)
        code = sp_places_find(written, &here->interpreter, script,
                              here->has_tmp ? SP_TMP_HERE : NULL, agents,
                              getenv("PATH"), &here->places, reterr);
    if (code == 0)
        code = sp_policy_bind(written, &here->places.places, &here->bound, reterr);
    if (code == 0 && sp_plan_make(here->bound, &limits, SP_CALLS_FOLDED, 0, &here->plan,
                                  &here->refused) == 0) {
        here->refused.code = 0;
        /* Where the interpreter may not be read no run starts: that is the policy's doing. */
        here->granted =
            sp_plan_grant(&here->plan, &here->places.places, NULL, 0, NULL) == 0;
    }
    return code;
}

void sp_policy_here_release(struct sp_policy_here *here)
{
    sp_limit_plan_close(&here->plan.limits);
    sp_limit_plan_remove(&here->plan.limits);
    free(here->bound);
    here->bound = NULL;
}
