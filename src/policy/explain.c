/* The sentence that a denial is told with, and what would allow it. */
#include <stdio.h>

#include "policy/policy.h"

void sp_policy_explain(const struct sp_policy *p, const struct sp_verdict *v,
                       const char *operation, const char *target,
                       struct sp_explanation *ret_explanation)
{
    const char *name = sp_policy_text(p, p->name);
    if (v->rule[0] != '\0')
        snprintf(ret_explanation->message, sizeof ret_explanation->message,
                 "%s %s is denied by policy '%s' (rule %s, %s:%u)", operation, target,
                 name, v->rule, v->source, v->line);
    else
        snprintf(ret_explanation->message, sizeof ret_explanation->message,
                 "%s %s is denied under every policy", operation, target);
    if (p->network_denied && v->rule[0] != '\0')
        snprintf(ret_explanation->hint, sizeof ret_explanation->hint,
                 "to let the program use the network, run it with --policy trace-only");
    else
        snprintf(
            ret_explanation->hint, sizeof ret_explanation->hint,
            "nothing allows this: it would reach outside the run or blind its record");
}
