/* The policy of a run, from what its caller says: a name, a file or a document, and grants.
 */
#ifndef SP_RUN_POLICY_CHOICE_H
#define SP_RUN_POLICY_CHOICE_H

#include "policy/read.h"
#include "run/grants.h"

#define SP_POLICY_DEFAULT "default"

struct sp_policy_choice {
    const char *name; /* of a built-in, or a file's path; NULL: SP_POLICY_DEFAULT */
    /* The policy itself, instead of its name: a document, or text in TOML. `name` then is what it
     * is called, NULL: "custom"; `source` the file it came from, NULL: none. */
    const struct sp_document *document;
    const char *text;
    size_t text_size;
    const char *source;
    const char *digest; /* that it must have before grants, NULL: any */
    const struct sp_grant *grants;
    size_t grants_count;
    bool observe; /* deny nothing, whatever the policy says */
};

/* As written; the caller frees it. SP_E_POLICY, or SP_E_NOT_FOUND when there is no such file;
 * *ret_problems is all that is wrong with a file that can be read. */
int sp_policy_choose(const struct sp_policy_choice *choice,
                     struct sp_policy **ret_policy, struct sp_problems *ret_problems,
                     struct sp_error *reterr) SP_MUST_CHECK;

/* The policy of a run, for its result and its trace: name, digest, mode and what was granted, as a
 * JSON object. */
void sp_policy_choice_write(const struct sp_policy *policy, struct sp_buffer *to);

#endif
