/* What is granted and denied for one run by name: --allow-..., --deny-... on the command line,
 * `allow` and `deny` in the API. Such a rule comes before all that the policy says.
 */
#ifndef SP_RUN_GRANTS_H
#define SP_RUN_GRANTS_H

#include "base/buffer.h"
#include "policy/model.h"

struct sp_grant {
    enum sp_list list;
    enum sp_action action;
    const char
        *pattern; /* as it was given; relative paths count from the current folder */
};

/* The list that a grant's word means ("read", "net" ...); -1: there is no such word. */
int sp_grant_list(const char *word);

/* All the words, ended by NULL. */
const char *const *sp_grant_words(void);

/* Adds the rules. SP_E_POLICY: the message names the option and what is wrong with its value. */
int sp_grants_add(struct sp_model *model, const struct sp_grant *grants, size_t count,
                  struct sp_error *reterr) SP_MUST_CHECK;

/* What was granted and denied by name, as a JSON array. */
void sp_grants_write(const struct sp_policy *policy, struct sp_buffer *to);

#endif
