/* A policy as it would hold in a run that started here: bound to the places of this machine and the
 * current folder, and what would be done about it. Nothing is started and nothing made.
 */
#ifndef SP_RUN_POLICY_HERE_H
#define SP_RUN_POLICY_HERE_H

#include "plan/interpreter.h"
#include "plan/places.h"
#include "plan/plan.h"

/* What stands for the private folder of a run, which has no name before the run. */
#define SP_TMP_HERE "{tmp}"

/* Large: one a process. */
struct sp_policy_here {
    struct sp_interpreter interpreter;
    struct sp_run_places places;
    struct sp_policy *bound; /* released by sp_policy_here_release */
    struct sp_plan plan;     /* of use only where nothing is refused */
    struct sp_error refused; /* code 0: it can be enforced here */
    bool granted;            /* and the plan has what the kernel is let do by itself */
    bool has_tmp;
};

/* `python`: the interpreter, NULL: find one; `script`: the program's folder, NULL: none. Must not be
 * moved afterwards. */
int sp_policy_here_make(const struct sp_policy *written, const char *python,
                        const char *script, struct sp_policy_here *ret_here,
                        struct sp_error *reterr) SP_MUST_CHECK;
void sp_policy_here_release(struct sp_policy_here *here);

#endif
