/* Observing (`mode = "observe"`): what the policy's rules would deny is recorded as that, and
 * done.
 *
 * The supervisor holds two policies then: the one that is in force, which has no rules, and
 * the one that is observed. Each call is decided by the observed one first. Where that says
 * no, nothing was done yet, the denial is written as an observation, and the call is decided
 * once more by the policy in force, as if it came now. What every policy forbids is forbidden
 * in both.
 */
#ifndef SP_SUPERVISE_OBSERVE_H
#define SP_SUPERVISE_OBSERVE_H

#include "supervise/supervisor.h"

/* Whether the denial by `verdict`, which is not recorded as one, is only observed; then the call is
 * decided once more. */
static inline bool sp_observes(struct sp_act_call *call,
                               const struct sp_verdict *verdict)
{
    bool observed = call->observing && verdict->by_rule;
    call->observed |= observed;
    call->denied |= observed;
    return observed;
}

/* `decide` is what decides such calls; where nothing is observed it is simply called. */
struct sp_answer sp_observe(struct sp_act_call *call,
                            struct sp_answer (*decide)(struct sp_act_call *call));

#endif
