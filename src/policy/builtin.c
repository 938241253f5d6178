/* Finding a policy by name. */
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

const struct sp_policy *sp_policy_builtin(const char *name)
{
    const struct sp_policy *p;
    for (size_t i = 0; (p = sp_policy_builtin_at(i)) != NULL; i++)
        if (strcmp(sp_policy_text(p, p->name), name) == 0)
            return p;
    return NULL;
}

int sp_policy_load(const char *name, const struct sp_policy **ret_policy,
                   struct sp_error *reterr)
{
    const struct sp_policy *p = sp_policy_builtin(name);
    if (p != NULL) {
        *ret_policy = p;
        return 0;
    }
    char known[200] = "";
    size_t n = 0;
    for (size_t i = 0; (p = sp_policy_builtin_at(i)) != NULL; i++) {
        int k = snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "",
                         sp_policy_text(p, p->name));
        n += k > 0 && (size_t)k < sizeof known - n ? (size_t)k : 0;
    }
    return sp_fail(reterr, SP_E_POLICY, "unknown policy '%.100s': the policies are %s",
                   name, known);
}
