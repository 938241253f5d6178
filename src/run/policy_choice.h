/* The policy of a run, from what its caller says: a name, a file or a document, and grants.
 */
#ifndef SP_RUN_POLICY_CHOICE_H
#define SP_RUN_POLICY_CHOICE_H

#include "policy/read.h"

#define SP_POLICY_DEFAULT "no-network"

/* One --allow-... or --deny-...: comes before all that the policy says. */
struct sp_grant {
    enum sp_list list;
    enum sp_action action;
    const char *pattern;
};

struct sp_policy_choice {
    const char *name; /* of a built-in, or a file's path; NULL: SP_POLICY_DEFAULT */
    const struct sp_document
        *document; /* not NULL: the policy itself, `name` says how it
                                           is called */
    const struct sp_grant *grants;
    size_t grants_count;
    bool observe; /* deny nothing, whatever the policy says */
};

/* As written; the caller frees it. SP_E_POLICY, or SP_E_NOT_FOUND when there is no such file;
 * *ret_problems is all that is wrong with a file that can be read. */
int sp_policy_choose(const struct sp_policy_choice *choice,
                     struct sp_policy **ret_policy, struct sp_problems *ret_problems,
                     struct sp_error *reterr) SP_MUST_CHECK;

#endif
