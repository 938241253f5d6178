/* The policies that are compiled in, by name. */
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
