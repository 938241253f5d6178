/* A policy without its rules: what is in force where they are only observed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

int sp_policy_opened(const struct sp_policy *policy, struct sp_policy **ret_policy,
                     struct sp_error *reterr)
{
    struct sp_policy *opened = malloc(policy->size);
    if (opened == NULL)
        return sp_fail_errno(reterr, SP_E_HOST, "copy the policy");
    memcpy(opened, policy, policy->size);
    opened->rules_count = 0;
    for (int i = 0; i < SP_LIST_COUNT; i++)
        opened->lists[i].allow_given = 0;
    opened->settings[SP_SETTING_FORK].value = SP_ALLOW;
    opened->settings[SP_SETTING_NATIVE].value = SP_NATIVE_ALLOW;
    *ret_policy = opened;
    return 0;
}
