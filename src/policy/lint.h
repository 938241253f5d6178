/* What is odd about a policy that is no error: rules that decide nothing.
 */
#ifndef SP_POLICY_LINT_H
#define SP_POLICY_LINT_H

#include "policy/policy.h"
#include "policy/problem.h"

/* Adds warnings about what stands in the file `source` itself, of a policy as written. */
void sp_policy_lint(const struct sp_policy *policy, const char *source,
                    struct sp_problems *problems);

#endif
