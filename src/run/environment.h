/* The environment that the guest is started with: what of the caller's the policy hands down, and
 * what a private folder and the limits of the run make necessary.
 *
 *     caller's, or given for this run -> [env] of the policy -> own values for HOME and the like
 *
 * Values stand in no trace; the names of what was withheld do.
 */
#ifndef SP_RUN_ENVIRONMENT_H
#define SP_RUN_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "policy/limit.h"
#include "policy/policy.h"

/* Of the names of variables that were withheld, in the trace. */
#define SP_WITHHELD_BYTES_MAX 8192u
#define SP_ENVIRONMENT_OWN    24u

struct sp_environment_source {
    char *const *variables; /* as environ */
    /* They were given for this run, one by one, so that the policy has no say. */
    bool given;
    const struct sp_policy *policy; /* bound */
    const char *tmp;                /* the private folder, NULL: none */
    const char *user_base; /* where the caller's own packages are, NULL: none */
    const struct sp_limits *limits; /* in force */
};

struct sp_environment {
    char **variables; /* NULL-terminated; the strings are borrowed, or in `own` */
    char *own[SP_ENVIRONMENT_OWN]; /* "NAME=value" that was set here */
    size_t own_count;
    size_t count;
    size_t withheld; /* of the caller's; where the policy only observes, would be */
    struct sp_buffer names; /* theirs, each ended by a zero; those that found room */
};

int sp_environment_build(const struct sp_environment_source *source,
                         struct sp_environment *ret_environment,
                         struct sp_error *reterr) SP_MUST_CHECK;
void sp_environment_release(struct sp_environment *environment);

/* As a JSON object, for the start record. */
void sp_environment_write(const struct sp_environment *environment, bool observed,
                          struct sp_buffer *to);

#endif
