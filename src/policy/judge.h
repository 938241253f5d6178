/* What the judging of every list has in common. Internal to src/policy. */
#ifndef SP_POLICY_JUDGE_H
#define SP_POLICY_JUDGE_H

#include "policy/pattern.h"

/* The rule that fits best so far; between equals, one that denies. */
struct sp_best {
    const struct sp_policy_rule *rule; /* NULL: none */
    sp_fit fit;
};
void sp_judge_offer(struct sp_best *best, const struct sp_policy_rule *rule,
                    sp_fit fit);

/* The verdict of the best rule; without one, what the list says about what it does not name. */
struct sp_verdict sp_judge_best(const struct sp_policy *p, enum sp_list list,
                                const struct sp_best *best);
struct sp_verdict sp_judge_rule(const struct sp_policy *p,
                                const struct sp_policy_rule *rule);
/* A denial by a setting that has that value. */
struct sp_verdict sp_judge_setting(const struct sp_policy *p, enum sp_setting setting,
                                   enum sp_list list, const char *value);
/* A denial by [imports] native. */
struct sp_verdict sp_judge_native(const struct sp_policy *p);

#endif
