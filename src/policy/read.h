/* From a document to a policy: every key known, every value of its kind, and all that is wrong
 * told at once.
 */
#ifndef SP_POLICY_READ_H
#define SP_POLICY_READ_H

#include "policy/document.h"
#include "policy/model.h"
#include "policy/problem.h"

/* How a policy that another extends is found: a built-in by its name, a file by its path, which
 * counts from the folder of `from`. The result is the finder's. What is wrong inside it, the
 * finder adds to the same problems. */
struct sp_policy_finder {
    int (*find)(void *context, const char *name, const char *from,
                const struct sp_policy **ret_policy, struct sp_error *reterr);
    void *context;
};

/* Reads a document into a model. `name` and `source` are what the policy is called and what its
 * file is called in messages. 0, or SP_E_POLICY with what is wrong added to *problems. */
int sp_policy_read(const struct sp_document *document, const char *name,
                   const char *source, const struct sp_policy_finder *finder,
                   struct sp_model *ret_model, struct sp_problems *problems)
    SP_MUST_CHECK;

#endif
