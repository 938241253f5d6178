/* From a document to a policy: every key known, every value of its kind, and all that is wrong
 * told at once.
 */
#ifndef SP_POLICY_READ_H
#define SP_POLICY_READ_H

#include "policy/document.h"
#include "policy/model.h"

#define SP_PROBLEMS_MAX 64u

struct sp_problem {
    unsigned line; /* 0: not known */
    unsigned column;
    char message[320];
};

/* All that is wrong with one file, in its order. */
struct sp_problems {
    unsigned count; /* may be more than are kept */
    struct sp_problem items[SP_PROBLEMS_MAX];
};

/* How a policy that another extends is found: a built-in by its name, a file by its path, which
 * counts from the folder of `from`. The result is the caller's to free, unless it is a built-in's. */
struct sp_policy_finder {
    int (*find)(void *context, const char *name, const char *from,
                const struct sp_policy **ret_policy, struct sp_error *reterr);
    void *context;
};

/* Reads a document into a model. `name` and `source` are what the policy is called and what its
 * file is called in messages. 0, or SP_E_POLICY with *ret_problems filled in. */
int sp_policy_read(const struct sp_document *document, const char *name,
                   const char *source, const struct sp_policy_finder *finder,
                   struct sp_model *ret_model, struct sp_problems *ret_problems)
    SP_MUST_CHECK;

#endif
