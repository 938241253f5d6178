/* The policy of a run as a request says it: a name, a text or an object, and what is granted.
 */
#ifndef SP_CLI_SPEC_POLICY_H
#define SP_CLI_SPEC_POLICY_H

#include <jansson.h>

#include "run/policy_choice.h"

/* Where a request's policy is kept while the run lasts. */
struct sp_spec_policy {
    struct sp_document document;
    char *name;
    char *text;
    char *source;
    char *digest;
    struct sp_grant *grants;
    char **patterns;
    size_t count;
};

/* Fills in the choice, which points into *keep and `spec`'s copy of it. */
int sp_spec_policy_take(const json_t *spec, struct sp_spec_policy *keep,
                        struct sp_policy_choice *ret_choice, struct sp_error *reterr)
    SP_MUST_CHECK;

/* A text, or {"base64": "..."} for bytes that are none. The caller frees it; NULL when the value is
 * neither, or holds a NUL. */
char *sp_spec_text(const json_t *value);

#endif
